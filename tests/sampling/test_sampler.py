"""The batch sampler in a real DataLoader."""

import numpy as np
import pytest
import torch
from tests.support.refusals import refused
from torch.utils.data import DataLoader, Sampler, TensorDataset

from fairsieve import FairRobustBatchSampler, SamplingMethod, estimate_clean_ratio, sample_losses
from fairsieve.data import flip_uniform, make_synthetic
from fairsieve.errors import FairsieveWarning, InvalidInputError, NotReadyError
from fairsieve.sampling.losses import cross_entropy

N = 120


def new_sampler(data, **options):
    _, y, z = data
    return FairRobustBatchSampler(y, z, 20, **({"clean_ratio": 0.9, "warmup_epochs": 1} | options))


def paper_sampler(data, **options):
    _, y, z = data
    return FairRobustBatchSampler.paper(y, z, 20, **({"clean_ratio": 0.9, "warmup_epochs": 1} | options))


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_data_loader(data, workers):
    x, y, _ = data
    sampler = new_sampler(data)
    assert isinstance(sampler, Sampler)
    loader = DataLoader(TensorDataset(torch.arange(N), y), batch_sampler=sampler, num_workers=workers)
    model = torch.nn.Linear(3, 2)
    seen = []
    for epoch in range(3):
        sampler.update(model(x))
        batches = [indices for indices, _ in loader]
        assert len(batches) == len(loader) == len(sampler)
        assert all(len(batch) == 20 for batch in batches)
        seen.append(torch.cat(batches))
        assert sampler.epoch == epoch + 1
    assert sorted(seen[0].tolist()) == list(range(N))
    assert set(seen[1].tolist()) <= set(range(N))
    assert len(sampler.indices) <= sampler.plan.budget


def test_cells_of_a_batch_follow_the_ratios(data):
    x, y, z = data
    sampler = paper_sampler(data, warmup_epochs=0, step_size=0.1, batching="even")
    torch.manual_seed(0)
    for _ in range(5):
        sampler.update(torch.nn.Linear(3, 1)(x))
        batches = list(sampler)
    counts = sampler.plan.counts.reshape(2, 2)
    quotas = sampler.ratios * 20 * counts.sum(axis=1, keepdims=True) / counts.sum()
    for batch in batches:
        found = np.zeros((2, 2))
        for i in batch:
            found[int(y[i]), int(z[i] == "b")] += 1
        assert (np.abs(found - quotas) < 1).all()


def test_order_is_a_function_of_seed_and_epoch(data):
    one, other = new_sampler(data, seed=1), new_sampler(data, seed=2)
    first = list(one)
    assert first != list(other)
    one.set_epoch(0)
    assert list(one) == first


def test_no_cell_vanishes_from_small_batches():
    """Two classes and four groups in batches of eight: the paper's rounding never draws three of the cells."""
    labels, groups = np.repeat([0, 1], 500), np.tile(np.repeat(list("abcd"), [335, 65, 60, 40]), 2)
    cells = np.repeat([0, 4], 500) + np.tile(np.repeat(range(4), [335, 65, 60, 40]), 2)
    options = {"fairness": None, "clean_ratio": 1.0, "warmup_epochs": 0}
    sampler = FairRobustBatchSampler(labels, groups, 8, **options)
    sampler.update(torch.zeros(1000))
    drawn = np.bincount(cells[np.concatenate(list(sampler))], minlength=8)
    assert np.abs(drawn - np.bincount(cells)).max() <= 1
    paper = FairRobustBatchSampler.paper(labels, groups, 8, **options)
    paper.update(torch.zeros(1000))
    told = r"\d of 8 cells have no place in any batch, such as the \d+ selected"
    with pytest.warns(FairsieveWarning, match=told):
        drawn = np.bincount(cells[np.concatenate(list(paper))], minlength=8)
    assert (drawn == 0).any()


