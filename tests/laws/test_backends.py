"""Backends"""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.sampling.sharded import ShardedPlan
from fairsieve.sampling.workers import Workers
from fairsieve.selection.backends.torch import TorchBackend
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

NOTIONS = ["equalized_odds", "demographic_parity", "equal_opportunity", None]
LOSSES = {
    "smooth": lambda rng, n: rng.exponential(size=n) * 10.0 ** rng.integers(-9, 3),
    "ties": lambda rng, n: rng.choice([0.0, -0.0, 0.5, 1.0], n),
    "infinities": lambda rng, n: rng.choice([np.inf, -np.inf, -1.5, 1e-30, 3e38, 0.1], n),
    "same": lambda rng, n: np.full(n, 0.7),
    "far apart": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n),
}


@st.composite
def epochs(draw):
    """Cells, the options of a plan, and losses and signals of three epochs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, classes, groups = draw(st.integers(1, 300)), draw(st.integers(2, 12)), draw(st.integers(1, 12))
    labels = rng.choice(rng.permutation(classes)[: draw(st.integers(1, classes))], n)  # some are empty
    columns = rng.integers(0, groups, n).astype(object)
    if draw(st.booleans()):
        columns[rng.random(n) < 0.3] = None
    known = {"classes": range(classes), "group_values": [*range(groups), None]}
    cells = Cells.of(labels, columns, missing="own", **known)
    options = {
        "batch_size": draw(st.integers(1, 60)),
        "fairness": draw(st.sampled_from(NOTIONS)),
        "clean_ratio": draw(st.sampled_from([1.0, 0.9, 0.5, 0.29, 0.01])),
        "step_size": draw(st.sampled_from([0.0005, 0.2])),
        "warmup_epochs": draw(st.integers(0, 1)),
        "constrained": draw(st.integers(0, 3)) > 0,
        "weighted": draw(st.integers(0, 3)) > 0,
        "signal": draw(st.sampled_from(["loss", "error"])),
        "pos_label": 1,
        "seed": draw(st.integers(0, 999)),
    }
    dtype, kind = draw(st.sampled_from([np.float32, np.float64])), draw(st.sampled_from(sorted(LOSSES)))
    with np.errstate(over="ignore"):
        losses = [LOSSES[kind](rng, n).astype(dtype) for _ in range(3)]
    return cells, options, [(each, rng.random((classes, n)).astype(dtype)) for each in losses]


def outcomes(plan, steps):
    """Of every epoch: ratios, selection, counts and batches, as bytes and lists."""
    for losses, signals in steps:
        plan.update(losses, signals[: len(plan.comparisons.targets)])
        batches = plan.batches()
        yield (
            plan.ratios.tobytes(),
            torch.as_tensor(plan.indices).tolist(),
            plan.counts.tolist(),
            [batch.tolist() for batch in batches],
        )
        plan.epoch += 1


@given(epochs())
def test_same_plans(drawn):
    """NumPy, torch and a sharded worker plan the same: ratios, selection and batches."""
    cells, options, steps = drawn
    expected = list(outcomes(Plan(cells, **options, backend="numpy"), steps))
    device = Plan(cells, **options, backend=TorchBackend(cells, "cpu"))
    assert list(outcomes(device, steps)) == expected
    alone = ShardedPlan(cells, workers=Workers(), **options)
    assert list(outcomes(alone, steps)) == expected


@given(epochs(), st.integers(0, 2))
def test_states_move(drawn, stop):
    """A plan goes on from another backend's state to the same next epochs."""
    cells, options, steps = drawn
    expected = list(outcomes(Plan(cells, **options, backend="numpy"), steps))
    before = Plan(cells, **options, backend="torch")
    list(outcomes(before, steps[:stop]))
    after = Plan(cells, **options, backend="numpy")
    after.load_state_dict(before.state_dict())
    assert list(outcomes(after, steps[stop:])) == expected[stop:]


@given(epochs(), st.floats(0, 1))
def test_step_sizes(drawn, size):
    """A step size given to one update is that of a plan with this step size."""
    cells, options, steps = drawn
    options["warmup_epochs"] = 0
    losses, signals = steps[0]
    one, other = Plan(cells, **options), Plan(cells, **(options | {"step_size": size}))
    rows = signals[: len(one.comparisons.targets)]
    one.update(losses, rows, step_size=size)
    other.update(losses, rows)
    assert one.ratios.tobytes() == other.ratios.tobytes()
    assert one.indices.tolist() == other.indices.tolist()
