"""Points of the trade-off, thresholds, and what is said of them."""

import copy

import numpy as np
import pandas as pd
import pytest
from tests.support.people import QUICK, people, write_csv
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.tabular.models import fit_models, predict
from fairsieve.tabular.preparation import read_problem
from fairsieve.tabular.settings import TableSettings

ASKED = QUICK | {"max_accuracy_loss": 0.03, "threshold": "rate:0.25", "max_iter": 8, "tolerance": None}


@pytest.fixture(scope="module")
def chosen(people_csv):
    return tabular.train(people_csv, **ASKED)


@pytest.fixture(scope="module")
def run(chosen):
    return chosen.run


def test_the_fairest_within_the_allowed_loss_is_chosen_on_training_rows(run):
    points = run.trained.points
    best = max(point.accuracy for point in points)
    allowed = [point.gap for point in points if point.accuracy >= best - 0.03]
    assert run.trained.fair.gap == min(allowed)
    assert [point.title for point in run.trade_off[:2]] == ["plain model", "fair model"]
    models = run.evaluation.judged.models
    assert [point.accuracy for point in run.trade_off[:2]] == [model.accuracy for model in models]


@pytest.mark.parametrize(("model", "ratio"), [("logistic", 1.0), ("hist-gradient-boosting", 0.9)])
def test_weights_are_those_of_the_fair_model(model, ratio):
    told, frame = [], pd.DataFrame(people(1000, seed=1))
    for loss in (0.0, 0.9):
        other = {"model": model, "trees": 3, "clean_ratio": ratio, "max_accuracy_loss": loss}
        problem = read_problem(TableSettings(frame, **(ASKED | other)))
        trained = fit_models(problem, problem.train)
        told.append((trained.chosen, trained.estimator.effective_weights_))
    (accurate, weights), (fair, fair_weights) = told
    assert (accurate == fair) == np.array_equal(weights, fair_weights)


def test_no_choice_looks_at_rows_that_are_measured_on(run):
    """Whatever the labels of a fold are, the models that predict it are the same."""
    frame = pd.DataFrame(people())
    fold = np.flatnonzero(run.measured.folds == 0)
    turned = {"high": "low", "low": "high"}
    frame.loc[fold, "income"] = frame.loc[fold, "income"].map(turned)
    learnt = np.flatnonzero(run.measured.folds != 0)
    problem = read_problem(TableSettings(frame, **ASKED))
    before, after = (fit_models(each, each.train.take(learnt)) for each in (run.problem, problem))
    for one, other in zip(before.points, after.points, strict=True):
        assert (one.accuracy, one.gap, one.threshold) == (other.accuracy, other.gap, other.threshold)
    codes = predict([before.plain, before.fair], run.problem.train.take(fold))
    for one, other in zip(codes, run.measured.outputs, strict=False):
        np.testing.assert_array_equal(one.codes, other.codes[fold])


def test_the_threshold_is_kept_and_used(chosen, tmp_path, people_csv):
    threshold, train = chosen.metrics["model"]["threshold"], chosen.run.problem.train
    scores = chosen.model.predict_proba(train.values)[:, chosen.model.classes_.tolist().index("high")]
    # It was chosen by models that did not see the rows, whose scores differ a little.
    assert np.mean(scores >= threshold) == pytest.approx(0.25, abs=0.03)
    folder = chosen.save(tmp_path / "run")
    kept = tabular.predict(folder, people_csv)
    assert np.mean(kept.predicted == "high") == pytest.approx(0.25, abs=0.04)
    np.testing.assert_array_equal(kept.predicted, tabular.predict(chosen, people_csv).predicted)
    assert chosen.metrics["settings"]["threshold"] == "rate:0.25"
    assert chosen.metrics["trade_off"][chosen.run.place]["threshold"] == threshold
    assert {one["model"] for one in chosen.metrics["calibration"]} == {"plain", "fair"}


def test_a_threshold_that_is_none_is_refused(chosen, tmp_path, people_csv):
    broken = copy.deepcopy(chosen)
    broken.model["model"].threshold = 7.0
    folder = broken.save(tmp_path / "run")
    refused(r"model.skops is not a model that fairsieve kept.*threshold", tabular.predict, folder, people_csv)


def test_a_rare_label_that_nobody_gets_is_told(tmp_path):
    table = people(500, seed=1, wrong=0.0)
    random = np.random.default_rng(0)
    rare = random.random(500) < 0.06
    table["income"] = np.where(rare, "yes", "no").tolist()
    path = write_csv(tmp_path / "rare.csv", table)
    asked = {
        "label": "income", "sensitive": "sex", "clean_ratio": 1.0, "max_iter": 4, "small_groups": "ignore",
    }  # fmt: skip
    result = tabular.train(path, **asked)
    assert result.decision.usable == "do-not-use"
    kinds = {one.kind for one in result.decision.findings}
    assert kinds & {"one_label", "useless"}
    assert "threshold='balanced', or threshold='rate:0.0" in " ".join(result.decision.next_steps)
    again = tabular.train(path, threshold="balanced", **asked)
    assert not any("for everyone is right" in reason for reason in again.decision.reasons)
    assert any("recognises" in one or "is of no use" in one for one in again.decision.reasons)
    assert not any("nobody is told apart" in reason for reason in again.decision.reasons)
