"""Find the best predictor of the labels as they are: a linear, a curved or a boosted model.

A real difference between groups and a bent boundary between the classes must not pass for wrong labels. So
every predictor sees the group, and cross-validation says which of them describes the labels best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairsieve.inputs import dense
from fairsieve.label_noise.flip_model import FlipModel, Observed, fit_plain, log_chances
from fairsieve.samples import Samples
from fairsieve.training.threads import one_openmp_thread

__all__ = [
    "Predictor",
    "Survey",
    "boosted_predictor",
    "chunks",
    "linear_predictor",
    "log_losses",
    "with_groups",
]

Floats = NDArray[np.float64]

MOST_COLUMNS = 120  # of the features; those that say most about the labels
RARE = 0.01  # columns that are almost constant are left out where there are many
MANY = 40
MOST_CURVED = 8  # numeric columns; they make 36 squares and products
MOST_BY_GROUP = 24  # columns times groups
STEPS = 2  # of a fold's fit, which starts at the fit to all folds
TREES, LEAVES, RATE, BINS = 20, 8, 0.3, 63
FEWEST_FOR_TREES = 200
SUREST_LOGIT = 9.0
CHUNK = 65_536


@dataclass(frozen=True, eq=False)
class Survey:
    """The samples that the estimate looks at, with their groups as columns.

    Attributes
    ----------
    rows : integer array
        Where they stand in the data.
    features : array of shape (n, columns)
        The most telling features, then a column for each group but one.
    columns : integer array
        Which features those are.
    labels, groups : integer arrays
        Codes.
    weights : array
    folds : integer array
        The fold of each sample.
    """

    rows: NDArray[np.int64]
    features: Floats
    columns: NDArray[np.int64]
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    classes: int
    group_count: int
    weights: Floats
    folds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def draw(cls, data: Samples, weights: Floats | None, seed: int, most: int) -> Survey:
        """Draw at most ``most`` samples at random, and deal them to folds evenly by class and group."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data))[:most]
        features = np.asarray(dense(data.features[rows]), np.float64).reshape(len(rows), -1)
        cells = data.cells
        labels, groups = cells.label_codes[rows], cells.group_codes[rows]
        columns = _telling_columns(features, labels, cells.shape[0])
        folds = np.empty(len(rows), np.int64)
        count = 2 if len(rows) >= 4000 else 3 if len(rows) >= 1000 else 5
        folds[np.argsort(cells.codes[rows], kind="stable")] = np.arange(len(rows)) % min(count, len(rows))
        return cls(
            rows,
            with_groups(features[:, columns], groups, cells.shape[1]),
            columns,
            labels,
            groups,
            *cells.shape,
            np.ones(len(rows)) if weights is None else weights[rows],
            folds,
        )

    @cached_property
    def numeric_columns(self) -> list[int]:
        """The features that have more than two values."""
        own = self.features[:, : len(self.columns)]
        if not own.size:
            return []
        between = (own != own.min(axis=0)) & (own != own.max(axis=0))
        return np.flatnonzero(between.any(axis=0)).tolist()

    @property
    def numeric(self) -> bool:
        """Whether a feature has more than two values, so that probabilities can be seen to level off along it."""
        return bool(self.numeric_columns)

    def telling(self, most: int) -> NDArray[np.int64]:
        """Return the columns of ``features`` that say most about the labels."""
        own = np.equal.outer(self.labels, np.arange(self.classes)).astype(np.float64)
        part = self.features - self.features.mean(axis=0)
        strength = np.abs((own - own.mean(axis=0)).T @ part / np.maximum(part.std(axis=0), 1e-12)).max(axis=0)
        return np.sort(np.argsort(-strength, kind="stable")[:most])

    def observe(self, design: Floats) -> Observed:
        """Return the samples in the form the model of flips takes."""
        return Observed(design, self.labels, self.groups, self.classes, self.group_count, self.weights)

    def features_of(self, data: Samples, rows: slice) -> Floats:
        """Return the same columns for any samples of the data."""
        groups = data.cells.host_codes[rows] % data.cells.shape[1]
        features = data.features[rows]
        features = features if features.ndim == 2 else features.reshape(len(groups), -1)
        return with_groups(dense(features[:, self.columns]), groups, self.group_count)


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
        design = self.design
        own = _logits(self.fitted[0].design, model)
        return replace(self, own=own, predict=lambda features: design.logits(features, model))

    def all_scores(self, survey: Survey, data: Samples) -> Floats:
        """Compute the logits of all samples."""
        found = np.empty((len(data), self.scores.shape[1]))
        for part in chunks(len(data)):
            found[part] = self.predict(survey.features_of(data, part))
        found[survey.rows] = self.own
        return found


def linear_predictor(
    survey: Survey, *, curved: bool, by_group: bool = False, start: Predictor | None = None
) -> Predictor:
    """Fit logistic regression, on all surveyed samples and fold by fold.

    A curved one has the squares and products of numeric columns; one by group has products of the groups
    with other columns. ``start`` is a predictor with fewer products, whose weights are near.
    """
    expand = _Design.fit(survey, curved=curved, by_group=by_group)
    observed = survey.observe(expand(survey.features))
    model = fit_plain(observed, None if start is None else _widen(start, observed.design.shape[1]))
    scores = np.empty((len(survey), survey.classes - 1))
    for fold in range(int(survey.folds.max(initial=0)) + 1):
        inside = survey.folds == fold
        part = fit_plain(observed.take(np.flatnonzero(~inside)), model, steps=STEPS)
        scores[inside] = _logits(observed.design[inside], part)
    return Predictor(
        ("curved" if curved else "linear") + (" by group" if by_group else ""),
        scores,
        log_losses(scores, survey.labels),
        lambda features: expand.logits(features, model),
        _logits(observed.design, model),
        expand,
        (observed, model),
    )


