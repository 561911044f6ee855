"""Training until the loss has settled."""

from __future__ import annotations

import pytest

from fairsieve.data import flip_margin, make_synthetic
from fairsieve.paper.methods import converged
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.converged import _has_converged, _mean_losses
from fairsieve.paper.methods.planned import _last_cleaning, plan_trainer, shared_trainer, two_step_trainer
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.fit import fit
from fairsieve.training.settings import Settings

SETTINGS = Settings(clean_ratio=0.9, epochs=8, warmup_epochs=2, batch_size=50)


@pytest.fixture
def data():
    clean = make_synthetic(200, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture
def soon(monkeypatch):
    """Look for convergence early, so that the tests are fast."""
    monkeypatch.setattr(converged, "FEWEST_EPOCHS", 20)
    monkeypatch.setattr(converged, "EPOCHS_BETWEEN", 10)


def test_training_stops_where_the_loss_has_settled(data, soon):
    fitted = METHODS["lr"].train(data, SETTINGS, seed=0, most_epochs=400, learning_rate=0.05)
    epochs = len(fitted.history)
    assert 20 <= epochs < 400
    assert epochs % 10 == 0
    losses = (fitted.history.cell_losses * fitted.history.counts).sum(axis=(1, 2)) / len(data)
    assert _has_converged(losses)
    assert epochs == 20 or not _has_converged(losses[:-10])


def test_the_model_is_that_of_a_plain_training_of_so_many_epochs(data, soon):
    fitted = METHODS["itlm"].train(data, SETTINGS, seed=3, most_epochs=60, learning_rate=0.01)
    plain = fit(
        None,
        data,
        "itlm",
        seed=3,
        clean_ratio=0.9,
        warmup_epochs=2,
        batch_size=50,
        learning_rate=0.01,
        epochs=len(fitted.history),
    )
    assert fitted.predict_proba(data.features) == pytest.approx(plain.predict_proba(data.features))
    assert fitted.indices.tolist() == plain.indices.tolist()


def test_there_is_an_end_without_convergence(data, soon):
    fitted = METHODS["lr"].train(data, SETTINGS, seed=0, most_epochs=30, learning_rate=0.003)
    assert len(fitted.history) == 30


def test_losses_are_means_over_the_selected(data):
    from fairsieve.training.history import new_recording

    recording = new_recording(2, data.cells)
    recording.counts[:] = [[1, 2, 3, 4], [0, 0, 0, 5]]
    recording.cell_losses[:] = [[1, 1, 1, 1], [9, 9, 9, 2]]
    assert _mean_losses(recording, 2).tolist() == [1, 2]


def test_a_cleaning_step_is_shared_by_second_steps(data):
    calls = []
    itlm = plan_trainer("itlm")

    def clean(given, **options):
        calls.append(options)
        return itlm(given)

    def given(seed):
        return TrainingInput(data=data, settings=SETTINGS, seed=seed)

    _last_cleaning.clear()
    alone, both = shared_trainer(clean), two_step_trainer(clean, plan_trainer("fairbatch"))
    found = [alone(given(0)), both(given(0)), both(given(0), step_size=0.0)]
    assert len(calls) == 1
    assert [set(each.indices) for each in found] == [set(found[0].indices)] * 3
    both(given(1))
    both(given(1), cleaning_penalty_weight=0.5)
    assert calls[1:] == [{}, {"penalty_weight": 0.5}]
