"""Training runs, epoch by epoch: by autograd for any module, compiled for the linear model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fairsieve.errors import FairsieveError
from fairsieve.metrics import accuracy_of, disparity_of, grouped_part
from fairsieve.samples import Samples
from fairsieve.sampling.losses import (
    check_outputs,
    cross_entropy,
    is_single,
    outputs_of,
    predicted_classes,
    signals_of,
)
from fairsieve.selection.epoch import Plan
from fairsieve.training.compiled_linear import (
    Evaluation,
    Task,
    evaluate,
    new_adam,
    new_workspace,
    predict,
    scores,
    train_batches,
    train_epochs,
)
from fairsieve.training.models import LogisticRegression
from fairsieve.training.penalty import covariance_penalty, penalised_classes, penalty_directions
from fairsieve.training.recording import new_recording, note_epoch, note_plan, tabulate
from fairsieve.training.settings import Settings

__all__ = ["AutogradRun", "CompiledRun", "Run", "can_compile"]

State = dict[str, torch.Tensor]


class _Measurement(NamedTuple):
    """A model on all training samples."""

    losses: NDArray[Any]  # (n,)
    signals: NDArray[Any]  # (targets, n), what groups are compared by
    predicted: NDArray[np.int64]  # (n,)


class Run(ABC):
    """A model in training: measure it on everything, plan, train, and so on.

    Subclasses say how the model is measured and trained; the order of an epoch is here.
    """

    def __init__(self, plan: Plan, settings: Settings, evaluation: Samples | None) -> None:
        self.plan, self.settings, self.evaluation = plan, settings, evaluation
        self.recording = new_recording(
            settings.epochs, len(plan.cells), plan.ratios.size, plan.cells.shape[0]
        )
        self.done = 0
        self.best_merit = -np.inf
        self.best: State | None = None
        self.average: State | None = None

    @abstractmethod
    def measure(self) -> _Measurement:
        """Losses, signals and predictions on the training samples."""

    @abstractmethod
    def predict_evaluation(self) -> NDArray[np.int64]:
        """Predicted classes of the evaluation samples."""

    @abstractmethod
    def train(self, batches: NDArray[np.int64]) -> None:
        """One step for each batch."""

    @abstractmethod
    def state(self) -> State:
        """A copy of everything the model has learned."""

    @abstractmethod
    def module(self, state: State | None) -> nn.Module:
        """The model, in a state (its present one when None)."""

    def run_epoch(self) -> None:
        """Measure → plan → train."""
        plan, epoch, measured = self.plan, self.done, self.measure()
        if np.isnan(measured.losses).any():
            raise self.diverged()
        codes, record = plan.rules.codes, self.recording
        note_epoch(record, epoch, measured.losses, measured.predicted, codes, plan.indices, plan.counts)
        if self.evaluation is not None:
            tabulate(self.predict_evaluation(), self.evaluation.cells.codes, record.evaluation_tables[epoch])
        plan.update(measured.losses, measured.signals)
        note_plan(record, epoch, plan.ratios, plan.indices, plan.counts, not plan.in_warmup)
        if not plan.in_warmup:
            self.keep_if_best()
        self.train(plan.batches())
        plan.epoch += 1
        self.done += 1
        if self.done > self.first_averaged:
            self.add_to_average(self.state(), self.done - self.first_averaged)

    def keep_if_best(self) -> None:
        """Remember the state, should the run be interrupted."""
        merit = float(self.merits(self.done, self.done + 1)[0])
        if merit > self.best_merit:
            self.best_merit, self.best = merit, self.state()

    def merits(self, first: int, last: int) -> NDArray[np.float64]:
        """Accuracy less disparity over the samples believed clean, as each epoch began."""
        cells = self.plan.cells
        tables = self.recording.kept_tables[first:last].reshape(last - first, *cells.shape, -1)
        positive = -1 if self.settings.pos_label is None else cells.class_index(self.settings.pos_label)
        grouped = grouped_part(tables, cells.groups)
        return accuracy_of(tables) - disparity_of(grouped, self.settings.fairness, positive=positive)

    @property
    def first_averaged(self) -> int:
        """The first epoch whose outcome is averaged."""
        return max(0, self.settings.epochs - self.settings.average_last)

    def add_to_average(self, state: State, number: int) -> None:
        """Running mean of states; this is the ``number``-th."""
        if self.average is None:
            self.average = state
            return
        for name, value in state.items():
            if value.is_floating_point():
                self.average[name] += (value - self.average[name]) / number
            else:
                self.average[name] = value

    def finish(self, *, interrupted: bool) -> nn.Module:
        """The trained model, averaged over the last epochs; of an interrupted run, the best so far."""
        return self.module(self.best if interrupted else self.average)

    def diverged(self) -> FairsieveError:
        return FairsieveError(
            f"training diverged: at epoch {self.done} or soon after losses are not numbers. Lower learning_rate "
            f"(it is {self.settings.learning_rate}) or scale the features"
        )


class AutogradRun(Run):
    """Any module, trained by autograd."""

    def __init__(
        self,
        model: nn.Module,
        data: Samples,
        plan: Plan,
        settings: Settings,
        evaluation: Samples | None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(plan, settings, evaluation)
        first = next(model.parameters())
        self.device = torch.device(settings.device) if settings.device else first.device
        self.model = model.to(self.device)
        features = np.require(data.features, requirements="W")  # torch does not take read-only arrays
        self.features = torch.from_numpy(features).to(self.device, first.dtype)
        self.labels = torch.from_numpy(plan.cells.label_codes).to(self.device)
        self.groups = torch.from_numpy(plan.cells.group_codes).to(self.device)
        self.weights = None if weights is None else torch.from_numpy(weights).to(self.device, first.dtype)
        if evaluation is not None:
            self.shown = torch.from_numpy(evaluation.features).to(self.device, first.dtype)
        self.loss = settings.loss or cross_entropy
        if settings.optimizer is None:
            self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
                model.parameters(), lr=settings.learning_rate
            )
        else:
            self.optimizer = settings.optimizer(model.parameters())

    def measure(self) -> _Measurement:
        outputs = outputs_of(self.model, self.features, chunk_size=self.settings.chunk_size)
        check_outputs(outputs, len(self.labels), self.plan.cells.shape[0])
        losses = self.loss(outputs, self.labels)
        targets = self.plan.comparisons.targets
        signals = signals_of(outputs, self.labels, losses, targets, self.plan.signal, self.loss)
        predicted = predicted_classes(outputs)
        return _Measurement(losses.cpu().numpy(), signals.cpu().numpy(), predicted.cpu().numpy())

    def predict_evaluation(self) -> NDArray[np.int64]:
        outputs = outputs_of(self.model, self.shown, chunk_size=self.settings.chunk_size)
        return predicted_classes(outputs).cpu().numpy()

    def train(self, batches: NDArray[np.int64]) -> None:
        self.model.train()
        penalised = self.settings.penalty_weight > 0 and not self.plan.in_warmup
        for batch in torch.from_numpy(batches).to(self.device):
            self.model.zero_grad()  # all that the optimiser has, without its hooks
            outputs = self.model(self.features[batch])
            losses = self.loss(outputs, self.labels[batch])
            objective = (losses if self.weights is None else losses * self.weights[batch]).mean()
            if penalised:
                objective = objective + self.settings.penalty_weight * self.penalty(outputs, batch)
            objective.backward()
            self.optimizer.step()

    def penalty(self, outputs: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        """The covariance penalty over a batch."""
        single = is_single(outputs)  # a logit is 2·f, see LogisticRegression
        decision = outputs.reshape(-1, 1) / 2 if single else outputs - outputs.mean(dim=1, keepdim=True)
        classes = penalised_classes(self.plan.cells, self.settings.fairness, self.settings.pos_label)
        groups, labels, named = self.groups[batch], self.labels[batch], self.plan.cells.named_groups
        inside = groups < named
        return covariance_penalty(decision[inside], labels[inside], groups[inside], named, classes)

    def state(self) -> State:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def module(self, state: State | None) -> nn.Module:
        if state is not None:
            self.model.load_state_dict(state)
        return self.model.eval()


def can_compile(model: nn.Module, settings: Settings) -> bool:
    """Whether the compiled loop can train this model."""
    plain = settings.loss is None and settings.optimizer is None and settings.device in (None, "cpu")
    return plain and type(model) is LogisticRegression and model.linear.weight.device.type == "cpu"


class CompiledRun(Run):
    """The linear model: closed-form gradients in compiled code, in double precision."""

    def __init__(
        self,
        model: LogisticRegression,
        data: Samples,
        plan: Plan,
        settings: Settings,
        evaluation: Samples | None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(plan, settings, evaluation)
        self.model = model
        weight, bias = model.linear.weight.detach(), model.linear.bias.detach()
        self.parameters = torch.cat([weight.flatten(), bias]).double().numpy()
        self.task = Task(
            np.require(data.features, requirements=["C", "W"]),  # of one type, so compiled once
            plan.cells.label_codes,
            plan.cells.shape[0],
            np.array(plan.comparisons.targets),
            plan.signal == "error",
            settings.learning_rate,
            settings.penalty_weight,
            self.directions(data.features, len(bias)),
            np.zeros(0) if weights is None else weights,
        )
        shown = data.take([]) if evaluation is None else evaluation
        self.shown = Evaluation(np.ascontiguousarray(shown.features, data.features.dtype), shown.cells.codes)
        self.adam = new_adam(self.parameters.size)
        self.workspace = new_workspace(len(data), len(bias))
        self.shown_workspace = new_workspace(len(shown), len(bias))
        self.signals = np.empty((len(self.task.targets), len(data)))

    def directions(self, features: NDArray[Any], outputs: int) -> NDArray[np.float64]:
        """What the penalty keeps small; nothing without a penalty."""
        if self.settings.penalty_weight == 0:
            return np.zeros((0, self.parameters.size))
        classes = penalised_classes(self.plan.cells, self.settings.fairness, self.settings.pos_label)
        return penalty_directions(features, self.plan.cells, outputs, classes)

    def measure(self) -> _Measurement:
        evaluate(self.task, self.parameters, self.workspace, self.signals)
        return _Measurement(self.workspace.losses, self.signals, self.workspace.predicted)

    def predict_evaluation(self) -> NDArray[np.int64]:
        room = self.shown_workspace
        scores(self.shown.features, room.everyone, self.parameters, room.out)
        predict(room.out, room.predicted)
        return room.predicted

    def train(self, batches: NDArray[np.int64]) -> None:
        train_batches(self.task, self.parameters, self.adam, batches, not self.plan.in_warmup)

    def run_epochs(self, epochs: int) -> None:
        """:meth:`run_epoch` so many times, in one compiled call that other threads need not wait for."""
        plan, first = self.plan, self.done
        last = min(first + epochs, self.settings.epochs)
        by_epoch = np.zeros((self.settings.epochs, self.parameters.size))
        plan.indices, plan.counts, finite = train_epochs(
            self.task,
            plan.rules,
            self.parameters,
            self.adam,
            plan.ratios,
            plan.indices,
            plan.counts,
            first,
            last,
            self.shown,
            self.recording,
            by_epoch,
        )
        if not finite:
            raise self.diverged()
        plan.is_selective = plan.is_selective or last > plan.rules.warmup_epochs
        self.take_over(np.vstack([by_epoch[first:last], self.parameters]), first)
        self.done = plan.epoch = last

    def take_over(self, by_epoch: NDArray[np.float64], first: int) -> None:
        """Best and average from the parameters as epochs began (and as the last one ended)."""
        started = max(first, self.plan.rules.warmup_epochs)
        last = first + len(by_epoch) - 1
        if started < last:
            merits = self.merits(started, last)
            if merits.max() > self.best_merit:
                self.best_merit = float(merits.max())
                self.best = {
                    "parameters": torch.from_numpy(by_epoch[started - first + merits.argmax()].copy())
                }
        for epoch in range(max(first, self.first_averaged), last):
            state = {"parameters": torch.from_numpy(by_epoch[epoch + 1 - first].copy())}
            self.add_to_average(state, epoch + 1 - self.first_averaged)

    def state(self) -> State:
        return {"parameters": torch.from_numpy(self.parameters.copy())}

    def module(self, state: State | None) -> nn.Module:
        flat = torch.from_numpy(self.parameters) if state is None else state["parameters"]
        weight, bias = self.model.linear.weight, self.model.linear.bias
        with torch.no_grad():
            weight.copy_(flat[: weight.numel()].view_as(weight))
            bias.copy_(flat[weight.numel() :])
        return self.model.eval()
