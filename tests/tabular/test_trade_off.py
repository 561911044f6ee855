"""Points of the trade-off, thresholds, and what is said of them."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError
from fairsieve.tabular.model_files import decision_threshold, read_model, write_model
from fairsieve.tabular.models import HeldOutScores, choose_point
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table

FEW = {"max_iter": 8, "clean_ratio": 0.9}


@pytest.fixture(scope="module")
def chosen(people_csv):
    return train_table(
        TableSettings(
            people_csv, "income", ["sex"], "high", max_accuracy_loss=0.03, threshold="rate:0.25", **FEW
        )
    )


def test_the_fairest_within_the_tolerance_is_chosen():
    scores = [HeldOutScores(*pair) for pair in ((0.9, 0.3), (0.89, 0.2), (0.86, 0.1), (0.89, 0.2))]
    assert [choose_point(scores, tolerance) for tolerance in (0.0, 0.01, 0.04, 1.0)] == [0, 1, 2, 2]


def test_the_models_between_are_kept_and_one_is_chosen_on_training_rows(chosen):
    points = chosen.trade_off
    assert points[0].title == "plain model"
    place = 1 + choose_point([point.held_out for point in points[1:]], 0.03)
    assert [point.kept for point in points].index(True) == place
    assert chosen.model is points[place].model
    frame, codes = chosen.problem.test.values, chosen.problem.test.label_codes
    classes = np.array(chosen.problem.labels.classes)
    for point in points:
        accuracy = (point.model.predict(frame) == classes[codes]).mean()
        assert point.scores["accuracy"].value == pytest.approx(accuracy)


def test_the_choice_does_not_look_at_the_test_part(chosen, people_csv, tmp_path):
    frame_rows = chosen.problem.test.rows
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
    asked = {"max_accuracy_loss": 0.03, "threshold": "rate:0.25", **FEW}
    again = train_table(TableSettings(train, "income", ["sex"], "high", test_file=test, **asked))
    assert [point.kept for point in again.trade_off] == [point.kept for point in chosen.trade_off]
    assert [point.held_out for point in again.trade_off] == [point.held_out for point in chosen.trade_off]
    assert [p.threshold for p in again.trade_off] == [p.threshold for p in chosen.trade_off]
    assert again.scores[-1]["accuracy"].value == pytest.approx(1 - chosen.scores[-1]["accuracy"].value)


def test_the_threshold_is_kept_and_used(chosen, tmp_path, people_csv):
    threshold, label = decision_threshold(chosen.model)
    train = chosen.problem.train
    scores = chosen.model.predict_proba(train.values)[:, chosen.model.classes_.tolist().index(label)]
    assert label == "high"
    assert np.mean(scores >= threshold) == pytest.approx(0.25, abs=0.01)
    result = tabular.train(
        people_csv, label="income", sensitive="sex", positive="high", threshold="rate:0.25", **FEW
    )
    folder = result.save(tmp_path / "run")
    kept = tabular.predict(folder, people_csv)
    assert np.mean(kept.predicted == "high") == pytest.approx(0.25, abs=0.04)
    again = tabular.predict(result, people_csv)
    np.testing.assert_array_equal(kept.predicted, again.predicted)
    record = json.loads((folder / "metrics.json").read_text())
    assert record["settings"]["threshold"] == "rate:0.25"
    assert [point["threshold"] for point in record["trade_off"] if point["kept"]] == [
        record["model"]["threshold"]
    ]
    assert {one["measure"] for one in record["quality"]} >= {"auc", "average_precision", "balanced_accuracy"}
    assert {one["model"] for one in record["calibration"]} == {"plain", "fair"}


def test_a_threshold_that_is_none_is_refused(chosen, tmp_path):
    model = copy.deepcopy(chosen.model)
    model["model"].threshold = 7.0
    write_model(model, tmp_path)
    with pytest.raises(InvalidInputError, match=r"model.skops is not a model that fairsieve kept.*threshold"):
        read_model(tmp_path)


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": "often"}, r"--threshold must be a probability .*got 'often'"),
        ({"tolerance": 3}, r"--tolerance must be"),
        ({"max_accuracy_loss": 3}, r"--max-accuracy-loss must be"),
        ({"trees": 0}, r"--trees must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(people_csv, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        tabular.train(people_csv, label="income", sensitive="sex", **settings)


def test_a_threshold_needs_two_labels(tmp_path):
    table = people(90)
    table["income"] = ["low", "high", "middle"] * 30
    path = write_csv(tmp_path / "three.csv", table)
    with pytest.raises(
        InvalidInputError, match=r"--threshold must be 0.5 for more than two labels.*with 3 labels"
    ):
        tabular.train(path, label="income", sensitive="sex", threshold="balanced")
