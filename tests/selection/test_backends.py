"""Backends, and cells on a device or on disk"""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import codes_of, problems

from fairsieve import select
from fairsieve.errors import InvalidInputError
from fairsieve.sampling.sharded import ShardedPlan, Workers
from fairsieve.selection.backends.numpy import NumpyBackend
from fairsieve.selection.backends.torch import TorchBackend
from fairsieve.selection.cells import Cells, merged
from fairsieve.selection.epoch import Plan
from fairsieve.selection.search import Limits

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HERE = torch.device("cpu")
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
        "batching": draw(st.sampled_from(["even", "paper"])),
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
        indices = torch.as_tensor(plan.indices).tolist()
        yield plan.ratios.tobytes(), indices, plan.counts.tolist(), [batch.tolist() for batch in batches]
        plan.epoch += 1


# Each must plan as NumPy does, which a law of its own compares with the literal definition.
BACKENDS = [lambda cells: TorchBackend(cells, "cpu")]


@given(epochs())
def test_every_backend_makes_the_same_plans(drawn):
    """NumPy, torch and a sharded worker plan the same: ratios, selection and batches."""
    cells, options, steps = drawn
    expected = list(outcomes(Plan(cells, **options, backend="numpy"), steps))
    for make in BACKENDS:
        assert list(outcomes(Plan(cells, **options, backend=make(cells)), steps)) == expected
    alone = ShardedPlan(cells, workers=Workers(), **options)
    assert list(outcomes(alone, steps)) == expected


@given(epochs(), st.integers(0, 2))
def test_a_state_goes_on_with_another_backend(drawn, stop):
    """A plan goes on from another backend's state to the same next epochs."""
    cells, options, steps = drawn
    expected = list(outcomes(Plan(cells, **options, backend="numpy"), steps))
    before = Plan(cells, **options, backend="torch")
    list(outcomes(before, steps[:stop]))
    after = Plan(cells, **options, backend="numpy")
    after.load_state_dict(before.state_dict())
    assert list(outcomes(after, steps[stop:])) == expected[stop:]


@given(problems())
def test_selecting_again_leaves_none_out(problem):
    """Selecting again, from the selected samples alone and with the same budget, leaves none out."""
    found = select(*problem)
    shape = [list(range(size)) for size in problem.ratios.shape]
    backend = NumpyBackend(Cells(codes_of(problem)[found.indices], *shape))
    measured = backend.measure(problem.losses[found.indices], None)
    again = backend.select(measured, Limits(problem.ratios, found.budget))
    assert len(again.indices) == len(found)


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4), max_size=4))
def test_values_of_shards_merge_into_those_of_the_whole(lists):
    """Values of several shards merge into those of the whole, None last."""
    ordered = [sorted(set(each) - {None}) + [None] * (None in each) for each in lists]
    whole = {value for each in lists for value in each}
    assert merged(ordered) == sorted(whole - {None}) + [None] * (None in whole)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int64, torch.bool])
@pytest.mark.parametrize("spread", [1, 7, 300])
def test_cells_of_tensors_are_those_of_arrays(kind, spread):
    rng = np.random.default_rng(spread)
    labels = torch.from_numpy(rng.integers(0, 2, 500) * min(spread, 100)).to(kind)
    groups = torch.from_numpy(rng.integers(-3, 3, 500) * spread)
    found = Cells.of(labels, groups, device=HERE)
    expected = Cells.of(labels.numpy(), groups.numpy())
    assert (found.classes, found.groups) == (expected.classes, expected.groups)
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.codes_on(HERE) is found.codes


def test_known_values_fix_the_cells_of_tensors():
    labels, groups = torch.tensor([2, 0, 2]), torch.tensor([5, 5, 9])
    found = Cells.of(labels, groups, classes=[0, 1, 2], group_values=[9, 5], device=HERE)
    assert found.codes.tolist() == [5, 1, 4]
    with pytest.raises(InvalidInputError, match=r"labels must be among \[0, 1\]; got also \[2\]"):
        Cells.of(labels, groups, classes=[0, 1], group_values=[9, 5], device=HERE)
    with pytest.raises(InvalidInputError, match="known groups must be different"):
        Cells.of(labels, groups, classes=[0, 1, 2], group_values=[5, 5], device=HERE)


def test_strings_and_distant_integers_are_encoded_on_the_host():
    labels = torch.tensor([0, 2**40, 0])
    found = Cells.of(labels, ["b", "a", None], missing="own", device=HERE)
    assert (found.classes, found.groups) == ([0, 2**40], ["a", "b", None])
    assert found.codes.tolist() == [1, 3, 2]


def test_continuous_tensors_are_refused_as_labels():
    with pytest.raises(InvalidInputError, match="labels must be classes; got continuous numbers such as"):
        Cells.of(torch.tensor([1.0, 0.5]), torch.tensor([0, 1]), device=HERE)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_answers_of_the_host():
    sys.path.insert(0, str(BENCHMARKS))
    import epoch_gpu

    assert epoch_gpu.check(20) == 20
