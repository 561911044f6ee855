"""Rates, gaps, scores, quality and calibration, beside literal loops and other libraries, and the folds."""

import math

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sklearn_metrics
from sklearn.calibration import calibration_curve

from fairsieve import demographic_parity_disparity, equalized_odds_disparity, tabular
from fairsieve.selection.cells import Cells
from fairsieve.tabular import evaluation
from fairsieve.tabular.preparation import deal_folds, set_aside

NAMES = ("a", "b", "c")


def predicted(classes, rows=500, seed=0):
    """Labels of three groups and of nobody's, with the predictions and scores of some system."""
    random = np.random.default_rng(seed)
    frame = pandas.DataFrame({"x": random.normal(size=rows), "score": random.random(rows)})
    frame["y"] = random.choice(NAMES[:classes], rows)
    frame["sex"] = random.choice(["men", "women", None], rows, p=[0.6, 0.3, 0.1])
    frame["guess"] = np.where(random.random(rows) < 0.6, frame["y"], random.choice(NAMES[:classes], rows))
    return frame


def audited(frame, **settings):
    return tabular.audit(frame, label="y", sensitive="sex", prediction="guess", **settings)


def share(hits):
    hits = list(hits)
    return sum(hits), len(hits)


@pytest.mark.parametrize("classes", [2, 3])
def test_rates_are_those_of_literal_loops(classes):
    frame = predicted(classes)
    found = audited(frame, positive="b" if classes == 2 else None).metrics
    rates = {(one["group"], one["measure"], one["label"]): one for one in found["rates"]}
    for group in ("men", "women", "(no group)"):
        rows = frame[frame["sex"].fillna("(no group)") == group]
        mine = list(zip(rows["y"], rows["guess"], strict=True))
        expected = {("accuracy", None): share(y == p for y, p in mine)}
        for label in ("b",) if classes == 2 else NAMES:
            expected["selection_rate", label] = share(p == label for _, p in mine)
            expected["true_positive_rate", label] = share(p == label for y, p in mine if y == label)
            expected["false_positive_rate", label] = share(p == label for y, p in mine if y != label)
            expected["precision", label] = share(y == label for y, p in mine if p == label)
        told = {(name, label): rates[own, name, label] for own, name, label in rates if own == group}
        assert set(told) == set(expected)
        for place, one in told.items():
            hits, total = expected[place]
            given = one["predictions"]["on_given_labels"]
            assert given["value"] == pytest.approx(hits / total)
            assert given["interval"][0] <= given["value"] <= given["interval"][1]
            low, high = binomtest(hits, total).proportion_ci(method="wilson")
            width = given["interval"][1] - given["interval"][0]
            assert width == pytest.approx(high - low, rel=0.35, abs=0.02)


@pytest.mark.parametrize(
    ("fairness", "disparity"),
    [("equalized_odds", equalized_odds_disparity), ("demographic_parity", demographic_parity_disparity)],
)
def test_scores_are_our_metrics(fairness, disparity):
    frame = predicted(2, 400)
    few = frame.index[:3]  # too few people for a rate do not count for the disparity, nor for gaps
    frame.loc[few, ["sex", "y", "guess"]] = ["few", "b", "a"]
    found = audited(frame, positive="b", fairness=fairness, small_groups="ignore").metrics
    rest = frame.drop(few)
    expected = disparity(rest["y"], rest["guess"], sensitive_features=rest["sex"])
    scores = found["scores"]["on_given_labels"]
    assert scores["disparity"]["value"] == pytest.approx(expected, abs=0.01)
    accuracy = (frame["y"] == frame["guess"]).mean()
    assert scores["accuracy"]["value"] == pytest.approx(accuracy)
    low, high = scores["accuracy"]["interval"]
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(accuracy * (1 - accuracy) / 400), rel=0.15)
    assert {one["lower_group"] for one in found["gaps"]} <= {"men", "women"}


