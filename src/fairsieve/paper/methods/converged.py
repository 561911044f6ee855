"""Train a method until it has converged: how the paper's LR and ITLM are trained.

Convergence is told by the training loss, the mean over the selected samples as an epoch begins. Every 200 epochs, from
400 on, its mean over the last tenth of the epochs is compared with that over the tenth before half-time: where it has
fallen by less than a thousandth in the second half, training ends. ``most_epochs`` is the end in any case.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.contract import TrainFunction, TrainingInput
from fairsieve.paper.methods.planned import plan_trainer
from fairsieve.progress import progress_bar
from fairsieve.training.fit import check_data, new_trainer
from fairsieve.training.history import Recording
from fairsieve.training.methods import selection_method
from fairsieve.training.result import Fitted
from fairsieve.training.settings import TrainingSpec

__all__ = ["converged_trainer"]

FEWEST_EPOCHS = 400
EPOCHS_BETWEEN = 200
MOST_EPOCHS = 1600
TOLERANCE = 0.001


def converged_trainer(method: str, *, penalty_weight: float | None = None) -> TrainFunction:
    """Make the train function of a method that trains until it has converged.

    The function takes ``converge=False`` to train for the epochs of its settings, and ``most_epochs``. Of the settings
    everything but the epochs counts. ``penalty_weight`` is as for
    :func:`~fairsieve.paper.methods.planned.plan_trainer`.
    """
    plain = plan_trainer(method, penalty_weight=penalty_weight)

    def train(
        given: TrainingInput,
        *,
        converge: bool = True,
        most_epochs: int = MOST_EPOCHS,
        **hyperparameters: Any,
    ) -> Fitted:
        if not converge:
            return plain(given, **hyperparameters)
        chosen = replace(given.settings, **hyperparameters, epochs=most_epochs)
        if penalty_weight is None or chosen.penalty_weight == 0:
            chosen = replace(chosen, penalty_weight=penalty_weight or 0.0)
        return _train_to_the_end(method, replace(given, settings=chosen))

    return train


def _train_to_the_end(method: str, given: TrainingInput) -> Fitted:
    """Train until the loss has settled, or the epochs of the settings are over."""
    data, settings = given.data, given.settings
    check_data(data, given.evaluation)
    started, interrupted = time.perf_counter(), False
    spec = TrainingSpec(
        data=data,
        method=selection_method(method),
        settings=settings,
        seed=given.seed,
        evaluation=given.evaluation,
    )
    trainer = new_trainer(given.model, spec, compiled=given.compiles(settings))
    with progress_bar(method, settings.epochs, shown=given.progress) as report:
        try:
            trainer.run_epochs(FEWEST_EPOCHS)
            while trainer.done < settings.epochs and not _has_converged(
                _mean_losses(trainer.recording, trainer.done)
            ):
                trainer.run_epochs(EPOCHS_BETWEEN)
                report(trainer.done)
        except KeyboardInterrupt:
            interrupted = True
    return Fitted(
        predictor=trainer.finish(interrupted=interrupted),
        history=trainer.history(),
        indices=trainer.plan.indices,
        ratios=trainer.plan.ratios,
        classes=data.cells.classes,
        method=method,
        seed=given.seed,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
    )


def _mean_losses(recording: Recording, epochs: int) -> NDArray[np.float64]:
    """Return the mean loss of the selected samples as each of the first epochs began."""
    counts = recording.counts[:epochs]
    totals = (recording.cell_losses[:epochs] * counts).sum(axis=1)
    return np.asarray(totals / np.maximum(counts.sum(axis=1), 1))


def _has_converged(losses: NDArray[np.float64]) -> bool:
    """Return whether losses fell by less than a thousandth in the second half of the epochs.

    Examples
    --------
    >>> falling = 1 / np.arange(1, 401)
    >>> _has_converged(falling), _has_converged(0.5 + 0.001 * falling)
    (False, True)
    """
    half, tenth = len(losses) // 2, max(1, len(losses) // 10)
    before, after = losses[half - tenth : half].mean(), losses[-tenth:].mean()
    return bool(before - after < TOLERANCE * abs(before))
