"""Fairlearn's two mitigations of a logistic regression: while it is trained, and after.

- ``exponentiated-gradient`` (Agarwal et al. 2018) reduces fair classification to a sequence of
  weighted ones; what comes out is a mixture of regressions, one of which is drawn for every prediction.
- ``threshold-optimizer`` (Hardt et al. 2016) keeps one regression and gives each group thresholds of
  its own, mixed so that the groups' rates meet; it has to be told the group of whom it predicts.

Neither knows about wrong labels.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.errors import FairsieveWarning, InvalidInputError, MissingExtraError
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.fitted_estimator import fitted_estimator, settings_with
from fairsieve.samples import Samples
from fairsieve.training.fit import check_data
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings
from fairsieve.validation import check_at_least, check_positive

__all__ = ["train_exponentiated_gradient", "train_threshold_optimizer"]

MOMENTS = {
    "equalized_odds": "EqualizedOdds",
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "TruePositiveRateParity",
}
CONSTRAINTS = {
    "equalized_odds": "equalized_odds",
    "demographic_parity": "demographic_parity",
    "equal_opportunity": "true_positive_rate_parity",
}


def train_exponentiated_gradient(
    given: TrainingInput,
    *,
    eps: float = 0.01,
    max_iter: int = 50,
    **hyperparameters: Any,
) -> Fitted:
    """Train a mixture of logistic regressions whose rates differ little between groups.

    Parameters
    ----------
    eps : float
        How far a group's rate may lie from the overall rate; smaller is fairer.
    max_iter : int
        The most regressions fitted.
    """
    name = "exponentiated-gradient"
    data, settings = given.data, settings_with(name, given.settings, hyperparameters, ("eps", "max_iter"))
    check_positive("eps", eps)
    check_at_least("max_iter", max_iter, 1)
    reductions = _import_fairlearn("reductions", name)
    positive = _check_binary(name, given, settings)
    started = time.perf_counter()
    constraints = getattr(reductions, MOMENTS[settings.fairness])(difference_bound=eps)
    mitigator = reductions.ExponentiatedGradient(_base_learner(), constraints, eps=eps, max_iter=max_iter)
    is_positive = (data.cells.label_codes == positive).astype(np.int64)
    with _quiet():
        mitigator.fit(data.features, is_positive, sensitive_features=data.cells.group_codes)
    return fitted_estimator(
        _make_mixture(mitigator, positive),
        data,
        settings,
        method=name,
        seed=given.seed,
        seconds=time.perf_counter() - started,
        evaluation=given.evaluation,
        randomised=True,
    )


def train_threshold_optimizer(
    given: TrainingInput,
    *,
    grid_size: int = 1000,
    **hyperparameters: Any,
) -> Fitted:
    """Train one logistic regression with thresholds for each group.

    A group that lacks one of the classes cannot be given thresholds: it keeps the regression's own
    decisions, with a warning. ``predict_proba`` without groups gives the regression's probabilities.

    Parameters
    ----------
    grid_size : int
        How finely the rates that the groups are to share are searched.
    """
    name = "threshold-optimizer"
    data, settings = given.data, settings_with(name, given.settings, hyperparameters, ("grid_size",))
    check_at_least("grid_size", grid_size, 1)
    postprocessing = _import_fairlearn("postprocessing", name)
    positive = _check_binary(name, given, settings)
    started = time.perf_counter()
    groups = data.cells.group_codes
    is_positive = (data.cells.label_codes == positive).astype(np.int64)
    regression = _base_learner().fit(data.features, is_positive)
    in_play = np.isin(groups, _groups_with_both_classes(name, data))
    optimizer = postprocessing.ThresholdOptimizer(
        estimator=regression,
        constraints=CONSTRAINTS[settings.fairness],
        grid_size=grid_size,
        prefit=True,
        predict_method="predict_proba",
    )
    with _quiet():
        optimizer.fit(data.features[in_play], is_positive[in_play], sensitive_features=groups[in_play])
    return fitted_estimator(
        _GroupThresholds(regression, dict(optimizer.interpolated_thresholder_.interpolation_dict), positive),
        data,
        settings,
        method=name,
        seed=given.seed,
        seconds=time.perf_counter() - started,
        evaluation=given.evaluation,
        uses_groups=True,
        randomised=True,
    )


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Classifiers, and how often each is asked."""

    members: list[Any]
    weights: NDArray[np.float64]
    positive: int

    def probabilities(self, features: NDArray[Any], groups: NDArray[np.int64] | None) -> NDArray[np.float64]:
        chance = np.zeros(len(features))
        for member, weight in zip(self.members, self.weights, strict=True):
            chance += weight * member.predict(features)
        return _two_columns(chance, self.positive)