def boosted_predictor(survey: Survey, seed: int) -> Predictor | None:
    """Fit boosted trees fold by fold; None where there are too few samples of a class."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    folds = int(survey.folds.max(initial=0)) + 1
    counts = np.bincount(survey.labels, minlength=survey.classes)
    if len(survey) < FEWEST_FOR_TREES or counts[counts > 0].min() < 2 * folds:
        return None
    scores, models = np.empty((len(survey), survey.classes - 1)), []
    features = survey.features.astype(np.float32)
    weighted = (survey.weights != survey.weights[0]).any()  # binning with weights takes longer
    with one_openmp_thread():  # trees of a few thousand samples gain nothing from several
        for fold in range(folds):
            inside = survey.folds == fold
            model = HistGradientBoostingClassifier(
                max_iter=TREES,
                max_leaf_nodes=LEAVES,
                learning_rate=RATE,
                max_bins=BINS,
                early_stopping=False,
                random_state=seed,
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


def chunks(samples: int) -> Iterator[slice]:
    """Split the samples into parts that fit into memory as design matrices."""
    return (slice(first, first + CHUNK) for first in range(0, samples, CHUNK))


def log_losses(scores: Floats, labels: NDArray[np.int64]) -> Floats:
    """Compute the log loss of each label, from logits against the first class."""
    logits = np.column_stack([np.zeros(len(scores)), scores])
    return np.asarray(-log_chances(logits)[np.arange(len(labels)), labels])


def with_groups(features: Floats, groups: NDArray[np.int64], group_count: int) -> Floats:
    """Append a column for each group but the first."""
    return np.column_stack([features, np.equal.outer(groups, np.arange(1, group_count))])


def _logits(design: Floats, model: FlipModel) -> Floats:
    return np.asarray(design @ (model.weights[:, 1:] - model.weights[:, :1]))


def _boosted_logits(model: object, features: NDArray[np.float32], classes: int) -> Floats:
    """Return a booster's logits against the first class, within bounds."""
    chances = np.full((len(features), classes), np.exp(-SUREST_LOGIT))
    chances[:, model.classes_] = model.predict_proba(features)  # type: ignore[attr-defined]
    logs = np.log(np.maximum(chances, np.exp(-2 * SUREST_LOGIT)))
    return np.asarray(np.clip(logs[:, 1:] - logs[:, :1], -SUREST_LOGIT, SUREST_LOGIT))


def _telling_columns(features: Floats, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Choose the features to look at: all, where there are few; else the most telling, not the rare ones."""
    columns = np.arange(features.shape[1])
    if len(columns) > MANY:
        usual = np.abs(features - np.median(features, axis=0)) > 0
        columns = columns[usual.mean(axis=0) >= RARE]
    most = max(MOST_COLUMNS // max(classes - 1, 1), 10)
    if len(columns) > most:
        own = np.equal.outer(labels, np.arange(classes)).astype(np.float64)
        own -= own.mean(axis=0)
        part = features[:, columns]
        spread = np.maximum(part.std(axis=0), 1e-12)
        strength = np.abs(own.T @ (part - part.mean(axis=0)) / spread).max(axis=0)
        columns = np.sort(columns[np.argsort(-strength, kind="stable")[:most]])
    return columns


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
        mean, scale = _centre(survey.features)
        pairs = _pairs(survey, curved, by_group)
        standard = (survey.features - mean) / scale
        return cls(mean, scale, pairs, *_centre(standard[:, pairs[:, 0]] * standard[:, pairs[:, 1]]))

    def __call__(self, features: Floats) -> Floats:
        """Return the design matrix of any samples."""
        standard = (features - self.mean) / self.scale
        parts = [standard]
        if len(self.pairs):
            products = standard[:, self.pairs[:, 0]] * standard[:, self.pairs[:, 1]]
            parts.append((products - self.product_mean) / self.product_scale)
        return np.column_stack([*parts, np.ones(len(features))])

    def logits(self, features: Floats, model: FlipModel) -> Floats:
        """Return the logits against the first class, without the design matrix of so many samples."""
        weights = model.weights[:, 1:] - model.weights[:, :1]
        own = weights[: len(self.mean)] / self.scale[:, None]
        found = features @ own + (weights[-1] - self.mean @ own)
        if len(self.pairs):
            used, places = np.unique(self.pairs, return_inverse=True)
            standard = (features[:, used] - self.mean[used]) / self.scale[used]
            first, second = places.reshape(-1, 2).T
            by_product = weights[len(self.mean) : -1] / self.product_scale[:, None]
            found += (standard[:, first] * standard[:, second]) @ by_product - self.product_mean @ by_product
        return np.asarray(found)


def _widen(start: Predictor, columns: int) -> FlipModel | None:
    """Return a model with weights 0 for further products, which stand before the constant."""
    if start.fitted is None:
        return None
    model = start.fitted[1]
    added = np.zeros((columns - len(model.weights), model.weights.shape[1]))
    return replace(model, weights=np.vstack([model.weights[:-1], added, model.weights[-1:]]))


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


def _centre(X: Floats) -> tuple[Floats, Floats]:
    """Compute the means and deviations of columns; constant ones get an infinite deviation."""
    spread = X.std(axis=0)
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=1.0)
    return X.mean(axis=0), np.where(constant, np.inf, spread)
