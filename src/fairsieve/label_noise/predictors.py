"""Predict the labels as they are, by a linear, a curved and a boosted model.

A real difference between groups and a bent boundary between the classes must not pass for wrong labels. So
every predictor sees the group, and cross-validation says which of them describes the labels best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.flip_model import FlipModel, Observed, fit_left_out, fit_plain, log_losses
from fairsieve.label_noise.survey import FOLDS, Survey, chunks
from fairsieve.samples import Samples
from fairsieve.training.threads import one_openmp_thread

__all__ = ["Predictor", "boosted_predictor", "linear_predictor"]

Floats = NDArray[np.float64]

MOST_CURVED = 8  # numeric columns; they make 36 squares and products
MOST_BY_GROUP = 24  # columns times groups
TREES, LEAVES, RATE, BINS = 20, 8, 0.3, 63
FEWEST_FOR_TREES = 200
SUREST_LOGIT = 9.0


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model of the labels as they are.

    Attributes
    ----------
    name : str
    scores : array of shape (n, classes − 1)
        Logits against the first class, for the surveyed samples, by models that did not see them.
    losses : array of shape (n,)
        Their log losses.
    predict : callable
        Features (with groups) → logits of any samples.
    own : array of shape (n, classes − 1)
        Logits of the surveyed samples that go with ``predict``.
    design : _Design, optional
        How features (with groups) become a design matrix; None for trees.
    fitted : pair, optional
        The design of the surveyed samples, and the model fitted to it; None for trees.
    """

    name: str
    scores: Floats
    losses: Floats
    predict: Callable[[Floats], Floats]
    own: Floats
    design: _Design | None = None
    fitted: tuple[Observed, FlipModel] | None = None

    def with_model(self, model: FlipModel) -> Predictor:
        """Return the same predictor with other weights of its design."""
        if self.fitted is None or self.design is None:
            return self
        design, own = self.design, self.fitted[0].design @ model.weights
        return replace(self, own=own, predict=lambda features: design.logits(features, model.weights))

    def all_scores(self, survey: Survey, data: Samples) -> Floats:
        """Compute the logits of all samples."""
        found = np.empty((len(data), self.scores.shape[1]))
        if len(survey.members) < len(data):
            for part in chunks(len(data)):
                found[part] = self.predict(survey.features_of(data, part))
        found[survey.members] = self.own[survey.places]
        return found


def linear_predictor(
    survey: Survey, *, curved: bool, by_group: bool = False, start: Predictor | None = None
) -> Predictor:
    """Fit logistic regression, on all surveyed samples and fold by fold.

    A curved one has the squares and products of numeric columns; one by group has products of the groups
    with other columns. ``start`` is a predictor with fewer products, whose weights are near.
    """
    design = _Design.fit(survey, curved=curved, by_group=by_group)
    observed = survey.observe(design(survey.features))
    model = fit_plain(observed, None if start is None else _widen(start, observed.design.shape[1]))
    scores = fit_left_out(observed, model, survey.folds)
    return Predictor(
        ("curved" if curved else "linear") + (" by group" if by_group else ""),
        scores,
        log_losses(scores, survey.labels),
        lambda features: design.logits(features, model.weights),
        observed.design @ model.weights,
        design,
        (observed, model),
    )


