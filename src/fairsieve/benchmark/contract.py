"""What every method promises: it takes labelled data with groups, and returns something that predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS, find_notion
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
    predict : callable
        Samples → labels; some methods look at the groups.
    indices : integer array
        The samples that it trained on in the end, ascending.
    epochs : int
        How long it trained; 1 for methods without epochs.
    trace : dict
        What happened in every epoch, for records; empty where nothing is known of it.
    """

    predict: Callable[[Samples], NDArray[Any]]
    indices: NDArray[np.int64]
    epochs: int = 1
    trace: Mapping[str, Any] = field(default_factory=dict)


def trained_linear(parameters: NDArray[np.float64], data: Samples, **parts: Any) -> Trained:
    """Describe a linear model of two classes by its weights and its bias: scores above 0 are the second class."""
    classes = np.asarray(data.cells.classes)

    def predict(samples: Samples) -> NDArray[Any]:
        above = samples.features @ parameters[:-1] + parameters[-1] > 0
        return np.asarray(classes[above.astype(np.int64)])

    return Trained(predict=predict, **({"indices": np.arange(len(data))} | parts))


def combinations(grid: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """List all combinations of some candidates; the first one is that of the defaults."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


TrainFunction = Callable[..., Trained]  # of a :class:`TrainingInput` and hyperparameters by their names


@dataclass(frozen=True)
class Method:
    """A method, and what can be asked of it.

    Attributes
    ----------
    name : str
        The name in commands and records.
    title : str
        The full name, for tables.
    look : Look
        The colour and the marker in figures.
    family : str
        What it is made for.
    train : TrainFunction
        Trains a model.
    short : str, optional
        The name in the tables and figures of the reproduction, where the paper abbreviates; the title when not given.
    candidates : mapping of str to tuple
        Values that hyperparameters are chosen from; the first of each is the default. Names of fields of
        :class:`~fairsieve.training.settings.Settings` change those, others are passed on.
    pace : mapping of str to tuple
        As ``candidates``: how fast and how long to train, or what its authors fixed. Only ``reproduce`` chooses it, and
        first, at the defaults of the candidates.
    uses_validation : bool
        Whether it is given a validation set. Its hyperparameters are chosen on that set.
    clean_validation : callable, optional
        Cleans a noisy validation set, of which a share is right, for a method that can do with one.
    traced : TrainFunction, optional
        The same training, told epoch by epoch, where ``train`` cannot tell.
    most_groups, most_classes : int or None
        The most groups and classes it can treat.
    notions : tuple of str
        The notions of fairness that can be asked of it.
    """

    name: str
    title: str
    look: Look
    family: Family
    train: TrainFunction
    short: str = ""
    candidates: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    pace: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    uses_validation: bool = False
    clean_validation: Callable[[Samples, float], Samples] | None = None
    traced: TrainFunction | None = None
    most_groups: int | None = None
    most_classes: int | None = None
    notions: tuple[str, ...] = tuple(NOTIONS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "short", self.short or self.title)

    def options(self) -> list[dict[str, Any]]:
        """List all combinations of the candidates; the first one is the default."""
        return combinations(self.candidates)

    def fit(self, given: TrainingInput, values: Mapping[str, Any]) -> Trained:
        """Train with some hyperparameters; say first what the method cannot do.

        Those that are settings change the settings, the others are passed on.
        """
        sizes = dict(zip(("classes", "groups"), given.data.cells.shape, strict=True))
        for what, most in (("groups", self.most_groups), ("classes", self.most_classes)):
            if most is not None and sizes[what] > most:
                raise InvalidInputError(
                    f"{self.name} is defined for at most {most} {what}; data has {sizes[what]}. Use a method that "
                    "takes more, such as fairsieve"
                )
        if given.settings.fairness not in self.notions:
            raise InvalidInputError(
                f"{self.name} cannot make {find_notion(given.settings.fairness).title} hold, only "
                f"{', '.join(find_notion(name).title for name in self.notions)}. Use a method that can, such as "
                "fairsieve"
            )
        values = self.options()[0] | dict(values)
        known = {name: value for name, value in values.items() if name in given.settings.__dataclass_fields__}
        passed_on = {name: value for name, value in values.items() if name not in known}
        return self.train(replace(given, settings=replace(given.settings, **known)), **passed_on)
