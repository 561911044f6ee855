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
from fairsieve.report.table_files import _latex, _table_csv, _table_latex, write_table_files
from fairsieve.report.text import table_markdown

words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
hostile = st.one_of(
    words,
    st.sampled_from(["=1+1", "@x", "-2+3", "|", "a|b", "\\", "$x$", "<b>", "a\nb", "a\rb", "[x]", "**"]),
)


def test_csv_has_bare_values_and_references_beside_the_text():
    head, first, *_ = csv.reader(io.StringIO(_table_csv(results())))
    assert head[1:5] == [
        "Label flips, EO: accuracy ↑",
        "Label flips, EO: accuracy ↑: value",
        "Label flips, EO: accuracy ↑: the paper's",
        "Label flips, EO: accuracy ↑: deviations apart",
    ]
    assert first[:5] == ["LR", "0.663 ± .001", "0.663", "0.665 ± .002", "0"]


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
