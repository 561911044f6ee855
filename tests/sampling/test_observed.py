"""Running losses: what was observed counts, the rest takes turns, and large data stays on disk."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.refusals import refused
from torch.utils.data import DataLoader, TensorDataset

from fairsieve import FairRobustBatchSampler, SamplingMethod
from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.sampling.states import RunningLosses

N = 90


def new_sampler(data, **options):
    _, y, z = data
    return FairRobustBatchSampler(y, z, 10, **({"clean_ratio": 0.8, "warmup_epochs": 1} | options))


@pytest.mark.filterwarnings("ignore:the .* selected samples")
@pytest.mark.parametrize("fairness", ["equalized_odds", "demographic_parity"])
@pytest.mark.parametrize("options", [{"signal": "loss"}, {"signal": "error"}])
def test_observing_everything_is_the_full_pass(data, fairness, options, tmp_path):
    x, _, _ = data
    model = torch.nn.Linear(3, 2)
    method = SamplingMethod.paper(step_size=0.1, **options)
    asked = {"fairness": fairness, "method": method, "warmup_epochs": 0}
    full, running = (new_sampler(data, **asked, folder=folder) for folder in (None, tmp_path / "losses"))
    for _ in range(3):
        full.update(model(x))
        running.refresh(model, TensorDataset(x), share=1.0, chunk_size=7)
        running.update()
        assert running.indices.tolist() == full.indices.tolist()
        assert running.ratios.tolist() == full.ratios.tolist()
        assert list(running) == list(full)
        torch.nn.init.normal_(model.weight)
    assert isinstance(running.running.losses, np.memmap)


def test_observed_doubts_are_those_of_the_full_pass(data):
    """From the first selection on, though nothing was known to be typical when the first outputs came."""
    x, _, _ = data
    model = torch.nn.Linear(3, 2)
    full, running = (new_sampler(data, clean_ratio="auto", warmup_epochs=0) for _ in range(2))
    kept = []
    for epoch in range(4):
        torch.nn.init.normal_(model.weight, std=3, generator=torch.Generator().manual_seed(epoch))
        full.update(model, x)
        kept.append(len(full.indices))
        running.refresh(model, TensorDataset(x), share=1.0)
        running.update()
        assert running.indices.tolist() == full.indices.tolist()
        assert len(list(running)) == len(list(full))
    assert 0 < min(kept) <= kept[0] < N


def test_losses_of_ones_own_are_doubted_as_outputs_are(data):
    """In whatever array they come: another index, negative strides, a list."""
    x, y, _ = data
    model = torch.nn.Linear(3, 2)
    torch.nn.init.normal_(model.weight, std=3, generator=torch.Generator().manual_seed(0))
    losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none").detach().double()
    full = new_sampler(data, clean_ratio="auto", warmup_epochs=0)
    full.update(model, x)
    assert 0 < len(full.indices) < N
    turned = losses.numpy()[::-1].copy()[::-1]
    for same in (losses, pd.Series(losses.numpy(), index=np.arange(N)[::-1]), turned, losses.tolist()):
        own = new_sampler(data, clean_ratio="auto", warmup_epochs=0)
        own.update_losses(same)
        assert own.indices.tolist() == full.indices.tolist()


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5]))
def test_a_state_taken_in_between_changes_nothing(seed, momentum):
    """Not in the warm-up, nor inside an epoch, nor where a sample is seen again."""
    rng = np.random.default_rng(seed)
    kept, watched = (RunningLosses(6, 1, None, momentum) for _ in range(2))
    for epoch in range(4):
        for _ in range(rng.integers(0, 4)):
            some, rows = rng.integers(0, 6, 5), torch.from_numpy(rng.random((2, 5)))
            kept.record(some, rows, epoch)
            watched.record(some, rows, epoch)
            watched.state_dict()
    for name, values in kept.state_dict().items():
        assert np.array_equal(values, watched.state_dict()[name])


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_the_latest_loss_counts_and_stale_ones_take_turns(seed, share):
    """Against dictionaries."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    kept, latest, when = RunningLosses(n), {}, {}
    for epoch in range(8):
        for _ in range(rng.integers(0, 4)):
            some = rng.integers(0, n, rng.integers(0, 9))
            losses = rng.random(len(some)).astype(np.float32)
            kept.record(some, torch.from_numpy(losses)[None], epoch)
            for i, loss in zip(some, losses, strict=True):
                latest[i], when[i] = loss, epoch
        stale = kept.stale(share, epoch)
        old = [i for i in range(n) if when.get(i, -1) < epoch]
        unknown = [i for i in range(n) if i not in latest]
        assert set(unknown) <= set(stale) <= set(old)
        assert share < 1 or stale.tolist() == old
        if unknown:
            with pytest.raises(NotReadyError, match=f"{len(unknown)} of {n} samples have no loss yet"):
                kept.known()
        kept.record(stale, torch.zeros(1, len(stale)), epoch)
        latest |= dict.fromkeys(stale, 0.0)
        when |= dict.fromkeys(stale, epoch)
        assert kept.known()[0].tolist() == [latest[i] for i in range(n)]


