"""Ratios"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.strategies import ratio_rows, shuffles

from fairsieve.selection.backends.numpy import NumpyBackend
from fairsieve.selection.backends.torch import TorchBackend
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import cell_sizes, class_shares, comparisons, find_loss_gaps, move_ratios

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


class Step(NamedTuple):
    """What a step of the ratios is made from."""

    ratios: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    by_group: bool
    size: float


@st.composite
def steps(draw, notions=NOTIONS):
    """Whole-numbered sums over cells, some of them empty; two to four classes and groups."""
    classes, groups = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    cells = Cells.of([], [], classes=range(classes), group_values=range(groups))
    wanted = comparisons(draw(st.sampled_from(notions)), cells, pos_label=draw(st.integers(0, classes - 1)))
    size = classes * groups
    counts = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    values = st.lists(st.integers(-50, 500), min_size=size, max_size=size)
    sums = np.array([draw(values) for _ in wanted.targets], float) * (np.array(counts) > 0)
    ratios = np.array([draw(ratio_rows(groups)) for _ in range(classes)])
    step_size = draw(st.sampled_from([0.0, 0.001, 0.1, 1.0]))
    return Step(ratios, sums, np.array(counts), np.array(wanted.rows), wanted.by_group, step_size)


def moved(step, **changes):
    """The ratios after a step."""
    step = step._replace(**changes)
    ratios = step.ratios.copy()
    sizes = step.counts.reshape(ratios.shape)
    gaps = find_loss_gaps(step.sums, step.sums**2, sizes, step.rows, by_group=step.by_group)
    move_ratios(ratios, gaps, step.size)
    return ratios


def literal_gaps(step):
    """Of each comparison: its gap, its class, and the groups with the highest and the lowest value."""
    counts = step.counts.reshape(step.ratios.shape)
    for target, label, sign in step.rows.tolist():
        values = {}
        for group in np.flatnonzero(counts[label]).tolist():
            among = counts[:, group].sum() if step.by_group else counts[label, group]
            total = step.sums[target].reshape(counts.shape)[label, group]
            values[group] = Fraction(sign * int(total), int(among))
        if values:
            top, bottom = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
            yield values[top] - values[bottom], label, top, bottom


@given(steps())
def test_a_step_is_the_literal_one(step):
    """A step is the literal one: in the class with the widest gap, from the lowest group to the highest.

    Among equals too it moves at most the step size, between two groups of one class.
    """
    expected, change = step.ratios.copy(), moved(step) - step.ratios
    assert (change != 0).any(axis=1).sum() <= 1
    assert (change != 0).sum() <= 2
    assert np.abs(change).max() <= step.size + 1e-15
    gaps = list(literal_gaps(step))
    widest = max((gap for gap, *_ in gaps), default=0)
    close = [each for each in gaps if float(widest - each[0]) < 1e-9]
    if widest > 0 and len({(label, top, bottom) for _, label, top, bottom in close}) == 1:
        _, label, top, bottom = close[0]
        amount = min(step.size, expected[label, bottom], 1 - expected[label, top])
        expected[label, top] += amount
        expected[label, bottom] -= amount
        assert moved(step) == pytest.approx(expected, abs=1e-12)
    elif widest == 0:
        assert (moved(step) == expected).all()


@given(st.lists(steps(), min_size=1, max_size=4), st.integers(1, 20))
def test_ratios_stay_shares_of_their_class(several, times):
    """However often they move, ratios stay in [0, 1] and each class's sum stays 1."""
    ratios = several[0].ratios
    several = [step for step in several if step.ratios.shape == ratios.shape]
    for step in several * times:
        ratios = moved(step, ratios=ratios)
        assert ((ratios >= 0) & (ratios <= 1)).all()
        assert ratios.sum(axis=1) == pytest.approx(np.ones(len(ratios)))


@given(steps(), st.integers(2, 5))
def test_repeated_samples_move_the_ratios_alike(step, times):
    """Samples that are all there twice, or more often, move the ratios alike."""
    if times in (2, 4):
        assert (moved(step, sums=step.sums * times, counts=step.counts * times) == moved(step)).all()
    assert moved(step, sums=step.sums * times, counts=step.counts * times) == pytest.approx(moved(step))


def has_ties(step):
    """Whether two values of a comparison, or two gaps, are as good as equal."""
    gaps = sorted(float(gap) for gap, *_ in literal_gaps(step))
    counts = step.counts.reshape(step.ratios.shape)
    for target, label, _ in step.rows.tolist():
        present = np.flatnonzero(counts[label])
        among = counts[:, present].sum(axis=0) if step.by_group else counts[label, present]
        values = np.sort(step.sums[target].reshape(counts.shape)[label, present] / among)
        if (np.diff(values) < 1e-9).any():
            return True
    return bool((np.diff(gaps) < 1e-9).any())


@given(steps(), st.integers(-4, 20))
def test_scaled_losses_move_the_ratios_alike(step, power):
    """Losses scaled by a power of two move the ratios alike, where no two are tied."""
    if not has_ties(step):
        assert (moved(step, sums=step.sums * 2.0**power) == moved(step)).all()


@given(steps(), st.data())
def test_other_names_move_the_same_ratios(step, data):
    """Other names for the groups, and for equalized odds for the classes, move the same ones, if none are tied."""
    classes, groups = step.ratios.shape
    columns, rows = data.draw(shuffles(groups)), data.draw(shuffles(classes))
    if step.by_group or len(step.rows) < classes:  # not equalized odds
        rows = np.arange(classes)
    if not has_ties(step):

        def renamed(table):
            return table.reshape(-1, classes, groups)[:, rows][:, :, columns]

        sums, counts = renamed(step.sums).reshape(step.sums.shape), renamed(step.counts).ravel()
        found = moved(step, ratios=renamed(step.ratios)[0].copy(), sums=sums, counts=counts)
        assert (found == renamed(moved(step))[0]).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=40), st.randoms())
