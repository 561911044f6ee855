"""What a run warns of: leaks, a test file that is no test, and models that are of no use."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.people import people, write_csv

from fairsieve.tabular.label_review import audit_table
from fairsieve.tabular.leaks import _copies
from fairsieve.tabular.preparation import read_problem
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table


def notes_of(path, **options):
    return read_problem(TableSettings(path, "income", ["sex"], **options)).notes


def test_copies_of_label_and_group_are_told(tmp_path):
    table = people()
    table["code"] = ["7" if value == "high" else "3" for value in table["income"]]
    table["gender"] = ["F" if value == "woman" else "M" for value in table["sex"]]
    table["gender"][:5] = [""] * 5
    path = write_csv(tmp_path / "people.csv", table)
    label, group = notes_of(path)[:2]
    assert label.kind == "leak"
    assert label.startswith("Column 'code' duplicates the label 'income' (a leak)")
    assert "add --drop 'code'" in label
    assert group.startswith("Column 'gender' duplicates 'sex', so the models know the group")
    assert not [note for note in notes_of(path, drop=["code", "gender"]) if "duplicates" in note]
    kept = notes_of(path, drop=["code", "gender"], keep_sensitive=True)
    assert not [note for note in kept if "duplicates" in note]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.permutations(range(4)))
def test_other_codes_for_the_same_values_are_a_copy(codes, others):
    targets = np.array(codes)
    values = np.array([others[code] for code in codes])
    assert _copies(values, targets) == (len(set(codes)) > 1)
    values[0] = -1  # a gap says nothing
    assert _copies(values, targets) == (
        len(set(codes)) > 1 and len(set(codes[1:])) == len(set(codes)) and len(codes) >= 50
    )


@given(st.integers(2, 100), st.integers(0, 100))
def test_a_copy_agrees_in_nearly_all_rows(each, wrong):
    targets = np.array([0] * each + [1] * each)
    values = np.array([3] * each + [5] * each)
    values[: min(wrong, each - 1)] = 5
    agree = 1 - min(wrong, each - 1) / (2 * each)
    assert _copies(values, targets) == (agree >= 0.98)


def test_a_test_file_that_is_the_table_is_told(people_csv):
    first = notes_of(people_csv, test_file=people_csv)[0]
    assert first.kind == "warning"
    assert first.startswith("Measured on the rows that were learnt from")


def test_where_no_label_is_wrong_the_audit_says_how_many_may_be(tmp_path):
    random = np.random.default_rng(0)
    score = random.normal(size=400)
    table = {
        "score": [f"{value:.3f}" for value in score],
        "sex": random.choice(["man", "woman"], 400).tolist(),
        "income": ["high" if value > 0 else "low" for value in score],
    }
    found = audit_table(TableSettings(write_csv(tmp_path / "people.csv", table), "income", ["sex"])).estimate
    low, high = found.interval
    assert low < high == 1
    assert low <= 1 - 3 / 400


@pytest.mark.parametrize("size", ["1e301", "9e306", "1e308"])
def test_large_numbers_do_no_harm(tmp_path, size):
    table = people()
    random = np.random.default_rng(0)
    table["hours"] = [f"{random.normal() / 10:.3f}{size[1:]}" for _ in table["income"]]
    path = write_csv(tmp_path / "people.csv", table)
    asked = TableSettings(path, "income", ["sex"], clean_ratio=0.9, max_iter=4)
    if size == "1e308":  # a few of these have no finite sum
        asked = dataclasses.replace(asked, drop=["hours"])
    run = train_table(asked)
    assert np.isfinite(run.model["model"].coef_).all()
    (hours,) = (feature for feature in run.problem.features if feature.column == "hours")
    assert hours.kind == ("categories" if size == "1e308" else "numbers")
    numbers = run.model["prepare"].transform(run.problem.train.values)
    assert np.isfinite(numbers).all()
    assert np.abs(numbers).max() < 100