def _make_mixture(mitigator: Any, positive: int) -> _Mixture:
    """Collect the members that fairlearn's result gives a weight."""
    weights = mitigator.weights_[mitigator.weights_ > 0]
    members = [mitigator.predictors_[place] for place in weights.index]
    return _Mixture(members, weights.to_numpy(), positive)


@dataclass(frozen=True, eq=False)
class _GroupThresholds:
    """A regression and, for each group, two thresholds that its probability is held against by turns."""

    regression: Any
    rules: dict[Any, Any]
    positive: int

    def probabilities(self, features: NDArray[Any], groups: NDArray[np.int64] | None) -> NDArray[np.float64]:
        scores = self.regression.predict_proba(features)[:, 1]
        if groups is None:
            return _two_columns(scores, self.positive)
        chance = (scores > 0.5).astype(np.float64)
        for group, rule in self.rules.items():
            members = groups == group
            mixed = rule.p0 * rule.operation0(scores) + rule.p1 * rule.operation1(scores)
            ignored = rule.get("p_ignore", 0.0)
            mixed = ignored * rule.get("prediction_constant", 0.0) + (1 - ignored) * mixed
            chance[members] = mixed[members]
        return _two_columns(chance, self.positive)


def _two_columns(chance: NDArray[np.float64], positive: int) -> NDArray[np.float64]:
    """Make the probabilities of both classes from that of the positive one."""
    chance = chance.clip(0.0, 1.0)  # weights sum to 1 only up to rounding
    columns = (1 - chance, chance) if positive == 1 else (chance, 1 - chance)
    return np.stack(columns, axis=1)


def _base_learner() -> Any:
    return LogisticRegression(max_iter=1000)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about fairlearn's own calls, which its users cannot change."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _import_fairlearn(part: str, purpose: str) -> Any:
    """Import a part of fairlearn, which is an extra."""
    try:
        with _quiet():
            import_module("fairlearn")
            return import_module(f"fairlearn.{part}")
    except ImportError as error:
        raise MissingExtraError("fairlearn", extra="fairlearn", purpose=f"the method {purpose}") from error


def _check_binary(name: str, given: TrainingInput, settings: Settings) -> int:
    """Check that fairlearn can treat the data; return the index of the positive class."""
    data, model = given.data, given.model
    check_data(data, given.evaluation)
    if model is not None:
        raise InvalidInputError(
            f"{name} trains scikit-learn's logistic regression and takes no module; got model="
            f"{type(model).__name__}: leave it None"
        )
    found = int((data.cells.counts.sum(axis=1) > 0).sum())
    if data.cells.shape[0] != 2 or found != 2:
        raise InvalidInputError(
            f"{name} needs two classes, both in the data; got {found} of the classes {data.cells.classes}"
        )
    return data.cells.class_index(settings.pos_label)


def _groups_with_both_classes(name: str, data: Samples) -> NDArray[np.intp]:
    """Return the indices of the groups with samples of both classes; warn of the others."""
    complete = (data.cells.counts > 0).all(axis=0)
    if not complete.any():
        raise InvalidInputError(f"{name} needs a group with samples of both classes; there is none")
    partial = (data.cells.counts > 0).any(axis=0) & ~complete
    if partial.any():
        named = [data.cells.groups[place] for place in np.flatnonzero(partial)]
        warnings.warn(
            f"{name} gives no thresholds of their own to groups without samples of both classes: {named}",
            FairsieveWarning,
            stacklevel=4,
        )
    return np.flatnonzero(complete)