def test_ratios_start_at_the_shares_of_the_data(pairs, random):
    """Ratios start at each cell's share of its class, in whatever order the samples stand; even without samples."""
    known = {"classes": range(3), "group_values": range(3)}
    start = class_shares(Cells.of([y for y, _ in pairs], [z for _, z in pairs], **known).counts)
    for label, row in enumerate(start):
        own = [z for y, z in pairs if y == label]
        expected = [own.count(z) / len(own) if own else 1 / 3 for z in range(3)]
        assert row.tolist() == pytest.approx(expected)
    random.shuffle(pairs)
    again = class_shares(Cells.of([y for y, _ in pairs], [z for _, z in pairs], **known).counts)
    assert (again == start).all()


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9, width=32), st.integers(0, 3), st.booleans()), max_size=40),
    st.sampled_from([np.float32, np.float64]),
)
def test_sums_of_cells_are_those_of_their_samples(samples, dtype):
    """The sums of cells are those of their chosen samples, by every backend."""
    signals = np.array([[value for value, _, _ in samples], [1.0] * len(samples)], dtype)
    codes = np.array([code for _, code, _ in samples], np.uint8)
    selected = np.flatnonzero([is_selected for *_, is_selected in samples])
    cells, losses = Cells(codes, [0, 1], [0, 1]), np.zeros(len(samples), dtype)
    expected = [[math.fsum(row[selected][codes[selected] == cell]) for cell in range(4)] for row in signals]
    for backend in (NumpyBackend(cells), TorchBackend(cells, "cpu")):
        found = backend.sum_signals(backend.measure(losses, signals), backend.hold(selected))[0]
        assert found == pytest.approx(np.array(expected), rel=1e-12, abs=1e-4)


def step_of(cells, sums, fairness):
    """Ratios after one step of 0.1 from where they start, by sums against each target."""
    wanted, counts = comparisons(fairness, cells), cells.counts
    sums, rows = np.array(sums, float), np.array(wanted.rows)
    step = Step(class_shares(counts), sums, counts, rows, wanted.by_group, 0.1)
    return moved(step)


def test_three_classes_compare_the_rate_of_each_predicted_class():
    cells = Cells.of(np.repeat([0, 1, 2], 8), np.tile([0, 1], 12))
    wanted = comparisons("demographic_parity", cells)
    assert wanted.targets == (0, 1, 2)
    sums = np.zeros((3, 6))
    sums[2, 4], sums[2, 5] = 1, 5  # against class 2, over the cells of class 2: group 1 should rise
    assert step_of(cells, sums, "demographic_parity")[2] == pytest.approx([0.4, 0.6])
    sums = np.zeros((3, 6))
    sums[2, 0], sums[2, 1] = 1, 5  # against class 2, over the cells of class 0: group 1 should fall
    assert step_of(cells, sums, "demographic_parity")[0] == pytest.approx([0.6, 0.4])


def test_of_equal_gaps_the_first_counts():
    even = Cells.of(np.repeat([0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1], 10))
    moved = step_of(even, [[2.5, 5, 2.5, 5]], "equalized_odds")
    assert moved == pytest.approx(np.array([[0.4, 0.6], [0.5, 0.5]]))


@given(
    st.lists(st.floats(0.01, 5), min_size=4, max_size=4, unique=True),
    st.lists(st.integers(1, 50), min_size=4, max_size=4),
    st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_with_an_offset_of_one_a_step_is_that_of_the_authors(sums, counts, shares):
    """Their rule, read off their code: a cell's loss over its count + 1, the class with the wider gap, clipped."""
    lowest = [total / (count + 1) for total, count in zip(sums, counts, strict=True)]
    gap_0, gap_1 = abs(lowest[1] - lowest[0]), abs(lowest[3] - lowest[2])
    assume(abs(gap_0 - gap_1) > 1e-9 and max(gap_0, gap_1) > 1e-9)
    label = 1 if gap_1 > gap_0 else 0
    up = lowest[2 * label + 1] > lowest[2 * label]
    expected = list(shares)
    expected[label] = min(1.0, max(0.0, shares[label] + (0.001 if up else -0.001)))
    ratios = np.array([[1 - shares[0], shares[0]], [1 - shares[1], shares[1]]])
    rows = np.array(comparisons("equalized_odds", Cells.of([0, 1], [0, 1])).rows)
    sizes = cell_sizes(np.array(counts), False, 1)
    ratios = moved(Step(ratios, np.array([sums]), sizes, rows, False, 0.001))
    assert ratios[:, 1] == pytest.approx(expected, abs=1e-12)


def test_a_plan_with_the_authors_offset_moves_another_class():
    """Two small cells and two large ones: without the offset class 0 has the wider gap, with it class 1."""
    cells = Cells.of([0] * 2 + [1] * 200, [0, 1] + [0] * 100 + [1] * 100)
    losses = np.concatenate([[2.0, 1.0], np.full(100, 1.9), np.full(100, 1.0)])
    moved = []
    for offset in (0, 1):
        plan = Plan(cells, 10, clean_ratio=1.0, step_size=0.1, warmup_epochs=0)
        plan.count_offset = float(offset)
        before = plan.ratios.copy()
        plan.update(losses)
        moved.append(np.flatnonzero((plan.ratios != before).any(axis=1)).tolist())
    assert moved == [[0], [1]]
