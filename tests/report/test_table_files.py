"""Tables in files say what the table says, and run nothing."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.sample_document import results

from fairsieve.errors import InvalidInputError
from fairsieve.report.document import Cell, Column, Table
from fairsieve.report.table_files import (
    FORMULA_STARTS,
    _for_spreadsheet,
    _latex,
    _safe_field,
    _table_csv,
    _table_latex,
    markdown,
    table_markdown,
    write_table_files,
)

words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
hostile = st.one_of(
    words,
    st.sampled_from(["=1+1", "@x", "-2+3", "|", "a|b", "\\", "$x$", "<b>", "a\nb", "a\rb", "[x]", "**"]),
)


def table_of(rows):
    return Table(
        "one", "One", [Column("a"), Column("b", numeric=True)], [[Cell(x), Cell(y)] for x, y in rows]
    )


@given(st.lists(st.tuples(hostile, hostile), max_size=4))
def test_csv_gives_back_what_was_put_in(rows):
    read = list(csv.reader(io.StringIO(_table_csv(table_of(rows)), newline="")))
    assert read == [["a", "b"], *([_safe_field(x), _safe_field(y)] for x, y in rows)]


@given(st.one_of(st.text(max_size=8), st.sampled_from(["\t=1", "-1e5", "-1_0", "+-1", "－1", "-1 ± 2"])))
def test_no_text_begins_a_formula_but_a_number(text):
    shown = _for_spreadsheet(text)
    assert shown.removeprefix("'") == text.removeprefix("'")
    if shown.startswith(FORMULA_STARTS):
        assert re.fullmatch(r"[+-][\d.]+(e[+-]?\d+)?", shown, flags=re.IGNORECASE)
        float(shown)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_left_alone(number):
    assert _for_spreadsheet(repr(number)) == repr(number)


def test_csv_has_bare_values_and_references_beside_the_text():
    head, first, *_ = csv.reader(io.StringIO(_table_csv(results())))
    assert head[1:5] == [
        "Label flips, EO: accuracy ↑",
        "Label flips, EO: accuracy ↑: value",
        "Label flips, EO: accuracy ↑: the paper's",
        "Label flips, EO: accuracy ↑: deviations apart",
    ]
    assert first[:5] == ["LR", "0.663 ± .001", "0.663", "0.665 ± .002", "0"]


@given(st.lists(st.tuples(hostile, hostile), min_size=1, max_size=4))
def test_markdown_keeps_rows_and_columns(rows):
    lines = table_markdown(table_of(rows)).splitlines()[2:]
    assert len(lines) == len(rows) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@given(hostile)
def test_markdown_escapes_give_the_text_back(text):
    plain = re.sub(r"\\(.)", r"\1", markdown(text)).replace("&amp;", "&")
    assert plain == " ".join(text.split())
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>*`|]", markdown(text))


@given(hostile)
def test_latex_leaves_nothing_special(text):
    left = re.sub(r"\\[&%$#_{}]|\\text[a-z]+\{\}|\\ensuremath\{[^}]*\}|\{\[\}", "", _latex(text))
    assert not set(left) & set("\\&%$#_{}~^<>|[")


def test_latex_marks_best_and_second():
    text = _table_latex(results())
    assert r"\textbf{0.726 \ensuremath{\pm} .001} {\scriptsize(0.727 \ensuremath{\pm} .002)}" in text
    assert r"\underline{0.720 \ensuremath{\pm} .001}" in text
    assert text.count(r"\\") == len(results().rows) + 2
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{Label flips, EO} &" in text
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in text
    assert r"\begin{tabular}{lrrrrrrrr}" in text


def test_all_three_are_written(tmp_path):
    paths = write_table_files(results(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert (tmp_path / "table1.md").read_text(encoding="utf-8") == table_markdown(results())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"in a folder that exists; .*nowhere.table1\.md"):
        write_table_files(results(), tmp_path / "nowhere")
