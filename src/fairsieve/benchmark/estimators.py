"""Methods that wrap an estimator: plain training, fairsieve itself, reweighing, and fairlearn's two mitigations.

Reweighing (Kamiran & Calders 2012) weighs samples so that label and group are independent. ExponentiatedGradient
(Agarwal et al. 2018) mixes regressions that are trained on reweighted labels; ThresholdOptimizer (Hardt et al.
2016) keeps one regression and gives each group thresholds of its own, so that it has to be told the group of whom
it predicts. These three know nothing about wrong labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.benchmark.contract import Method, Trained, TrainingInput
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.notions import DP, EER, EO, EOPP
from fairsieve.optional import require
from fairsieve.report.looks import Look
from fairsieve.samples import Samples

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
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / counts.sum()
    weights = (expected / np.maximum(counts, 1)).reshape(-1)
    return _train_weighted(given.data, weights[given.data.cells.codes])


def _train_weighted(data: Samples, weights: NDArray[np.float64] | None) -> Trained:
    model = _regression().fit(data.features, data.labels, sample_weight=weights)
    return Trained(predict=lambda samples: model.predict(samples.features), indices=np.arange(len(data)))


def train_fairsieve(given: TrainingInput) -> Trained:
    """Train as ``fairsieve train`` does: the classifier with its defaults, which estimates which labels are wrong."""
    data, settings = given.data, given.settings
    model = FairRobustClassifier(settings.fairness, pos_label=settings.pos_label, random_state=given.seed)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        model.fit(data.features, data.labels, sensitive_features=data.groups)
    return Trained(
        predict=lambda samples: model.predict(samples.features), indices=np.asarray(model.sample_indices_)
    )


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
    model = _import_fairlearn("postprocessing").ThresholdOptimizer(
        estimator=regression,
        constraints=CONSTRAINTS[given.settings.fairness],
        prefit=True,
        predict_method="predict_proba",
    )
    with _quiet():
        model.fit(data.features[rows], targets[rows], sensitive_features=groups[rows])
    codes = {str(value): code for code, value in enumerate(data.cells.groups)}

    def predict(samples: Samples) -> NDArray[Any]:
        asked = np.array([codes[str(value)] for value in samples.groups])
        wide = samples.features.astype(
            np.float64
        )  # fairlearn writes chances of double precision over the scores
        predicted = model.predict(wide, sensitive_features=asked, random_state=given.seed)
        return _decode(
            np.where(np.isin(asked, complete), predicted, regression.predict(samples.features)), data
        )

    return Trained(predict=predict, indices=np.arange(len(data)))


def _regression() -> Any:
    return LogisticRegression(max_iter=1000)


def _decode(found: NDArray[Any], data: Samples) -> NDArray[Any]:
    return np.asarray(data.cells.classes)[np.asarray(found, np.int64)]


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