@pytest.mark.parametrize("fairness", ["equalized_odds", "demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("options", [{}, {"signal": "loss"}, {"signal": "error"}])
def test_resumes_identically(data, fairness, options):
    new = paper_sampler if options else new_sampler
    outputs = [torch.randn(N, 2, generator=torch.Generator().manual_seed(s)) for s in range(6)]

    def run(sampler, some):
        for logits in some:
            sampler.update(logits)
            list(sampler)
        return sampler

    options = {"fairness": fairness, **options}
    whole = run(new(data, seed=3, **options), outputs)
    half = run(new(data, seed=3, **options), outputs[:3])
    resumed = new(data, **options)
    resumed.load_state_dict(half.state_dict())
    run(resumed, outputs[3:])
    assert list(resumed) == list(whole)
    assert resumed.ratios.tolist() == whole.ratios.tolist()


def test_one_logit_two_logits_and_losses_agree(data):
    _, y, _ = data
    logit = torch.randn(N, generator=torch.Generator().manual_seed(5))
    fixed = SamplingMethod(balance=0.5)  # of losses alone nothing is foretold
    samplers = [new_sampler(data, warmup_epochs=0, method=fixed) for _ in range(4)]
    samplers[0].update(logit)
    samplers[1].update(logit[:, None])
    samplers[2].update(torch.stack([torch.zeros(N), logit], 1))
    samplers[3].update_losses(cross_entropy(logit, y))
    for sampler in samplers[1:]:
        assert sampler.indices.tolist() == samplers[0].indices.tolist()
        assert sampler.ratios == pytest.approx(samplers[0].ratios)


def test_custom_losses_and_signals(data):
    _, y, _ = data
    sampler = paper_sampler(data, warmup_epochs=0, fairness="demographic_parity")
    logit = torch.randn(N)
    refused("signals must be given", sampler.update_losses, cross_entropy(logit, y))
    ones = torch.ones(N, dtype=torch.long)
    sampler.update_losses(cross_entropy(logit, y), signals=cross_entropy(logit, ones))
    other = paper_sampler(data, warmup_epochs=0, fairness="demographic_parity")
    other.update(logit)
    assert sampler.indices.tolist() == other.indices.tolist()
    sampler.update(torch.randn(N, 2), loss=lambda out, target: (out[:, 1] - target).abs())
    assert 0 < len(sampler.indices) <= 108


def test_a_missing_update_is_reported(data):
    sampler = new_sampler(data)
    assert not sampler.needs_update
    list(sampler)
    assert sampler.needs_update
    with pytest.raises(NotReadyError, match=r"call update\(\) before each epoch"):
        list(sampler)


@pytest.mark.parametrize("shape", [(N - 1,), (N, 3), (N, 2, 2)])
@pytest.mark.parametrize("warmup", [0, 1])
def test_outputs_of_the_wrong_shape_are_refused(data, shape, warmup):
    with pytest.raises(InvalidInputError, match="outputs must be the logits of all 120 samples"):
        new_sampler(data, warmup_epochs=warmup).update(torch.zeros(shape))


def test_three_classes_and_crossed_groups():
    rng = np.random.default_rng(0)
    labels = rng.choice(["low", "mid", "high"], 90)
    groups = np.column_stack([rng.choice(["f", "m"], 90), rng.choice([0, 1], 90).astype(str)])
    for fairness in ("equalized_odds", "demographic_parity"):
        options = {"fairness": fairness, "clean_ratio": 0.8, "warmup_epochs": 0}
        sampler = FairRobustBatchSampler(labels, groups, 16, **options)
        for _ in range(3):
            sampler.update(torch.from_numpy(rng.normal(size=(90, 3))))
            assert all(len(batch) == 16 for batch in sampler)
        assert sampler.ratios.shape == (3, 4)


def test_losses_in_chunks_restore_the_mode_of_every_part():
    x, y = torch.randn(50, 3), torch.randint(0, 2, (50,))
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    model[1].eval()
    whole = sample_losses(model, (x, y))
    assert sample_losses(model, TensorDataset(x, y), chunk_size=7) == pytest.approx(whole)
    assert not whole.requires_grad
    assert model.training
    assert not model[1].training
    model[1].eval()
    model.eval()
    expected = torch.nn.functional.cross_entropy(model(x), y, reduction="none").detach()
    assert whole == pytest.approx(expected)


def test_losses_restore_the_mode_after_an_error():
    model, labels = torch.nn.Linear(3, 2), torch.zeros(2, dtype=torch.long)
    with pytest.raises(RuntimeError):
        sample_losses(model, (torch.zeros(2, 4), labels))
    assert model.training
    with pytest.raises(InvalidInputError, match="use reduction='none'"):
        sample_losses(model, (torch.zeros(2, 3), labels), loss=torch.nn.CrossEntropyLoss())
    with pytest.raises(InvalidInputError, match="at least one sample"):
        sample_losses(model, TensorDataset(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)))


def test_losses_of_any_map_style_dataset():
    def pairs(items):
        words, labels = zip(*(item.values() for item in items), strict=True)
        return torch.tensor(words), torch.tensor(labels)

    sentences = [{"words": [float(i), 1.0], "label": i % 2} for i in range(30)]
    model = torch.nn.Linear(2, 2)
    before = torch.random.get_rng_state()
    losses = sample_losses(model, sentences, chunk_size=7, collate_fn=pairs)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert losses == pytest.approx(sample_losses(model, pairs(sentences)))
    refused(r"items \(features, class index\).*its batches are dict", sample_losses, model, sentences)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(60,), (60, 2)])
