"""Files as people have them are read, or refused in words that help."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import optional as packages
from fairsieve.errors import InvalidInputError, MissingExtraError
from fairsieve.tabular.reading.columns import MISSING, Reading, as_numbers, find_column, kind_of
from fairsieve.tabular.reading.read import read_frame, read_table


def write(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_values_are_stripped_and_gaps_are_none(tmp_path):
    table = read_table(write(tmp_path, 'a, b\n 1 ,x y\nNA, ?\n,"z, z"\n'))
    assert table.cells("a") == ["1", None, None]
    assert table.cells("b") == ["x y", None, "z, z"]
    assert table.rows.tolist() == [2, 3, 4]


def test_rows_are_numbered_as_in_a_spreadsheet(tmp_path):
    table = read_table(write(tmp_path, 'a,b\n1,"two\nlines"\n\n3,4\n'))
    assert table.rows.tolist() == [2, 4]
    assert table.cells("a") == ["1", "3"]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("\ufeffa,b\n1,é\n".encode(), None),
        ("a,b\n1,é\n".encode("cp1252"), "Windows-1252"),
        ("a,b\n1,é\n".encode("utf-16"), "UTF-16"),
        ("a,b\n1,é\n".encode("utf-32"), "UTF-32"),
        ("\ufeffa,b\n1,é\n".encode("utf-32-be"), "UTF-32"),
        (b"a,b\r\n1,\xc3\xa9\r\n", None),
    ],
)
def test_encodings_and_line_ends(tmp_path, content, note):
    table = read_table(write(tmp_path, content))
    assert list(table.columns) == ["a", "b"]
    assert table.cells("b") == ["é"]
    assert table.notes == [] if note is None else note in table.notes[0]


def test_short_rows_have_gaps_and_unnamed_columns_are_told(tmp_path):
    table = read_table(write(tmp_path, ",a,b\n0,1,2\n1,3\n"))
    assert list(table.columns) == ["a", "b"]
    assert table.cells("b") == ["2", None]
    assert "fewer fields than the first row has names" in table.notes[0]
    assert "1 (row 3)" in table.notes[0]
    assert table.notes[1] == "1 column has no name and is left out."
    whole = read_table(write(tmp_path, 'a,b\n"x, y\nz",1\n"two ""2""",\n5" pipe,3\n'))
    assert whole.cells("a") == ["x, y\nz", 'two "2"', '5" pipe']
    assert whole.notes == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "table.csv is empty: the first row must hold the columns' names"),
        (" \n \n", "is empty"),
        ("a,b\n", "must have rows below the names of its columns"),
        ("a;b\n1;2;3\n", "seems to have a semicolon between its columns, not a comma: add --separator ';'"),
        ("a\tb\n1\t2\t3\n", "seems to have a tab between its columns, not a comma: add --separator tab"),
        (
            "a,b\n1,2\n1,2,3\n",
            "must have as many fields in every row as in the first, 2; row 3 has 3: a text",
        ),
        ('a,b\n1,"2\n', "one is not closed: add it"),
        ("a,a\n1,2\n", "must have different names; 'a' is there 2 times: rename one"),
        (b"PK\x03\x04rest", "looks like a workbook .*: save the sheet as CSV"),
        (
            "a,b\n1,x\ry\n2,z\n",
            "has a carriage return within row 2, which would cut it in two: take it out",
        ),
        (b"\x1f\x8b\x08rest", "is neither text nor Parquet"),
        (b"a,b\n\0,1", "is neither text nor Parquet"),
        (b"PAR1 nothing", "is not a Parquet file that can be read"),
    ],
)
def test_broken_files_are_refused_in_words(tmp_path, content, message):
    with pytest.raises(InvalidInputError, match=message):
        read_table(write(tmp_path, content))


