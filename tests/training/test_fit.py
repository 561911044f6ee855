"""fit: repeatable, interruptible, any module; the loop of the linear model equals the autograd one."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from tests.support.refusals import refused
from tests.support.stopping import everything, stop_after

import fairsieve
from fairsieve import Samples, fit
from fairsieve.data import flip_margin, flip_uniform, make_synthetic
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.training.models import LogisticRegression

SHORT = {"epochs": 12, "warmup_epochs": 4, "clean_ratio": 0.9, "batch_size": 50, "step_size": 0.01}


@pytest.fixture(scope="module")
def noisy():
    clean = make_synthetic(400, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture(scope="module")
def many(noisy):
    """Three classes, three groups, string labels."""
    rng = np.random.default_rng(1)
    labels = np.array(["a", "b", "c"])[np.digitize(noisy.features[:, 0], [-1, 1])]
    samples = Samples(noisy.features.astype(np.float64), labels, rng.choice(["x", "y", "z"], 400))
    return samples.with_labels(flip_uniform(samples, 0.1, seed=0).labels)


def weights(fitted):
    return torch.cat([p.detach().flatten() for p in fitted.model.parameters()]).numpy()


def linear(classes=2, dtype=torch.float32):
    """The paper's model as a module; it starts with the weights of ``fit(None, …)``."""
    return lambda generator: LogisticRegression(3, classes, generator=generator).to(dtype)


KINDS = pytest.mark.parametrize("model", [None, linear()], ids=["linear", "module"])


@KINDS
def test_one_seed_repeats_and_another_differs(noisy, model):
    one, two, other = (fit(model, noisy, seed=seed, **SHORT) for seed in (5, 5, 6))
    assert weights(one).tolist() == weights(two).tolist()
    assert weights(one).tolist() != weights(other).tolist()


def with_dropout(generator=None):
    layers = torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("model", [with_dropout(), with_dropout], ids=["module", "callable"])
def test_fits_in_threads_equal_fits_in_a_row_and_leave_the_module_as_it_was(many, model):
    """Dropout draws from torch's global generator, which threads share, and which is left as it was."""
    before = [p.detach().clone() for p in model.parameters()] if model is not with_dropout else []
    state = torch.random.get_rng_state()
    in_a_row = [fit(model, many, seed=seed, **SHORT) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        at_once = list(pool.map(lambda seed: everything(fit(model, many, seed=seed, **SHORT)), range(3)))
    assert at_once == [everything(one) for one in in_a_row]
    assert len({one[0] for one in at_once}) == 3
    assert all((a == b).all() for a, b in zip(before, model.parameters() if before else [], strict=True))
    assert (torch.random.get_rng_state() == state).all()
    assert set(in_a_row[0].predict(many.features)) <= {"a", "b", "c"}
    assert in_a_row[0].predict_proba(many.features).sum(axis=1) == pytest.approx(np.ones(400))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_precision_is_refused(noisy, dtype):
    with pytest.raises(InvalidInputError, match=r"model must be in single or double precision.*call float"):
        fit(torch.nn.Linear(3, 2).to(dtype), noisy, **SHORT)


def test_the_history_records_what_was_trained_on(noisy):
    copies = [part.copy() for part in (noisy.features, noisy.labels, noisy.groups)]
    fitted = fit(None, noisy, evaluation=noisy, **SHORT)
    for copy, part in zip(copies, (noisy.features, noisy.labels, noisy.groups), strict=True):
        assert (copy == part).all()
    history = fitted.history
    assert len(history) == 12
    assert history.counts[:4].tolist() == [noisy.cells.counts.tolist()] * 4
    assert (history.counts[4:].sum(axis=(1, 2)) <= 360).all()
    assert history.counts[-1].sum() == len(fitted.indices)
    assert history.ratios[-1] == pytest.approx(fitted.ratios)
    assert history.train.accuracy.tolist() == history.evaluation.accuracy.tolist()


def test_averaging_a_linear_model_is_the_mean_of_its_last_states(noisy):
    states = [weights(fit(None, noisy, **(SHORT | {"epochs": e}))).astype(float) for e in (10, 11, 12)]
    averaged = weights(fit(None, noisy, average_last=3, **SHORT))
    assert averaged == pytest.approx(np.mean(states, axis=0), abs=1e-6)
    assert weights(fit(None, noisy, average_last=99, **SHORT)).size == 4


@pytest.mark.parametrize("outputs", [1, 2])
def test_averaging_a_module_is_the_mean_of_its_last_predictions(noisy, outputs):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))
    options = SHORT | {"learning_rate": 0.1}
    fits = [fit(model, noisy, **(options | {"epochs": e})) for e in (10, 11, 12)]
    chances = [each.predict_proba(noisy.features) for each in fits]
    averaged = fit(model, noisy, average_last=3, **options)
    assert averaged.predict_proba(noisy.features) == pytest.approx(np.mean(chances, axis=0), abs=1e-6)
    assert averaged.predict(noisy.features).tolist() == np.mean(chances, axis=0).argmax(axis=1).tolist()


