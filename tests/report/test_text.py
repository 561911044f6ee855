"""Tables as text say what the table says, and run nothing."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import estimate_clean_ratio, select
from fairsieve.data import make_synthetic
from fairsieve.report.document import Cell, Column, Table
from fairsieve.report.text import FORMULA_STARTS, csv_text, markdown, table_markdown

words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
hostile = st.one_of(
    words,
    st.sampled_from(["=1+1", "@x", "-2+3", "|", "a|b", "\\", "$x$", "<b>", "a\nb", "a\rb", "[x]", "**"]),
)


def field(value):
    """One value as it is read back from CSV."""
    ((read, _),) = csv.reader(io.StringIO(csv_text([[value, ""]]), newline=""))
    return read


@given(st.one_of(st.text(max_size=8), st.sampled_from(["\t=1", "-1e5", "-1_0", "+-1", "－1", "-1 ± 2"])))
def test_no_text_begins_a_formula_but_a_number(text):
    shown = field(text)
    assert shown.replace("'", "") == text.replace("'", "").replace("\r\n", "\n").replace("\r", "\n")
    if shown.startswith(FORMULA_STARTS[:4]):
        assert re.fullmatch(r"[+-](\d+\.?\d*|\.\d+)(e[+-]?\d+)?", shown, flags=re.IGNORECASE)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_left_alone(number):
    assert field(number) == field(repr(number)) == repr(number)


@given(st.lists(st.tuples(hostile, hostile), min_size=1, max_size=4))
def test_markdown_keeps_rows_and_columns(rows):
    heads = [Column("a"), Column("b", numeric=True)]
    table = Table("one", "One", heads, [[Cell(x), Cell(y)] for x, y in rows])
    lines = table_markdown(table).splitlines()[2:]
    assert len(lines) == len(rows) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@given(hostile)
def test_markdown_escapes_give_the_text_back(text):
    plain = re.sub(r"\\(.)", r"\1", markdown(text)).replace("&amp;", "&")
    assert plain == " ".join(text.split())
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>*`|]", markdown(text))


def test_estimates_and_selections_show_a_bar_for_each_cell():
    samples = make_synthetic(400, seed=0)
    estimate = estimate_clean_ratio(samples.features, samples.labels, sensitive_features=samples.groups)
    losses = np.linspace(0, 1, 400)
    chosen = select(losses, samples.labels, samples.groups, None, 0.9)
    for shown in (estimate._repr_html_(), chosen._repr_html_()):
        assert shown.count("<tr>") == 5
    assert chosen._repr_html_().count('class="bar"') == 4
    assert "360 of 400 samples selected" in chosen._repr_html_()