def boosted_predictor(survey: Survey) -> Predictor | None:
    """Fit boosted trees fold by fold; None where there are too few samples of a class."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    count = 2 if len(survey) >= 4000 else 3 if len(survey) >= 1000 else FOLDS
    counts = np.bincount(survey.labels, minlength=survey.classes)
    if len(survey) < FEWEST_FOR_TREES or counts[counts > 0].min() < 2 * count:
        return None
    scores, models = np.empty((len(survey), survey.classes - 1)), []
    features, folds = survey.features.astype(np.float32), survey.folds % count
    weighted = (survey.weights != survey.weights[0]).any()  # binning with weights takes longer
    with one_openmp_thread():  # trees of a few thousand samples gain nothing from several
        for fold in range(count):
            inside = folds == fold
            model = HistGradientBoostingClassifier(
                max_iter=TREES,
                max_leaf_nodes=LEAVES,
                learning_rate=RATE,
                max_bins=BINS,
                early_stopping=False,
                random_state=0,
            ).fit(
                features[~inside],
                survey.labels[~inside],
                sample_weight=survey.weights[~inside] if weighted else None,
            )
            scores[inside] = _boosted_logits(model, features[inside], survey.classes)
            models.append(model)

    def predict(features: Floats) -> Floats:
        narrow = features.astype(np.float32)
        return np.asarray(
            np.mean([_boosted_logits(model, narrow, survey.classes) for model in models], axis=0)
        )

    return Predictor("boosted", scores, log_losses(scores, survey.labels), predict, scores)


def _boosted_logits(model: Any, features: NDArray[np.float32], classes: int) -> Floats:
    """Return a booster's logits against the first class, within bounds."""
    chances = np.full((len(features), classes), np.exp(-SUREST_LOGIT))
    chances[:, model.classes_] = model.predict_proba(features)
    logs = np.log(np.maximum(chances, np.exp(-2 * SUREST_LOGIT)))
    return np.asarray(np.clip(logs[:, 1:] - logs[:, :1], -SUREST_LOGIT, SUREST_LOGIT))


@dataclass(frozen=True, eq=False)
class _Design:
    """How features become a design matrix: standardised, with a constant, and products if curved."""

    mean: Floats
    scale: Floats
    pairs: NDArray[np.int64]  # (products, 2)
    product_mean: Floats
    product_scale: Floats

    @classmethod
    def fit(cls, survey: Survey, *, curved: bool, by_group: bool) -> _Design:
        """Learn means and deviations; choose the products.

        A column of two values has no square, and products of two such columns would let a model learn flips
        by heart.
        """
        mean, scale = _centre(survey.features, survey.weights)
        pairs = _pairs(survey, curved, by_group)
        standard = (survey.features - mean) / scale
        products = standard[:, pairs[:, 0]] * standard[:, pairs[:, 1]]
        return cls(mean, scale, pairs, *_centre(products, survey.weights))

    def __call__(self, features: Floats) -> Floats:
        """Return the design matrix of any samples."""
        standard = (features - self.mean) / self.scale
        products = standard[:, self.pairs[:, 0]] * standard[:, self.pairs[:, 1]]
        return np.column_stack(
            [standard, (products - self.product_mean) / self.product_scale, np.ones(len(features))]
        )

    def logits(self, features: Floats, weights: Floats) -> Floats:
        """Return the logits against the first class, without the design matrix of so many samples."""
        own = weights[: len(self.mean)] / self.scale[:, None]
        found = features @ own + (weights[-1] - self.mean @ own)
        if len(self.pairs):
            used, places = np.unique(self.pairs, return_inverse=True)
            standard = (features[:, used] - self.mean[used]) / self.scale[used]
            first, second = places.reshape(-1, 2).T
            by_product = weights[len(self.mean) : -1] / self.product_scale[:, None]
            found += (standard[:, first] * standard[:, second]) @ by_product - self.product_mean @ by_product
        return np.asarray(found)


def _widen(start: Predictor, columns: int) -> Floats | None:
    """Return weights with 0 for further products, which stand before the constant."""
    if start.fitted is None:
        return None
    weights = start.fitted[1].weights
    added = np.zeros((columns - len(weights), weights.shape[1]))
    return np.vstack([weights[:-1], added, weights[-1:]])


def _pairs(survey: Survey, curved: bool, by_group: bool) -> NDArray[np.int64]:
    """Choose the columns to multiply."""
    own, pairs = len(survey.columns), []
    numeric = survey.numeric_columns
    if curved:
        pairs += [(a, b) for place, a in enumerate(numeric[:MOST_CURVED]) for b in numeric[place:MOST_CURVED]]
    if by_group:
        groups = range(own, survey.features.shape[1])
        rest = [c for c in range(own) if c not in set(numeric)]
        most = MOST_BY_GROUP // max(len(groups), 1)
        pairs += [(c, g) for g in groups for c in (numeric + rest)[:most]]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _centre(X: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Compute the means and deviations of columns; constant ones get an infinite deviation."""
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=1.0)
    return mean, np.where(constant, np.inf, spread)
