"""Plans"""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.literal import literal_caps, literal_selection, literal_shares
from tests.support.refusals import refused

from fairsieve.errors import NotReadyError
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Judged, Plan

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")
SEEDS = st.integers(0, 2**32 - 1)


def random_cells(rng, n=60, groups=2):
    known = {"classes": [0, 1], "group_values": range(groups)}
    return Cells.of(rng.integers(0, 2, n), rng.integers(0, groups, n), **known)


@st.composite
def plans(draw, **fixed):
    """Cells, the options of a plan over them, and a source of losses."""
    rng = np.random.default_rng(draw(SEEDS))
    cells = random_cells(rng, draw(st.integers(1, 80)), draw(st.integers(1, 3)))
    options = {
        "batch_size": draw(st.integers(1, 30)),
        "fairness": draw(st.sampled_from([*NOTIONS, None])),
        "clean_ratio": draw(st.sampled_from([1.0, 0.9, 0.6, 0.3])),
        "step_size": draw(st.sampled_from([0.0, 0.001, 0.1])),
        "warmup_epochs": draw(st.integers(0, 2)),
        "constrained": draw(st.booleans()),
        "weighted": draw(st.booleans()),
        "batching": draw(st.sampled_from(["even", "paper"])),
        "seed": draw(st.integers(0, 99)),
    }
    return cells, options | fixed, rng


def run(plan, rng, epochs):
    for _ in range(epochs):
        losses = rng.random(len(plan.cells)).astype(np.float32)
        plan.update(losses, losses[None])
        plan.epoch += 1
    return plan


@given(SEEDS)
def test_an_epoch_moves_the_ratios_and_then_selects(seed):
    """An epoch moves the ratios, judged over the previous selection, and then selects under them: by hand."""
    rng = np.random.default_rng(seed)
    cells = random_cells(rng)
    labels, groups = cells.label_codes, cells.group_codes
    plan = Plan(cells, 10, clean_ratio=0.8, warmup_epochs=0, step_size=0.05)
    ratios, chosen = plan.ratios.copy(), list(range(60))
    for _ in range(3):
        losses = rng.exponential(size=60)
        means = np.full((2, 2), np.nan)
        for y in (0, 1):
            for z in (0, 1):
                inside = [i for i in chosen if labels[i] == y and groups[i] == z]
                if inside:
                    means[y, z] = losses[inside].mean()
        gaps = means[:, 1] - means[:, 0]
        if np.isfinite(gaps).any():
            y = int(np.nanargmax(np.abs(gaps)))
            ratios[y, 1] = np.clip(ratios[y, 1] + 0.05 * np.sign(gaps[y]), 0, 1)
            ratios[y, 0] = 1 - ratios[y, 1]
        chosen, _ = literal_selection(losses, labels, groups, ratios, 0.8)
        plan.update(losses)
        plan.epoch += 1
        assert plan.ratios == pytest.approx(ratios)
        assert plan.indices.tolist() == chosen


@given(plans())
def test_a_plan_is_consistent_at_any_time(drawn):
    """At any time: indices ascend within the budget, counts are theirs, ratios lie on the simplex."""
    cells, options, rng = drawn
    plan = Plan(cells, **options)
    for _ in range(4):
        run(plan, rng, 1)
        assert (np.diff(plan.indices) > 0).all()
        assert len(plan.indices) <= (len(cells) if plan.epoch <= options["warmup_epochs"] else plan.budget)
        counts = np.bincount(cells.codes[plan.indices], minlength=plan.ratios.size)
        assert plan.counts.tolist() == counts.tolist()
        assert ((plan.ratios >= 0) & (plan.ratios <= 1)).all()
        assert plan.ratios.sum(axis=1) == pytest.approx([1, 1])
        if options["fairness"] is None or not options["step_size"]:
            assert (plan.ratios == Plan(cells, 1).ratios).all()