def test_outputs_of_half_precision_select_as_their_values_do(dtype, shape):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(shape, generator=generator).to(dtype)
    labels, groups = [0, 1] * 30, [0, 0, 1, 1, 1, 0] * 10
    options = {"clean_ratio": 0.8, "warmup_epochs": 0, "fairness": "demographic_parity"}
    half, single = (FairRobustBatchSampler(labels, groups, 10, **options) for _ in range(2))
    half.update(outputs)
    single.update(outputs.float())
    assert half.indices.tolist() == single.indices.tolist()
    for sampler, values in ((half, outputs), (single, outputs.float())):
        sampler.observe(np.arange(60), values)
        sampler.update()
    assert half.indices.tolist() == single.indices.tolist()


def test_losses_of_a_half_precision_model():
    model = torch.nn.Linear(3, 2).bfloat16()
    x, y = torch.randn(20, 3), torch.randint(0, 2, (20,))
    losses = sample_losses(model, (x, y))
    assert losses.dtype == torch.float32
    assert losses.tolist() == pytest.approx(cross_entropy(model(x.bfloat16()).float(), y).tolist(), rel=1e-6)


def test_what_is_no_sampling_method_is_refused(data):
    refused("method must be a SamplingMethod; got 'paper'", new_sampler, data, method="paper")


def test_continuous_targets_are_refused():
    told = r"labels must be classes; got continuous numbers such as -?\d"
    refused(told, FairRobustBatchSampler, torch.randn(2000), [0, 1] * 1000, 100, clean_ratio=0.9)
    sampler = FairRobustBatchSampler(torch.tensor([0.0, 1.0] * 4), [0, 1] * 4, 2, clean_ratio=1.0)
    assert sampler.plan.cells.classes == [0, 1]


@pytest.mark.parametrize(("clean_ratio", "budget"), [(0.001, 0), (0.05, 1)])
def test_a_clean_ratio_that_selects_nobody_is_refused(clean_ratio, budget):
    message = f"room for at least one sample; {clean_ratio} of 20 samples is a budget of {budget}"
    refused(message, FairRobustBatchSampler.paper, [0, 1] * 10, [0, 0, 1, 1] * 5, 2, clean_ratio=clean_ratio)


def test_a_clean_ratio_of_one_leaves_nobody_out(data):
    """By Eq. 7, which the paper's method keeps, it leaves out some."""
    outputs = [torch.randn(N, 2, generator=torch.Generator().manual_seed(seed)) for seed in range(5)]
    ours, paper = (new(data, clean_ratio=1.0, warmup_epochs=0) for new in (new_sampler, paper_sampler))
    for each in outputs:
        ours.update(each)
        paper.update(each)
    assert len(ours.indices) == N
    assert len(paper.indices) < N


def test_an_estimate_is_a_clean_ratio_where_it_is_credible():
    samples = make_synthetic(1500, seed=1)
    right = estimate_clean_ratio(samples.features, samples.labels, sensitive_features=samples.groups)
    flipped = flip_uniform(samples, 0.2, seed=0).labels
    found = estimate_clean_ratio(samples.features, flipped, sensitive_features=samples.groups)
    for estimate in (right, found):
        sampler = FairRobustBatchSampler(samples.labels, samples.groups, 50, clean_ratio=estimate)
        expected = 1 - estimate.noise if estimate.acts else 1.0
        assert sampler.settings["clean_ratio"] == pytest.approx(expected)


def test_a_device_that_is_asked_for_holds_the_samples():
    labels, groups = torch.tensor([0, 1] * 30), [0, 0, 1, 1, 1, 0] * 10
    options = {"clean_ratio": 0.8, "warmup_epochs": 1}
    there = FairRobustBatchSampler(labels, groups, 10, device="cpu", **options)
    here = FairRobustBatchSampler(labels, groups, 10, **options)
    assert isinstance(there.plan.indices, torch.Tensor)
    outputs = torch.randn(60, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        for sampler in (there, here):
            sampler.update(outputs)
        assert [batch.tolist() for batch in there.batches()] == list(here)
    assert isinstance(there.indices, torch.Tensor)
    here.load_state_dict(there.state_dict())
    assert here.indices.tolist() == there.indices.tolist()
