"""Trainings: what decides one but the model, and the order of an epoch, which is the same for any model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.notions import EO, NOTIONS, find_notion
from fairsieve.samples import Samples
from fairsieve.selection.cells import Codes, Floats, Integers, Values
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import SignalName
from fairsieve.selection.select import count_budget
from fairsieve.validation import (
    check_at_least,
    check_choice,
    check_device,
    check_positive,
    check_share,
    closest_hint,
    shown,
)

if TYPE_CHECKING:
    import torch

    from fairsieve.sampling.losses import LossFunction

OptimizerFactory = Callable[[Iterable["torch.nn.Parameter"]], "torch.optim.Optimizer"]


@dataclass(frozen=True, kw_only=True)
class SelectionMethod:
    """The parts of the plan that a method uses.

    Attributes
    ----------
    cleans : bool
        Whether it selects low-loss samples within the budget, and not all samples.
    fair : bool
        Whether the ratios move, towards fairness.
    constrained, weighted : bool
        Whether the ratios bound the selection (Eq. 7), and weigh the training (Eq. 3).
    """

    name: str
    cleans: bool = False
    fair: bool = False
    constrained: bool = False
    weighted: bool = False


SELECTION_METHODS = {
    method.name: method
    for method in (
        SelectionMethod(name="lr"),
        SelectionMethod(name="itlm", cleans=True),
        SelectionMethod(name="fairbatch", fair=True, weighted=True),
        SelectionMethod(name="sample-selection", cleans=True, fair=True, constrained=True, weighted=True),
        SelectionMethod(name="sample-selection-no-constraints", cleans=True, fair=True, weighted=True),
        SelectionMethod(name="sample-selection-no-weights", cleans=True, fair=True, constrained=True),
    )
}


def selection_method(name: str) -> SelectionMethod:
    """Return a method by its name."""
    return SELECTION_METHODS[check_choice("method", name, SELECTION_METHODS)]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one training; the defaults are the paper's for its synthetic data.

    Attributes
    ----------
    fairness : str
        The name of a notion of fairness, see :mod:`fairsieve.notions`; equalized odds by default.
    clean_ratio : float in (0, 1]
        Share of the labels believed to be right.
    epochs, warmup_epochs : int
        Epochs in all, and how many of them train on everything first (for methods that clean).
    batch_size : int
    learning_rate : float
        Of Adam.
    step_size : float
        How far the ratios move in an epoch. The default is the step of the paper's authors.
    signal : {"loss", "error"}
        What the ratios' step compares between groups.
    average_last : int
        The result averages the predictions after each of the last so many epochs (those of the linear model by its mean
        parameters); 1 for none.
    pos_label : label, optional
        The positive class; the last of two when None.
    loss : callable, optional
        ``loss(outputs, class_indices)`` → one loss per sample; cross-entropy of logits when None.
    optimizer : callable, optional
        Parameters → optimiser; Adam when None.
    device : str, optional
        Where to train; where the model is when None.
    chunk_size : int
        Samples per forward pass when the losses of all are computed.
    """

    fairness: str = EO
    clean_ratio: float = 1.0
    epochs: int = 400
    warmup_epochs: int = 100
    batch_size: int = 100
    learning_rate: float = 0.0005
    step_size: float = 0.001
    signal: SignalName = "loss"
    average_last: int = 1
    pos_label: Any = None
    loss: LossFunction | None = None
    optimizer: OptimizerFactory | None = None
    device: str | None = None
    chunk_size: int = 8192

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Settings:
        """Make settings from names and values; an unknown name is an error that suggests the right one."""
        names = [field.name for field in fields(cls)]
        unknown = next((name for name in settings if name not in names), None)
        if unknown is not None:
            raise InvalidInputError(
                f"settings must be among {', '.join(names)}; got {unknown!r}{closest_hint(unknown, names)}"
            )
        return cls(**settings)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fairness", find_notion(self.fairness).name)
        count_budget(self.clean_ratio, 1)
        for name in ("epochs", "batch_size", "average_last", "chunk_size"):
            check_at_least(name, getattr(self, name), 1)
        check_at_least("warmup_epochs", self.warmup_epochs, 0)
        check_positive("learning_rate", self.learning_rate)
        check_share("step_size", self.step_size)
        for name, value in (("loss", self.loss), ("optimizer", self.optimizer)):
            if value is not None and not callable(value):
                raise InvalidInputError(f"{name} must be None or a function; got {shown(value)}")
        if self.device not in (None, "cpu"):
            check_device(self.device)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSpec:
    """Everything that decides a training but the model.

    Attributes
    ----------
    data : Samples
        What to train on.
    method : SelectionMethod
    settings : Settings
    seed : int
    evaluation : Samples, optional
        Measured on every epoch, never trained on.
    weights : array of shape (n,), optional
        Of the samples' losses, with mean 1.
    """

    data: Samples
    method: SelectionMethod
    settings: Settings
    seed: int = 0
    evaluation: Samples | None = None
    weights: Floats | None = None

    def new_plan(self) -> Plan:
        """Make the plan of this training, at its start."""
        settings, method = self.settings, self.method
        return Plan(
            self.data.cells,
            settings.batch_size,
            fairness=settings.fairness if method.fair else None,
            clean_ratio=settings.clean_ratio if method.cleans else 1.0,
            step_size=settings.step_size,
            warmup_epochs=settings.warmup_epochs if method.cleans else 0,
            constrained=method.constrained,
            weighted=method.weighted,
            signal=settings.signal,
            pos_label=settings.pos_label,
            batching="paper",
            seed=self.seed,
        )


