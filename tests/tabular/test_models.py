"""Boosted trees on tables: they take gaps and categories as they are, and are kept without pickle."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import pytest
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError, MissingExtraError
from fairsieve.tabular import models, settings
from fairsieve.tabular.label_review import audit_table
from fairsieve.tabular.model_files import read_model, write_model
from fairsieve.tabular.models import choose_model
from fairsieve.tabular.preparation import read_problem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table

pytest.importorskip("lightgbm")
KINDS = ("lightgbm", "hist-gradient-boosting")
FEW = {"trees": 6, "max_iter": 4, "clean_ratio": 0.9}


@pytest.fixture(scope="module")
def runs(people_csv):
    more = {
        "lightgbm": {"threshold": "rate:0.3", "max_accuracy_loss": 0.5},
        "hist-gradient-boosting": {},
    }
    return {
        kind: train_table(
            TableSettings(people_csv, "income", ["sex"], "high", model=kind, **FEW, **more[kind])
        )
        for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back_the_same(runs, kind, tmp_path, people_csv):
    run = runs[kind]
    write_model(run.model, tmp_path)
    again = read_model(tmp_path)
    frame = run.problem.test.values
    np.testing.assert_array_equal(again.predict_proba(frame), run.model.predict_proba(frame))
    np.testing.assert_array_equal(again.predict(frame), run.model.predict(frame))
    found = tabular.predict(tmp_path, people_csv)
    predicted, probability, notes = found.predicted, found.probability, found.notes
    np.testing.assert_array_equal(predicted[run.problem.test.rows - 2], run.model.predict(frame))
    assert notes == []
    assert ((probability >= 0) & (probability <= 1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_says_the_same_as_with_a_linear_model(runs, kind):
    run = runs[kind]
    train = run.problem.train
    assert sum(cell.dropped.total for cell in run.dropped) == len(train)
    assert set(run.suspects["row"]) <= set(train.rows)
    assert run.scores[-1] == next(point.scores for point in run.trade_off if point.kept)
    codes = (
        run.model.predict(run.problem.test.values)
        == np.array(run.problem.labels.classes)[run.problem.test.label_codes]
    )
    assert run.scores[-1]["accuracy"].value == pytest.approx(codes.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_three_labels_and_columns_of_one_kind(kind, tmp_path):
    table = people(240, seed=5)
    table["income"] = [
        "high" if int(age.replace("?", "40")) > 50 else job
        for age, job in zip(table["age"], ["low", "middle"] * 120, strict=True)
    ]
    kept = ("age", "hours") if kind == "lightgbm" else ("job",)
    path = write_csv(tmp_path / "p.csv", {name: table[name] for name in (*kept, "sex", "income")})
    asked = TableSettings(path, "income", ["sex"], model=kind, trees=2, max_iter=4, clean_ratio=1.0)
    run = train_table(asked)
    write_model(run.model, tmp_path)
    frame = run.problem.test.values
    np.testing.assert_array_equal(read_model(tmp_path).predict_proba(frame), run.model.predict_proba(frame))
    assert {one.label for one in run.quality} == {"high", "low", "middle", ""}
    assert run.calibration[0].label == ""


def test_gaps_and_categories_are_taken_as_they_are(runs):
    values = runs["lightgbm"].problem.train.values
    numbers = Preparation(one_hot=False).fit(values).transform(values)
    assert np.isnan(numbers[:, 0]).sum() == values["job"].isna().sum() > 0
    assert np.isnan(numbers[:, 1]).sum() == np.isnan(values["age"]).sum() > 0


def test_new_values_count_as_missing(runs, tmp_path):
    write_model(runs["hist-gradient-boosting"].model, tmp_path)
    table = people(40, seed=3)
    texts = {}
    for job in ("pilot", ""):
        table["job"] = [job] * 40
        path = write_csv(tmp_path / "new.csv", table)
        found = tabular.predict(tmp_path, path)
        probability, notes = found.probability, found.notes
        texts[job] = probability
        told = ["Column 'job' has values that training did not have ('pilot'); they are ignored."]
        assert notes == (told if job else [])
    np.testing.assert_array_equal(texts["pilot"], texts[""])


def test_of_many_categories_the_commonest_are_kept():
    column = pd.Categorical([f"v{i}" for i in range(400)] + [f"v{i}" for i in range(300, 400)])
    kept = Preparation(one_hot=False).fit(pd.DataFrame({"column": column})).categories_["column"]
    assert len(kept) == 254
    assert {f"v{i}" for i in range(300, 400)} <= set(kept)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"leaf_value=\S+", "leaf_value=nan"),
        (r"leaf_value=\S+", "leaf_value=1e400"),
        (r"max_feature_idx=\d+", "max_feature_idx=1"),
    ],
)
def test_trees_of_lightgbm_that_are_damaged_are_refused(runs, tmp_path, old, new):
    broken = copy.deepcopy(runs["lightgbm"].model)
    classifier = broken["model"].estimator_
    classifier.trees = re.sub(old, new, classifier.trees, count=1)
    write_model(broken, tmp_path)
    with pytest.raises(InvalidInputError, match="is not a model that fairsieve kept, or it is damaged"):
        tabular.predict(tmp_path, pd.DataFrame(people(40)))


@pytest.mark.parametrize("field", ["value", "num_threshold", "baseline"])
def test_trees_of_scikit_learn_with_a_number_that_is_not_finite_are_refused(runs, tmp_path, field):
    model = copy.deepcopy(runs["hist-gradient-boosting"].model)
    trees = model["model"]
    if field == "baseline":
        trees._baseline_prediction = np.array([[np.nan]])
    else:
        trees._predictors[0][0].nodes[field] = np.nan
    write_model(model, tmp_path)
    with pytest.raises(InvalidInputError, match=r"model.skops is not a model that fairsieve kept"):
        read_model(tmp_path)


def test_auto_chooses_by_log_loss(people_csv):
    choice = choose_model(read_problem(TableSettings(people_csv, "income", ["sex"], trees=6)))
    assert set(choice.losses) == {"logistic", *KINDS}
    assert choice.losses[choice.name] == min(choice.losses.values())
    ranked = sorted(choice.losses.values())
    assert choice.difference == pytest.approx(ranked[1] - ranked[0])
    assert choice.interval[0] < choice.difference < choice.interval[1]
    assert choice.note.startswith(f"--model auto chose {models.TITLES[choice.name]}: its log loss on 480")


def test_trees_are_chosen_where_columns_interplay(tmp_path):
    random = np.random.default_rng(0)
    left, right = random.integers(0, 10, (2, 600))
    label = np.where((left < 5) ^ (right < 5), "yes", "no")
    columns = {"left": left, "right": right, "sex": random.choice(["f", "m"], 600), "label": label}
    path = write_csv(tmp_path / "xor.csv", {name: list(map(str, values)) for name, values in columns.items()})
    run = train_table(
        TableSettings(path, "label", ["sex"], model="auto", trees=6, max_iter=4, clean_ratio=1.0)
    )
    assert run.model_name in KINDS
    assert run.choice is not None
    assert run.choice.note in run.notes
    assert run.scores[-1]["accuracy"].value > 0.9


def test_what_is_not_installed_is_named(monkeypatch, people_csv):
    monkeypatch.setattr(settings, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"--model lightgbm needs lightgbm: pip install 'fairsieve\[lightgbm\]'"
    ):
        TableSettings(people_csv, "income", ["sex"], model="lightgbm")
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    choice = choose_model(read_problem(TableSettings(people_csv, "income", ["sex"], trees=2)))
    assert "LightGBM is not installed: pip install 'fairsieve[lightgbm]'" in choice.note


def test_a_model_that_does_not_exist_is_refused(people_csv):
    with pytest.raises(
        InvalidInputError, match=r"--model must be one of logistic, .*got 'lightgmb'. Did you mean lightgbm"
    ):
        tabular.train(people_csv, label="income", sensitive="sex", model="lightgmb")


def test_an_audit_can_ask_trees(tmp_path):
    random = np.random.default_rng(0)
    left, right = random.integers(0, 10, (2, 900))
    right_labels = np.where((left < 5) ^ (right < 5), "yes", "no")
    wrong = random.random(900) < 0.1
    label = np.where(wrong, np.where(right_labels == "yes", "no", "yes"), right_labels)
    columns = {"left": left, "right": right, "sex": random.choice(["f", "m"], 900), "label": label}
    path = write_csv(tmp_path / "xor.csv", {name: list(map(str, values)) for name, values in columns.items()})
    found = audit_table(TableSettings(path, "label", ["sex"], model="hist-gradient-boosting", trees=30))
    assert found.model_name == "hist-gradient-boosting"
    rows = found.suspects["row"] - 2
    assert len(rows) > 40
    assert wrong[rows].mean() > 0.9
    assert (found.suspects["suggested"] == right_labels[rows])[wrong[rows]].all()
