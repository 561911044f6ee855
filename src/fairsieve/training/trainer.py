"""A model in training, epoch by epoch: measure it on everything, plan, train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.optional import is_tensor
from fairsieve.training.history import History, count_predictions, new_recording, record_model, record_plan
from fairsieve.training.settings import TrainingSpec

__all__ = ["Arrays", "Measurement", "State", "Trainer"]

Arrays = dict[str, NDArray[Any]]
State = dict[str, Any]  # what a model has learned: arrays of the linear model, tensors of a module


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
    engine : str
        How the subclass trains: "compiled" or "autograd".
    plan : Plan
        Ratios, selection and batches of the present epoch.
    done : int
        Epochs that are finished.
    best, average : State or None
        The best state as an epoch after the warm-up began, and the mean of the last states.
    """

    engine: str

    def __init__(self, spec: TrainingSpec) -> None:
        self.spec, self.settings, self.evaluation = spec, spec.settings, spec.evaluation
        self.plan = spec.new_plan()
        self.recording = new_recording(self.settings.epochs, self.plan.cells)
        self.done = 0
        self.best_merit = -np.inf
        self.best: State | None = None
        self.average: State | None = None

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
    def state(self) -> State:
        """Copy everything the model has learned."""

    @abstractmethod
    def predictor(self, state: State | None) -> Any:
        """Return the model in a state (its present one when None)."""

    @abstractmethod
    def describe_model(self) -> str:
        """Name the kind of model, and the shapes of what it learns."""

    @abstractmethod
    def checkpoint(self) -> tuple[dict[str, Any], Arrays]:
        """Return what training changes in model, optimiser and random numbers: plain values and arrays."""

    @abstractmethod
    def restore(self, values: Mapping[str, Any], arrays: Arrays) -> None:
        """Put back what :meth:`checkpoint` returned; check everything before anything is changed."""

    @abstractmethod
    def state_arrays(self, state: State) -> Arrays:
        """Return the arrays of a state, for a checkpoint."""

    @abstractmethod
    def state_from_arrays(self, arrays: Arrays) -> State:
        """Make a state from what :meth:`state_arrays` returned."""

    def run_epoch(self) -> None:
        """Measure, plan and train for one epoch."""
        plan, epoch, measured = self.plan, self.done, self.measure()
        if np.isnan(measured.losses).any():
            raise self.diverged()
        self.record(measured)
        plan.update(measured.losses, measured.signals)
        self.check_selected()
        record_plan(self.recording, epoch, plan.ratios, plan.indices, plan.counts, not plan.in_warmup)
        if not plan.in_warmup:
            self.keep_if_best()
        self.train(plan.batches())
        plan.epoch += 1
        self.done += 1
        if self.done > self.first_averaged:
            self.add_to_average(self.state(), self.done - self.first_averaged)

    def record(self, measured: Measurement) -> None:
        """Record how the model does as the epoch begins."""
        plan, recording = self.plan, self.recording
        codes = plan.cells.codes
        record_model(
            recording, self.done, measured.losses, measured.predicted, codes, plan.indices, plan.counts
        )
        if self.evaluation is not None:
            table = recording.evaluation_tables[self.done]
            count_predictions(self.predict_evaluation(), self.evaluation.cells.codes, table)

    def check_selected(self) -> None:
        """Refuse to train on nobody, which the ratios can lead to where the budget is tiny."""
        if not self.plan.counts.sum():
            raise InvalidInputError(
                f"clean_ratio must leave samples to train on; with {self.settings.clean_ratio} of "
                f"{len(self.plan.cells)} samples epoch {self.done} or one soon after selects nobody: raise it"
            )

    def keep_if_best(self) -> None:
        """Remember the state if it is the best so far, in case the training is interrupted."""
        merit = float(self.merits(self.done, self.done + 1)[0])
        if merit > self.best_merit:
            self.best_merit, self.best = merit, self.state()

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

    @property
    def first_averaged(self) -> int:
        """The first epoch whose outcome is averaged."""
        return max(0, self.settings.epochs - self.settings.average_last)

    def add_to_average(self, state: State, number: int) -> None:
        """Update the running mean of states; this is the ``number``-th."""
        if self.average is None:
            self.average = state
            return
        for name, value in state.items():
            if is_tensor(value) and not value.is_floating_point():  # a counter of batches, for example
                self.average[name] = value
            else:
                self.average[name] += (value - self.average[name]) / number

    def finish(self, *, interrupted: bool) -> Any:
        """Return the trained model, averaged over the last epochs; if interrupted, the best so far."""
        return self.predictor(self.best if interrupted else self.average)

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
