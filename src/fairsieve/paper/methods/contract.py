"""What every method promises: it takes labelled data with groups, and returns something that predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.training.settings import Settings

Family = Literal["plain", "robust", "fair", "fair and robust"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingInput:
    """What a method is given: data, settings, a seed, and a validation set for those that use one."""

    data: Samples
    settings: Settings
    seed: int
    validation: Samples | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """What a method returns.

    Attributes
    ----------
    predict_labels : callable
        ``predict_labels(features, groups)`` → labels.
    indices : integer array
        The samples that it trained on in the end, ascending.
    epochs : int
        How long it trained; 1 for methods without epochs.
    trace : dict
        What happened in every epoch, for records; empty where nothing is known of it.
    """

    predict_labels: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
    indices: NDArray[np.int64]
    epochs: int = 1
    trace: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, samples: Samples) -> NDArray[Any]:
        """Predict the labels of samples; some methods look at their groups."""
        return np.asarray(self.predict_labels(samples.features, samples.groups))


def trained_linear(parameters: NDArray[np.float64], data: Samples, **parts: Any) -> Trained:
    """Describe a linear model of two classes by its weights and its bias: scores above 0 are the second class."""
    classes = np.asarray(data.cells.classes)

    def predict(features: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
        above = features @ parameters[:-1] + parameters[-1] > 0
        return np.asarray(classes[above.astype(np.int64)])

    return Trained(predict_labels=predict, **({"indices": np.arange(len(data))} | parts))


TrainFunction = Callable[..., Trained]  # of a :class:`TrainingInput` and hyperparameters by their names


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method, and what can be asked of it.

    Attributes
    ----------
    name : str
        The name in commands and records.
    title : str
        The full name, for tables.
    short : str, optional
        The name in the tables and figures of the reproduction, where the paper abbreviates; the title when not given.
    look : Look
        The colour and the marker in figures.
    family : str
        What it is made for.
    train : TrainFunction
        Trains a model.
    candidates : mapping of str to tuple
        Values that hyperparameters are chosen from; the first of each is the default. Names of fields of
        :class:`~fairsieve.training.settings.Settings` change those, others are passed on.
    uses_validation : bool
        Whether it needs a validation set with right labels. Its hyperparameters are chosen on that set.
    most_groups, most_classes : int or None
        The most groups and classes it can treat.
    """

    name: str
    title: str
    short: str = ""
    look: Look
    family: Family
    train: TrainFunction
    candidates: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    uses_validation: bool = False
    most_groups: int | None = None
    most_classes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "short", self.short or self.title)

    @property
    def defaults(self) -> dict[str, Any]:
        """The first candidate of each hyperparameter."""
        return {name: values[0] for name, values in self.candidates.items()}

    def fit(self, given: TrainingInput, values: Mapping[str, Any]) -> Trained:
        """Check the data and train; values that are settings change those, the others are passed on."""
        self.check(given.data, given.validation)
        known = {name: value for name, value in values.items() if name in given.settings.__dataclass_fields__}
        own = {name: value for name, value in values.items() if name not in known}
        return self.train(replace(given, settings=replace(given.settings, **known)), **own)

    def check(self, data: Samples, validation: Samples | None = None) -> None:
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
        if not self.uses_validation:
            return
        if validation is None or len(validation) == 0:
            raise InvalidInputError(f"{self.name} needs a validation set: pass validation=Samples(…)")
        known = (data.classes, data.group_values, data.features.shape[1:])
        if known != (validation.classes, validation.group_values, validation.features.shape[1:]):
            raise InvalidInputError(
                f"validation must have the classes, groups and features of data, {known}. Pass classes= and "
                "group_values= to Samples when some are absent"
            )