def test_calibration_is_that_of_scikit_learn():
    frame = predicted(2, 1000).assign(sex="men")
    frame.loc[frame.index[:400], "sex"] = "women"
    found = audited(frame, positive="b", score="score").metrics["calibration"]
    edges = np.quantile(frame["score"], np.linspace(0, 1, 11))
    for one in found:
        mine = frame[frame["sex"] == one["group"]]
        hits = mine["y"] == "b"
        assert one["predicted"] == pytest.approx(mine["score"].mean())
        assert one["observed"]["value"] == pytest.approx(hits.mean())
        parts = np.digitize(mine["score"], edges[1:-1])
        assert [part["observed"]["total"] for part in one["bins"]] == np.bincount(parts).tolist()
    observed = [[part["observed"] for part in one["bins"]] for one in found]
    counts = [[(part["hits"], part["total"]) for part in parts] for parts in observed]
    hits, totals = np.sum(counts, axis=0).T
    together = hits / totals
    shares, _ = calibration_curve(frame["y"] == "b", frame["score"], n_bins=10, strategy="quantile")
    np.testing.assert_allclose(together, shares)


def made(classes, groups=2, rows=1500):
    """Labels that one column says something of."""
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": random.normal(size=rows), "z": random.normal(size=rows)})
    score = frame["x"] + random.normal(size=rows)
    frame["y"] = np.array(NAMES)[np.digitize(score, [0.0] if classes == 2 else [-0.5, 0.8])]
    frame["sex"] = random.integers(0, groups, rows).astype(str)
    return frame


def trained(frame, **settings):
    return tabular.train(frame, label="y", sensitive="sex", max_iter=4, clean_ratio=1.0, **settings)


@pytest.mark.parametrize("classes", [2, 3])
def test_quality_is_that_of_scikit_learn(classes):
    frame = made(classes)
    result = trained(frame, positive="b" if classes == 2 else None, tolerance=0.5, test=0.2)
    test = frame.iloc[result.run.problem.test.rows]
    told = tabular.predict(result, test, probabilities=True)
    known = {
        "auc": sklearn_metrics.roc_auc_score,
        "average_precision": sklearn_metrics.average_precision_score,
        "precision": sklearn_metrics.precision_score,
        "recall": sklearn_metrics.recall_score,
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score,
    }
    assert {one["measure"] for one in result.metrics["quality"]} == set(known)
    for one in result.metrics["quality"]:
        mine = (test["sex"] == one["group"]).to_numpy() | (one["group"] == "everyone")
        label, guess = test["y"].to_numpy()[mine], told.predicted[mine]
        if one["label"] is not None:
            scores = told.chances[one["label"]][mine]
            label, guess = label == one["label"], guess == one["label"]
            guess = scores if one["measure"] in ("auc", "average_precision") else guess
        score = one[result.run.choice.stored]
        assert score["value"] == pytest.approx(known[one["measure"]](label, guess)), one
        assert 0 <= score["interval"][0] < score["value"] < score["interval"][1] <= 1


def test_labels_that_are_told_apart_perfectly_are_measured():
    """Their average precision adds shares up to 1, or to a little more by rounding."""
    for count in (2, 3, 5, 11, 23, 59):
        scores = np.arange(count) / count
        for positives in range(1, count):
            found = evaluation._tell(scores >= scores[-positives], scores >= 0.5, scores)
            for name in ("auc", "average_precision"):
                assert found[name].value == 1
                assert 0 < found[name].interval[0] < found[name].interval[1] <= 1


def test_the_interval_of_the_auc_is_delongs():
    result = trained(made(2), positive="b", tolerance=0.5, test=0.2)
    quality = {(one["measure"], one["group"]): one for one in result.metrics["quality"]}
    everyone = quality["auc", "everyone"][result.run.choice.stored]
    test = made(2).iloc[result.run.problem.test.rows]
    scores = tabular.predict(result, test, probabilities=True).chances["b"]
    high, low = scores[test["y"] == "b"], scores[test["y"] == "a"]
    above = (high[:, None] > low).astype(float) + (high[:, None] == low) / 2
    spread = math.sqrt(above.mean(axis=1).var(ddof=1) / len(high) + above.mean(axis=0).var(ddof=1) / len(low))
    area = above.mean()
    half = 1.959964 * spread / (area * (1 - area))
    logit = math.log(area / (1 - area))
    expected = [1 / (1 + math.exp(-(logit + side * half))) for side in (-1, 1)]
    assert everyone["interval"] == pytest.approx(expected)