def test_an_index_of_pandas_is_a_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [31, 50], "sex": ["F", "M"]}).set_index("age")
    frame.to_parquet(tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").cells("age") == [31, 50]


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match=r"must be a file that can be read; .*No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match=r"must be a file that can be read; .*directory"):
        read_table(tmp_path)


def test_a_misspelt_column_is_met_with_the_closest(tmp_path):
    table = read_table(write(tmp_path, "age,income\n1,2\n"))
    with pytest.raises(
        InvalidInputError, match=r"--label must be a column of table.csv; got 'Incom'. Did you mean"
    ):
        find_column(table, "Incom", "--label")
    table = read_table(write(tmp_path, "39,50000\n1,2\n"))
    with pytest.raises(InvalidInputError, match="The first row must hold the columns' names"):
        find_column(table, "income", "--label")


def test_parquet_is_read_as_csv_is(tmp_path):
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            "half": [0.5, np.nan, 1.5],
            "text": ["x", None, "?"],
            "yes": [True, False, True],
            "kind": pandas.Categorical(["a", "b", None]),
        }
    )
    frame.to_parquet(tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert table.cells("whole") == [1, None, 3]
    assert table.cells("half") == [0.5, None, 1.5]
    assert table.cells("text") == ["x", None, None]
    assert table.cells("yes") == ["True", "False", "True"]
    assert table.cells("kind") == ["a", "b", None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"separator": "::"},
            "--separator must be one character, or tab, and no quote or line end, or auto; got '::'",
        ),
        ({"separator": '"'}, "no quote or line end"),
        ({"separator": "\n"}, "no quote or line end"),
        ({"decimal": "x"}, "--decimal must be . or ,"),
        ({"separator": ",", "decimal": ","}, "differ from the separator"),
    ],
)
def test_readings_are_checked(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Reading(**options)


def test_a_missing_package_is_named(monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(packages, "import_module", fail)
    with pytest.raises(
        MissingExtraError, match=r"reading a table needs pandas: pip install 'fairsieve\[table\]'"
    ):
        packages.check_packages()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8), st.sampled_from([",", ";", "\t", "|"]))
def test_any_text_comes_back(rows, separator):
    """Python's own writer is the oracle; what is lost is space around values, and which gap it was."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(stream.getvalue().encode())
        if not any("".join(row).strip() for row in rows):
            return  # nothing but blank lines
        table = read_table(path, Reading(separator))
    there = [place for place, row in enumerate(rows) if "".join(row).strip()]  # others are blank lines
    assert table.rows.tolist() == [place + 2 for place in there]
    for place, name in enumerate(("first", "second")):
        expected = [rows[row][place].strip() for row in there]
        assert table.cells(name) == [None if value in MISSING else value for value in expected]


def test_lists_and_dicts_in_a_frame_are_texts():
    frame = pandas.DataFrame(
        {"tags": [["a", "b"], None, ["a", "b"]], "more": [{"k": 1}, {"k": 1}, float("nan")]}
    )
    table = read_frame(frame)
    assert table.cells("tags") == ["['a', 'b']", None, "['a', 'b']"]
    assert table.cells("more") == ["{'k': 1}", "{'k': 1}", None]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("pay;share\n€ 1.234,50;70 %\n€ 2,00;5 %\n", {"pay": [1234.5, 2.0], "share": [70.0, 5.0]}),
        ('pay,share\n"1,234.5",$5\n2.25,-$6\n', {"pay": [1234.5, 2.25], "share": [5.0, -6.0]}),
        ("pay\n1'234\n1 234 567.5\n", {"pay": [1234.0, 1234567.5]}),
    ],
)
def test_numbers_as_people_write_them_are_read(tmp_path, text, numbers):
    table = read_table(write(tmp_path, text))
    for name, expected in numbers.items():
        assert kind_of(table, name) == "numbers"
        assert as_numbers(table, name).tolist() == expected


def test_arrow_frames_are_read():
    pyarrow = pytest.importorskip("pyarrow")
    table = read_frame(pyarrow.table({"whole": [2**60, None], "text": ["x", "?"], "list": [[1, 2], None]}))
    assert table.cells("whole") == [2**60, None]
    assert table.cells("text") == ["x", None]
    assert table.cells("list") == ["[1, 2]", None]
