"""The linear model's trainer: closed-form gradients in double precision, without torch.

NumPy does the work until a process has spent some seconds in it; from then on compiled code does, which takes a
twentieth of the time but a quarter of a minute to compile. Both give the same bits, so a training may change
from one to the other at any epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError, InvalidInputError
from fairsieve.training import linear_numpy
from fairsieve.training.linear_model import LinearModel, initial_parameters
from fairsieve.training.linear_task import (
    Evaluation,
    Task,
    new_adam,
    new_workspace,
    no_sparse_rows,
    sparse_rows,
)
from fairsieve.training.penalty import penalised_classes, penalty_directions
from fairsieve.training.settings import TrainingSpec
from fairsieve.training.trainer import Arrays, Measurement, State, Trainer

__all__ = ["LinearTrainer", "stop_switching"]

MOST_STEPS = 2**53
LOADING, PATIENCE = 1.0, 10.0  # seconds in NumPy after which compiled code is loaded from disk, or compiled

_seconds_in_numpy = 0.0  # of this process


class LinearTrainer(Trainer):
    """Trains the paper's logistic regression.

    Parameters
    ----------
    spec : TrainingSpec
    parameters : array, optional
        The flat parameters to start from, see :meth:`LinearModel.from_parameters`; drawn from the seed
        when None.
    finish_with : callable, optional
        Makes what training returns of the trained :class:`LinearModel`; by default the model itself.
    """

    engine = "compiled"

    def __init__(
        self,
        spec: TrainingSpec,
        parameters: NDArray[np.float64] | None = None,
        finish_with: Callable[[LinearModel], Any] | None = None,
    ) -> None:
        super().__init__(spec)
        data, cells = spec.data, self.plan.cells
        if data.features.ndim != 2:
            raise InvalidInputError(
                f"features must have the shape (n, d) for the linear model; got {data.features.shape}: pass a module "
                "that takes them"
            )
        if parameters is None:
            parameters = initial_parameters(data.features.shape[1], cells.shape[0], spec.seed)
        self.parameters, self.finish_with = parameters, finish_with
        self.outputs = parameters.size // (data.features.shape[1] + 1)
        features = np.require(data.features, requirements=["C", "W"])  # one type of array: it compiles once
        self.task = Task(
            features,
            no_sparse_rows(features),
            cells.label_codes,
            cells.shape[0],
            np.array(self.plan.comparisons.targets),
            self.plan.signal == "error",
            self.settings.learning_rate,
            self.settings.penalty_weight,
            self.directions(),
            np.zeros(0) if spec.weights is None else spec.weights,
        )
        shown = data.take([]) if self.evaluation is None else self.evaluation
        self.shown = Evaluation(np.ascontiguousarray(shown.features, data.features.dtype), shown.cells.codes)
        self.is_stored = False  # whether the features were stored without their zeros, where that pays
        self.adam = new_adam(self.parameters.size)
        self.workspace = new_workspace(len(data), self.outputs)
        self.shown_workspace = new_workspace(len(shown), self.outputs)
        self.signals = np.empty((len(self.task.targets), len(data)))

    def directions(self) -> NDArray[np.float64]:
        """Compute what the penalty keeps small; nothing without a penalty."""
        if self.settings.penalty_weight == 0:
            return np.zeros((0, self.parameters.size))
        cells = self.plan.cells
        classes = penalised_classes(cells, self.settings.fairness, self.settings.pos_label)
        selected = self.plan.indices if self.plan.is_selective else None
        return penalty_directions(self.spec.data.features, cells, self.parameters, classes, selected)

    @property
    def renews_directions(self) -> bool:
        """Whether the penalty's directions change from epoch to epoch: with wrong decisions, or with the selection."""
        fixed = self.settings.fairness == "demographic_parity" and not self.spec.method.cleans
        return self.settings.penalty_weight != 0 and not fixed

    def run_epoch(self) -> None:
        global _seconds_in_numpy
        if _compiling_pays():
            self.run_compiled(1)
            return
        started = time.thread_time()
        if self.renews_directions:
            self.task.directions[...] = self.directions()
        super().run_epoch()
        _seconds_in_numpy += time.thread_time() - started

    def run_epochs(self, epochs: int) -> None:
        """Do :meth:`run_epoch` so many times; once compiled, in one call that does not block other threads."""
        last = min(self.done + epochs, self.settings.epochs)
        while self.done < last and not _compiling_pays():
            self.run_epoch()
        while self.done < last:
            self.run_compiled(1 if self.renews_directions else last - self.done)

    def measure(self) -> Measurement:
        linear_numpy.evaluate(self.task, self.parameters, self.workspace, self.signals)
        return Measurement(self.workspace.losses, self.signals, self.workspace.predicted)

    def predict_evaluation(self) -> NDArray[np.int64]:
        linear_numpy.predict(self.shown.features, self.parameters, self.shown_workspace)
        return self.shown_workspace.predicted

    def train(self, batches: NDArray[np.int64]) -> None:
        linear_numpy.train_batches(self.task, self.parameters, self.adam, batches, not self.plan.in_warmup)

    def run_compiled(self, epochs: int) -> None:
        """Train so many epochs in one compiled call."""
        from fairsieve.training.compiled_loop import train_epochs

        plan, first = self.plan, self.done
        if not self.is_stored:
            self.task, self.is_stored = self.task._replace(sparse=sparse_rows(self.task.features)), True
        if self.renews_directions:
            self.task.directions[...] = self.directions()
        by_epoch = np.zeros((epochs + 1, self.parameters.size))
        plan.indices, plan.counts, finite = train_epochs(
            self.task,
            plan.rules,
            self.parameters,
            self.adam,
            plan.ratios,
            plan.indices,
            plan.counts,
            first,
            first + epochs,
            self.workspace,
            self.signals,
            self.shown,
            self.shown_workspace,
            self.recording,
            by_epoch,
        )
        if not finite:
            raise self.diverged()
        self.check_selected()
        plan.is_selective = plan.is_selective or first + epochs > plan.rules.warmup_epochs
        by_epoch[-1] = self.parameters
        self.add_epochs(by_epoch, first)
        self.done = plan.epoch = first + epochs

    def add_epochs(self, by_epoch: NDArray[np.float64], first: int) -> None:
        """Update best and average, from the parameters as epochs began (and as the last one ended)."""
        started = max(first, self.plan.rules.warmup_epochs)
        last = first + len(by_epoch) - 1
        if started < last:
            merits = self.merits(started, last)
            if merits.max() > self.best_merit:
                self.best_merit = float(merits.max())
                self.best = {"parameters": by_epoch[started - first + merits.argmax()].copy()}
        for epoch in range(max(first, self.first_averaged), last):
            state = {"parameters": by_epoch[epoch + 1 - first].copy()}
            self.add_to_average(state, epoch + 1 - self.first_averaged)

    def state(self) -> State:
        return {"parameters": self.parameters.copy()}

    def predictor(self, state: State | None) -> Any:
        parameters = self.parameters if state is None else state["parameters"]
        model = LinearModel.from_parameters(parameters, self.outputs)
        return model if self.finish_with is None else self.finish_with(model)

    def describe_model(self) -> str:
        return f"LogisticRegression {self.outputs} x {self.parameters.size // self.outputs - 1}"

    def checkpoint(self) -> tuple[dict[str, Any], Arrays]:
        adam = {f"adam.{name}": value for name, value in self.adam._asdict().items()}
        return {}, {"parameters": self.parameters} | adam

    def restore(self, values: Mapping[str, Any], arrays: Arrays) -> None:
        if not 0 <= int(arrays["adam.steps"][0]) <= MOST_STEPS:
            raise CheckpointError("the steps of Adam must be counted from 0")
        for name, value in self.checkpoint()[1].items():
            value[...] = arrays[name]

    def state_arrays(self, state: State) -> Arrays:
        return state

    def state_from_arrays(self, arrays: Arrays) -> State:
        return arrays


def _compiling_pays() -> bool:
    """Return whether this process has spent so long in NumPy that compiled code is worth its time."""
    return _seconds_in_numpy >= LOADING and (_seconds_in_numpy >= PATIENCE or _is_on_disk())


@cache
def _is_on_disk() -> bool:
    """Return whether the cache of compiled code holds the compiled loop."""
    from fairsieve.training.compiled_loop import train_epochs

    try:
        return bool(train_epochs._cache._cache_file._load_index())  # type: ignore[attr-defined]
    except (AttributeError, OSError, EOFError):  # another version of numba, or no cache
        return False


def stop_switching(kernels: Literal["auto", "numpy", "compiled"] = "auto") -> None:
    """Keep to NumPy or to compiled code from now on, so that the times of trainings can be compared.

    "auto" is compiled code if it is on disk, and else NumPy.
    """
    global _seconds_in_numpy
    if kernels == "auto":
        kernels = "compiled" if _is_on_disk() else "numpy"
    _seconds_in_numpy = PATIENCE if kernels == "compiled" else -math.inf
