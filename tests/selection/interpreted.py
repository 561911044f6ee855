"""The kernels of a GPU, run by Triton's interpreter on the host, against the host's own selection.

python tests/selection/interpreted.py PROBLEMS
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are imported
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import numpy as np
import torch
from selection_gpu import problem

from fairsieve.selection.backends.triton import Columns, select_by_triton
from fairsieve.selection.select import bit_patterns, select


def is_answered(rng: np.random.Generator, from_labels: bool) -> bool:
    """Whether the kernels can tell the answer to a random problem, which then must be the host's."""
    losses, labels, groups, ratios, clean_ratio = problem(rng, int(rng.integers(1024, 9000)))
    expected = select(losses, labels, groups, torch.from_numpy(ratios), clean_ratio)
    columns = Columns(labels, groups, ratios.shape)
    cells = columns if from_labels else columns.filled()
    bits, infinity = bit_patterns(losses)
    found = select_by_triton(bits, cells, ratios, expected.budget, infinity)
    if found is None:
        return False
    assert torch.equal(found[0], expected.indices)
    assert torch.equal(found[1].reshape(ratios.shape), expected.counts)
    assert columns.fit()
    assert torch.equal(columns.codes, (labels * ratios.shape[1] + groups).byte())
    return True


def check_refusals() -> None:
    """NaN has no answer, and labels that are no codes are noticed."""
    losses, labels = torch.rand(2000), torch.zeros(2000, dtype=torch.int64)
    ratios = np.ones((1, 1))
    strange = labels.clone()
    for value in (-1, 1, 2**40):
        strange[1234] = value
        columns = Columns(strange, labels, (1, 1))
        bits, infinity = bit_patterns(losses)
        select_by_triton(bits, columns, ratios, 1800, infinity)
        assert columns.are_right is False
    losses[77] = float("nan")
    bits, infinity = bit_patterns(losses)
    assert select_by_triton(bits, labels.byte(), ratios, 1800, infinity) is None


def main() -> None:
    rng, problems = np.random.default_rng(0), int(sys.argv[1])
    answered = sum(is_answered(rng, from_labels=k % 2 == 0) for k in range(problems))
    check_refusals()
    print(answered, "of", problems)
    assert answered >= problems / 2


if __name__ == "__main__":
    main()
