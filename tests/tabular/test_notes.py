"""What is said of columns and rows: columns that tell too much, a test file that is no test, which rows were used."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

COUNT = 600
ROLES = {"label": "income", "sensitive": "sex"}


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
    return tabular.train(path, **ROLES, drop="outcome", dates="since", max_iter=8, clean_ratio=0.9)


def train_notes(data, **more):
    return tabular.train(data, **ROLES, clean_ratio=0.9, max_iter=1, **more).run.notes


def test_a_column_that_alone_predicts_the_label_is_named(path):
    notes = tabular.audit(path, **ROLES).audit.notes
    (label,) = [note for note in notes if getattr(note, "kind", "") == "warning"]
    assert label.startswith("Column 'outcome' alone predicts 'income' almost perfectly")
    assert "add drop='outcome'" in label
    (group,) = [note for note in notes if "stands in" in note]
    assert group.startswith("Through 'title' (0.9")
    assert not any("stands in" in note for note in train_notes(path, keep_sensitive=True))


def test_a_column_that_gives_away_one_of_three_labels_is_named_and_not_believed():
    rng = np.random.default_rng(2)
    code = rng.integers(0, 3, 600)
    frame = pd.DataFrame({"x": code + rng.normal(0, 1, 600), "left": np.where(code == 2, "late", "early")})
    frame = frame.assign(sex=rng.choice(["f", "m"], 600), triage=np.array(["green", "yellow", "red"])[code])
    notes = tabular.audit(frame, label="triage", sensitive="sex").audit.notes
    assert any(note.startswith("Column 'left' alone predicts a label of 'triage'") for note in notes)
    assert any("does without 'left'" in note for note in notes)


@given(st.floats(0.85, 0.97), st.integers(0, 1000))
@settings(max_examples=8)
def test_the_area_of_a_column_that_agrees_with_the_group_is_the_share_that_does(share, seed):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, 4000)
    frame = pd.DataFrame(
        {
            "title": np.where(rng.random(4000) < share, sex, 1 - sex),
            "noise": rng.normal(size=4000),
            "many": [f"v{i}" for i in rng.integers(0, 1000, 4000)],  # held out, many values tell nothing
            "gaps": np.where(sex == 1, np.nan, rng.normal(size=4000)),  # and what is missing can tell all
            "sex": sex,
            "income": rng.integers(0, 2, 4000),
        }
    )
    (note,) = [note for note in tabular.audit(frame, **ROLES).audit.notes if "stand in" in note]
    areas = dict(re.findall(r"'(\w+)' \((\d\.\d+)\)", note))
    assert sorted(areas) == ["gaps", "title"]
    assert float(areas["gaps"]) == 1
    assert abs(float(areas["title"]) - share) < 0.03


def test_copies_of_label_and_group_are_told(tmp_path):
    table = people()
    table["code"] = ["7" if value == "high" else "3" for value in table["income"]]
    table["gender"] = ["F" if value == "woman" else "M" for value in table["sex"]]
    table["gender"][:5] = [""] * 5
    path = write_csv(tmp_path / "people.csv", table)
    label, group = tabular.audit(path, **ROLES).audit.notes[:2]
    assert label.kind == "leak"
    assert label.startswith("Column 'code' duplicates the label 'income' (a leak)")
    assert "add drop='code'" in label
    assert group.startswith("Column 'gender' duplicates 'sex', so the models know the group")
    kept = train_notes(path, drop=["code", "gender"], keep_sensitive=True)
    assert not [note for note in kept if "duplicates" in note]


@given(st.integers(2, 4), st.permutations(range(4)), st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=15)
def test_other_codes_for_nearly_all_of_the_same_values_are_a_copy(classes, others, wrong, gaps):
    labels = [f"class {row % classes}" for row in range(240)]
    values = [f"v{others[row % classes]}" for row in range(240)]
    values[:wrong] = [f"v{others[(row + 1) % classes]}" for row in range(wrong)]
    values[240 - gaps :] = [None] * gaps
    frame = pd.DataFrame({"code": values, "sex": ["m", "m", "w", "w"] * 60, "income": labels})
    frame["x"] = np.arange(240) % 7
    notes = tabular.audit(frame, **ROLES).audit.notes
    expected = 240 - gaps >= 0.98 * 240 and 240 - gaps - wrong >= 0.98 * (240 - gaps)
    assert any("duplicates the label" in note for note in notes) == expected


def test_rows_measured_on_that_were_learnt_from_are_counted(tmp_path):
    # Nobody learns from a number, but it tells rows apart.
    table = pd.DataFrame(people()).assign(id=range(7000, 7600))
    path, half, moved = tmp_path / "all.csv", table[::2].copy(), table.assign(id=range(8000, 8600))
    table.to_csv(path, index=False)
    half["hours"] = half["hours"] + "0"  # the same numbers
    for test, seen in ((path, 600), (half, 300), (table[:1], 1), (moved, 0)):
        asked = {"clean_ratio": 0.9, "max_iter": 1, "test_file": test, "small_groups": "ignore"}
        result = tabular.train(path, **ROLES, **asked)
        told = [note for note in result.run.notes if "measured on" in note]
        assert [note.kind for note in told] == ["warning"] * bool(seen)
        folder = result.save(tmp_path / "run", force=True)
        page, card = ((folder / name).read_text(encoding="utf-8") for name in ("report.html", "card.md"))
        assert ("other rows." in page) == (not seen)
        if seen:
            assert told[0].startswith(f"{seen} of the {len(result.run.problem.test)} rows measured on equal")
            words = f" {seen} equal{'s' * (seen == 1)} a row that was learnt from"
            assert words in page
            assert words in card


@pytest.mark.parametrize("size", ["1e301", "9e306", "1e308"])
def test_large_numbers_do_no_harm(tmp_path, size):
    table = people()
    random = np.random.default_rng(0)
    table["hours"] = [f"{random.normal() / 10:.3f}{size[1:]}" for _ in table["income"]]
    path = write_csv(tmp_path / "people.csv", table)
    drop = ["hours"] if size == "1e308" else []  # a few of these have no finite sum
    run = tabular.train(path, **ROLES, clean_ratio=0.9, max_iter=4, drop=drop, test=0.3).run
    assert np.isfinite(run.model["model"].coef_).all()
    (hours,) = (feature for feature in run.problem.features if feature.column == "hours")
    assert hours.kind == ("categories" if drop else "numbers")
    numbers = run.model["prepare"].transform(run.problem.train.values)
    assert np.isfinite(numbers).all()
    assert np.abs(numbers).max() < 100


def test_dates_are_days_in_training_and_in_predicting(result, path):
    (feature,) = [one for one in result.run.problem.features if one.column == "since"]
    assert (feature.kind, feature.left_out) == ("numbers", "")
    assert feature.treatment("logistic") == "days since 1970; standardised"
    found = tabular.predict(result, path, probabilities=True)
    assert list(found.chances) == ["high", "low"]
    assert np.allclose(found.chances["high"] + found.chances["low"], 1)
    assert np.allclose(np.maximum(found.chances["high"], found.chances["low"]), found.probability)
    assert {"probability_high", "probability_low"} <= set(found.frame.columns)


def test_the_rows_that_were_used_are_named(result, tmp_path):
    assert "Rows of people.csv without a label, left out: 1 (spreadsheet row 5)." in result.run.notes
    rows = pd.read_csv(result.save(tmp_path / "run") / "rows.csv", index_col="row")
    assert list(rows.columns) == ["use", "fold", "plain_prediction", "fair_prediction"]
    assert sorted(rows.index) == list(range(2, COUNT + 2))
    assert rows.loc[5].fillna("").tolist() == ["left out: no label", "", "", ""]
    run = result.run
    used = rows.loc[run.problem.train.rows]
    assert (used["use"] == "trained and measured on").all()
    np.testing.assert_array_equal(used["fold"], run.measured.folds + 1)
    for name, output in zip(("plain", "fair"), run.measured.outputs, strict=False):
        labels = np.array(run.problem.labels.classes)[output.codes]
        np.testing.assert_array_equal(used[f"{name}_prediction"], labels)


def test_predictions_have_the_separator_and_the_mark_of_the_table(result, path, tmp_path):
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [[field.replace(".", ",") for field in row] for row in csv.reader(stream)]
    target = tmp_path / "semicolons.csv"
    target.write_text("\n".join(";".join(row) for row in rows), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="add decimal=',' if they have a decimal comma"):
        tabular.predict(result, target)  # it learnt from decimal points
    found = tabular.predict(result, target, probabilities=True, decimal=",")
    lines = found.save(tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(";since;predicted;probability;probability_high;probability_low")
    assert lines[1].startswith(";".join(rows[1]))
    assert all(field[1] == "," for field in lines[1].split(";")[-3:])
    anew = found.save(tmp_path / "anew.csv", escape_formulas=True).read_text(encoding="utf-8").splitlines()
    assert anew[0] == lines[0]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_predictions_are_the_same_in_chunks_of_any_size(result, path, tmp_path, monkeypatch, encoding, chunk):
    lines = path.read_text(encoding="utf-8").splitlines()[:30]
    odd = [f'{line},"a, é\n"' for line in lines[1:9]]
    content = "\r\n".join([lines[0] + ",é", *odd, "", *(f"{one}," for one in lines[9:])])
    source = tmp_path / "odd.csv"
    source.write_bytes(content.encode(encoding))
    found = tabular.predict(result, source)
    expected = found.save(tmp_path / "whole.csv").read_bytes()
    monkeypatch.setattr("fairsieve.tabular.predictions.CHUNK", chunk)
    monkeypatch.setattr("fairsieve.tabular.model_files.CHUNK", chunk)
    again = tabular.predict(result, source)
    assert again.save(tmp_path / "parts.csv").read_bytes() == expected
    np.testing.assert_allclose(again.probability, found.probability)
    table = list(csv.reader(expected.decode(encoding).splitlines(keepends=True)))
    assert table[0][-2:] == ["predicted", "probability"]
    given = [row for row in csv.reader(content.splitlines(keepends=True)) if row]
    assert [row[:-2] for row in table[1:]] == given[1:]
