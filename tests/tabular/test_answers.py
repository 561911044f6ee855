"""Answers of people who checked labels: they must belong to the table, and say one thing about each row."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.people import people, write_csv

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.answers import ANSWER_COLUMNS, Answers, read_answers, unsure_word
from fairsieve.tabular.reading.labels import find_labels
from fairsieve.tabular.reading.read import read_table
from fairsieve.tabular.row_checksums import row_checksums, table_checksum


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read_table(write_csv(tmp_path_factory.mktemp("answers") / "people.csv", people(60)))


@pytest.fixture
def write(table, tmp_path):
    """Write answers to the first rows, with some fields changed."""

    def make(verified, *, separator=",", name="review.csv", **changes):
        labels = table.columns["income"].tolist()
        sums = row_checksums(table, range(len(verified)))
        rows = []
        for i, text in enumerate(verified):
            fields = [
                str(table.rows[i]),
                "",
                labels[i],
                text,
                "1.5".replace(".", "," if separator == ";" else "."),
                sums[i],
            ]
            line = dict(zip(ANSWER_COLUMNS, fields, strict=True))
            rows.append(line | {key: value[i] for key, value in changes.items() if i in value})
        stream = io.StringIO()
        writer = csv.DictWriter(stream, ANSWER_COLUMNS, delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)
        (tmp_path / name).write_text(stream.getvalue(), encoding="utf-8")
        return tmp_path / name

    return make


def read(table, *paths):
    return read_answers(paths, table, find_labels(table, "income"))


@pytest.mark.parametrize("separator", [",", ";"])
def test_answers_are_read_as_a_spreadsheet_saves_them(table, write, separator):
    found = read(table, write(["high", "LOW", "", "unsure", "'low"], separator=separator))
    assert found.rows.tolist() == [2, 3, 6]
    assert found.codes.tolist() == [0, 1, 1]
    assert found.weights.tolist() == [1.5] * 3
    assert (found.unsure, found.unanswered) == (1, 1)
    assert [("high", "low")[code] for code in found.given] == [
        table.columns["income"].tolist()[i] for i in (0, 1, 4)
    ]


def test_several_files_are_one(table, write):
    first, second = write(["high"], name="a.csv"), write(["high", "low"], name="b.csv")
    assert read(table, first, second).codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("verified", "changes", "message"),
    [
        (
            ["high", "?"],
            {"row_checksum": {1: "rother"}},
            r"1 of the 2 rows of review.csv .* \(the first: row 3\)",
        ),
        (["high"], {"row": {0: "900"}}, "are not in it or say something else there"),
        (["high"], {"row": {0: "two"}}, "the first: row without a number"),
        (
            ["hihg"],
            {},
            "must be one of high, low, empty, or unsure; got 'hihg' for row 2. Did you mean 'high'",
        ),
        (["", "unsure", ""], {}, "2 empty and 1 unsure ones and no other: answer some rows first"),
        (["high"], {"sampling_weight": {0: "-1"}}, "sampling_weight in review.csv must be a number above 0"),
        (["high"], {"given_label": {0: "neither"}}, "put corrections into verified_label"),
    ],
)
def test_what_is_wrong_with_answers_is_told(table, write, verified, changes, message):
    with pytest.raises(InvalidInputError, match=message):
        read(table, write(verified, **changes))


def test_contradictory_answers_are_refused(table, write):
    first, second = write(["high"], name="a.csv"), write(["low"], name="b.csv")
    with pytest.raises(InvalidInputError, match=r"row 2 of people.csv is 'high' in a.csv and 'low' in b.csv"):
        read(table, first, second)


def test_another_kind_of_file_is_refused(table, tmp_path):
    path = write_csv(tmp_path / "other.csv", {"row": ["2"], "answer": ["high"]})
    with pytest.raises(InvalidInputError, match=r"other.csv has no verified_label"):
        read(table, path)


def test_answers_from_another_table_are_refused(table, write, tmp_path):
    path = write(["high", "low", "high"])
    other = read_table(write_csv(tmp_path / "other.csv", people(60, seed=1)))
    with pytest.raises(InvalidInputError, match=r"3 of the 3 rows of review.csv are not in it"):
        read(other, path)


def test_a_checksum_is_of_what_a_row_says_not_of_how_it_is_written(tmp_path):
    columns = {"a": ["1,0", "2,5"], "b": ["x", ""]}
    same = {"b": ["x", "NA"], "a": ["1", "2.50"]}
    tables = [
        read_table(write_csv(tmp_path / "one.csv", columns, ";")),
        read_table(write_csv(tmp_path / "two.csv", same, ",")),
    ]
    assert row_checksums(tables[0], [0, 1]) == row_checksums(tables[1], [0, 1])
    assert table_checksum(tables[0]) != table_checksum(tables[1])
    assert len(set(row_checksums(tables[0], [0, 1, 0]))) == 2


@given(st.sets(st.integers(2, 60)), st.sets(st.integers(2, 60)))
def test_answers_find_their_rows_in_any_part(answered, part):
    rows = np.array(sorted(answered), np.int64)
    answers = Answers(rows, rows % 2, rows % 2, rows / 10, 0, 0)
    codes, weights = answers.over(np.array(sorted(part), np.int64))
    expected = [(row % 2, row / 10) if row in answered else (-1, 1.0) for row in sorted(part)]
    assert list(zip(codes.tolist(), weights.tolist(), strict=True)) == expected


def test_the_word_for_unsure_is_no_label():
    assert unsure_word(["UNSURE", "(unsure)", "x"]) == "((unsure))"
