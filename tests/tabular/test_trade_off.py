"""Points of the trade-off, thresholds, and what is said of them."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from tests.support.people import QUICK, people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

ASKED = QUICK | {"max_accuracy_loss": 0.03, "threshold": "rate:0.25", "max_iter": 8, "tolerance": None}


@pytest.fixture(scope="module")
def chosen(people_csv):
    return tabular.train(people_csv, **ASKED)


@pytest.fixture(scope="module")
def run(chosen):
    return chosen.run


def test_the_fairest_within_the_allowed_loss_is_chosen_on_training_rows(run):
    points = run.trade_off
    assert points[0].title == "plain model"
    best = max(point.held_out.accuracy for point in points[1:])
    allowed = [point for point in points[1:] if point.held_out.accuracy >= best - 0.03]
    (kept,) = (point for point in points if point.kept)
    assert kept.held_out.disparity == min(point.held_out.disparity for point in allowed)
    assert run.model is kept.model
    frame, codes = run.problem.test.values, run.problem.test.label_codes
    classes = np.array(run.problem.labels.classes)
    for point in points:
        accuracy = (point.model.predict(frame) == classes[codes]).mean()
        assert point.scores["accuracy"].value == pytest.approx(accuracy)


@pytest.mark.parametrize(("model", "ratio"), [("logistic", 1.0), ("hist-gradient-boosting", 0.9)])
def test_weights_are_those_of_the_kept_model(model, ratio):
    told, frame = [], pd.DataFrame(people(1200, seed=1))
    for loss in (0.0, 0.9):
        other = {"model": model, "trees": 9, "clean_ratio": ratio, "max_accuracy_loss": loss}
        run = tabular.train(frame, **(ASKED | other)).run
        told.append(
            ([point.kept for point in run.trade_off], [cell.effective_weight for cell in run.dropped])
        )
    (accurate, weights), (fair, fair_weights) = told
    assert accurate != fair
    assert weights != fair_weights


def test_the_choice_does_not_look_at_the_test_part(run, people_csv, tmp_path):
    frame_rows = run.problem.test.rows
    lines = people_csv.read_text().splitlines()
    for row in frame_rows:  # turn every label of the test part around
        first, _, label = lines[row - 1].rpartition(",")
        lines[row - 1] = f"{first},{'low' if label == 'high' else 'high'}"
    train = tmp_path / "train.csv"
    train.write_text(
        "\n".join(line for row, line in enumerate(lines, 1) if row not in set(frame_rows)) + "\n"
    )
    test = tmp_path / "test.csv"
    test.write_text("\n".join([lines[0], *(lines[row - 1] for row in sorted(frame_rows))]) + "\n")
    again = tabular.train(train, test_file=test, **ASKED).run
    assert [point.kept for point in again.trade_off] == [point.kept for point in run.trade_off]
    assert [point.held_out for point in again.trade_off] == [point.held_out for point in run.trade_off]
    assert [p.threshold for p in again.trade_off] == [p.threshold for p in run.trade_off]
    assert again.scores[-1]["accuracy"].value == pytest.approx(1 - run.scores[-1]["accuracy"].value)


def test_the_threshold_is_kept_and_used(chosen, tmp_path, people_csv):
    threshold, train = chosen.metrics["model"]["threshold"], chosen.run.problem.train
    scores = chosen.model.predict_proba(train.values)[:, chosen.model.classes_.tolist().index("high")]
    assert np.mean(scores >= threshold) == pytest.approx(0.25, abs=0.01)
    folder = chosen.save(tmp_path / "run")
    kept = tabular.predict(folder, people_csv)
    assert np.mean(kept.predicted == "high") == pytest.approx(0.25, abs=0.04)
    np.testing.assert_array_equal(kept.predicted, tabular.predict(chosen, people_csv).predicted)
    assert chosen.metrics["settings"]["threshold"] == "rate:0.25"
    assert [point["threshold"] for point in chosen.metrics["trade_off"] if point["kept"]] == [threshold]
    assert {one["model"] for one in chosen.metrics["calibration"]} == {"plain", "fair"}


def test_a_threshold_that_is_none_is_refused(chosen, tmp_path, people_csv):
    broken = copy.deepcopy(chosen)
    broken.model["model"].threshold = 7.0
    folder = broken.save(tmp_path / "run")
    with pytest.raises(InvalidInputError, match=r"model.skops is not a model that fairsieve kept.*threshold"):
        tabular.predict(folder, people_csv)


def test_a_rare_label_that_nobody_gets_is_told(tmp_path):
    table = people(500, seed=1, wrong=0.0)
    random = np.random.default_rng(0)
    rare = random.random(500) < 0.06
    table["income"] = np.where(rare, "yes", "no").tolist()
    path = write_csv(tmp_path / "rare.csv", table)
    asked = {
        "label": "income",
        "sensitive": "sex",
        "clean_ratio": 1.0,
        "max_iter": 4,
        "small_groups": "ignore",
    }
    result = tabular.train(path, **asked)
    assert result.decision.outcome == "do-not-use"
    assert result.decision.findings[0].kind == "one_label"
    assert "threshold='balanced', or threshold='rate:0.045', the share that has it" in " ".join(
        result.decision.next_steps
    )
    again = tabular.train(path, threshold="balanced", **asked)
    assert not any("for everyone is right" in reason for reason in again.decision.reasons)
    assert any(
        "the labels apart better than chance: on average it recognises" in one
        for one in again.decision.reasons
    )
    assert not any("nobody is told apart" in reason for reason in again.decision.reasons)
