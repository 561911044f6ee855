"""What decides a training but the model: its method of selection, its settings, its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from fairsieve.errors import InvalidInputError
from fairsieve.notions import EO, find_notion
from fairsieve.samples import Samples
from fairsieve.selection.cells import Floats
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
    pos_label: Any | None = None
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