def test_a_change_is_the_difference_and_of_few_people_never_certain():
    found = trained(made(2), positive="b", tolerance=1.0).metrics
    for name in ("accuracy", "disparity"):
        change = found["change"][name]
        assert change["value"] == pytest.approx(found["fair"][name]["value"] - found["plain"][name]["value"])
    low, high = found["change"]["accuracy"]["interval"]
    # Nobody of 300 may change, and some of many more.
    assert low < found["change"]["accuracy"]["value"] < high


def cells_and_copies():
    """Labels and groups of some rows, and which of them are copies."""
    row = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 3))
    codes = st.lists(row, min_size=8, max_size=60)
    return codes.map(
        lambda rows: (
            np.array([label for label, _, count in rows for _ in range(count)]),
            np.array([group for _, group, count in rows for _ in range(count)]),
            np.array([kind for kind, (*_, count) in enumerate(rows) for _ in range(count)]),
        )
    )


@given(cells_and_copies(), st.integers(0, 3), st.sampled_from([0.1, 0.2, 0.5, 0.999]))
def test_copies_share_a_fold_and_every_class_is_learnt_from(rows, seed, part):
    labels, groups, copies = rows
    cells = Cells.of(labels, groups)
    folds = deal_folds(cells, 5, copies, seed)
    aside = set_aside(cells, part, copies, seed)
    for kind in np.unique(copies):
        assert len(set(folds[copies == kind])) == len(set(aside[copies == kind])) == 1
    for code in range(cells.shape[0]):
        for fold in range(5):
            assert (folds[cells.label_codes == code] != fold).any()
        assert not aside[cells.label_codes == code].all()
    # Each cell is spread evenly: its rows that are no copies differ by one between folds at most.
    alone = Cells.of(*(values[np.unique(copies, return_index=True)[1]] for values in (labels, groups)))
    dealt = deal_folds(alone, 5, None, seed)
    for cell in np.unique(alone.codes):
        counts = np.bincount(dealt[(alone.codes == cell) & (dealt >= 0)], minlength=5)
        assert counts.max() - counts.min() <= 1 or (dealt == -1).any()


def test_labels_by_chance_are_not_learnt_from_copies():
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(random.normal(size=(150, 30)))
    frame["sex"], frame["y"] = random.choice(["f", "m"], 150), random.choice(["a", "b"], 150)
    repeated = pandas.concat([frame] * 4, ignore_index=True).rename(columns=str)
    for settings in ({}, {"test": 0.3}):
        found = tabular.train(repeated, label="y", sensitive="sex", clean_ratio=1.0, **settings)
        assert found.metrics["plain"]["on_given_labels"]["accuracy"]["value"] < 0.65
        assert found.decision.outcome != "use-fair"


def test_dropped_people_are_counted_by_cell():
    frame = made(2)
    settings = {"positive": "b", "max_iter": 8, "clean_ratio": 0.8, "tolerance": 0.02}
    result = tabular.train(frame, label="y", sensitive="sex", **settings)
    rows = frame.iloc[result.run.problem.train.rows]
    found = {(one["label"], one["group"]): one for one in result.metrics["dropped"]}
    people = rows.groupby(["y", "sex"]).size().to_dict()
    assert {place: one["dropped"]["total"] for place, one in found.items()} == people
    wrong = rows.loc[result.suspects["row"]].groupby(["y", "sex"]).size()
    assert {place: one["suspects"] for place, one in found.items() if one["suspects"]} == wrong.to_dict()
    dropped = sum(one["dropped"]["hits"] for one in found.values())
    assert dropped >= 0.19 * len(rows)
    weights = [found[place]["effective_weight"] for place in people]
    assert np.average(weights, weights=list(people.values())) == pytest.approx(1)