@given(plans(warmup_epochs=0, weighted=True))
def test_the_batches_of_a_plan_are_close_to_the_shares(drawn):
    """A plan's batches are of its selection, each cell's part of every batch within one of its share."""
    cells, options, rng = drawn
    plan = run(Plan(cells, **options), rng, 3)
    batches = plan.batches()
    size = min(options["batch_size"], len(plan.indices))
    filled = len(cells) if options["batching"] == "even" else len(plan.indices)
    assert len(batches) == (max(1, filled // options["batch_size"]) if size else 0)
    shares = literal_shares(plan.ratios, plan.counts, size) if size else None
    for batch in batches:
        assert np.isin(batch, plan.indices).all()
        found = np.bincount(cells.codes[batch], minlength=plan.ratios.size)
        assert (np.abs(found - shares) < 1 + 1e-8).all()
        if options["batching"] == "paper":
            assert found.tolist() == np.bincount(cells.codes[batches[0]], minlength=plan.ratios.size).tolist()
    if size and options["batching"] == "even":
        found = np.bincount(cells.codes[batches.ravel()], minlength=plan.ratios.size)
        assert (np.abs(found - len(batches) * shares) < 1 + 1e-6).all()


@given(plans(), st.booleans())
def test_batches_without_ratios_go_through_the_selection(drawn, in_warmup):
    """Where ratios do not weigh, a pass leaves out less than a batch of the selection, and repeats evenly."""
    cells, options, rng = drawn
    options |= {"weighted": False, "warmup_epochs": 2 if in_warmup else 0}
    plan = run(Plan(cells, **options), rng, 1)
    batches = plan.batches()
    times = np.bincount(batches.ravel(), minlength=len(cells))[plan.indices]
    assert np.isin(batches, plan.indices).all()
    assert len(times) == 0 or times.max() - times.min() <= 1
    assert (times == 0).sum() < options["batch_size"]
    assert options["batching"] == "even" or (times <= 1).all()
    assert not in_warmup or len(plan.indices) == len(cells)


@given(plans(), st.integers(0, 5))
def test_a_plan_goes_on_from_its_state(drawn, stop):
    """A plan that goes on from its state, through JSON, is the plan that never stopped."""
    cells, options, rng = drawn
    losses = int(rng.integers(2**32))
    whole = run(Plan(cells, **options), np.random.default_rng(losses), 6)
    again = np.random.default_rng(losses)
    half = run(Plan(cells, **options), again, stop)
    state = half.state_dict()
    run(half, np.random.default_rng(0), 2)  # which leaves the state as it is
    text = json.dumps({k: v.tolist() if hasattr(v, "tolist") else v for k, v in state.items()})
    resumed = Plan(cells, **(options | {"seed": 0}))
    resumed.load_state_dict(json.loads(text))
    run(resumed, again, 6 - stop)
    assert resumed.ratios.tolist() == whole.ratios.tolist()
    assert resumed.indices.tolist() == whole.indices.tolist()
    assert resumed.batches().tolist() == whole.batches().tolist()


@given(SEEDS, st.sampled_from(["numpy", "torch"]))
def test_clean_ratios_of_cells_take_their_lowest_losses(seed, backend):
    """A table of clean ratios, or a mapping, takes the share of lowest losses of each cell, and no more."""
    rng = np.random.default_rng(seed)
    cells, table = random_cells(rng, 80, 3), rng.uniform(0.05, 1, (2, 3))
    losses = rng.choice([0.1, 0.2, 0.5, *rng.random(30)], 80)
    expected = literal_caps(losses, cells.label_codes, cells.group_codes, table)
    for clean_ratio in (table, {(y, z): table[y, z] for y in range(2) for z in range(3)}):
        plan = Plan(cells, 10, clean_ratio=clean_ratio, warmup_epochs=0, backend=backend)
        plan.update(losses)
        assert plan.indices.tolist() == expected


@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0, "auto"]), st.integers(0, 3), st.booleans())
def test_groups_weigh_by_a_power_of_what_is_kept(seed, groups, balance, warmup, is_partly_grouped):
    """From the end of the warm-up on groups weigh by (share of what is kept)^α; samples without one keep theirs.

    α is ``balance``, and ¾ where that is "auto" and nothing is foretold.
    """
    rng = np.random.default_rng(seed)
    cells = partly_grouped(rng, 80, groups) if is_partly_grouped else random_cells(rng, 80, groups)
    table = rng.choice([0.2, 0.6, 1.0], cells.shape)
    options = {"clean_ratio": table, "step_size": None, "balance": balance, "warmup_epochs": warmup}
    plan, power = Plan(cells, 10, **options), 0.75 if balance == "auto" else balance
    for epoch in range(warmup + 3):
        plan.update(rng.random(80))
        if epoch >= warmup:
            for kept, ratios in zip(plan.counts.reshape(cells.shape), plan.ratios, strict=True):
                shares = kept / kept.sum()
                weight = np.where(kept > 0, shares**power, 0)[:groups]
                wanted = weight / max(weight.sum(), 1e-9) * shares[:groups].sum()
                assert ratios == pytest.approx([*wanted, *shares[groups:]])
        plan.epoch += 1


