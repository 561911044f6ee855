"""Adult as a raw table: every row, and exactly the labels that were asked to be wrong."""

from __future__ import annotations

import csv

import pytest

from fairsieve.data.adult import COLUMNS
from fairsieve.data.export import export_csv
from fairsieve.errors import InvalidInputError


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def test_rows_and_wrong_labels(tmp_path):
    assert len(export_csv("adult", tmp_path / "right.csv", rows=500)) == 0
    wrong = export_csv("adult", tmp_path / "wrong.csv", rows=500, wrong=0.2, seed=3)
    right, changed = rows_of(tmp_path / "right.csv"), rows_of(tmp_path / "wrong.csv")
    assert tuple(right[0]) == COLUMNS
    assert len(right) == len(changed) == 501
    differing = [
        place + 1 for place, rows in enumerate(zip(right, changed, strict=True)) if rows[0] != rows[1]
    ]
    assert differing == wrong.tolist()
    assert len(wrong) == 100
    assert {row[-1] for row in changed[1:]} == {"<=50K", ">50K"}
    again = export_csv("adult", tmp_path / "again.csv", rows=500, wrong=0.2, seed=3)
    assert again.tolist() == wrong.tolist()


def test_what_cannot_be_exported_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match="name must be one of adult"):
        export_csv("compas", tmp_path / "x.csv")
    with pytest.raises(InvalidInputError, match=r"wrong must be a number in \[0, 1\]"):
        export_csv("adult", tmp_path / "x.csv", wrong=2)
