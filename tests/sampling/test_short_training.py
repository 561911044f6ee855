"""Twenty epochs of a small network with two lines changed, and what the sampler says and keeps."""

import numpy as np
import pytest
import torch
from tests.support.refusals import refused
from torch.utils.data import BatchSampler, RandomSampler

from fairsieve import FairRobustBatchSampler, SamplingMethod, equalized_odds_disparity
from fairsieve.data import flip_group_targeted, synthetic_splits
from fairsieve.errors import FairsieveWarning, InvalidInputError

EPOCHS = 20


def train(splits, labels, seed, is_ours):
    """Accuracy and disparity on true test labels."""
    torch.manual_seed(seed)
    x, y = torch.from_numpy(splits.train.features).float(), torch.from_numpy(labels)
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    batches = BatchSampler(RandomSampler(x, generator=torch.Generator().manual_seed(seed)), 100, True)
    if is_ours:
        groups = splits.train.cells.group_codes
        batches = FairRobustBatchSampler(y, groups, 100, clean_ratio=0.9, epochs=EPOCHS, seed=seed)
    for _ in range(EPOCHS):
        if is_ours:
            batches.update(model(x))
        for batch in batches:
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    predicted = model(torch.from_numpy(splits.test.features).float()).argmax(1).numpy()
    true, groups = splits.test.cells.label_codes, splits.test.cells.group_codes
    disparity = equalized_odds_disparity(true, predicted, sensitive_features=groups)
    return (predicted == true).mean(), disparity


def test_twenty_epochs_are_fairer_and_no_less_accurate_by_defaults():
    found = []
    for seed in range(3):
        splits = synthetic_splits(seed)
        noisy = flip_group_targeted(splits.train, 0.1, group=1)
        labels = np.searchsorted(splits.train.cells.classes, noisy.labels)
        found.append([train(splits, labels, seed, is_ours) for is_ours in (False, True)])
    (accuracy, disparity), (our_accuracy, our_disparity) = np.mean(found, axis=0)
    assert our_disparity <= 0.7 * disparity
    assert our_accuracy >= accuracy


def new_sampler(**options):
    return FairRobustBatchSampler([0, 1] * 60, list("aabb") * 30, 10, **({"warmup_epochs": 0} | options))


@pytest.mark.parametrize(("clean_ratio", "message"), [
    ([[0.5, 0.5]], r"a row per class and a column per group, \(2, 2\)"),
    ([[0.5, 1.5], [1, 1]], r"must lie in \(0, 1\] everywhere"),
    ({(0, "a"): 0.5}, r"\(0, 'b'\) is missing"),
    ({(7, "a"): 0.5}, r"\(7, 'a'\) does not occur"),
])  # fmt: skip
def test_bad_tables_of_clean_ratios_are_named(clean_ratio, message):
    refused(message, new_sampler, clean_ratio=clean_ratio)


def test_auto_finds_the_cell_with_wrong_labels():
    rng = np.random.default_rng(0)
    labels, groups = np.arange(4000) % 2, np.arange(4000) // 2 % 2
    wrong = (labels == 1) & (groups == 1) & (rng.random(4000) < 0.6)
    logit = np.where(labels == 1, 5.0, -5.0) * np.where(wrong, -1, 1) + rng.normal(size=4000)
    sampler = FairRobustBatchSampler(labels, groups, 100, warmup_epochs=0)
    sampler.update(torch.from_numpy(logit))
    assert sampler.clean_ratios == pytest.approx(np.array([[1, 1], [1, 0.4]]), abs=0.08)
    assert wrong[sampler.indices].mean() < 0.02


def test_the_sampler_warns_of_probabilities_and_of_a_training_without_effect():
    sampler = new_sampler(clean_ratio=1.0, epochs=1)
    with pytest.warns(FairsieveWarning, match="outputs look like probabilities, and logits are expected"):
        sampler.update(torch.full((120, 2), 0.5))
    with pytest.warns(FairsieveWarning, match="in 1 epochs no sample was left out and no ratio moved"):
        list(sampler)
    still = new_sampler(clean_ratio=0.9, epochs=2, warmup_epochs=5)
    list(still)
    with pytest.warns(FairsieveWarning, match="the warm-up of 5 epochs did not end"):
        list(still)


def test_outputs_that_are_no_logits_are_refused():
    sampler = new_sampler(clean_ratio=0.9)
    with pytest.raises(InvalidInputError, match=r"outputs must be logits, real numbers; got torch.int64"):
        sampler.update(torch.zeros(120, dtype=torch.long))
    refused("losses must not be NaN; got 120", sampler.update, torch.full((120, 2), torch.nan))


