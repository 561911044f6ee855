"""What every method promises: it takes labelled data with groups, and returns something that predicts.

Those that need nothing but an estimator are here too. Reweighing (Kamiran & Calders 2012) weighs samples so that label
and group are independent. ExponentiatedGradient (Agarwal et al. 2018) mixes regressions that are trained on reweighted
labels; ThresholdOptimizer (Hardt et al. 2016) keeps one regression and gives each group thresholds of its own, so that
it has to be told the group of whom it predicts. These three know nothing about wrong labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.errors import FairsieveWarning, InvalidInputError, require
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.metrics import expected_counts
from fairsieve.notions import DP, EER, EO, EOPP, NOTIONS, find_notion
from fairsieve.report.page import Look
from fairsieve.samples import Samples
from fairsieve.selection.cells import Floats, Integers
from fairsieve.training.trainer import Settings

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
    indices: Integers
    epochs: int = 1
    trace: Mapping[str, Any] = field(default_factory=dict)


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
        :class:`~fairsieve.training.trainer.Settings` change those, others are passed on.
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


# What fairlearn calls the notions of fairness that ExponentiatedGradient and ThresholdOptimizer can serve.
MOMENTS = {
    EO: "EqualizedOdds",
    DP: "DemographicParity",
    EOPP: "TruePositiveRateParity",
    EER: "ErrorRateParity",
}
CONSTRAINTS = {EO: "equalized_odds", DP: "demographic_parity", EOPP: "true_positive_rate_parity"}
EPS = 0.01  # how far a group's rate may lie from the overall rate, for ExponentiatedGradient


def train_plain(given: TrainingInput) -> Trained:
    """Train scikit-learn's logistic regression."""
    return _train_weighted(given.data, None)


def train_reweighing(given: TrainingInput) -> Trained:
    """Train a logistic regression with the weights P(y)·P(z) / P(y, z)."""
    counts = given.data.cells.counts.astype(np.float64)
    weights = (expected_counts(counts) / np.maximum(counts, 1)).reshape(-1)
    return _train_weighted(given.data, weights[given.data.cells.codes])


def _train_weighted(data: Samples, weights: Floats | None) -> Trained:
    model = _regression().fit(data.features, data.labels, sample_weight=weights)
    return Trained(predict=lambda samples: model.predict(samples.features), indices=np.arange(len(data)))


def train_fairsieve(given: TrainingInput) -> Trained:
    """Train as ``fairsieve train`` does: the classifier with its defaults, which estimates which labels are wrong."""
    data, settings = given.data, given.settings
    model = FairRobustClassifier(settings.fairness, pos_label=settings.pos_label, random_state=given.seed)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    indices = np.asarray(model.sample_indices_)
    return Trained(predict=lambda samples: model.predict(samples.features), indices=indices)


def train_exponentiated_gradient(given: TrainingInput) -> Trained:
    """Train a mixture of regressions."""
    data, reductions = given.data, _import_fairlearn("reductions")
    moment = getattr(reductions, MOMENTS[given.settings.fairness])(difference_bound=EPS)
    model = reductions.ExponentiatedGradient(_regression(), moment, eps=EPS, max_iter=50)
    with _quiet():
        model.fit(data.features, data.cells.label_codes, sensitive_features=data.cells.group_codes)

    def predict(samples: Samples) -> NDArray[Any]:
        return _decode(model.predict(samples.features, random_state=given.seed), data)

    return Trained(predict=predict, indices=np.arange(len(data)))


def train_threshold_optimizer(given: TrainingInput) -> Trained:
    """Train one regression with thresholds for each group; a group that lacks a class keeps the regression's own."""
    data, targets, groups = given.data, given.data.cells.label_codes, given.data.cells.group_codes
    complete = np.flatnonzero((data.cells.counts > 0).all(axis=0))
    if not len(complete):
        raise InvalidInputError(
            "threshold-optimizer needs a group with samples of both classes; there is none"
        )
    regression, rows = _regression().fit(data.features, targets), np.isin(groups, complete)
    options = {"constraints": CONSTRAINTS[given.settings.fairness], "predict_method": "predict_proba"}
    optimizer = _import_fairlearn("postprocessing").ThresholdOptimizer
    model = optimizer(estimator=regression, prefit=True, **options)
    with _quiet():
        model.fit(data.features[rows], targets[rows], sensitive_features=groups[rows])
    codes = {str(value): code for code, value in enumerate(data.cells.groups)}

    def predict(samples: Samples) -> NDArray[Any]:
        asked = np.array([codes[str(value)] for value in samples.groups])
        # fairlearn writes chances of double precision over the scores.
        wide = samples.features.astype(np.float64)
        fair = model.predict(wide, sensitive_features=asked, random_state=given.seed)
        return _decode(np.where(np.isin(asked, complete), fair, regression.predict(samples.features)), data)

    return Trained(predict=predict, indices=np.arange(len(data)))


def _regression() -> Any:
    return LogisticRegression(max_iter=1000)


def _decode(codes: NDArray[Any], data: Samples) -> NDArray[Any]:
    return np.asarray(data.cells.classes)[np.asarray(codes, np.int64)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about fairlearn's own calls, which its users cannot change."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _import_fairlearn(part: str) -> Any:
    with _quiet():
        return require(f"fairlearn.{part}", purpose=f"fairlearn's {part}")


# What `compare` compares unless it is told otherwise.
DEFAULTS = (
    Method("plain", "Plain", Look("black"), "plain", train_plain),
    Method("fairsieve", "fairsieve", Look("blue", "diamond"), "fair and robust", train_fairsieve),
    Method("reweighing", "Reweighing", Look("pink", "point"), "fair", train_reweighing),
    Method("exponentiated-gradient", "ExponentiatedGradient", Look("pink", "cross"), "fair",
           train_exponentiated_gradient, most_classes=2, notions=tuple(MOMENTS)),
    Method("threshold-optimizer", "ThresholdOptimizer", Look("pink", "triangle"), "fair",
           train_threshold_optimizer, most_classes=2, notions=tuple(CONSTRAINTS)),
)  # fmt: skip
