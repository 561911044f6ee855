"""What is said of models must hold for right labels: laws by simulation, small versions of benchmarks/judgement.py."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsieve import estimate_clean_ratio
from fairsieve.data import flip_uniform, make_synthetic
from fairsieve.label_noise.estimate import CleanRatioEstimate, Credibility
from fairsieve.label_noise.judgement import judge, telling_reach
from fairsieve.metrics import (
    accuracy_from_table,
    bound_change_of_largest,
    bound_largest,
    count_table,
    disparity_from_table,
)
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells

NOTION = "equalized_odds"
COLUMNS = np.arange(3)  # that the second model sees


def people(rows: int, seed: int) -> Samples:
    """Draw two groups whose base rates and features differ, of whom many are sure."""
    rng = np.random.default_rng(seed)
    group = (rng.random(rows) < 0.4).astype(int)
    X = rng.normal(size=(rows, 4)) + 0.5 * group[:, None] * np.array([1.0, 0.0, -1.0, 1.0])
    chance = 1 / (1 + np.exp(-(X @ np.array([2.0, 1.5, 1.0, 1.5]) - 0.7)))
    label = (rng.random(rows) < chance).astype(int)
    return Samples(np.column_stack([X, group]), label, group, classes=[0, 1])


def truth(models, others):
    guessed = [one.predict(others.features[:, own]) for one, own in models]
    given = others.cells.label_codes, others.groups
    tables = [count_table(*given, codes, *others.cells.shape) for codes in guessed]
    found = [disparity_from_table(table, NOTION) for table in tables]
    right = [accuracy_from_table(table) for table in tables]
    return np.array(found), float(found[1] - found[0]), float(right[1] - right[0])


def trial(rates, seed, rows=3000):
    """Judge two models, one of which sees the group, on rows that they did not see; and measure them on others."""
    data, others = people(rows, seed), people(20_000, seed + 1000)
    labels = flip_uniform(data, np.asarray(rates), seed=seed + 2000).labels if np.any(rates) else data.labels
    train, held_out = np.arange(rows // 3), np.arange(rows // 3, rows)
    X, y = data.features[train], data.labels[train]
    models = [(LogisticRegression().fit(X[:, own], y), own) for own in (np.arange(5), COLUMNS)]
    estimate = estimate_clean_ratio(data.features, labels, sensitive_features=data.groups).take(held_out)
    codes = [one.predict(data.features[held_out][:, own]) for one, own in models]
    cells = data.with_labels(labels).take(held_out).cells
    judged = judge(cells, codes, NOTION, positive=1, estimate=estimate, seed=seed)
    return SimpleNamespace(judged=judged, true=truth(models, others))


def holds(score, value):
    return score.interval[0] <= value <= score.interval[1]


@pytest.fixture(scope="module")
def trials():
    of_classes, of_groups = np.repeat([[0.15], [0.03]], 2, axis=1), np.tile([0.2, 0.03], (2, 1))
    by_kind = {"none": 0.0, "random": np.full((2, 2), 0.12), "by class": of_classes, "by group": of_groups}
    return {kind: [trial(rates, seed) for seed in range(5)] for kind, rates in by_kind.items()}


def test_intervals_hold_what_is_true_for_right_labels(trials):
    levels, changes, naive = [], [], []
    for some in trials.values():
        for one in some:
            disparities, change, _ = one.true
            models = zip(one.judged.models, disparities, strict=True)
            levels += [holds(each.disparity, value) for each, value in models]
            changes.append(holds(one.judged.change()["disparity"], change))
            given = one.judged.on_given_labels.models
            naive += [holds(each.disparity, value) for each, value in zip(given, disparities, strict=True)]
    assert np.mean(levels) >= 0.9
    assert np.mean(changes) >= 0.9
    assert np.mean(naive) < 0.8  # as labels are given they do not, so the law says something


def test_no_claim_that_holds_is_false(trials):
    told = 0
    for some in trials.values():
        for one in some:
            _, change, accuracy = one.true
            claims = [(one.judged.more_alike(0, 1), change < 0), (one.judged.more_alike(1, 0), change > 0)]
            claims += [(one.judged.keeps_accuracy(most), accuracy >= -most) for most in (0.02, 0.3)]
            for claim, is_true in claims:
                told += claim == "holds"
                assert is_true or claim != "holds"
    assert told >= 20


def test_what_is_known_of_the_labels_decides_the_basis(trials):
    assert {one.judged.basis for one in trials["random"]} == {"estimate"}
    assert {one.judged.basis for one in trials["none"]} <= {"bounds", "given labels"}
    assert {one.judged.basis for one in trials["by class"]} <= {"bounds", "estimate"}
    for one in trials["random"]:
        assert one.judged.on_given_labels.basis == "given labels"
        assert one.judged.on_given_labels.on_given_labels is one.judged.on_given_labels


@pytest.mark.parametrize("rate", [0.08, 0.15, 0.22, 0.29])
def test_bounds_hold_a_gap_that_closes_below_the_highest_rates(rate):
    """Predictions without an error, where positive labels of one group are missed: the gap on given labels is none."""
    rng = np.random.default_rng(3)
    group, right = rng.integers(0, 2, (2, 8000))
    given = right * (rng.random(8000) >= rate * group)
    cells = Cells.of(given, group, classes=[0, 1], group_values=[0, 1])
    highest = np.array([[0.01, 0.01], [0.01, 0.3]])
    clear = Credibility(True, "no wrong labels were found.")
    none = np.zeros((2, 2))
    unknown = CleanRatioEstimate(1.0, (0.8, 1.0), none, none, False, clear, np.eye(2)[given], cells)
    judged = judge(cells, [right], NOTION, positive=1, estimate=replace(unknown, highest_rates=highest))
    [on_right_labels], [on_given_labels] = judged.models, judged.on_given_labels.models
    assert judged.basis == "bounds"
    assert on_given_labels.disparity.interval[0] > 0.02
    assert on_right_labels.disparity.interval[0] == 0.0
    assert on_right_labels.accuracy.interval[1] > 0.99


def test_rates_move_with_the_rows_as_their_influence_says():
    """Rows that are drawn again tell other rates: fitted anew, or by what each row was told to weigh."""
    data, rng = people(4000, 2), np.random.default_rng(0)
    labels = flip_uniform(data, 0.2, seed=1).labels
    settings = {"sensitive_features": data.groups}
    found = estimate_clean_ratio(data.features, labels, **settings).likely_rates
    fitted, forecast = [], []
    for _ in range(6):
        weights = rng.exponential(size=len(data))
        again = estimate_clean_ratio(data.features, labels, sample_weight=weights, **settings).likely_rates
        moved = [new.levels - old.levels for new, old in zip(again, found, strict=True)]
        fitted.append(np.concatenate(moved))
        forecast.append(np.concatenate([(weights - 1) @ old.influence for old in found]))
    assert np.corrcoef(np.ravel(fitted), np.ravel(forecast))[0, 1] > 0.75


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_nobody_without_a_group_need_be_among_those_who_are_judged(noise):
    """The estimate of the whole table has a column for them, whom a part may do without."""
    data = people(2500, 3)
    known = np.arange(2500) >= 6
    groups = np.where(known, data.groups, np.nan)
    labels = flip_uniform(data, noise, seed=1).labels if noise else data.labels
    estimate = estimate_clean_ratio(data.features, labels, sensitive_features=groups)
    assert estimate.cells.shape == (2, 3)
    part = np.flatnonzero(known)
    codes = (data.features[part, 0] > 0).astype(int)
    cells = data.with_labels(labels).take(part).cells
    judged = judge(cells, [codes], NOTION, positive=1, estimate=estimate.take(part))
    assert judged.basis == ("estimate" if noise else "bounds")
    assert holds(judged.models[0].disparity, judged.models[0].disparity.value)


def test_verified_labels_come_first():
    data = people(1500, 3)
    noisy = flip_uniform(data, np.array([[0.2, 0.0], [0.2, 0.0]]), seed=5).labels
    checked = np.full(1500, None, dtype=object)
    checked[:300] = data.labels[:300]
    given = {"sensitive_features": data.groups, "verified_labels": checked}
    estimate = estimate_clean_ratio(data.features, noisy, **given, random_state=0)
    codes = [(data.features[:, 0] > 0).astype(int), data.labels]
    judged = judge(data.with_labels(noisy).cells, codes, NOTION, positive=1, estimate=estimate)
    assert judged.basis == "verified labels"
    assert holds(judged.models[0].accuracy, float((codes[0] == data.labels).mean()))
    assert judged.models[1].accuracy.interval[1] == 1.0  # no check speaks against it
    assert estimate.names_cells


def draws_of(rng, groups, rows, gap):
    """Draw predictions of groups that are alike but for one, whose true-positive rate lies ``gap`` higher."""
    group, label = rng.integers(0, groups, rows), rng.integers(0, 2, rows)
    rate = np.where(label == 1, 0.5, 0.2) + gap * ((group == 0) & (label == 1))
    cells = Cells.of(label, group, classes=[0, 1], group_values=list(range(groups)))
    return cells, (rng.random(rows) < rate).astype(int)


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.05, 0.3])
def test_the_interval_of_a_largest_difference_covers_and_can_contain_0(gap):
    covered = []
    for seed, (groups, rows) in enumerate(product((2, 3, 5, 10), (300, 1000, 4000))):
        rng, true = np.random.default_rng(seed), gap * (1 - 1 / groups)
        for draw in range(6):
            cells, codes = draws_of(rng, groups, rows, gap)
            [model] = judge(cells, [codes], NOTION, positive=1, seed=draw).models
            low, high = model.disparity.interval
            assert low <= model.disparity.value <= high
            covered.append(low <= true <= high)
    assert np.mean(covered) >= 0.93


def test_percentiles_of_the_largest_draw_would_not_contain_0():
    drawn = np.random.default_rng(0).normal(0, 0.05, (1000, 4))
    assert np.quantile(np.abs(drawn).max(axis=1), 0.025) > 0
    assert bound_largest(np.vstack([[0.01, -0.02, 0.03, 0.0], drawn])).interval[0] == 0.0


def test_no_interval_of_a_gap_or_a_share_goes_beyond_what_is_possible():
    rng = np.random.default_rng(0)
    cells = Cells.of(rng.integers(0, 2, 60), rng.integers(0, 3, 60))
    judged = judge(cells, [rng.integers(0, 2, 60)], NOTION, positive=1)
    gaps = judged.gaps(0, [("true_positive_rate", 1, 0, 1), ("precision", 1, 1, 2)], compared=10**6)
    ends = np.array([each.interval for each in [*gaps, *judged.class_shares(1, compared=10**6)]])
    assert (ends[:2] >= -1).all()
    assert (ends[2:] >= 0).all()
    assert (ends <= 1).all()


def test_a_change_of_equal_draws_is_0():
    drawn = np.random.default_rng(0).normal(0.1, 0.05, (1000, 4))
    values = np.vstack([drawn.mean(axis=0), drawn])
    value, interval = bound_change_of_largest(values, values)
    assert (value, *interval) == pytest.approx((0.0, 0.0, 0.0))


def test_a_value_beyond_all_of_its_draws_is_still_the_largest():
    drawn, values = np.random.default_rng(0).normal(0.0, 0.01, (1000, 2)), np.array([0.5, 0.1])
    score = bound_change_of_largest(np.vstack([values, drawn]), np.vstack([values - 0.2, drawn]))
    assert score.value == pytest.approx(-0.2)
    assert score.interval[0] <= score.value <= score.interval[1]


@pytest.mark.parametrize(
    ("before", "after"), [([0.1] + [0.0] * 5, [0.0] * 6), ([0.06] * 6, [0.06] + [0.0] * 5)]
)
def test_a_change_is_told_by_the_gaps_that_may_be_the_widest(before, after):
    """Gaps that are surely not the widest cost nothing; where all are equally wide, none is picked by chance."""
    rng, error, shared, times = np.random.default_rng(1), 0.02, 0.7, 200
    true, told, covered = max(after) - max(before), 0, 0
    for _ in range(times):
        noise, draws = rng.normal(size=(3, 6)), rng.normal(size=(3, 400, 6))
        # What the two models share, and what each has of its own.
        both = [error * (shared * part[0] + np.sqrt(1 - shared**2) * part[1:]) for part in (noise, draws)]
        values = [np.array(gaps) + own for gaps, own in zip((before, after), both[0], strict=True)]
        pair = [np.vstack([value, value + again]) for value, again in zip(values, both[1], strict=True)]
        low, high = bound_change_of_largest(*pair).interval
        told += high < 0
        covered += low <= true <= high
    assert covered >= 0.9 * times
    if true < 0:
        assert told >= 0.55 * times  # five standard errors
    else:
        assert told <= 0.07 * times


def test_copies_of_rows_in_clusters_say_no_more_than_the_rows():
    rng = np.random.default_rng(1)
    cells, codes = draws_of(rng, 2, 500, 0.1)
    four = Cells(np.tile(cells.host_codes, 4), cells.classes, cells.groups)
    copies = np.tile(np.arange(500), 4)
    once = judge(cells, [codes], NOTION, positive=1).models[0].disparity
    apart = judge(four, [np.tile(codes, 4)], NOTION, positive=1).models[0].disparity
    together = judge(four, [np.tile(codes, 4)], NOTION, positive=1, clusters=copies).models[0].disparity
    assert once.value == pytest.approx(apart.value) == pytest.approx(together.value)
    width = [score.interval[1] - score.interval[0] for score in (once, apart, together)]
    assert width[1] < 0.7 * width[0]
    assert width[2] == pytest.approx(width[0], rel=0.1)


def test_with_as_many_rows_as_are_said_to_tell_most_draws_tell():
    """That groups are treated more alike, by a second model that lifts the lower rate halfway."""

    def differ(rows, seed):
        rng = np.random.default_rng(seed)
        label, group, luck = rng.integers(0, 2, rows), rng.integers(0, 2, rows), rng.random(rows)
        cells = Cells.of(label, group, classes=[0, 1], group_values=[0, 1])
        rates = [np.where(label == 1, 0.8 - gap * group, 0.2) for gap in (0.16, 0.08)]
        return judge(cells, [(luck < rate).astype(int) for rate in rates], NOTION, positive=1, seed=seed)

    told = []
    for seed in range(12):
        first = differ(300, seed)
        needed = first.to_tell()
        if first.more_alike() == "cannot tell" and needed.rows is not None:
            assert needed.rows > 300
            assert needed.checks is None  # labels are believed
            told.append(differ(needed.rows, seed + 100).more_alike() == "holds")
    assert len(told) >= 6
    assert np.mean(told) > 0.5


@pytest.mark.parametrize("small", [0.0, 0.03])
def test_an_interval_has_to_be_the_narrower_the_less_it_may_tell(small):
    reaches = [telling_reach(centre, 0.1, small, 0.1) for centre in (0.0, 0.03, -0.06, 0.09, 0.3)]
    assert reaches == sorted(reaches)
    assert 0 < reaches[0] < reaches[-1] <= 0.1
    assert telling_reach(0.03, 0.1, 0.05, 0.1) > telling_reach(0.03, 0.1, 0.0, 0.1)


def test_without_checked_labels_no_cell_is_named():
    data = make_synthetic(3000, seed=4)
    noisy = flip_uniform(data, {(1, 0): 0.35}, seed=1).labels
    found = estimate_clean_ratio(data.features, noisy, sensitive_features=data.groups)
    assert not found.names_cells
    assert np.isnan(found.told_noise).all()
