"""What stands between fields, and the decimal mark, are found from the first rows, or not assumed."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.tabular.reading.columns import Reading, parse_numbers
from fairsieve.tabular.reading.read import SEPARATORS, assume_dialect, read_table


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a,b\n1.5,2\n", ",", "."),
        ("a;b\n1,5;2\n", ";", ","),
        ("size, cm;weight\n1,5;2,5\n3,25;1\n", ";", ","),  # a comma in a name
        ("a\tb\n1,5\t2\n", "\t", ","),
        ("a|b\n1.5|2\n", "|", "."),
        ("a;b\n1,500;x\n12,250;y\n", ";", "."),  # perhaps thousands: not assumed
        ("a;b\n1,5;2.5\n", ";", "."),  # both marks: not assumed
        ("a;b\n1.234,5;2\n", ";", ","),
        ("a;b;c\n1;2;3\n1;2\n1;2;3\n", ";", "."),  # a row that is cut short
        ("a\n1\n2\n", ",", "."),
        ('a;b\n"x, y";2,5\n', ";", ","),
    ],
)
def test_separator_and_decimal_mark_are_found_together(text, separator, decimal):
    found, notes = assume_dialect(text, Reading())
    assert (found.separator, found.decimal) == (separator, decimal)
    assert bool(notes) == ((separator, decimal) != (",", "."))
    assert assume_dialect(text, found) == (found, [])  # what is said is not assumed


def test_what_was_assumed_is_told_and_numbers_are_right(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size;name\n1.234,5;x\n0,25;y\n", encoding="utf-8")
    table = read_table(path)
    assert parse_numbers(table.frame["size"], table.reading.decimal).numbers.tolist() == [1234.5, 0.25]
    assert table.notes == [
        "Assumed from the first rows: a semicolon between fields and a decimal comma in numbers; --separator and "
        "--decimal say otherwise."
    ]


@given(
    st.lists(st.lists(st.text('ab ,;|\t.1"\n', max_size=6), min_size=2, max_size=2), min_size=2, max_size=8),
    st.sampled_from(list(SEPARATORS)),
)
def test_a_table_in_quotes_is_split_by_its_own_separator(rows, separator):
    """Whatever is in the fields, if only its separator makes the most equal columns."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([["one", "two"], *rows])
    text = stream.getvalue()
    found, _ = assume_dialect(text, Reading())
    split = list(csv.reader(io.StringIO(text, newline=""), delimiter=found.separator))
    assert len({len(row) for row in split if row}) == 1
    assert len(split[0]) >= 2