@given(st.floats(0.05, 1), st.integers(0, 10**12))
def test_every_stale_sample_is_seen_within_a_round_in_any_shards(share, first):
    kept = RunningLosses(100)
    kept.record(np.arange(100), torch.zeros(1, 100), 1)
    for epoch in range(2, 25):
        stale = kept.stale(share, epoch, first)
        shard = RunningLosses(30)
        shard.load_state_dict({name: value[..., 50:80] for name, value in kept.state_dict().items()})
        assert shard.stale(share, epoch, first + 50).tolist() == [i - 50 for i in stale if 50 <= i < 80]
        kept.record(stale, torch.zeros(1, len(stale)), epoch)
        kept.settle()
        assert (epoch - kept.seen).max() < np.ceil(1 / share)


def test_in_a_loop_with_a_loader_resumed(data):
    x, y, _ = data
    dataset = TensorDataset(torch.arange(N), x, y)

    def run(sampler, model, epochs):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(epochs):
            sampler.refresh(model, x)
            if sampler.needs_update:
                sampler.update()
            for where, features, labels in DataLoader(dataset, batch_sampler=sampler):
                outputs = model(features)
                losses = torch.nn.functional.cross_entropy(outputs, labels, reduction="none")
                sampler.observe_losses(where, losses)
                optimizer.zero_grad()
                losses.mean().backward()
                optimizer.step()

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    whole = new_sampler(data, seed=4)
    run(whole, model, 6)
    model.load_state_dict(start)
    half = new_sampler(data, seed=4)
    run(half, model, 3)
    resumed = new_sampler(data)
    resumed.load_state_dict(half.state_dict())
    run(resumed, model, 3)
    assert resumed.indices.tolist() == whole.indices.tolist()
    assert resumed.running.losses.tolist() == whole.running.losses.tolist()
    with pytest.raises(InvalidInputError, match=r"state must hold running losses of the shape \(90,\)"):
        resumed.load_state_dict(half.state_dict() | {"running": {"losses": [1.0]}})


def test_any_map_style_dataset(data):
    sampler = new_sampler(data, warmup_epochs=0)
    model = torch.nn.Linear(1, 2)
    words = [{"value": float(index), "name": f"sample {index}"} for index in range(N)]
    before = torch.random.get_rng_state()
    forward = lambda net, batch: net(batch["value"][:, None].float())  # noqa: E731
    sampler.refresh(model, words, forward=forward, chunk_size=11)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), before)
    sampler.update()
    assert len(sampler.indices) > 0


def test_wrong_arguments_are_refused(data):
    sampler = new_sampler(data, warmup_epochs=0)
    refused("one value for each of the 2 indices", sampler.observe_losses, [0, 1], torch.zeros(3))
    refused(r"share must be a number in \[0, 1\]", sampler.stale, 1.5)
    sampler.observe_losses([7, 8], torch.tensor([0.0, torch.nan]))
    refused("losses must not be NaN; got 1, the first of sample 8", sampler.update)
    sampler.observe_losses([], torch.zeros(0))
    with pytest.raises(NotReadyError, match="90 of 90 samples have no loss yet"):
        sampler.update()