@KINDS
@pytest.mark.parametrize("stop", [0, 1, 3, 8])
@pytest.mark.filterwarnings("ignore:warmup_epochs must be below epochs")
def test_an_interruption_returns_the_best_state_so_far(noisy, model, stop):
    with stop_after(stop, KeyboardInterrupt):
        fitted = fit(model, noisy, **SHORT)
    assert fitted.interrupted
    assert len(fitted.history) == stop
    if stop:  # a state since epoch 4, when selection began
        ends = [4, 5, 6, 7] if stop == 8 else [stop]
        states = [fit(model, noisy, **(SHORT | {"epochs": done})) for done in ends]
        assert weights(fitted).tolist() in [weights(state).tolist() for state in states]


@KINDS
def test_the_best_state_is_the_one_of_highest_accuracy_less_disparity(noisy, model):
    options = SHORT | {"learning_rate": 0.1}
    with stop_after(8, KeyboardInterrupt):
        fitted = fit(model, noisy, "lr", **options)  # selects everything, so that the history has all numbers
    train = fitted.history.train
    best = int((train.accuracy - train.disparity["equalized_odds"]).argmax())
    expected = fit(model, noisy, "lr", **(options | {"epochs": best}))
    assert weights(fitted).tolist() == weights(expected).tolist()


def test_the_progress_bar_does_not_change_the_result(noisy, capsys):
    quiet, shown = fit(None, noisy, **SHORT), fit(None, noisy, progress=True, **SHORT)
    assert weights(quiet).tolist() == weights(shown).tolist()
    assert capsys.readouterr().out == ""


def test_a_device_a_loss_and_an_optimiser_can_be_passed(noisy):
    def loss(outputs, labels):
        return (torch.sigmoid(outputs) - labels).abs()

    options = SHORT | {"loss": loss, "optimizer": partial(torch.optim.SGD, lr=0.1)}
    fitted = fit(LogisticRegression(3), noisy, device="cpu", **options)
    assert np.isfinite(weights(fitted)).all()


@pytest.mark.parametrize("labels", [[0, 0, 1], ["n", "n", "y"], [True, True, False], [1.0, 1.0, 2.0]])
def test_three_samples_of_any_label_type_can_be_fitted(labels):
    data = Samples(np.eye(3), labels, ["a", "b", "a"])
    fitted = fit(None, data, **(SHORT | {"clean_ratio": 1.0}))
    assert set(fitted.predict(np.eye(3)).tolist()) <= set(labels)
    one = fit(None, data.take([2]), **(SHORT | {"clean_ratio": 1.0, "learning_rate": 0.1}))
    assert one.predict(np.eye(3)[2:]).tolist() == labels[2:]


def test_divergence_is_an_error_that_says_what_to_do():
    data = make_synthetic(50, seed=0)
    data = Samples(data.features.astype(np.float64) * 1e300, data.labels, data.groups)
    for model in (None, linear(2, torch.float64)):
        with pytest.raises(fairsieve.errors.FairsieveError, match=r"training diverged.*Lower learning_rate"):
            fit(model, data, **(SHORT | {"learning_rate": 1e10}))


@pytest.mark.parametrize(("change", "message"), [
    ({"average_last": 0}, "average_last must be"),
    ({"clean_ratio": 0.001}, r"clean_ratio must select.*0.001 of 400.*nobody: pass 0.0025 or more"),
    ({"clean_ratio": 0.0025}, r"clean_ratio must leave samples.*0.0025 of 400.*selects nobody: raise it"),
])  # fmt: skip
def test_bad_input_is_named_in_the_error(noisy, change, message):
    refused(message, fit, **{"model": None, "data": noisy} | SHORT | change)


def test_a_clean_ratio_may_select_one_sample_and_matters_only_to_methods_that_clean(noisy):
    assert len(fit(None, noisy, "itlm", **(SHORT | {"clean_ratio": 0.0025})).indices) == 1
    assert len(fit(None, noisy, "lr", **(SHORT | {"clean_ratio": 0.001})).indices) == 400


def test_a_warmup_that_never_ends_gives_a_warning(noisy):
    told = "warmup_epochs must be below epochs for sample-selection.*got 12 and 12"
    with pytest.warns(FairsieveWarning, match=told):
        fit(None, noisy, **(SHORT | {"warmup_epochs": 12}))
    fit(None, noisy, "fairbatch", **(SHORT | {"warmup_epochs": 12}))  # does not clean, and has no warm-up


def test_samples_refuse_bad_features():
    told = {"features must have one row per sample": [1.0, 2.0], "got 1 rows and 2 labels": [[1.0]]}
    for message, features in told.items():
        refused(message, Samples, features, [0, 1], [0, 1])
