"""Tensors on a device: their cells, and plans on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.torch_cells import cells_on
from fairsieve.selection.cells import Cells

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HERE = torch.device("cpu")


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int64, torch.bool])
@pytest.mark.parametrize("spread", [1, 7, 300])
def test_cells_of_tensors_are_those_of_arrays(kind, spread):
    rng = np.random.default_rng(spread)
    labels = torch.from_numpy(rng.integers(0, 2, 500) * min(spread, 100)).to(kind)
    groups = torch.from_numpy(rng.integers(-3, 3, 500) * spread)
    found = cells_on(HERE, labels, groups, None, None, "refuse")
    expected = Cells.of(labels.numpy(), groups.numpy())
    assert (found.classes, found.groups) == (expected.classes, expected.groups)
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.codes_on(HERE) is found.codes


def test_known_values_fix_the_cells_of_tensors():
    labels, groups = torch.tensor([2, 0, 2]), torch.tensor([5, 5, 9])
    found = cells_on(HERE, labels, groups, [0, 1, 2], [9, 5], "refuse")
    assert found.codes.tolist() == [5, 1, 4]
    with pytest.raises(InvalidInputError, match=r"labels must be among \[0, 1\]; got also \[2\]"):
        cells_on(HERE, labels, groups, [0, 1], [9, 5], "refuse")
    with pytest.raises(InvalidInputError, match="known groups must be different"):
        cells_on(HERE, labels, groups, [0, 1, 2], [5, 5], "refuse")


def test_strings_and_distant_integers_are_encoded_on_the_host():
    labels = torch.tensor([0, 2**40, 0])
    found = cells_on(HERE, labels, ["b", "a", None], None, None, "own")
    assert (found.classes, found.groups) == ([0, 2**40], ["a", "b", None])
    assert found.codes.tolist() == [1, 3, 2]


def test_continuous_tensors_are_refused_as_labels():
    with pytest.raises(InvalidInputError, match="labels must be classes; got continuous numbers such as"):
        cells_on(HERE, torch.tensor([1.0, 0.5]), torch.tensor([0, 1]), None, None, "refuse")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_answers_of_the_host():
    sys.path.insert(0, str(BENCHMARKS))
    import epoch_gpu

    assert epoch_gpu.check(20) == 20
