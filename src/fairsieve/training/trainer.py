"""A model in training, epoch by epoch: measure it on everything, plan, train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.training.history import History, count_predictions, new_recording, record_model, record_plan
from fairsieve.training.settings import TrainingSpec

__all__ = ["Measurement", "Trainer"]


class Measurement(NamedTuple):
    """A model on all training samples."""

    losses: NDArray[Any]  # (n,)
    signals: NDArray[Any]  # (targets, n), what groups are compared by
    predicted: NDArray[np.int64]  # (n,)


class Trainer(ABC):
    """Trains one model by one specification.

    The order of an epoch is here; subclasses measure and train their kind of model.

    Attributes
    ----------
    plan : Plan
        Ratios, selection and batches of the present epoch.
    done : int
        Epochs that are finished.
    """

    def __init__(self, spec: TrainingSpec) -> None:
        self.spec, self.settings, self.evaluation = spec, spec.settings, spec.evaluation
        self.plan = spec.new_plan()
        self.recording = new_recording(self.settings.epochs, self.plan.cells)
        self.done = 0

    @abstractmethod
    def measure(self) -> Measurement:
        """Compute losses, signals and predictions on the training samples."""

    @abstractmethod
    def predict_evaluation(self) -> NDArray[np.int64]:
        """Predict the classes of the evaluation samples."""

    @abstractmethod
    def train(self, batches: NDArray[np.int64]) -> None:
        """Take one optimiser step for each batch."""

    @abstractmethod
    def finish(self, *, interrupted: bool) -> Any:
        """Return the trained model, averaged over the last epochs; if interrupted, the best so far."""

    def run_epoch(self) -> None:
        """Measure, plan and train for one epoch."""
        plan, epoch, measured = self.plan, self.done, self.measure()
        if np.isnan(measured.losses).any():
            raise self.diverged()
        codes, recording = plan.cells.codes, self.recording
        record_model(recording, epoch, measured.losses, measured.predicted, codes, plan.indices, plan.counts)
        if self.evaluation is not None:
            table = recording.evaluation_tables[epoch]
            count_predictions(self.predict_evaluation(), self.evaluation.cells.codes, table)
        plan.update(measured.losses, measured.signals)
        self.check_selected()
        record_plan(recording, epoch, plan.ratios, plan.indices, plan.counts, not plan.in_warmup)
        self.train(plan.batches())
        plan.epoch += 1
        self.done += 1

    def run_epochs(self, epochs: int) -> None:
        """Do :meth:`run_epoch` so many times, but no more than the settings ask for."""
        for _ in range(min(epochs, self.settings.epochs - self.done)):
            self.run_epoch()

    def check_selected(self) -> None:
        """Refuse to train on nobody, which the ratios can lead to where the budget is tiny."""
        if not self.plan.counts.sum():
            raise InvalidInputError(
                f"clean_ratio must leave samples to train on; with {self.settings.clean_ratio} of "
                f"{len(self.plan.cells)} samples epoch {self.done} or one soon after selects nobody: raise it"
            )

    def merits(self, first: int, last: int) -> NDArray[np.float64]:
        """Compute accuracy less disparity over the selected samples, as each epoch began."""
        cells = self.plan.cells
        tables = self.recording.selected_tables[first:last].reshape(last - first, *cells.shape, -1)
        grouped = grouped_part(tables, cells.groups)
        return accuracy_from_table(tables) - disparity_from_table(
            grouped, self.settings.fairness, positive=self.positive
        )

    @property
    def positive(self) -> int:
        """Position of the positive class."""
        label = self.settings.pos_label
        return -1 if label is None else self.plan.cells.class_index(label)

    def history(self) -> History:
        """Return what happened in the epochs that are finished."""
        return History.from_recording(
            self.recording,
            self.plan.cells,
            np.arange(self.done),
            warmup_epochs=self.plan.rules.warmup_epochs,
            evaluated=self.evaluation is not None,
            positive=self.positive,
        )

    def diverged(self) -> FairsieveError:
        """Make the error that says what to do about losses that are not numbers."""
        return FairsieveError(
            f"training diverged: at epoch {self.done} or soon after losses are not numbers. Lower learning_rate "
            f"(it is {self.settings.learning_rate}) or scale the features"
        )
