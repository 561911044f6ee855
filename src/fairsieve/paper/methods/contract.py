"""What every method promises: it takes labelled data with groups, and returns a fitted model with its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from fairsieve.errors import InvalidInputError
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.training.fit import ModelLike, fit
from fairsieve.training.methods import SelectionMethod
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["Family", "Method", "TrainFunction", "TrainingInput"]

Family = Literal["plain", "robust", "fair", "fair and robust"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingInput:
    """What a method is given.

    Attributes
    ----------
    data : Samples
        To train on, without changing them.
    settings : Settings
    seed : int
        Everything random follows it.
    model : module, optional
        The linear model when None.
    validation : Samples, optional
        For the methods that use some.
    evaluation : Samples, optional
        Measured along the way and never trained on.
    progress : bool
    """

    data: Samples
    settings: Settings
    seed: int
    model: ModelLike = None
    validation: Samples | None = None
    evaluation: Samples | None = None
    progress: bool = False

    def compiles(self, settings: Settings) -> bool:
        """Return whether the training can run in compiled code: the linear model, where numba is installed."""
        return self.model is None and settings.allow_linear and find_spec("numba") is not None

    def fit(self, method: str | SelectionMethod, settings: Settings, **options: Any) -> Fitted:
        """Train by :func:`~fairsieve.fit`, with these settings."""
        named = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
        return fit(
            self.model,
            self.data,
            method,
            seed=self.seed,
            evaluation=self.evaluation,
            progress=self.progress,
            compiled=self.compiles(settings),
            **named,
            **options,
        )


class TrainFunction(Protocol):
    """A function that trains a model by a method; see :class:`Method`."""

    def __call__(self, given: TrainingInput, **hyperparameters: Any) -> Fitted: ...


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method, and what can be asked of it.

    Attributes
    ----------
    name : str
        The name in commands and records.
    title : str
        The full name, for the tables of ``compare`` and the demo.
    short : str, optional
        The name in the tables and figures of the reproduction, where the paper abbreviates; the title when not given.
    look : Look
        The colour and the marker in figures.
    family : str
        What it is made for.
    trainer : TrainFunction
        Trains a model.
    candidates : mapping of str to tuple
        Values that hyperparameters are chosen from; the first of each is the default. Names of
        fields of :class:`~fairsieve.training.settings.Settings` change those, others are passed on.
    while_tuning : mapping of str to value
        Hyperparameters that make cross-validation cheaper.
    uses_validation : bool
        Whether it needs a validation set beside the training set.
    most_groups : int or None
        The most groups it can treat.
    most_classes : int or None
    extra : str, optional
        The extra of fairsieve that the method needs, such as ``torch``.
    notions : tuple of str
        The notions of fairness it knows.
    """

    name: str
    title: str
    short: str = ""
    look: Look
    family: Family
    trainer: TrainFunction
    candidates: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    while_tuning: Mapping[str, Any] = field(default_factory=dict)
    uses_validation: bool = False
    most_groups: int | None = None
    most_classes: int | None = None
    extra: str | None = None
    notions: tuple[str, ...] = ("equalized_odds", "demographic_parity", "equal_opportunity")

    def __post_init__(self) -> None:
        object.__setattr__(self, "short", self.short or self.title)

    @property
    def defaults(self) -> dict[str, Any]:
        """The first candidate of each hyperparameter."""
        return {name: values[0] for name, values in self.candidates.items()}

    def train(
        self,
        data: Samples,
        settings: Settings,
        *,
        seed: int,
        model: ModelLike = None,
        validation: Samples | None = None,
        evaluation: Samples | None = None,
        progress: bool = False,
        **hyperparameters: Any,
    ) -> Fitted:
        """Train a model; see :class:`TrainingInput`."""
        given = TrainingInput(
            data=data,
            settings=settings,
            seed=seed,
            model=model,
            validation=validation,
            evaluation=evaluation,
            progress=progress,
        )
        return self.trainer(given, **hyperparameters)

    def check(self, data: Samples, settings: Settings, validation: Samples | None = None) -> None:
        """Raise an error that says what the method cannot do, before any work is done."""
        classes, groups = data.cells.shape
        for what, most, found in (
            ("groups", self.most_groups, groups),
            ("classes", self.most_classes, classes),
        ):
            if most is not None and found > most:
                raise InvalidInputError(
                    f"{self.name} is defined for at most {most} {what}; data has {found}. Use a method that takes "
                    "more, such as fairsieve"
                )
        if settings.fairness not in self.notions:
            raise InvalidInputError(
                f"{self.name} knows {', '.join(self.notions)}; got fairness={settings.fairness!r}"
            )
        if self.uses_validation and validation is None:
            raise InvalidInputError(f"{self.name} needs a validation set: pass validation=Samples(…)")