@given(
    st.lists(st.tuples(*[st.integers(-10, 10)] * 2), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.15, 0.35]),
)
def test_held_out_gaps_move_the_power_of_their_class(gaps, tolerance):
    """Held-out gaps move the power of their class by even steps: down where the rarer group does worse, up where the
    other does; it rests within the tolerance, and returns where the weights cost accuracy."""
    cells = Cells.of([0, 0, 0, 1, 1, 1] * 10, [0, 1, 1] * 20)  # group 0 is the rarer one
    options = {"step_size": None, "warmup_epochs": 2, "epochs": 10, "constrained": False}
    options |= {"balance": 0.5, "tolerance": tolerance}
    plan = Plan(cells, 10, **options)
    plan.epoch, powers = 2, np.full(2, 0.5)
    for number, pair in enumerate(np.array(gaps) / 10):
        means = np.column_stack([-pair, pair]).ravel() / 2  # the second group errs more often by the gap
        costly = number % 4 == 3
        judged = Judged(100 * means[None], 100 * means[None] ** 2, np.full(4, 100), costly)
        plan.update(np.zeros(60), judged=judged)
        step = np.sign(pair) * (np.abs(pair) > tolerance)
        powers = np.clip(powers + (1 if costly else step) / 8, 0, 1)
        assert plan.balance.powers == pytest.approx(powers)
        assert plan.ratios[:, 0] == pytest.approx(1 / (1 + 2**powers))
        resumed = Plan(cells, 10, **options)
        resumed.load_state_dict(plan.state_dict())
        plan = resumed


def partly_grouped(rng, n, groups=2):
    """Cells of two classes, in which about a third of the samples lack a group."""
    columns = np.where(rng.random(n) < 0.35, np.nan, rng.integers(0, groups, n))
    values = [*range(groups), None]
    return Cells.of(rng.integers(0, 2, n), columns, classes=[0, 1], group_values=values, missing="own")


