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


def test_fits_in_threads_equal_fits_in_a_row(data):
    """Dropout draws from torch's global generator, which threads share."""
    options = SHORT | {"epochs": 12}
    module = network(dropout=0.5)
    train = lambda seed: everything(fit(module, data, seed=seed, **options))  # noqa: E731
    in_a_row = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        in_threads = list(pool.map(train, range(4)))
    assert in_threads == in_a_row
    assert len({one[0] for one in in_a_row}) == 4


def test_modules_made_by_a_callable_in_threads_depend_on_the_seed_alone(data):
    def make(generator):
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))

    train = lambda seed: everything(fit(make, data, seed=seed, **SHORT))  # noqa: E731
    in_a_row = [train(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(train, range(4))) == in_a_row


def test_the_global_generator_is_left_as_it_was(data):
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    fit(lambda generator: network(dropout=0.5), data, seed=3, **SHORT)
    assert (torch.random.get_rng_state() == before).all()
