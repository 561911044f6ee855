"""Predict the labels as they are, by a linear, a curved and a boosted model.

A real difference between groups and a bent boundary between the classes must not pass for wrong labels. So
every predictor sees the group, and cross-validation says which of them describes the labels best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
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
    design : _Design, optional
        How features (with groups) become a design matrix; None for trees.
    fitted : pair, optional
        The design of the surveyed samples, and the model fitted to it; None for trees.
    """

    name: str
    scores: Floats
    losses: Floats
    predict: Callable[[Floats], Floats]
    design: _Design | None = None
    fitted: tuple[Observed, FlipModel] | None = None

    def all_scores(self, survey: Survey, data: Samples) -> Floats:
        """Compute the logits of all samples; of the surveyed ones, by models that did not see them."""
        found = np.empty((len(data), self.scores.shape[1]))
        if len(survey.members) < len(data):
            for part in chunks(len(data)):
                found[part] = self.predict(survey.features_of(data, part))
        found[survey.members] = self.scores[survey.places]
        return found


def linear_predictor(survey: Survey, *, curved: bool, start: Predictor | None = None) -> Predictor:
    """Fit logistic regression, on all surveyed samples and fold by fold.

    A curved one has the squares and products of numeric columns. ``start`` is a linear one, whose weights are near.
    """
    design = _Design.fit(survey, curved=curved)
    observed = survey.observe(design(survey.features))
    model = fit_plain(observed, None if start is None else _widen(start, observed.design.shape[1]))
    scores = fit_left_out(observed, model, survey.folds)
    return Predictor(
        "curved" if curved else "linear",
        scores,
        log_losses(scores, survey.labels),
        lambda features: design(features) @ model.weights,
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

    return Predictor("boosted", scores, log_losses(scores, survey.labels), predict)


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
    def fit(cls, survey: Survey, *, curved: bool) -> _Design:
        """Learn means and deviations; choose the products.

        A column of two values has no square, and products of two such columns would let a model learn flips
        by heart.
        """
        mean, scale = _centre(survey.features, survey.weights)
        numeric = survey.numeric_columns[:MOST_CURVED] if curved else []
        pairs = np.array(list(combinations_with_replacement(numeric, 2)), np.int64).reshape(-1, 2)
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


def _widen(start: Predictor, columns: int) -> Floats | None:
    """Return weights with 0 for further products, which stand before the constant."""
    if start.fitted is None:
        return None
    weights = start.fitted[1].weights
    added = np.zeros((columns - len(weights), weights.shape[1]))
    return np.vstack([weights[:-1], added, weights[-1:]])


def _centre(X: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Compute the means and deviations of columns; constant ones get an infinite deviation."""
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=1.0)
    return mean, np.where(constant, np.inf, spread)