@given(SEEDS, st.integers(2, 3), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_no_constraint_names_samples_without_a_group(seed, groups, clean_ratio):
    """Samples without a group are selected as if no constraint of Eq. 7 named their cells."""
    rng = np.random.default_rng(seed)
    cells = partly_grouped(rng, 40, groups)
    plan = Plan(cells, 10, clean_ratio=clean_ratio, warmup_epochs=0, step_size=0.1, seed=seed)
    for _ in range(3):
        losses = rng.exponential(size=40)
        plan.update(losses)
        plan.epoch += 1
        loose = plan.ratios.copy()
        loose[:, -1] = 1e9  # a constraint that cannot break
        chosen, counts = literal_selection(losses, cells.label_codes, cells.group_codes, loose, clean_ratio)
        assert plan.indices.tolist() == chosen
        assert plan.counts.tolist() == counts.ravel().tolist()


@given(SEEDS, st.sampled_from(NOTIONS), st.integers(2, 3))
def test_the_ratio_of_samples_without_a_group_stays(seed, fairness, groups):
    """The ratio of samples without a group stays, and the others move as if those were not there."""
    rng = np.random.default_rng(seed)
    cells = partly_grouped(rng, 60, groups)
    there = np.flatnonzero(cells.group_codes < groups)
    known = {"classes": [0, 1], "group_values": range(groups)}
    named = Cells.of(cells.label_codes[there], cells.group_codes[there], **known)
    options = {"fairness": fairness, "warmup_epochs": 0, "step_size": 0.01, "constrained": False}
    plan, other = Plan(cells, 10, **options), Plan(named, 10, **options)
    share, start, other_start = plan.ratios[:, -1].copy(), plan.ratios.copy(), other.ratios.copy()
    assert share == pytest.approx(cells.counts[:, -1] / np.maximum(cells.counts.sum(axis=1), 1))
    losses = rng.exponential(size=60)
    signals = losses[None]
    plan.update(losses, signals)
    other.update(losses[there], signals[:, there])
    assert plan.ratios[:, -1].tolist() == share.tolist()
    assert plan.ratios.sum(axis=1) == pytest.approx([1, 1])
    if (np.minimum(start[:, :-1], 1 - other_start) > 0.01).all():  # away from the bounds
        assert (plan.ratios - start)[:, :-1] == pytest.approx(other.ratios - other_start)


def test_a_plan_that_believes_nothing_goes_on_from_its_state():
    cells = Cells.of([0, 1] * 4, list("aabb") * 2)
    plan, resumed = (Plan(cells, 4, clean_ratio="auto", warmup_epochs=0) for _ in range(2))
    plan.update(np.ones(8))
    resumed.load_state_dict(plan.state_dict())
    assert resumed.indices.tolist() == plan.indices.tolist()


# ---- The order of an epoch, and resuming


def test_warm_up_trains_on_everything_plainly():
    rng = np.random.default_rng(0)
    plan = Plan(random_cells(rng), 10, clean_ratio=0.5, warmup_epochs=2)
    for _ in range(2):
        plan.update(rng.random(60))
        assert sorted(plan.batches().ravel()) == list(range(60))
        assert plan.ratios.tolist() == Plan(plan.cells, 10).ratios.tolist()
        plan.epoch += 1
    with pytest.raises(NotReadyError, match="epoch 2 selects samples"):
        plan.batches()
    plan.update(rng.random(60))
    assert len(plan.indices) <= 30


def test_constraints_and_weights_can_be_left_out():
    rng = np.random.default_rng(1)
    cells, losses = random_cells(rng), rng.random(60)
    itlm = Plan(cells, 10, fairness=None, clean_ratio=0.5, warmup_epochs=0, constrained=False, weighted=False)
    itlm.update(losses)
    assert set(itlm.indices) == set(np.argsort(losses)[:30])
    assert itlm.ratios.tolist() == Plan(cells, 10).ratios.tolist()
    fairbatch = Plan(cells, 10, warmup_epochs=0, constrained=False)
    fairbatch.update(losses)
    assert len(fairbatch.indices) == 60
    assert fairbatch.ratios.tolist() != Plan(cells, 10).ratios.tolist()


@pytest.mark.parametrize(("change", "message"), [
    ({"ratios": [[1.0]]}, "over the same samples"),
    ({"ratios": [[1.5, 0.5], [0.5, 0.5]]}, r"ratios in \[0, 1\]; got \[\[1.5"),
    ({"ratios": [[1.0, 0.0], [-0.5, 0.5]]}, r"ratios in \[0, 1\]"),
    ({"indices": [0, -1]}, "points outside"),
    ({"epoch": None}, "lacks epoch"),
])  # fmt: skip
def test_a_state_of_something_else_is_refused(change, message):
    plan = Plan(random_cells(np.random.default_rng(0)), 10)
    state = {k: v for k, v in (plan.state_dict() | change).items() if v is not None}
    refused(message, plan.load_state_dict, state)


def test_signals_are_required_where_groups_are_not_compared_by_losses():
    plan = Plan(random_cells(np.random.default_rng(0)), 10, fairness="demographic_parity", warmup_epochs=0)
    refused("signals must be given", plan.update, np.ones(60))
    refused(r"signals must have the shape .*\(1, 60\)", plan.update, np.ones(60), np.ones((2, 60)))


@pytest.mark.parametrize(("options", "message"), [
    ({"batch_size": 2.5}, "batch_size must be a whole number"),
    ({"warmup_epochs": -1}, "warmup_epochs must be"),
    ({"seed": -1}, "seed must be"),
    ({"clean_ratio": 0}, "clean_ratio must be"),
    ({"signal": "margin"}, "signal must be one of loss, error; got 'margin'"),
])  # fmt: skip
def test_bad_options_are_named(options, message):
    refused(message, Plan, random_cells(np.random.default_rng(0)), **{"batch_size": 10} | options)
