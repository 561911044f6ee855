"""Rates, gaps and scores of groups, beside literal loops and our own metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import demographic_parity_disparity, equalized_odds_disparity
from fairsieve.metrics import accuracy
from fairsieve.selection.cells import Cells
from fairsieve.tabular.evaluation import dropped_cells, list_gaps, measure_groups, most_uneven, score_models
from fairsieve.tabular.reading.roles import Labels

NAMES = ("a", "b", "c")
GROUPS = ("men", "women", None)


@st.composite
def problems(draw, classes=2):
    count = draw(st.integers(1, 60))
    codes = st.lists(st.integers(0, classes - 1), min_size=count, max_size=count)
    groups = draw(st.lists(st.sampled_from(GROUPS), min_size=count, max_size=count))
    truth, plain, fair = (np.array(draw(codes)) for _ in range(3))
    cells = Cells.of(
        np.array(NAMES)[truth],
        np.array(groups, dtype=object),
        classes=NAMES[:classes],
        group_values=GROUPS,
        missing="own",
    )
    return cells, truth, groups, plain, fair


def share(hits):
    """A share of yes and no."""
    hits = list(hits)
    return sum(hits), len(hits)


@given(problems())
def test_rates_of_two_classes_are_those_of_literal_loops(problem):
    cells, truth, groups, plain, fair = problem
    found = {one.name: one for one in measure_groups(cells, plain, fair, Labels("y", NAMES[:2], "b"))}
    for place, group in enumerate(GROUPS):
        for model, guesses in (("plain", plain), ("fair", fair)):
            mine = [(t, p) for t, p, g in zip(truth, guesses, groups, strict=True) if g == group]
            expected = {
                "accuracy": share(t == p for t, p in mine),
                "selection_rate": share(p == 1 for _, p in mine),
                "true_positive_rate": share(p == 1 for t, p in mine if t == 1),
                "false_positive_rate": share(p == 1 for t, p in mine if t == 0),
            }
            assert {name: tuple(getattr(one, model)[place]) for name, one in found.items()} == expected


@given(problems(classes=3))
def test_rates_of_three_classes(problem):
    cells, truth, groups, plain, fair = problem
    found = {one.name: one for one in measure_groups(cells, plain, fair, Labels("y", NAMES, None))}
    assert len(found) == 7
    mine = [p for t, p, g in zip(truth, plain, groups, strict=True) if g == "women" and t == 2]
    assert tuple(found["true_positive_rate of c"].plain[1]) == share(p == 2 for p in mine)


def test_the_widest_gap_is_of_the_notion_asked_for_and_of_enough_people():
    truth = np.repeat([0, 1], 60)
    groups = np.tile(np.repeat(["men", "women", "few"], [28, 28, 4]), 2)
    plain = np.where((groups == "men") & (truth == 1), 1, 0)
    cells = Cells.of(truth, groups)
    labels = Labels("y", ("0", "1"), "1")
    measures = measure_groups(cells, plain, truth, labels)
    gap = max(list_gaps(measures, "equalized_odds", 3, at_once=True), key=lambda gap: gap.plain.value)
    assert (cells.groups[gap.low], cells.groups[gap.high]) == ("women", "men")
    assert (gap.measure.name, gap.plain.value, gap.fair.value) == ("true_positive_rate", 1.0, 0.0)
    assert gap.plain.interval[0] > 0.75
    assert len(list_gaps(measures, "equalized_odds", 3)) == 4  # men and women, by label; the few are left out
    assert {one.measure.name for one in list_gaps(measures, "demographic_parity", 3)} == {"selection_rate"}


def test_scores_are_our_metrics_and_change_is_their_difference():
    random = np.random.default_rng(0)
    truth, plain, fair = (random.integers(0, 2, 400) for _ in range(3))
    groups = random.choice(["men", "women"], 400)
    cells = Cells.of(truth, groups)
    for fairness, disparity in (
        ("equalized_odds", equalized_odds_disparity),
        ("demographic_parity", demographic_parity_disparity),
    ):
        models, change = score_models(cells, [plain, fair], fairness, 1, seed=0)
        for scores, guesses in zip(models, (plain, fair), strict=True):
            assert scores["accuracy"].value == pytest.approx(accuracy(truth, guesses))
            assert scores["disparity"].value == pytest.approx(
                disparity(truth, guesses, sensitive_features=groups)
            )
            low, high = scores["accuracy"].interval
            assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.25 / 400), rel=0.15)
        assert change["accuracy"].value == pytest.approx(
            models[1]["accuracy"].value - models[0]["accuracy"].value
        )


def test_the_same_predictions_have_no_change_at_all():
    truth = np.random.default_rng(0).integers(0, 2, 100)
    cells = Cells.of(truth, np.repeat(["a", "b"], 50))
    _, change = score_models(cells, [truth, truth], "equalized_odds", 1, seed=0)
    assert change["disparity"].interval == (0.0, 0.0)
    low, high = change["accuracy"].interval
    assert low == -high  # of 100 people nobody changed; of many more, some may
    assert 0.01 < high < 0.03


def test_cells_of_few_people_do_not_count_for_the_disparity():
    truth = np.repeat([0, 1], 50)
    groups = np.array((["a"] * 25 + ["b"] * 25) * 2)
    groups[-3:] = "c"
    guesses = truth.copy()
    guesses[-3:] = 0
    models, _ = score_models(Cells.of(truth, groups), [guesses], "equalized_odds", 1, seed=0)
    assert models[0]["disparity"].value == 0.0


@given(problems(), st.data())
def test_dropped_people_are_counted_by_cell(problem, data):
    cells, truth, groups, *_ = problem
    kept = np.array(data.draw(st.lists(st.sampled_from(range(len(truth))), unique=True)), dtype=int)
    found = {(one.label, one.group): one for one in dropped_cells(cells, kept, np.zeros(0, int), None)}
    for (label, group), one in found.items():
        places = [i for i in range(len(truth)) if NAMES[truth[i]] == label and groups[i] == group]
        assert tuple(one.dropped) == (len(set(places) - set(kept.tolist())), len(places))


def test_dropping_is_even_handed_or_not():
    cells = Cells.of(np.zeros(200, int), np.repeat(["men", "women"], 100), classes=[0])
    nobody = np.zeros(0, int)
    even = most_uneven(dropped_cells(cells, np.r_[:90, 100:190], nobody, None))
    assert even.even_handed
    uneven = most_uneven(dropped_cells(cells, np.r_[:90, 100:150], nobody, None))
    assert not uneven.even_handed
    assert (uneven.most.group, uneven.difference.value) == ("women", pytest.approx(0.4))
    noise = np.array([[0.1, 0.5]])
    explained = most_uneven(dropped_cells(cells, np.r_[:90, 100:150], nobody, noise))
    assert explained.even_handed
    assert (explained.most.group, explained.difference.value) == ("women", pytest.approx(0.4))
    other_way = most_uneven(dropped_cells(cells, np.r_[:90, 100:190], nobody, noise))
    assert other_way.even_handed  # dropped equally often, whatever the estimate says
    assert other_way.expected == 0.0
    worse = most_uneven(dropped_cells(cells, np.r_[:60, 100:190], nobody, noise))
    assert (worse.even_handed, worse.most.group) == (False, "men")  # fewer wrong labels, and dropped more
    small = Cells.of(np.zeros(8, int), np.repeat(["men", "women"], 4), classes=[0])
    assert most_uneven(dropped_cells(small, nobody, nobody, None)) is None


def test_the_widest_of_many_gaps_has_a_wider_interval():
    """Of many differences that are chance alone, the widest seldom excludes 0: the interval is of all at once."""
    random = np.random.default_rng(0)
    excluded = 0
    for _ in range(60):
        truth, groups = random.integers(0, 2, 1000), random.integers(0, 8, 1000)
        measures = measure_groups(
            Cells.of(truth, groups), random.integers(0, 2, 1000), truth, Labels("y", ("0", "1"), "1")
        )
        gap = max(list_gaps(measures, "equalized_odds", 8, at_once=True), key=lambda gap: gap.plain.value)
        excluded += gap.plain.interval[0] > 0
    assert excluded <= 6  # about 5 %; with intervals of one difference each, it would be nearly all
