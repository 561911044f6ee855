"""What is said of columns and rows: columns that tell too much, dates, and which rows were used."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError
from fairsieve.tabular.leaks import _area, rank_columns
from fairsieve.tabular.preparation import read_whole
from fairsieve.tabular.reading.columns import days_since_1970, note_kind
from fairsieve.tabular.settings import TableSettings

COUNT = 600


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A table with a column that tells the label, one that tells the group, dates, and rows without a label."""
    table, rng = people(COUNT), np.random.default_rng(0)
    high = np.array(table["income"]) == "high"
    table["outcome"] = [f"{value:.2f}" for value in 3 * high + rng.normal(0, 0.4, COUNT)]
    man = np.array(table["sex"]) == "man"
    table["title"] = [("Mr" if one else "Ms") if rng.random() < 0.9 else "Dr" for one in man]
    table["since"] = [f"{2000 + i % 20}-0{1 + i % 9}-1{i % 10}" for i in range(COUNT)]
    table["income"][3] = ""
    return write_csv(tmp_path_factory.mktemp("options") / "people.csv", table)


@pytest.fixture(scope="module")
def result(path):
    return tabular.train(
        path, label="income", sensitive="sex", drop="outcome", dates="since", max_iter=8, clean_ratio=0.9
    )


def test_a_column_that_alone_predicts_the_label_is_named(path):
    notes = read_whole(TableSettings(path, "income", ["sex"])).notes
    (label,) = [note for note in notes if note_kind(note) == "warning"]
    assert label.startswith("Column 'outcome' alone predicts 'income' almost perfectly")
    assert "add --drop 'outcome'" in label
    (group,) = [note for note in notes if "stands in" in note]
    assert group.startswith("Through 'title' (0.9")
    kept = read_whole(TableSettings(path, "income", ["sex"], keep_sensitive=True)).notes
    assert not any("stands in" in note for note in kept)


@given(st.integers(0, 50), st.integers(2, 6))
def test_the_area_is_that_of_the_rates(seed, values):
    rng = np.random.default_rng(seed)
    codes, hits = rng.integers(0, values, 200), rng.random(200) < 0.4
    learnt, held = np.arange(100), np.arange(100, 200)
    counts = np.bincount(codes[:100], minlength=values)
    right = np.bincount(codes[:100], weights=hits[:100], minlength=values)
    rates = (right + hits[:100].mean()) / (counts + 1)
    expected = roc_auc_score(hits[held], rates.round(12)[codes[held]])
    assert _area(codes, hits, learnt, held) == pytest.approx(expected)


def test_chance_tells_nothing_and_missing_can_tell_all():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 4000)
    gaps = np.where(target == 1, np.nan, rng.normal(size=4000))
    many = pd.Categorical([f"v{i}" for i in rng.integers(0, 2000, 4000)])
    found = rank_columns(pd.DataFrame({"gaps": gaps, "noise": rng.normal(size=4000), "many": many}), target)
    assert found["gaps"] == 1.0
    assert abs(found["noise"] - 0.5) < 0.06
    assert abs(found["many"] - 0.5) < 0.06  # held out, many values tell nothing
    assert rank_columns(pd.DataFrame({"gaps": gaps}), np.zeros(4000, int)) == {}


def test_dates_are_days_in_training_and_in_predicting(result, path):
    (feature,) = [one for one in result.run.problem.features if one.column == "since"]
    assert (feature.kind, feature.left_out) == ("numbers", "")
    assert feature.treatment == "days since 1970; standardised"
    found = tabular.predict(result, path, probabilities=True)
    assert list(found.chances) == ["high", "low"]
    assert np.allclose(found.chances["high"] + found.chances["low"], 1)
    largest = np.maximum(found.chances["high"], found.chances["low"])
    assert np.allclose(largest, found.probability)
    assert {"probability_high", "probability_low"} <= set(found.frame.columns)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2026-03-04", "04.03.2026", "2026-3-4"], [20516.0] * 3),
        (["2026-03-04T06:00", "2026-03-04 18:00:00", "2026-03-04"], [20516.25, 20516.75, 20516.0]),
        (["1969-12-31", None], [-1.0, np.nan]),
        (["03/04/2026"], None),
        (["2026-02-30"], None),
        (["2026-03-04", "soon"], None),
    ],
)
def test_dates_that_mean_one_day_are_read(texts, expected):
    found = days_since_1970(pd.Series(texts, dtype=object).astype("category"))
    assert found is None if expected is None else np.array_equal(found, expected, equal_nan=True)


def test_what_is_no_date_is_told(path):
    with pytest.raises(InvalidInputError, match="--dates must be a column of dates, written as 2026-03-04"):
        read_whole(TableSettings(path, "income", ["sex"], dates=("job",)))


def test_the_rows_that_were_used_are_named(result, tmp_path):
    assert "Rows of people.csv without a label, left out: 1 (row 5)." in result.run.notes
    with (result.save(tmp_path / "run") / "rows.csv").open(encoding="utf-8", newline="") as stream:
        use = {int(line["row"]): line["use"] for line in csv.DictReader(stream)}
    assert sorted(use) == list(range(2, COUNT + 2))
    assert use[5] == "left out: no label"
    assert {row for row, what in use.items() if what == "trained on"} == set(result.run.problem.train.rows)
    assert {row for row, what in use.items() if what == "measured on"} == set(result.run.problem.test.rows)


def test_predictions_have_the_separator_and_the_mark_of_the_table(result, path, tmp_path):
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [[field.replace(".", ",") for field in row] for row in csv.reader(stream)]
    target = tmp_path / "semicolons.csv"
    target.write_text("\n".join(";".join(row) for row in rows), encoding="utf-8")
    found = tabular.predict(result, target, probabilities=True)
    lines = found.save(tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(";since;predicted;probability;probability_high;probability_low")
    assert lines[1].startswith(";".join(rows[1]))
    assert all(field[1] == "," for field in lines[1].split(";")[-3:])
    anew = found.save(tmp_path / "anew.csv", escape_formulas=True).read_text(encoding="utf-8").splitlines()
    assert anew[0] == lines[0]