# ---- A model in training, epoch by epoch: measure it on everything, plan, train, and record what happened


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracy and disparities on one set of samples, one value per epoch.

    Attributes
    ----------
    accuracy : array of shape (epochs,)
    disparity : dict of such arrays
        By notion of fairness; the paper's definition (``method="to_overall"``).
    """

    accuracy: Floats
    disparity: dict[str, Floats]


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """One row per epoch, each as the epoch begins.

    The model of that moment gives the losses and the scores; ratios and counts are what was then
    selected from them and trained with.

    Attributes
    ----------
    epochs : integer array of shape (rows,)
        The epoch that each row describes.
    classes, groups : lists
        What the rows and columns of the tables stand for; a last group None, samples without one.
    cell_losses : array of shape (rows, classes, groups)
        Mean loss of each cell over the selection of the epoch before.
    ratios, counts : arrays of shape (rows, classes, groups)
        The ratios, and the samples selected.
    train : Scores
        On the training samples, with the labels as they were given.
    evaluation : Scores or None
        On the evaluation samples, when there were any.
    warmup_epochs : int

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> len(fitted.history), fitted.history.counts[-1].sum() <= 450
    (5, np.True_)
    """

    epochs: Integers
    classes: list[Any]
    groups: list[Any]
    cell_losses: Floats
    ratios: Floats
    counts: Integers
    train: Scores
    evaluation: Scores | None
    warmup_epochs: int

    def __len__(self) -> int:
        return len(self.epochs)


class Measurement(NamedTuple):
    """A model on all training samples."""

    losses: Values  # (n,)
    signals: Values  # (targets, n), what groups are compared by
    predicted: Codes  # (n,)


class Recording(NamedTuple):
    """What is recorded of every epoch, as it begins."""

    cell_losses: Floats  # (epochs, cells): means over the selection before
    ratios: Floats  # (epochs, cells)
    counts: Codes  # (epochs, cells)
    tables: Floats  # (epochs, cells, classes): predictions by cell
    selected_tables: Floats  # the same over the selection before
    evaluation_tables: Floats  # the same over the evaluation samples


def count_predictions(predicted: Codes, codes: Values, table: Floats) -> None:
    """Add the predictions of each cell to a table (cells, classes)."""
    cells, classes = table.shape
    pairs = codes.astype(np.int64) * classes + predicted
    table += np.bincount(pairs, minlength=cells * classes).reshape(table.shape)


def record_model(
    recording: Recording, epoch: int, measured: Measurement, codes: Any, selected: Codes, counts: Codes
) -> None:
    """Record how the model does as an epoch begins, by cell."""
    count_predictions(measured.predicted, codes, recording.tables[epoch])
    count_predictions(measured.predicted[selected], codes[selected], recording.selected_tables[epoch])
    sums = np.bincount(codes[selected], measured.losses[selected], minlength=counts.size)
    recording.cell_losses[epoch] = sums / np.maximum(counts.reshape(-1), 1)


def record_plan(recording: Recording, epoch: int, ratios: Floats, counts: Codes) -> None:
    """Record what the epoch trains on."""
    recording.ratios[epoch] = ratios.reshape(-1)
    recording.counts[epoch] = counts.reshape(-1)


class Trainer(ABC):
    """Trains one model by one specification.

    The order of an epoch is here; subclasses measure and train their kind of model.

    Attributes
    ----------
    plan : Plan
        Ratios, selection and batches of the present epoch.
    recording : Recording
    """

    def __init__(self, spec: TrainingSpec) -> None:
        self.spec, self.settings = spec, spec.settings
        self.plan = spec.new_plan()
        cells = self.plan.cells
        by_cell = np.zeros((self.settings.epochs, cells.counts.size))
        by_class = np.zeros((*by_cell.shape, cells.shape[0]))
        tables = by_class, by_class.copy(), by_class.copy()
        self.recording = Recording(by_cell, by_cell.copy(), by_cell.astype(np.int64), *tables)

    @property
    def done(self) -> int:
        """Epochs that are finished."""
        return self.plan.epoch

    @abstractmethod
    def measure(self) -> Measurement:
        """Compute losses, signals and predictions on the training samples."""

    @abstractmethod
    def predict_evaluation(self) -> Codes:
        """Predict the classes of the evaluation samples."""

    @abstractmethod
    def train(self, batches: Codes) -> None:
        """Take one optimiser step for each batch."""

    @abstractmethod
    def finish(self, *, interrupted: bool) -> Any:
        """Return the trained model, averaged over the last epochs; if interrupted, the best so far."""

    def run_epoch(self) -> None:
        """Measure, plan and train for one epoch; in compiled code for some."""
        plan, epoch, measured = self.plan, self.done, self.measure()
        if np.isnan(measured.losses).any():
            raise self.diverged()
        codes, recording = plan.cells.codes, self.recording
        record_model(recording, epoch, measured, codes, plan.indices, plan.counts)
        if self.spec.evaluation is not None:
            shown = self.spec.evaluation.cells.codes
            count_predictions(self.predict_evaluation(), shown, recording.evaluation_tables[epoch])
        plan.update(measured.losses, measured.signals)
        self.check_selected()
        record_plan(recording, epoch, plan.ratios, plan.counts)
        self.train(plan.batches())
        plan.epoch += 1

    def check_selected(self) -> None:
        """Refuse to train on nobody, which the ratios can lead to where the budget is tiny."""
        if not self.plan.counts.sum():
            raise InvalidInputError(
                f"clean_ratio must leave samples to train on; with {self.settings.clean_ratio} of "
                f"{len(self.plan.cells)} samples epoch {self.done} or one soon after selects nobody: raise it"
            )

    def scores(self, tables: Floats) -> Scores:
        """Compute accuracies and disparities from recorded tables, (epochs, cells, classes)."""
        cells, label = self.plan.cells, self.settings.pos_label
        positive = -1 if label is None else cells.class_index(label)
        tables = tables.reshape(len(tables), *cells.shape, cells.shape[0])
        grouped = grouped_part(tables, cells.groups)
        disparity = {name: disparity_from_table(grouped, name, positive=positive) for name in NOTIONS}
        return Scores(accuracy_from_table(tables), disparity)

    def merits(self, first: int, last: int) -> Floats:
        """Compute accuracy less disparity over the selected samples, as each epoch began."""
        found = self.scores(self.recording.selected_tables[first:last])
        return found.accuracy - found.disparity[self.settings.fairness]

    def history(self) -> History:
        """Return what happened in the epochs that are finished."""
        done, recording, cells = self.done, self.recording, self.plan.cells
        shape = (done, *cells.shape)
        shown = None if self.spec.evaluation is None else self.scores(recording.evaluation_tables[:done])
        return History(
            epochs=np.arange(done),
            classes=cells.classes,
            groups=cells.groups,
            cell_losses=recording.cell_losses[:done].reshape(shape),
            ratios=recording.ratios[:done].reshape(shape),
            counts=recording.counts[:done].reshape(shape),
            train=self.scores(recording.tables[:done]),
            evaluation=shown,
            warmup_epochs=self.plan.warmup_epochs,
        )

    def diverged(self) -> FairsieveError:
        """Make the error that says what to do about losses that are not numbers."""
        return FairsieveError(
            f"training diverged: at epoch {self.done} or soon after losses are not numbers. Lower learning_rate "
            f"(it is {self.settings.learning_rate}) or scale the features"
        )
