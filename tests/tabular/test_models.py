"""Boosted trees on tables: they take gaps and categories as they are, and are kept without pickle."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import MissingExtraError
from fairsieve.tabular.model_files import BoosterClassifier
from fairsieve.tabular.reading.encoding import Preparation

LGBMClassifier = pytest.importorskip("lightgbm").LGBMClassifier
KINDS = ("lightgbm", "hist-gradient-boosting")
ROLES = {"label": "income", "sensitive": "sex"}
FEW = {"trees": 6, "max_iter": 4, "clean_ratio": 0.9, "test": 0.3}


@pytest.fixture(scope="module")
def runs(people_csv):
    more = {"lightgbm": {"threshold": "rate:0.3", "max_accuracy_loss": 0.5}, "hist-gradient-boosting": {}}
    asked = {**ROLES, **FEW, "positive": "high"}
    return {kind: tabular.train(people_csv, **asked, model=kind, **more[kind]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back_the_same(runs, kind, tmp_path, people_csv):
    model, test = runs[kind].model, runs[kind].run.problem.train
    found = tabular.predict(runs[kind].save(tmp_path / "run"), people_csv, probabilities=True)
    rows = test.rows - 2
    chances = np.column_stack([*found.chances.values()])
    np.testing.assert_array_equal(chances[rows], model.predict_proba(test.values))
    np.testing.assert_array_equal(found.predicted[rows], model.predict(test.values))
    assert found.notes == []


def test_trees_that_part_missing_values_from_all_others_are_kept():
    """LightGBM writes such a threshold as infinite."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    X = np.column_stack([np.where(labels, np.nan, rng.normal(size=400)), rng.normal(size=400)])
    trees = LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1).fit(X, labels ^ (rng.random(400) < 0.1))
    text = trees.booster_.model_to_string()
    assert re.search(r"^threshold=.*\binf\b", text, re.MULTILINE)
    again = BoosterClassifier(text, trees.classes_)
    np.testing.assert_array_equal(again.predict_proba(X), trees.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_says_the_same_as_with_a_linear_model(runs, kind):
    run = runs[kind].run
    train = run.problem.train
    assert sum(cell.dropped.total for cell in run.dropped) == len(train)
    assert set(run.suspects["row"]) <= set(train.rows)
    models = run.evaluation.judged.on_given_labels.models
    for model, output in zip(models, run.measured.outputs, strict=False):
        right = output.codes == run.measured.part.label_codes
        assert model.accuracy.value == pytest.approx(right.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_three_labels_and_columns_of_one_kind(kind, tmp_path):
    table = people(240, seed=5)
    old = pd.to_numeric(pd.Series(table["age"]), errors="coerce") > 50
    table["income"] = np.where(old, "high", ["low", "middle"] * 120).tolist()
    kept = ("age", "hours") if kind == "lightgbm" else ("job",)
    path = write_csv(tmp_path / "p.csv", {name: table[name] for name in (*kept, "sex", "income")})
    result = tabular.train(path, **ROLES, model=kind, trees=2, max_iter=4, clean_ratio=1.0, test=0.3)
    folder, evaluation = result.save(tmp_path / "run"), result.run.evaluation
    stored, kept = (tabular.predict(run, path).probability for run in (folder, result))
    np.testing.assert_array_equal(stored, kept)
    assert {one.label for one in evaluation.quality} == {"high", "low", "middle", ""}
    assert evaluation.calibration[0].label is None


def test_gaps_and_categories_are_taken_as_they_are(runs):
    values = runs["lightgbm"].run.problem.train.values
    prepared = Preparation(one_hot=False).fit(values)
    numbers = prepared.transform(values)
    assert np.isnan(numbers[:, 0]).sum() == values["job"].isna().sum() > 0
    assert np.isnan(numbers[:, 1 + prepared.numbers_.index("age")]).sum() == np.isnan(values["age"]).sum() > 0


def test_new_values_count_as_missing(runs):
    found = {}
    for job in ("pilot", ""):
        new = pd.DataFrame(people(40, seed=3)).assign(job=job)
        found[job] = tabular.predict(runs["hist-gradient-boosting"], new)
    told = "Column 'job' has values that training did not have ('pilot'); they are ignored."
    assert found["pilot"].notes == [told]
    assert found[""].notes == []
    np.testing.assert_array_equal(found["pilot"].probability, found[""].probability)


def test_of_many_categories_the_commonest_are_kept():
    column = pd.Categorical([f"v{i}" for i in range(400)] + [f"v{i}" for i in range(300, 400)])
    kept = Preparation(one_hot=False).fit(pd.DataFrame({"column": column})).categories_["column"]
    assert len(kept) == 254
    assert {f"v{i}" for i in range(300, 400)} <= set(kept)


def xor(count, wrong=0.0):
    """A table whose label follows from two columns together; some labels are wrong."""
    random = np.random.default_rng(0)
    left, right = random.integers(0, 10, (2, count))
    true = np.where((left < 5) ^ (right < 5), "yes", "no")
    flipped = random.random(count) < wrong
    label = np.where(flipped, np.where(true == "yes", "no", "yes"), true)
    columns = {"left": left, "right": right, "sex": random.choice(["f", "m"], count), "income": label}
    return pd.DataFrame(columns), true, flipped


def test_auto_chooses_by_log_loss(people_csv):
    run = tabular.train(xor(900)[0], **ROLES, **FEW | {"model": "auto", "clean_ratio": 1.0}).run
    losses = run.trained.losses
    assert min(losses.values()) < losses["linear"] - 0.02
    assert run.trained.kind == KINDS[0]  # trees are better where columns interplay
    assert any(re.match(r"model='auto' chose .*: on rows that they did not see", note) for note in run.notes)
    assert run.evaluation.judged.models[1].accuracy.value > 0.9
    linear = tabular.train(people_csv, **ROLES, model="auto", clean_ratio=0.9, test=0.2)
    assert linear.run.trained.kind == "logistic"


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    frame = xor(900)[0]
    told = r"model='lightgbm' needs lightgbm: pip install 'fairsieve\[lightgbm\]'"
    with pytest.raises(MissingExtraError, match=told):
        tabular.train(frame, **ROLES, model="lightgbm")
    found = tabular.train(frame, **ROLES, model="auto", trees=2, clean_ratio=0.9, test=0.2).run
    assert any("LightGBM is not installed: pip install 'fairsieve[lightgbm]'" in note for note in found.notes)


def test_an_audit_sees_that_columns_interplay():
    frame, true, wrong = xor(900, wrong=0.1)
    found = tabular.audit(frame, **ROLES).audit
    rows = found.suspects["row"]
    assert len(rows) > 40
    assert wrong[rows].mean() > 0.9
    assert (found.suspects["suggested_label"] == true[rows])[wrong[rows]].all()
