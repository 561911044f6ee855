"""An epoch begins at update(), and a training goes on from any batch as if it had not been stopped."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.refusals import refused
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from fairsieve import FairRobustBatchSampler, SamplingMethod, ShardedBatchSampler
from fairsieve.errors import FairsieveWarning, InvalidInputError

N, EPOCHS = 60, 5
LABELS, GROUPS = np.arange(N) % 2, np.where(np.arange(N) % 3 == 0, "a", "b")
OUTPUTS = [torch.randn(N, 2, generator=torch.Generator().manual_seed(seed)) for seed in range(EPOCHS)]


def new_sampler(**options):
    return FairRobustBatchSampler(LABELS, GROUPS, 8, **({"clean_ratio": 0.8, "warmup_epochs": 2} | options))


@given(st.lists(st.integers(1, 8), min_size=EPOCHS, max_size=EPOCHS), st.integers(0, EPOCHS - 1), st.data())
def test_resuming_at_any_batch(lengths, stop, data):
    """However many batches of each epoch are trained, and wherever the state is taken, the same batches follow."""

    def run(sampler, first, begun=0):
        for epoch in range(first, EPOCHS):
            sampler.update(OUTPUTS[epoch])
            assert sampler.epoch == epoch
            for number, batch in enumerate(sampler, begun):
                yield epoch, number, batch
                if number + 1 >= lengths[epoch]:
                    break
            begun = 0

    lengths = [min(length, len(new_sampler())) for length in lengths]
    whole = list(run(new_sampler(), 0))
    at = data.draw(st.integers(0, lengths[stop] - 1))
    sampler, seen, state = new_sampler(), [], None
    for epoch, number, batch in run(sampler, 0):
        seen.append((epoch, number, batch))
        if (epoch, number) == (stop, at):
            state = sampler.state_dict()
            break
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    resumed = new_sampler()
    resumed.load_state_dict(torch.load(file, weights_only=True))
    if at + 1 < lengths[stop]:
        seen += run(resumed, stop, at + 1)
    elif at + 1 == len(sampler):  # the state says that the epoch is over
        seen += run(resumed, stop + 1)
    else:
        return
    assert seen == whole


def test_after_a_break_and_an_update_a_state_is_of_the_new_epoch():
    sampler = new_sampler(warmup_epochs=0)
    sampler.update(OUTPUTS[0])
    for _ in sampler:
        break
    sampler.update(OUTPUTS[1])
    assert sampler.epoch == 1
    resumed = new_sampler(warmup_epochs=0)
    resumed.load_state_dict(sampler.state_dict())
    assert not resumed.needs_update
    resumed.update(OUTPUTS[1])  # made before the state was taken: nothing is averaged or selected twice
    assert list(resumed) == list(sampler)
    assert resumed.epoch == sampler.epoch == 2


def test_a_look_at_the_first_batch_uses_up_no_epoch():
    sampler = new_sampler()
    loader = DataLoader(TensorDataset(torch.arange(N)), batch_sampler=sampler)
    for _ in range(3):
        next(iter(loader))
    assert sampler.epoch == 0
    for epoch in range(3):
        sampler.update(OUTPUTS[epoch])
        assert (sampler.epoch, sampler.plan.is_selective) == (epoch, epoch >= 2)
        next(iter(loader))
        assert len(list(loader)) == len(loader)


@pytest.mark.parametrize("trained", [0, 2, 7])
def test_a_loader_that_reads_ahead_says_how_many_batches_were_trained(trained):
    sampler, resumed = new_sampler(), new_sampler()
    sampler.update(OUTPUTS[0])
    batches = list(sampler)  # read ahead to the end
    resumed.load_state_dict(sampler.state_dict(trained=trained))
    assert resumed.epoch == (trained == 7)
    resumed.update(OUTPUTS[0])
    assert trained == 7 or list(resumed) == batches[trained:]


def test_clean_ratios_and_averages_are_part_of_the_state():
    sampler, later = (new_sampler(clean_ratio="auto", warmup_epochs=0) for _ in range(2))
    before = sampler.state_dict()
    sampler.update(OUTPUTS[0])
    resumed = new_sampler(clean_ratio="auto", warmup_epochs=0)
    resumed.load_state_dict(sampler.state_dict())
    assert (resumed.clean_ratios == sampler.clean_ratios).all()
    sampler.load_state_dict(before)  # of a sampler that has seen nothing
    sampler.update(OUTPUTS[1])
    later.update(OUTPUTS[1])
    assert sampler.indices.tolist() == later.indices.tolist()
    other = new_sampler(clean_ratio="auto", warmup_epochs=0, method=SamplingMethod(momentum=0.9))
    refused(r"momentum is 0.5 there and 0.9 here", other.load_state_dict, before)


def test_the_model_itself_can_be_passed():
    """In evaluation mode, in order, with the loader's collation; random numbers and mode stay as they are."""
    x = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    model.eval()
    outputs = model(x).detach()
    model.train()
    items = [{"values": row, "label": 0} for row in x]
    forward = lambda net, batch: net(batch["values"])  # noqa: E731
    ways = [
        lambda sampler: sampler.update(model, x),
        lambda sampler: sampler.update(model, TensorDataset(x), chunk_size=7),
        lambda sampler: sampler.update(model, DataLoader(TensorDataset(x), 4, shuffle=True)),
        lambda sampler: sampler.update(model, items, forward=forward),
    ]
    expected = new_sampler(warmup_epochs=0)
    expected.update(outputs, validation=(outputs, LABELS, GROUPS))
    state = torch.random.get_rng_state()
    for way in ways:
        sampler = new_sampler(warmup_epochs=0)
        way(sampler)
        assert sampler.indices.tolist() == expected.indices.tolist()
        assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    judged = new_sampler(warmup_epochs=0)
    judged.update(model, x, validation=(x, LABELS, GROUPS))
    assert judged.ratios.tolist() == expected.ratios.tolist()
    refused(r"got a dictionary of values, label: say how", judged.update, model, items)
    refused(r"data must be given with the model", judged.update, model)
    refused("outputs must be the logits of all 60 samples", judged.update, model, x[:5])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.zeros(N, 3))


