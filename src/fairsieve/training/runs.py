"""Training runs that advance by epochs: one by autograd for any module, one compiled for the linear model."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fairsieve.core.plan import Plan
from fairsieve.errors import FairsieveError
from fairsieve.metrics import accuracy_of, disparity_of
from fairsieve.samples import Samples
from fairsieve.training.linear import Task, new_adam, train_epochs
from fairsieve.training.losses import cross_entropy, outputs_of, predicted_classes, signals_of
from fairsieve.training.models import LogisticRegression
from fairsieve.training.recording import Recording, new_recording, note_epoch
from fairsieve.training.settings import Settings

__all__ = ["AutogradRun", "CompiledRun", "Run", "can_compile"]

DIVERGED = (
    "training diverged: epoch {} began with losses that are not numbers. Lower learning_rate (it is {}) "
    "or scale the features"
)


class Run(Protocol):
    """A training run that can be taken some epochs further at a time."""

    plan: Plan
    recording: Recording
    done: int

    def advance(self, epochs: int) -> None:
        """Train so many more epochs."""

    def finish(self, *, interrupted: bool) -> nn.Module:
        """The trained model, averaged over the last epochs; of an interrupted run, the best so far."""

    def evaluation_tables(self) -> NDArray[np.float64] | None:
        """Confusion tables on the evaluation samples, as each epoch began."""


def can_compile(model: nn.Module, settings: Settings) -> bool:
    """Whether the compiled loop can train this model."""
    plain = settings.loss is None and settings.optimizer is None and settings.device in (None, "cpu")
    return plain and type(model) is LogisticRegression and model.linear.weight.device.type == "cpu"


def blank_recording(plan: Plan, epochs: int) -> Recording:
    return new_recording(epochs, len(plan.cells), plan.ratios.size, plan.cells.shape[0])


class CompiledRun:
    """The linear model, whole epochs in one compiled call."""

    def __init__(
        self, model: nn.Module, data: Samples, plan: Plan, settings: Settings, evaluation: Samples | None
    ) -> None:
        assert isinstance(model, LogisticRegression)
        self.model, self.plan, self.settings, self.evaluation = model, plan, settings, evaluation
        linear = model.linear
        self.parameters = torch.cat([linear.weight.detach().flatten(), linear.bias.detach()]).double().numpy()
        self.task = Task(
            np.ascontiguousarray(data.features),
            plan.cells.label_codes,
            plan.cells.shape[0],
            np.array(plan.comparisons.targets),
            plan.signal == "error",
            settings.learning_rate,
        )
        self.adam = new_adam(self.parameters.size)
        self.recording = blank_recording(plan, settings.epochs)
        self.parameters_by_epoch = np.zeros((settings.epochs, self.parameters.size))
        self.done = 0

    def advance(self, epochs: int) -> None:
        plan, last = self.plan, min(self.done + epochs, self.settings.epochs)
        plan.indices, plan.counts, finite = train_epochs(
            self.task,
            plan.rules,
            self.parameters,
            self.adam,
            plan.ratios,
            plan.indices,
            plan.counts,
            self.done,
            last,
            self.recording,
            self.parameters_by_epoch,
        )
        if not finite:
            raise FairsieveError(DIVERGED.format(f"{self.done} or later", self.settings.learning_rate))
        self.done = plan.epoch = last
        plan.is_selective = not plan.in_warmup or plan.is_selective

    def finish(self, *, interrupted: bool) -> nn.Module:
        warmup = self.plan.rules.warmup_epochs
        if interrupted and self.done > warmup:
            merits = merit(self.recording.kept_tables[warmup : self.done], self.plan, self.settings)
            flat = self.parameters_by_epoch[warmup + merits.argmax()]
        else:
            after = np.vstack([self.parameters_by_epoch[1 : self.done], self.parameters])
            flat = after[-self.settings.average_last :].mean(axis=0)
        linear = self.model.linear
        values = torch.from_numpy(flat).to(linear.weight.dtype)
        with torch.no_grad():
            linear.weight.copy_(values[: linear.weight.numel()].view_as(linear.weight))
            linear.bias.copy_(values[linear.weight.numel() :])
        return self.model

    def evaluation_tables(self) -> NDArray[np.float64] | None:
        if self.evaluation is None:
            return None
        features = self.evaluation.features.astype(np.float64)
        d, flat = features.shape[1], self.parameters_by_epoch[: self.done]
        outputs = flat.shape[1] // (d + 1)
        weights = flat[:, : outputs * d].reshape(-1, d)
        scores = features @ weights.T + flat[:, outputs * d :].reshape(-1)
        scores = scores.reshape(len(features), self.done, outputs)
        predicted = (scores[..., 0] > 0).astype(np.int64) if outputs == 1 else scores.argmax(axis=-1)
        return table_of(self.evaluation, predicted.T)


class AutogradRun:
    """Any module, trained by autograd."""

    def __init__(
        self, model: nn.Module, data: Samples, plan: Plan, settings: Settings, evaluation: Samples | None
    ) -> None:
        first = next(model.parameters())
        self.device = torch.device(settings.device) if settings.device else first.device
        self.model = model.to(self.device)
        self.plan, self.settings, self.evaluation = plan, settings, evaluation
        self.features = torch.from_numpy(data.features).to(self.device, first.dtype)
        self.labels = torch.from_numpy(plan.cells.label_codes).to(self.device)
        self.loss = settings.loss or cross_entropy
        adam = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
        self.optimizer = settings.optimizer(model.parameters()) if settings.optimizer else adam
        self.recording = blank_recording(plan, settings.epochs)
        self.tables: list[NDArray[np.float64]] = []
        self.average: dict[str, torch.Tensor] = {}
        self.averaged = 0
        self.best_merit = -np.inf
        self.best_state: dict[str, Any] | None = None
        self.done = 0

    def advance(self, epochs: int) -> None:
        for _ in range(min(epochs, self.settings.epochs - self.done)):
            self.run_epoch()

    def run_epoch(self) -> None:
        """Losses of all → plan → steps."""
        self.begin_epoch()
        self.model.train()
        for batch in torch.from_numpy(self.plan.batches()).to(self.device):
            self.train_step(batch)
        self.plan.epoch += 1
        self.done += 1
        if self.done > self.settings.epochs - self.settings.average_last:
            self.add_to_average()

    def begin_epoch(self) -> None:
        """Evaluate the model on everything, record, and plan."""
        outputs = outputs_of(self.model, self.features, chunk_size=self.settings.chunk_size)
        losses = self.loss(outputs, self.labels)
        if bool(torch.isnan(losses).any()):
            raise FairsieveError(DIVERGED.format(self.done, self.settings.learning_rate))
        targets = self.plan.comparisons.targets
        signals = signals_of(outputs, self.labels, losses, targets, self.plan.signal, self.loss)
        predicted = predicted_classes(outputs).cpu().numpy()
        plan, values = self.plan, losses.double().cpu().numpy()
        note_epoch(self.recording, self.done, values, predicted, plan.rules.codes, plan.indices, plan.counts)
        plan.update(losses, signals.cpu().numpy())
        self.recording.ratios[self.done] = plan.ratios.ravel()
        self.recording.counts[self.done] = plan.counts
        if not plan.in_warmup:
            self.recording.kept[plan.indices] += 1
            self.keep_if_best()
        if self.evaluation is not None:
            features = torch.from_numpy(self.evaluation.features).to(self.device, self.features.dtype)
            shown = predicted_classes(outputs_of(self.model, features, chunk_size=self.settings.chunk_size))
            self.tables.append(table_of(self.evaluation, shown.cpu().numpy()))

    def keep_if_best(self) -> None:
        """Remember the state, should the run be interrupted."""
        present = float(merit(self.recording.kept_tables[self.done], self.plan, self.settings))
        if present > self.best_merit:
            self.best_merit, self.best_state = present, copy.deepcopy(self.model.state_dict())

    def train_step(self, batch: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.features[batch]), self.labels[batch]).mean().backward()
        self.optimizer.step()

    def add_to_average(self) -> None:
        """Running mean of the parameters and buffers."""
        self.averaged += 1
        for name, value in self.model.state_dict().items():
            if not value.is_floating_point() or self.averaged == 1:
                self.average[name] = value.clone()
            else:
                self.average[name] += (value - self.average[name]) / self.averaged

    def finish(self, *, interrupted: bool) -> nn.Module:
        state = self.best_state if interrupted else self.average
        if state:
            self.model.load_state_dict(state)
        return self.model

    def evaluation_tables(self) -> NDArray[np.float64] | None:
        return np.stack(self.tables[: self.done]) if self.evaluation is not None and self.done else None


def merit(tables: NDArray[np.float64], plan: Plan, settings: Settings) -> NDArray[np.float64]:
    """Accuracy less disparity over the samples believed clean: what the best state so far is best in."""
    shaped = tables.reshape(*tables.shape[:-2], *plan.cells.shape, -1)
    positive = plan.cells.shape[0] - 1 if settings.pos_label is None else plan.cells.class_index(settings.pos_label)
    return accuracy_of(shaped) - disparity_of(shaped, settings.fairness, positive=positive)


def table_of(samples: Samples, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
    """Confusion tables of predictions, (…, n) → (…, classes, groups, classes)."""
    classes, groups = samples.cells.shape
    rows = predicted.reshape(-1, len(samples))
    size = classes * groups * classes
    places = np.arange(len(rows))[:, None] * size + samples.cells.codes * np.int64(classes) + rows
    counts = np.bincount(places.ravel(), minlength=len(rows) * size).astype(np.float64)
    return counts.reshape(*predicted.shape[:-1], classes, groups, classes)
