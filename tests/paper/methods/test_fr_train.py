"""FR-Train: both engines play the same game, and the game keeps its promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import InvalidInputError, LogisticRegression, Samples, fit
from fairsieve.data import flip_group_targeted, flip_margin, make_synthetic, synthetic_splits
from fairsieve.errors import FairsieveError
from fairsieve.metrics import accuracy, equalized_odds_disparity
from fairsieve.paper.methods import fr_train_games
from fairsieve.paper.methods.fr_train import FR_TRAIN, clean_with_itlm
from fairsieve.paper.methods.fr_train_training import _tells_groups
from fairsieve.training.settings import Settings

QUICK = {"epochs": 60, "pretrain_epochs": 20, "discriminator_rate": 0.5, "classifier_rate": 0.02}


@pytest.fixture(scope="module")
def data():
    clean = make_synthetic(150, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture(scope="module")
def validation():
    return make_synthetic(40, seed=1)


def train(data, validation, *, fairness="equalized_odds", seed=0, **options):
    wanted = Settings(fairness=fairness, clean_ratio=0.9)
    return FR_TRAIN.train(data, wanted, seed=seed, validation=validation, **(QUICK | options))


def parameters(fitted):
    return torch.cat([part.detach().flatten().double() for part in fitted.model.parameters()]).numpy()


def random_samples(rng, size, features, groups):
    return Samples(
        rng.normal(size=(size, features)).astype(np.float32),
        rng.integers(0, 2, size),
        rng.integers(0, groups, size),
        classes=[0, 1],
        group_values=list(range(groups)),
    )


# Both engines


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    sizes=st.tuples(st.integers(1, 140), st.integers(1, 70)),
    features=st.integers(1, 6),
    groups=st.integers(1, 4),
    limit=st.sampled_from([7, 64, 1000]),
    fairness=st.sampled_from(["equalized_odds", "demographic_parity", "equal_opportunity"]),
)
def test_compiled_and_autograd_play_the_same_game(seed, sizes, features, groups, limit, fairness):
    rng = np.random.default_rng(seed)
    data, validation = (random_samples(rng, size, features, groups) for size in sizes)
    model = LogisticRegression(features, generator=torch.Generator().manual_seed(seed)).double()
    results = [
        train(data, validation, fairness=fairness, model=model, batch_limit=limit, engine=engine)
        for engine in ("compiled", "autograd")
    ]
    one, two = map(parameters, results)
    assert np.abs(one - parameters_of(model)).max() > 1e-3
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-9)
    np.testing.assert_allclose(results[0].history.cell_losses, results[1].history.cell_losses, atol=1e-9)


def parameters_of(model):
    return torch.cat([part.detach().flatten() for part in model.parameters()]).numpy()


def test_the_plain_epochs_are_full_batch_adam(data, validation):
    fitted = train(data, validation, epochs=25, pretrain_epochs=25)
    model = LogisticRegression(3, generator=torch.Generator().manual_seed(0)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(25):
        optimizer.zero_grad()
        logits = model(torch.from_numpy(data.features).double())
        targets = torch.from_numpy(data.labels).double()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, targets).backward()
        optimizer.step()
    np.testing.assert_allclose(parameters(fitted), parameters_of(model), atol=1e-6)


def test_each_weight_changes_the_game(data, validation):
    both = train(data, validation)
    for off in ({"fairness_weight": 0}, {"robustness_weight": 0}):
        assert not np.allclose(parameters(both), parameters(train(data, validation, **off)), atol=1e-4)


def test_the_result_averages_the_last_epochs(data, validation):
    model = LogisticRegression(3, generator=torch.Generator().manual_seed(0)).double()
    single = [parameters(train(data, validation, model=model, epochs=epochs)) for epochs in (50, 51, 52)]
    averaged = FR_TRAIN.train(
        data, Settings(average_last=3), seed=0, validation=validation, model=model, **(QUICK | {"epochs": 52})
    )
    np.testing.assert_allclose(parameters(averaged), np.mean(single, axis=0), atol=1e-12)


# What it promises as a trainer


@pytest.mark.parametrize("engine", ["compiled", "autograd"])
def test_repeatable_for_a_seed_bit_for_bit(data, validation, engine):
    one, two, other = (
        train(data, validation, engine=engine, seed=seed, batch_limit=32) for seed in (3, 3, 4)
    )
    assert parameters(one).tolist() == parameters(two).tolist()
    assert parameters(one).tolist() != parameters(other).tolist()


def test_inputs_are_not_changed(data, validation):
    model = LogisticRegression(3)
    held = [
        data.features,
        data.labels,
        data.groups,
        validation.features,
        validation.labels,
        parameters_of(model),
    ]
    before = [array.copy() for array in held]
    random_state = torch.random.get_rng_state()
    train(data, validation, model=model)
    assert all((array == copy).all() for array, copy in zip(held, before, strict=True))
    assert (parameters_of(model) == before[-1]).all()
    assert (torch.random.get_rng_state() == random_state).all()


def test_history(data, validation):
    fitted = train(data, validation, epochs=450, pretrain_epochs=50, evaluation=validation, progress=True)
    history = fitted.history
    assert history.epochs.tolist() == list(range(0, 450, 2))
    assert (history.ratios == fitted.ratios).all()
    assert (history.counts == data.cells.counts).all()
    assert history.evaluation.accuracy.shape == (225,)
    assert history.train.accuracy[25] > history.train.accuracy[0]  # after the plain epochs
    assert history.times_selected.tolist() == [400] * len(data)
    assert history.warmup_epochs == 50
    assert fitted.indices.tolist() == list(range(len(data)))
    assert not fitted.interrupted
    assert fitted.method == FR_TRAIN.name


def test_an_interruption_returns_what_there_is(data, validation, monkeypatch):
    calls, play = [], fr_train_games.run_epochs

    def interrupted_play(*arguments):
        calls.append(arguments)
        if len(calls) > 5:
            raise KeyboardInterrupt
        play(*arguments)

    whole = train(data, validation, epochs=5)
    monkeypatch.setattr(fr_train_games, "run_epochs", interrupted_play)
    fitted = train(data, validation, epochs=40)
    assert fitted.interrupted
    assert fitted.history.epochs.tolist() == list(range(6))
    assert parameters(fitted).tolist() == parameters(whole).tolist()


def test_any_module_with_its_own_loss_and_optimiser(data, validation):
    def make(generator):
        model = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 2)
        )
        for part in model.parameters():
            torch.nn.init.normal_(part, 0, 0.3, generator=generator)
        return model

    def loss(outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    wanted = Settings(loss=loss, optimizer=lambda found: torch.optim.SGD(found, lr=0.1))
    options = {"validation": validation, "epochs": 200, "pretrain_epochs": 100}
    one, two = (FR_TRAIN.train(data, wanted, seed=0, model=make, **options) for _ in range(2))
    assert parameters(one).tolist() == parameters(two).tolist()
    assert one.history.train.accuracy[-1] > 0.6
    with pytest.raises(InvalidInputError, match="outputs must be the logits"):
        train(data, validation, model=torch.nn.Linear(3, 3))
    with pytest.raises(InvalidInputError, match="engine='compiled' takes the linear model"):
        train(data, validation, model=make, engine="compiled")


def test_strings_small_data_and_empty_cells(data, validation):
    def named(samples):
        return Samples(
            samples.features,
            np.where(samples.labels == 1, "yes", "no"),
            np.where(samples.groups == 1, "m", "f"),
        )

    plain = train(data, validation)
    fitted = train(named(data), named(validation))
    assert parameters(fitted).tolist() == parameters(plain).tolist()
    assert set(fitted.predict(data.features)) <= {"yes", "no"}
    without = data.take(~((data.labels == 1) & (data.groups == 0)))
    for fairness in FR_TRAIN.notions:
        assert np.isfinite(parameters(train(without, validation, fairness=fairness))).all()
        few = train(data.take([0, 1, 2]), validation.take([0]), fairness=fairness)
        assert np.isfinite(few.predict_proba(data.features)).all()


def test_clear_refusals(data, validation):
    with pytest.raises(InvalidInputError, match="fr-train needs a validation set"):
        train(data, None)
    graded = Samples(data.features, np.arange(150) % 3, data.groups)
    with pytest.raises(InvalidInputError, match="fr-train is defined for at most 2 classes; data has 3"):
        train(graded, graded)
    with pytest.raises(
        InvalidInputError, match=r"validation must have the classes, groups and features of data"
    ):
        train(data, Samples(validation.features[:, :2], validation.labels, validation.groups))
    with pytest.raises(InvalidInputError, match="validation must have at least one sample; got none"):
        train(data, validation.take([]))
    with pytest.raises(InvalidInputError, match=r"must sum to at most 1; got 0\.7 and 0\.4"):
        train(data, validation, fairness_weight=0.7)
    with pytest.raises(
        InvalidInputError, match="validation_kind must be one of clean, noisy, cleaned; got 'dirty'"
    ):
        train(data, validation, validation_kind="dirty")
    with pytest.raises(InvalidInputError, match="got also temperature"):
        train(data, validation, temperature=1)
    with pytest.raises(FairsieveError, match=r"training diverged: .*Lower classifier_rate"):
        train(data, validation, classifier_rate=1e308, epochs=10, pretrain_epochs=10)


def test_groups_are_an_input_once():
    groups = np.array([0, 1, 2, 1])
    features = np.array([[1.0, 0.0], [2.0, 3.0], [3.0, 5.0], [4.0, 3.0]])
    assert _tells_groups(features, groups)
    assert not _tells_groups(features[:, :1], groups)
    assert not _tells_groups(np.ones((4, 1)), groups)


# What it is for


@pytest.fixture(scope="module")
def attacked():
    parts = synthetic_splits(0)
    train_labels, validation_labels = (
        flip_group_targeted(part, 0.1, group=1).labels for part in (parts.train, parts.validation)
    )
    return parts, parts.train.with_labels(train_labels), parts.validation.with_labels(validation_labels)


def test_cleaning_a_validation_set_removes_wrong_labels(attacked):
    parts, _, noisy = attacked
    kept = clean_with_itlm(noisy, 0.9)
    assert len(kept) == 180
    right = {tuple(row) for row in np.column_stack([parts.validation.features, parts.validation.labels])}
    wrong = [tuple(row) not in right for row in np.column_stack([kept.features, kept.labels])]
    assert sum(wrong) < 10  # of 20
    assert len(clean_with_itlm(noisy, 1.0)) == 200


def test_a_cleaned_validation_set_is_one_cleaned_before(data, validation):
    inside = train(data, validation, validation_kind="cleaned", seed=2)
    before = train(data, clean_with_itlm(validation, 0.9, seed=2), seed=2)
    assert parameters(inside).tolist() == parameters(before).tolist()


def test_accurate_and_fair_under_flips_given_clean_labels(attacked):
    parts, noisy_train, noisy_validation = attacked
    options = {"epochs": 4000, "discriminator_rate": 0.1}

    def scores(fitted):
        guessed = fitted.predict(parts.test.features)
        unfair = equalized_odds_disparity(parts.test.labels, guessed, sensitive_features=parts.test.groups)
        return accuracy(parts.test.labels, guessed), unfair

    def played(validation):
        return scores(FR_TRAIN.train(noisy_train, Settings(), seed=0, validation=validation, **options))

    plain = scores(fit(None, noisy_train, "lr", seed=0))
    clean, noisy = played(parts.validation), played(noisy_validation)
    assert clean[0] > plain[0] + 0.05
    assert clean[1] < plain[1] / 2
    assert noisy[0] < clean[0] - 0.03
