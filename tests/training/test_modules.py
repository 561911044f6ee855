"""Modules that are trained in threads, and their random numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.support.stopping import everything

from fairsieve import fit
from fairsieve.data import make_synthetic
from fairsieve.errors import InvalidInputError

SHORT = {"epochs": 8, "warmup_epochs": 3, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}


@pytest.fixture(scope="module")
def data():
    return make_synthetic(300, seed=0)


def network(outputs=2, dropout=0.0):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(16, outputs)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_precision_is_refused(data, dtype):
    with pytest.raises(InvalidInputError, match=r"model must be in single or double precision.*call float"):
        fit(network().to(dtype), data, **SHORT)


def made(generator):
    """Depends on the seed alone, as ``network`` does not."""
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))


@pytest.mark.parametrize("module", [network(dropout=0.5), made], ids=["module", "callable"])
def test_fits_in_threads_equal_fits_in_a_row(data, module):
    """Dropout draws from torch's global generator, which threads share, and which is left as it was."""
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    train = lambda seed: everything(fit(module, data, seed=seed, **SHORT))  # noqa: E731
    in_a_row = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(train, range(4))) == in_a_row
    assert len({one[0] for one in in_a_row}) == 4
    assert (torch.random.get_rng_state() == before).all()