def test_a_stream_is_refused():
    for call in ("update", "refresh"):
        with pytest.raises(InvalidInputError, match=r"dataset must be map-style.*got the stream Stream"):
            getattr(new_sampler(warmup_epochs=0), call)(torch.nn.Linear(3, 2), Stream())


def test_samples_without_a_group_train_and_are_not_compared():
    groups = np.where(np.arange(N) % 4 == 0, None, GROUPS)
    sampler = FairRobustBatchSampler(LABELS, groups, 8, clean_ratio=0.9, warmup_epochs=0)
    share = sampler.ratios[:, -1]
    sampler.update(OUTPUTS[0])
    assert sampler.plan.cells.groups == ["a", "b", None]
    assert np.isin(np.flatnonzero(np.arange(N) % 4 == 0), np.concatenate(list(sampler))).any()
    assert share.sum() > 0


def test_without_groups_labels_are_cleaned_alone():
    sampler = FairRobustBatchSampler(LABELS, None, 8, fairness=None, clean_ratio=0.9, warmup_epochs=0)
    sampler.update(OUTPUTS[0])
    assert 0 < len(sampler.indices) <= 54
    told = "sensitive_features must be given for fairness='equalized_odds'"
    refused(told, FairRobustBatchSampler, LABELS, None, 8)


def test_a_head_may_have_more_outputs_than_labels_occur():
    sampler = FairRobustBatchSampler(LABELS, GROUPS, 8, classes=range(5), clean_ratio=0.9, warmup_epochs=0)
    sampler.update(torch.randn(N, 5))
    assert set(np.concatenate(list(sampler))) <= set(range(N))
    assert sampler.ratios.shape == (5, 2)


def test_each_rank_keeps_its_losses_in_a_folder_of_its_own(tmp_path):
    sampler = ShardedBatchSampler(LABELS, GROUPS, 8, clean_ratio=0.9, warmup_epochs=0, folder=tmp_path)
    sampler.observe(np.arange(N), OUTPUTS[0])
    assert {path.parent.name for path in tmp_path.rglob("*.npy")} == {"rank-0"}


@pytest.mark.parametrize("observed", [False, True])
def test_an_infinite_loss_keeps_its_sample_out_for_a_while_only(observed):
    sampler = new_sampler(warmup_epochs=0, clean_ratio="auto", fairness=None)
    sure, is_in = torch.where(torch.from_numpy(LABELS)[:, None] == torch.arange(2), 4.0, -4.0), []
    for epoch in range(6):

        def loss(outputs, targets, first=epoch == 0):
            losses = torch.nn.functional.cross_entropy(outputs, targets, reduction="none")
            return torch.where((torch.arange(N) == 7) & first, torch.inf, losses)

        if observed:
            sampler.observe(np.arange(N), sure, loss=loss)
            sampler.update()
        else:
            sampler.update(sure, loss=loss)
        list(sampler)
        is_in.append(7 in sampler.indices)
    assert is_in[-1]
    assert observed or not is_in[0]


def test_processes_that_train_the_same_batches_are_warned(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    told = "each of the 2 processes trains the same batches: give each its shard"
    with pytest.warns(FairsieveWarning, match=told):
        list(new_sampler())
