"""The trainer of the Newton solver: what an update does, and what is recorded of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError
from fairsieve.optional import is_tensor
from fairsieve.selection.batches import sample_weights
from fairsieve.training.cell_weights import CellWeights
from fairsieve.training.curvature import Curvature
from fairsieve.training.history import History
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.newton_steps import (
    MANY,
    PART,
    draw_part,
    new_objective,
    take_step,
    to_model,
)
from fairsieve.training.settings import TrainingSpec
from fairsieve.training.trainer import Measurement, Trainer

__all__ = ["AVERAGED", "STEP_SIZE", "STEP_SIZE_WITHOUT_CLEANING", "UPDATES", "NewtonTrainer", "to_host"]

State = dict[str, Any]

UPDATES = 40
STEP_SIZE = 0.0096  # of the first update; 0.22 in all
STEP_SIZE_WITHOUT_CLEANING = 0.0128  # 0.3 in all: the paper's loop has no warm-up there, and moves longer
LAST_STEP = 0.3  # the last update's step, as a share of the first one's
AVERAGED = 10
DAMPING = 1.0  # where low losses are selected: the model may not run ahead of the selection
DAMPING_WITHOUT_CLEANING = 0.3  # elsewhere: a model that lags behind the ratios lets them go too far
WARMUP_STEPS = 3
RIDGE = 0.0005  # for each sample: the more samples, the more can be flipped together
REFRESH = 5  # updates that share one curvature: the weights change little from one to the next
CONVERGED = 1e-3  # decrease of the mean loss that a last step may still promise; more where samples are few
FULL_UPDATES = 12  # updates on all of very many samples


class NewtonTrainer(Trainer):
    """Trains the linear model by Newton steps on full batches; an epoch is an update.

    Parameters
    ----------
    spec : TrainingSpec
        ``epochs`` are the updates and ``step_size`` is the first one's; warm-up, batch size and learning rate
        are not used.
    start : array of shape (outputs, d + 1), optional
        Parameters to start from; a short warm-up when None.
    """

    def __init__(self, spec: TrainingSpec, start: NDArray[np.float64] | None = None) -> None:
        super().__init__(replace(spec, settings=replace(spec.settings, warmup_epochs=0, batch_size=1)))
        self.best_merit = -np.inf
        self.best: State | None = None
        self.average: State | None = None
        self.objective = new_objective(spec.data, self.settings.device)
        self.objective.ridge = max(1.0, RIDGE * len(spec.data))
        self.given = None if spec.weights is None else self.objective.as_values(spec.weights)
        full = max(FULL_UPDATES, self.settings.average_last)
        self.first = max(0, self.settings.epochs - full) if len(spec.data) > MANY else 0
        self.damping = DAMPING if spec.method.cleans else DAMPING_WITHOUT_CLEANING
        self.start, self.is_started = start, False
        self.parameters = self.objective.zeros()
        self.decrement = np.full(1, np.inf)
        self.scores: Any = None
        self.losses: Any = None
        on_host, cells = self.objective.xp is np, self.plan.counts.size
        kind = np.min_scalar_type(cells) if on_host else np.int64  # torch looks up by the latter alone
        self.codes = self.objective.as_values(self.plan.cells.host_codes.astype(kind, copy=False))
        self.places: Any = self.codes
        self.times_selected = self.objective.as_values(self.recording.times_selected)
        size = self.parameters.size if self.objective.has_matrix else 0
        self.curvature = Curvature(
            diagonal=np.ones(self.parameters.shape), factor=(np.zeros((size, size)), False)
        )

    @property
    def converged(self) -> bool:
        """Whether the last step had almost nothing left to gain."""
        return bool(self.decrement[0] <= CONVERGED + 5 / len(self.plan.cells))

    def begin(self) -> None:
        """Find where to start: a short warm-up and, of very many samples, updates on a part of them."""
        if self.first == 0:
            if self.start is None:
                self.warm_up()
            else:
                self.go_to(self.start)
        else:
            rows = draw_part(len(self.plan.cells), PART)
            weights = None if self.spec.weights is None else self.spec.weights[rows]
            part = NewtonTrainer(
                replace(self.spec, data=self.spec.data.take(rows), weights=weights), self.start
            )
            while part.done < self.first:
                part.run_epoch()
            self.plan.ratios = part.plan.ratios.copy()
            self.done = self.plan.epoch = self.first
            self.go_to(part.parameters)

    def warm_up(self) -> None:
        """Take a few damped steps on everything, from a model that knows nothing.

        It stops early, as the paper's warm-up does: a plain optimum has learned the wrong labels too, and would
        select them.
        """
        self.go_to(self.objective.zeros())
        given = self.objective.ones() if self.given is None else self.given
        for _ in range(WARMUP_STEPS):
            curvature = self.objective.curvature(self.scores, given, self.damping)
            step = take_step(self.objective, curvature, self.parameters, self.scores, self.losses, given)
            self.parameters = step.parameters

    def go_to(self, parameters: NDArray[np.float64]) -> None:
        """Measure the model at some parameters."""
        self.parameters, self.is_started = parameters.copy(), True
        self.scores = self.objective.scores(self.parameters)
        self.losses = self.objective.losses(self.scores)

    def run_epoch(self) -> None:
        """Measure, plan, and take one Newton step."""
        if not self.is_started:
            self.begin()
        if self.places is None:
            self.find_places()
        plan, measured = self.plan, self.measure()
        if bool((measured.losses != measured.losses).any()):  # NaN is the only number that is not itself
            raise self.diverged()
        self.record(measured)
        plan.update(measured.losses, measured.signals, step_size=self.step_size)
        self.record_selection()
        self.keep_if_best()
        weights = self.weights
        if self.done % REFRESH == 0 or self.done == self.first or not self.objective.has_matrix:
            self.curvature = self.objective.curvature(self.scores, weights, self.damping)
        step = take_step(self.objective, self.curvature, self.parameters, self.scores, self.losses, weights)
        self.parameters = step.parameters
        self.decrement[:] = step.decrement / max(self.objective.total(weights), 1e-300)
        plan.epoch += 1
        self.done += 1
        if self.done > self.first_averaged:
            self.add_to_average(self.state(), self.done - self.first_averaged)

    @property
    def step_size(self) -> float:
        """The ratios' step in the present update."""
        if self.done == self.first > 0:
            return 0.0  # all samples have not been selected from yet, only a part of them
        return float(self.settings.step_size * LAST_STEP ** (self.done / max(1, self.settings.epochs - 1)))

    @property
    def weights(self) -> CellWeights:
        """The weights of Eq. 3, times those that were given; 0 for the samples left out."""
        plan, cells = self.plan, np.arange(self.plan.counts.size)
        table = np.ones(len(cells) + 1)
        if self.spec.method.weighted:
            table[:-1] = sample_weights(cells, cells, plan.ratios, plan.counts)
        table[-1] = 0.0
        return CellWeights(table=self.objective.as_values(table), places=self.places, given=self.given)

    def measure(self) -> Measurement:
        """Compute losses, signals and predictions on the training samples, where the features are."""
        objective = self.objective
        rows, predicted = [], objective.predictions(self.scores)
        for target in self.plan.comparisons.targets:
            if self.plan.signal == "error":
                rows.append(1.0 * (predicted != (objective.labels if target < 0 else target)))
            else:
                rows.append(self.losses if target < 0 else objective.losses_against(self.scores, target))
        signals = rows[0][None] if len(rows) == 1 else objective.xp.stack(rows)
        return Measurement(self.losses, signals, predicted)

    def record(self, measured: Measurement) -> None:
        """Record how the model does as the update begins, by cell."""
        recording, update = self.recording, self.done
        cells, classes = recording.tables.shape[1:]

        def count(part: slice) -> tuple[Any, Any, Any]:
            predicted, places = measured.predicted[part], self.places[part]
            return (
                _count(self.codes[part], predicted, cells, classes),
                _count(places, predicted, cells + 1, classes)[:cells],
                _sum_by_cell(places, measured.losses[part], cells + 1)[:cells],
            )

        tables, own, sums = (sum(parts) for parts in zip(*self.objective.over_chunks(count), strict=True))
        recording.tables[update], recording.selected_tables[update] = tables, own
        recording.cell_losses[update] = sums / np.maximum(self.plan.counts, 1)
        if self.evaluation is not None:
            recording.evaluation_tables[update] = _count(
                self.evaluation.cells.codes, self.predict_evaluation(), cells, classes
            )

    def record_selection(self) -> None:
        """Record what the update trains on."""
        plan, recording = self.plan, self.recording
        recording.ratios[self.done], recording.counts[self.done] = plan.ratios.reshape(-1), plan.counts
        self.find_places()
        self.times_selected += self.places < plan.counts.size

    def find_places(self) -> None:
        """Find the cell of each selected sample; the others have the number of cells in its place."""
        plan, self.places = self.plan, self.codes
        if plan.selected < len(plan.cells):
            selected, self.places = plan.indices, self.objective.xp.full_like(self.codes, plan.counts.size)
            self.places[selected] = self.codes[selected]

    def history(self) -> History:
        """Return what happened in the updates on all samples."""
        self.recording.times_selected[:] = to_host(self.times_selected)
        parts = {
            name: value[self.first : self.done]
            for name, value in self.recording._asdict().items()
            if name != "times_selected"
        }
        return History.from_recording(
            self.recording._replace(**parts),
            self.plan.cells,
            np.arange(min(self.first, self.done), self.done),
            evaluated=self.evaluation is not None,
            positive=self.positive,
        )

    def predict_evaluation(self) -> NDArray[np.int64]:
        """Predict the classes of the evaluation samples."""
        assert self.evaluation is not None
        return to_model(self.parameters).predict_codes(self.evaluation.features)

    def train(self, batches: NDArray[np.int64]) -> None:
        """Refuse batches: this solver has none."""
        raise NotImplementedError("the Newton solver has no batches")

    def state(self) -> State:
        """Copy the parameters."""
        return {"parameters": self.parameters.copy()}

    def predictor(self, state: State | None) -> LinearModel:
        """Return the model in a state (its present one when None)."""
        return to_model(self.parameters if state is None else state["parameters"])

    def finish(self, *, interrupted: bool) -> Any:
        """Return the trained model, averaged over the last epochs; if interrupted, the best so far."""
        return self.predictor(self.best if interrupted else self.average)

    def keep_if_best(self) -> None:
        """Remember the state if it is the best so far, in case the training is interrupted."""
        merit = float(self.merits(self.done, self.done + 1)[0])
        if merit > self.best_merit:
            self.best_merit, self.best = merit, self.state()

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

    def diverged(self) -> FairsieveError:
        """Make the error that says what to do about losses that are not numbers."""
        return FairsieveError(
            f"training diverged: at update {self.done} losses are not numbers; scale the features, for example by "
            "sklearn.preprocessing.StandardScaler"
        )


def to_host(values: Any) -> NDArray[Any]:
    """Return an array or a tensor as an array."""
    return np.asarray(values.cpu().numpy() if is_tensor(values) else values)


def _count(codes: Any, predicted: Any, cells: int, classes: int) -> NDArray[np.int64]:
    """Count predictions by cell, (cells, classes)."""
    if is_tensor(codes):
        counts = (codes * classes + predicted).bincount(minlength=cells * classes)
    else:
        counts = np.bincount(codes.astype(np.int64) * classes + predicted, minlength=cells * classes)
    return to_host(counts).reshape(cells, classes)


def _sum_by_cell(codes: Any, values: Any, cells: int) -> NDArray[np.float64]:
    """Add up values by cell; on a device cell by cell, so that the result does not depend on its threads."""
    if is_tensor(values):
        return np.array([float((values * (codes == cell)).sum()) for cell in range(cells)])
    return np.bincount(codes, weights=values, minlength=cells).astype(np.float64)