def test_held_out_samples_decide_which_class_is_balanced():
    labels, rare = np.array([0, 1] * 60), np.where(np.arange(120) % 6 < 2, "b", "a")
    options = {"clean_ratio": 1.0, "warmup_epochs": 0, "epochs": 4}
    sampler, usual = (FairRobustBatchSampler(labels, rare, 10, **options) for _ in range(2))
    held_out, groups = np.array([0, 1] * 100), np.array(list("aabb") * 50)
    hard = np.where((held_out == 1) & (groups == "b"), -2.0, 2.0) * np.where(held_out == 1, 1, -1)
    usual.update(torch.zeros(120, 2))
    sampler.update(torch.zeros(120, 2), validation=(torch.from_numpy(hard), held_out, groups))
    change = sampler.ratios - usual.ratios
    some = FairRobustBatchSampler(labels, rare, 10, clean_ratio=1.0, warmup_epochs=0, epochs=4)
    lacking = torch.from_numpy(np.r_[hard, 9.0]), np.r_[held_out, 0], np.array([*groups, None], object)
    some.update(torch.zeros(120, 2), validation=lacking)  # whose group is missing is not compared
    assert some.ratios.tolist() == sampler.ratios.tolist()
    assert change[1, 1] > 0
    assert change[0] == pytest.approx([0, 0])
    assert "Gaps on the held-out samples are open" in str(sampler.summary())


def test_weights_that_cost_accuracy_on_held_out_samples_are_taken_back():
    """Held-out samples lie where the weights turn the prediction, and the natural one is right."""
    labels, rare = np.array([0, 1] * 60), np.where(np.arange(120) % 6 == 1, "b", "a")
    groups = np.where(np.arange(120) % 12 == 0, "b", rare)
    options = {"clean_ratio": 1.0, "warmup_epochs": 0, "epochs": 10}
    sampler = FairRobustBatchSampler(labels, groups, 10, **options, method=SamplingMethod(balance=0.5))
    for _ in range(6):
        sampler.update(torch.zeros(120, 2))
        list(sampler)
    power, ratios = sampler.plan.balance.powers[1], sampler.ratios[:, 1]
    lift = np.log(ratios / [np.mean(groups[labels == y] == "b") for y in (0, 1)])
    turned, right = int(lift.argmax()), int(lift.argmin())
    outputs = torch.zeros(200, 2)
    outputs[:, turned] = float(lift[turned] - lift[right]) / 2
    sampler.update(torch.zeros(120, 2), validation=(outputs, np.full(200, right), np.full(200, "b")))
    assert sampler.plan.balance.powers[1] > power
    assert "predicted worse on the held-out samples" in str(sampler.summary())


def test_nothing_is_dropped_below_six_epochs():
    outputs = torch.randn(120, 2, generator=torch.Generator().manual_seed(0))
    for epochs, kept in ((5, True), (6, False)):
        sampler = new_sampler(epochs=epochs)
        sampler.update(5 * outputs)
        assert (len(sampler.indices) == 120) == kept
    refused("validation must be", sampler.update, torch.zeros(120, 2), validation=(1, 2))


def test_a_state_of_the_middle_of_an_epoch_goes_on_there_and_another_samplers_is_refused():
    outputs = torch.randn(120, 2, generator=torch.Generator().manual_seed(0))
    whole = new_sampler(clean_ratio=0.9)
    whole.update(outputs)
    batches = iter(whole)
    for _ in range(3):
        next(batches)
    state = whole.state_dict()
    resumed = new_sampler(clean_ratio=0.9)
    resumed.load_state_dict(state)
    assert not resumed.needs_update
    resumed.update(outputs)  # the epoch goes on: nothing is selected anew
    assert list(resumed) == list(batches)
    assert resumed.epoch == whole.epoch == 1
    refused(r"clean_ratio is 0.9 there and 0.8 here", new_sampler(clean_ratio=0.8).load_state_dict, state)
    other = FairRobustBatchSampler([1, 0] * 60, list("aabb") * 30, 10, clean_ratio=0.9, warmup_epochs=0)
    refused("labels or sensitive features are others", other.load_state_dict, state)


def test_a_summary_has_a_row_for_every_cell():
    sampler = new_sampler(warmup_epochs=2)
    assert "The next 2 epochs train on everything" in str(sampler.summary())
    sampler = new_sampler(clean_ratio=[[0.5, 1.0], [1.0, 1.0]])
    sampler.update(torch.randn(120, 2, generator=torch.Generator().manual_seed(1)))
    text, html = str(sampler.summary()), sampler.summary()._repr_html_()
    assert len(text.splitlines()) == 6
    assert "0.50" in text
    assert html.count("<tr>") == 5
    assert "clean ratio" in html
