"""Audits of predictions that a table has already: rates, gaps, calibration, and a decision."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests.support.people import people, write_csv
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.selection.cells import Cells
from fairsieve.tabular.decision import calibration_verdict, gaps_verdict
from fairsieve.tabular.evaluation import ModelOutput, calibrate_scores, evaluate
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.roles import Labels

COUNT = 1200
ROLES = {"label": "income", "sensitive": "sex"}


def table(predict, count=COUNT, *, certain=False):
    """People, with the prediction and the score that a function of (true label, sex, place) makes.

    ``certain`` labels follow from a column, so that none can be wrong without showing.
    """
    columns = people(count)
    if certain:
        columns["income"] = ["high" if float(hours) > 38 else "low" for hours in columns["hours"]]
    rows = zip(columns["income"], columns["sex"], range(count), strict=True)
    made = [predict(*row) for row in rows]
    columns["guess"] = [guess for guess, _ in made]
    columns["chance"] = [f"{chance:.3f}" for _, chance in made]
    return columns


def unfair(income, sex, place):
    """Right nine times of ten, but women labelled high only every other time."""
    often = 2 if sex == "woman" and income == "high" else 10
    right = place % often != 0
    guess = income if right else {"high": "low", "low": "high"}[income]
    return guess, 0.9 if guess == "high" else 0.1


def fair(income, sex, place):
    guess = income if place % 20 else {"high": "low", "low": "high"}[income]
    return guess, 0.95 if guess == "high" else 0.05


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    columns = table(unfair)
    columns["guess"][7] = ""
    return write_csv(tmp_path_factory.mktemp("predictions") / "people.csv", columns)


@pytest.fixture(scope="module")
def result(path):
    return tabular.audit(path, **ROLES, positive="high", prediction="guess", score="chance")


def test_rows_without_a_prediction_are_counted(result):
    assert result.metrics["rows_measured"] == COUNT - 1
    assert result.metrics["rows_without_prediction"] == 1


def test_a_gap_beyond_chance_is_a_reason_not_to_use_them(result):
    assert result.decision.outcome == "do-not-use"
    first = result.decision.verdicts[0]
    assert first.status == "fails"
    verdicts = {one.name: one for one in result.decision.verdicts}
    assert verdicts["gaps"].value > 0.3
    assert verdicts["guess"].status == "holds"
    assert verdicts["calibration"].status == "cannot tell"  # so many labels may be wrong
    assert result.metrics["decision"] == "do-not-use"
    assert result.model is None


@pytest.mark.parametrize("wrong", [0.0, 0.2])
def test_scores_are_judged_by_right_labels(wrong):
    """Scores that hold for right labels are not blamed for wrong ones, and those that are off are found."""
    rng = np.random.default_rng(4)
    sex, x = rng.choice(["f", "m"], 4000), rng.normal(size=(4000, 2))
    right = x.sum(axis=1) > np.where(sex == "f", 1.5, 0.0)
    given = right ^ (rng.random(4000) < wrong)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(sex=sex, label=given * 1, guess=right * 1)
    for low, expected in ((0.0, "holds"), (0.2, "fails")):
        scores = np.where(right, 0.99 - low * (sex == "m"), 0.01)
        roles = {"label": "label", "sensitive": "sex", "prediction": "guess", "score": "score"}
        found = tabular.audit(frame.assign(score=scores), **roles).decision
        [verdict] = [one for one in found.verdicts if one.name == "calibration"]
        assert verdict.status == expected


def test_the_folder_has_the_page_the_numbers_and_the_suspects(result, tmp_path):
    folder = result.save(tmp_path / "audit")
    names = {"metrics.json", "report.html", "settings.toml", "suspects.csv"}
    assert {one.name for one in folder.iterdir()} == names
    written = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert written == json.loads(json.dumps(result.metrics))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert result.decision.sentence in page
    assert "What scores mean" in page
    refused("add force=True to replace it", result.save, folder)
    assert result.save(folder, force=True) == folder


def test_equal_rates_can_be_used_and_nothing_is_said_beyond_the_numbers(tmp_path):
    path = write_csv(tmp_path / "fair.csv", table(fair, 3000, certain=True))
    found = tabular.audit(path, **ROLES, prediction="guess")
    assert found.decision.outcome == "use"
    assert found.metrics["calibration"] == []
    small = write_csv(tmp_path / "small.csv", table(fair, 200))
    few = tabular.audit(small, **ROLES, prediction="guess")
    assert few.decision.outcome == "cannot-tell"
    # What right labels would say of wrong ones is not known as well.
    noisy = write_csv(tmp_path / "noisy.csv", table(fair, 3000))
    unknown = tabular.audit(noisy, **ROLES, prediction="guess")
    assert unknown.metrics["labels_judged_by"] in ("estimate", "bounds")
    intervals = [one.metrics["scores"]["disparity"]["interval"] for one in (found, unknown)]
    assert np.diff(intervals[1]) > np.diff(intervals[0])


LABELS = Labels("y", ("a", "b"), "b")


def by_chance(seed, groups, each):
    """Draw scores that are right in every group, and labels that are as likely as they say."""
    rng = np.random.default_rng(seed)
    scores, group = rng.choice([0.3, 0.7], groups * each), rng.integers(0, groups, groups * each)
    codes = (rng.random(len(scores)) < scores).astype(int)
    return Cells(codes * groups + group, ["a", "b"], [f"g{one}" for one in range(groups)]), scores


@pytest.mark.parametrize(("groups", "fairness"), [(20, "demographic-parity"), (20, "equalized-odds")])
def test_predictions_that_differ_by_chance_alone_are_not_condemned(groups, fairness):
    """With twenty groups, 190 pairs are compared in each rate."""
    alone, condemned = [], []
    for seed in range(10):
        cells, scores = by_chance(seed, groups, 40)
        given = {"predictions": ModelOutput(np.zeros((0, 2)), (scores > 0.5).astype(int))}
        found = evaluate(cells, given, LABELS, fairness, estimate=None, copies=None, seed=seed)
        condemned.append(gaps_verdict(found, 0, POLICY.acceptable_gap).status == "fails")
        alone.append(max(gap.models[0].interval[0] for gap in found.gaps) > POLICY.acceptable_gap)
    assert sum(condemned) <= 1
    assert sum(alone) >= 7  # by themselves, the widest gaps would condemn most


def test_scores_that_are_off_by_chance_alone_in_one_group_of_many_are_not_condemned():
    evaluation = SimpleNamespace(judged=SimpleNamespace(basis="given labels"))
    statuses, alone = [], []
    for seed in range(40):
        cells, scores = by_chance(seed, 60, 40)
        calibration = calibrate_scores("given", cells, scores, cells.label_codes == 1, "b")
        audit = SimpleNamespace(calibration=calibration, evaluation=evaluation, labels=LABELS)
        statuses += [verdict.status for verdict in calibration_verdict(audit)]
        bounds = [one.error.interval for one in calibration]
        alone.append(any(max(low, -high) > POLICY.acceptable_gap for low, high in bounds))
    assert statuses.count("fails") <= 3
    assert sum(alone) >= 10


def test_one_label_for_everyone_is_no_prediction(tmp_path):
    path = write_csv(tmp_path / "one.csv", table(lambda income, sex, place: ("low", 0.1), 400))
    found = tabular.audit(path, **ROLES, prediction="guess")
    assert found.decision.outcome == "do-not-use"
    assert "Everyone is predicted low" in " ".join(found.decision.reasons)


@pytest.mark.parametrize(("options", "message"), [
    ({"prediction": "gues"}, "prediction must be a column of people.csv; got 'gues'. Did you mean 'guess'"),
    ({"prediction": "job"}, "labels in 'job' of people.csv must be among high, low; got also 'baker'"),
    ({"prediction": "hours"}, "if these are scores, give them as score"),
    ({"prediction": "sex"}, "prediction must be a column of its own; got 'sex'"),
    ({"prediction": "guess", "score": "hours"}, "score must hold probabilities, numbers from 0 to 1"),
    ({"score": "chance"}, "score needs prediction; got 'chance' alone"),
])  # fmt: skip
def test_what_is_no_prediction_is_told(path, options, message):
    refused(message, tabular.audit, path, **ROLES, **options)


def test_missing_scores_are_counted_and_a_column_without_any_is_refused(tmp_path):
    columns = table(fair, 400)
    columns["chance"][3] = columns["chance"][9] = ""
    path = write_csv(tmp_path / "gaps.csv", columns)
    options = {"label": "income", "sensitive": "sex", "prediction": "guess", "score": "chance"}
    notes = tabular.audit(path, **options).predictions.notes
    told = "Rows without a score in 'chance', which do not count for what scores mean: 2 (spreadsheet rows 5, 11)."
    assert told in notes
    columns["chance"] = [""] * 400
    told = "score must hold probabilities; no row has a value in 'chance'"
    refused(told, tabular.audit, write_csv(tmp_path / "none.csv", columns), **options)
