"""Look at some of the samples, the same for equal data, and predict their labels.

Neither a seed nor the order of the rows decides anything here: which samples are looked at, and in which fold each of
them stands, follows from their features and group, in a way that the last digits of numbers do not change. Equal rows
are counted together, so a row that is there twice is the same as one of weight 2; and since equal features stand in
the same fold, no model is tested on what it has learnt by heart.

The labels of these samples are predicted as they are, by a linear, a curved and a boosted model. A real difference
between groups and a bent boundary between the classes must not pass for wrong labels. So every predictor sees the
group, and cross-validation says which of them describes the labels best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array

from fairsieve.label_noise.flip_model import Observed, fit_left_out, fit_plain, log_losses
from fairsieve.samples import COPIES, Samples, dense
from fairsieve.selection.cells import Codes, Floats, Keys, divide, slices
from fairsieve.training.rows import one_thread

MOST = 8_000  # samples that are looked at
TOO_FEW, FEW = 2, 10  # different samples for each fold: not enough, and enough however often each is there
FOLDS = 6
LEVELS = 2.0**30  # that the values of a column are told apart by
MOMENT_FACTORS = 521, 367, 229  # of a column's moments, which tell it from others
START = 10  # a cell begins with any fold, though the mean of its keys is mostly near the middle
DEALT_BY, SURVEYED_BY, DRAWN_BY = (7, 11, 13, 17), 101, 4097  # turns; see row_keys
MOST_COLUMNS = 120  # of the features; those that say most about the labels
RARE = 0.01  # columns that are almost constant are left out where there are many
MANY = 40
CHUNK = 65_536
CACHED = 2**17  # numbers that are worked on at once
MOST_CURVED = 8  # numeric columns; they make 36 squares and products
TREES: Any = {"max_iter": 20, "max_leaf_nodes": 8, "learning_rate": 0.3, "max_bins": 63}
FEWEST_FOR_TREES = 200
SUREST_LOGIT = 9.0
MANY_OF_A_KIND = 10  # samples for each different one


@dataclass(frozen=True, eq=False)
class Survey:
    """The samples that the estimate looks at, each different one once, with their groups as columns.

    Attributes
    ----------
    members, places : integer arrays
        All samples of the data that equal one of them, and which one.
    features : array of shape (n, columns)
        The most telling features, then columns for the groups.
    columns : integer array
        Which features those are.
    labels, groups : integer arrays of shape (n,)
        Codes.
    weights : array of shape (n,)
        How often each counts.
    folds : integer array of shape (n,)
        The fold of each.
    """

    members: Codes
    places: Codes
    features: Floats
    columns: Codes
    labels: Codes
    groups: Codes
    classes: int
    group_count: int
    weights: Floats
    folds: Codes

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def draw(cls, data: Samples, weights: Floats) -> Survey:
        """Draw some different samples, and deal them to folds evenly by class and group."""
        codes, (classes, group_count) = data.cells.host_codes.astype(np.int64), data.cells.shape
        phases, by_content, checksum = row_phases(data, weights)
        content = row_keys(phases, DRAWN_BY)
        # Of many samples, those whose keys are lowest suffice, unless most are the same.
        for most in (4 * MOST, len(codes)):
            order = np.arange(len(codes))
            if most < len(order):
                order = np.flatnonzero(content <= np.partition(content, most)[most])
            exact = checksum(order)
            ranks = np.lexsort((codes[order], exact, content[order]))
            order, exact = order[ranks], exact[ranks]
            differs = np.ones(len(order), bool)
            differs[1:] = (np.diff(exact) != 0) | (np.diff(codes[order]) != 0)
            places = np.cumsum(differs) - 1
            if places[-1] >= MOST:
                break
        looked_at = places < MOST
        members, places = order[looked_at], places[looked_at]
        rows = members[differs[looked_at]]
        counts = np.bincount(places, weights[members]).astype(np.float64)
        labels, groups = codes[rows] // group_count, codes[rows] % group_count
        features = np.asarray(dense(data.features[rows]), np.float64).reshape(len(rows), -1)
        # Columns stand in an order of their own, so that ties between them do not depend on the table's.
        columns = by_content[_telling_columns(features[:, by_content], labels, classes, counts)]
        folds = _deal(row_keys(phases[rows], SURVEYED_BY), codes[rows], counts)
        design = with_groups(features[:, columns], groups, group_count)
        return cls(members, places, design, columns, labels, groups, classes, group_count, counts, folds)

    @cached_property
    def size(self) -> float:
        """How many samples these stand for."""
        return float(self.weights.sum())

    @cached_property
    def numeric_columns(self) -> list[int]:
        """The features that have more than two values."""
        own = self.features[:, : len(self.columns)]
        if not own.size:
            return []
        between = (own != own.min(axis=0)) & (own != own.max(axis=0))
        return np.flatnonzero(between.any(axis=0)).tolist()

    @cached_property
    def is_table(self) -> bool:
        """Whether any table of probabilities may be the truth: columns of two values alone, or few kinds of samples."""
        return not self.numeric_columns or self.size >= MANY_OF_A_KIND * len(self)

    def telling(self, most: int) -> Codes:
        """Return the columns of ``features`` that say most about the labels."""
        return _strongest(self.features, self.labels, self.classes, self.weights, most)

    def mean(self, values: Floats) -> tuple[float, float]:
        """Compute the mean of values of the samples, and its standard error."""
        mean = float(np.average(values, weights=self.weights))
        return mean, float(np.sqrt(self.weights @ (values - mean) ** 2)) / self.size

    def observe(self, design: Floats) -> Observed:
        """Return the samples in the form the model of flips takes."""
        return Observed(design, self.labels, self.groups, self.classes, self.group_count, self.weights)

    def observe_scores(self, *scores: Floats) -> Observed:
        """Return the samples, with logits as their features."""
        return self.observe(stack(scores, self.groups, self.group_count))

    def parts_of(self, data: Samples) -> Iterator[tuple[slice, Floats]]:
        """Return the same columns for all samples of the data, in parts that fit into memory as design matrices."""
        for part in slices(len(data), CHUNK):
            groups = data.cells.host_codes[part].astype(np.int64) % data.cells.shape[1]
            features = data.features[part]
            features = features if features.ndim == 2 else features.reshape(len(groups), -1)
            yield part, with_groups(dense(features[:, self.columns]), groups, self.group_count)


def with_groups(features: Floats, groups: Codes, group_count: int) -> Floats:
    """Append a column for each group, or one for the second of two; so that no group is a reference."""
    first = 1 if group_count <= 2 else 0
    return np.column_stack([features, np.equal.outer(groups, np.arange(first, group_count))])


def stack(scores: Sequence[Floats], groups: Codes, group_count: int) -> Floats:
    """Build a design of logits, groups and a constant."""
    design = with_groups(np.column_stack(scores), groups, group_count)
    return np.column_stack([design, np.ones(len(design))])


def content_folds(data: Samples, weights: Floats, count: int = FOLDS, deals: int = 1) -> list[Codes]:
    """Deal samples to folds by what they hold, so many times; not at all where few features leave few different ones.

    Names and codes of columns and groups, their order, the order of the rows, the last digits of numbers and whether
    a row stands there twice or weighs 2 do not matter.
    """
    phases, codes = row_phases(data, weights)[0], data.cells.host_codes.astype(np.int64)
    # Of people who are alike in a few columns, each kind would be predicted by models that know the other kinds alone.
    kinds = len(np.unique(phases))
    if kinds < count * TOO_FEW or kinds < min(COPIES * weights.sum(), count * FEW):
        return []
    return [_deal(row_keys(phases, turns), codes, weights, count) for turns in DEALT_BY[:deals]]


def row_phases(data: Samples, weights: Floats) -> tuple[Keys, Codes, Callable[[Codes], Keys]]:
    """Place each sample on a circle by its features, whose units do not matter; return how checksums are computed.

    The place is a weighted sum of the features, where 2⁶⁴ is the whole circle; a small change of a value moves it a
    little. A column is known by moments of what it holds, not by its place or name; a constant one counts for nothing.
    The second answer is the order of the columns by that, the last computes exact checksums of some samples.
    """
    width = int(np.prod(data.features.shape[1:]))
    step = max(CACHED // max(width, 1), 1)
    rows = slices(len(data), step)

    def read(part: slice | Codes) -> Floats:
        return dense(data.features[part]).reshape(-1 if width else len(weights[part]), width)

    edges = [(values.min(axis=0), values.max(axis=0)) for values in map(read, rows)]
    low = np.min([low for low, _ in edges], axis=0).astype(np.float64)
    high = np.max([high for _, high in edges], axis=0).astype(np.float64)
    scale = divide(LEVELS, high - low)
    levels, moments = [], np.zeros((3, len(low)))
    for part in rows:
        shares = read(part) - low
        shares *= scale
        np.rint(shares, out=shares)
        levels.append(shares.astype(np.uint32))
        shares /= LEVELS
        squares, own = shares * shares, weights[part]
        moments = moments + np.stack([own @ shares, own @ squares, own @ (squares * shares)])
    # Sums in another order differ in their last digits.
    rounded = np.rint(moments / weights.sum() * 2.0**24).astype(np.uint64)
    # From its lowest to its highest value, a column goes half round at least, and all round by its moments at most.
    factors = np.uint64(2**33) + np.array(MOMENT_FACTORS, np.uint64) @ rounded
    phases = np.concatenate([part.astype(np.uint64) @ factors for part in levels])
    exact = hash_array(factors, categorize=False) | np.uint64(1)  # odd numbers lose no bit

    def checksum(some: Codes) -> Keys:
        sums = [
            (read(some[part]).astype(np.float64) + 0.0).view(np.uint64) @ exact  # a negative zero is a zero
            for part in slices(len(some), step)
        ]
        return np.asarray(hash_array(np.concatenate(sums), categorize=False))

    return phases, np.argsort(factors, kind="stable"), checksum


def row_keys(phases: Keys, turns: int) -> Keys:
    """Return numbers by which to order samples: how far they are from a point of the circle, wound so many times.

    The more turns, the less the order says about the samples, and the more a small change of a value moves. An odd
    number of turns keeps different samples apart.
    """
    places = phases * np.uint64(turns)
    return np.asarray(np.minimum(places, ~places))


def _deal(keys: Keys, codes: Codes, weights: Floats, count: int = FOLDS) -> Codes:
    """Deal samples to folds in the order of their keys, equal features to the same one.

    Those of each cell are dealt evenly, beginning with the fold that the mean of their keys says.
    """
    keys, kinds = np.unique(keys, return_inverse=True)
    cells = int(codes.max()) + 1
    masses = np.bincount(kinds * cells + codes, weights, len(keys) * cells).reshape(len(keys), cells)
    # The cell that most samples of these features are in; of several, one that does not follow from codes.
    centres = keys.astype(np.float64) @ masses / np.maximum(masses.sum(axis=0), 1e-300)
    order = np.lexsort((centres, masses.sum(axis=0)))
    cell = order[masses[:, order].argmax(axis=1)]
    folds = np.empty(len(keys), np.int64)
    for code in np.unique(cell):
        own = np.flatnonzero(cell == code)
        folds[own] = (int(keys[own].mean() / 2.0**63 * START * count) + np.arange(len(own))) % count
    return folds[kinds]


def _strongest(features: Floats, labels: Codes, classes: int, weights: Floats, most: int) -> Codes:
    """Return the columns that correlate most with a class."""
    own = np.equal.outer(labels, np.arange(classes)) - np.bincount(labels, weights, classes) / weights.sum()
    part = features - np.average(features, axis=0, weights=weights)
    spread = np.sqrt(np.average(part**2, axis=0, weights=weights))
    strength = np.abs((own * weights[:, None]).T @ part / np.maximum(spread, 1e-12)).max(axis=0)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def _telling_columns(features: Floats, labels: Codes, classes: int, weights: Floats) -> Codes:
    """Choose the features to look at: all, where there are few; else the most telling, not the rare ones."""
    columns = np.arange(features.shape[1])
    if len(columns) > MANY:
        usual = features != np.median(features, axis=0)
        columns = columns[weights @ usual >= RARE * weights.sum()]
    most = max(MOST_COLUMNS // max(classes - 1, 1), 10)
    if len(columns) > most:
        columns = columns[_strongest(features[:, columns], labels, classes, weights, most)]
    return columns


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
    design: Any = None
    fitted: Any = None

    def all_scores(self, survey: Survey, data: Samples) -> Floats:
        """Compute the logits of all samples; of the surveyed ones, by models that did not see them."""
        found = np.empty((len(data), self.scores.shape[1]))
        if len(survey.members) < len(data):
            for part, features in survey.parts_of(data):
                found[part] = self.predict(features)
        found[survey.members] = self.scores[survey.places]
        return found


def linear_predictors(survey: Survey) -> tuple[Predictor, Predictor]:
    """Fit logistic regression, on all surveyed samples and fold by fold: a linear and a curved one.

    The curved one has the squares and products of numeric columns, and starts from the weights of the other.
    """
    linear = _fit_linear("linear", _Design(survey, []), survey)
    design = _Design(survey, survey.numeric_columns[:MOST_CURVED])
    return linear, _fit_linear("curved", design, survey, linear)


def crossed_predictor(survey: Survey) -> Predictor:
    """Fit logistic regression on all products of the most telling columns, also of those with two values."""
    return _fit_linear("crossed", _Design(survey, survey.telling(MOST_CURVED).tolist()), survey)


def _fit_linear(name: str, design: _Design, survey: Survey, start: Predictor | None = None) -> Predictor:
    observed, weights = survey.observe(design(survey.features)), None
    if start is not None:  # further products stand before the constant
        known = start.fitted[1].weights
        added = np.zeros((observed.design.shape[1] - len(known), known.shape[1]))
        weights = np.vstack([known[:-1], added, known[-1:]])
    model = fit_plain(observed, weights)
    scores = fit_left_out(observed, model, survey.folds)
    numbers = scores, log_losses(scores, survey.labels)
    fitted = design, (observed, model)
    return Predictor(name, *numbers, lambda features: design(features) @ model.weights, *fitted)


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
    with one_thread("openmp"):  # trees of a few thousand samples gain nothing from several
        for fold in range(count):
            inside = folds == fold
            weights = survey.weights[~inside] if weighted else None
            model = HistGradientBoostingClassifier(**TREES, early_stopping=False, random_state=0)
            model.fit(features[~inside], survey.labels[~inside], sample_weight=weights)
            scores[inside] = _boosted_logits(model, features[inside], survey.classes)
            models.append(model)

    def predict(features: Floats) -> Floats:
        narrow = features.astype(np.float32)
        logits = [_boosted_logits(model, narrow, survey.classes) for model in models]
        return np.asarray(np.mean(logits, axis=0))

    return Predictor("boosted", scores, log_losses(scores, survey.labels), predict)


def _boosted_logits(model: Any, features: NDArray[np.float32], classes: int) -> Floats:
    """Return a booster's logits against the first class, within bounds."""
    chances = np.full((len(features), classes), np.exp(-SUREST_LOGIT))
    chances[:, model.classes_] = model.predict_proba(features)
    logs = np.log(np.maximum(chances, np.exp(-2 * SUREST_LOGIT)))
    return np.asarray(np.clip(logs[:, 1:] - logs[:, :1], -SUREST_LOGIT, SUREST_LOGIT))


class _Design:
    """How features become a design matrix: standardised, with a constant, and products if curved.

    A column of two values has no square, and products of two such columns would let a model learn flips by heart.
    """

    def __init__(self, survey: Survey, numeric: list[int]) -> None:
        self.pairs = np.array(list(combinations_with_replacement(numeric, 2)), np.int64).reshape(-1, 2)
        self.scale = _centre(survey.features, survey.weights)
        self.product_scale = _centre(self.expand(survey.features)[1], survey.weights)

    def expand(self, features: Floats) -> tuple[Floats, Floats]:
        """Return standardised features, and products of them."""
        standard = (features - self.scale[0]) / self.scale[1]
        return standard, standard[:, self.pairs[:, 0]] * standard[:, self.pairs[:, 1]]

    def __call__(self, features: Floats) -> Floats:
        """Return the design matrix of any samples."""
        standard, products = self.expand(features)
        mean, spread = self.product_scale
        return np.column_stack([standard, (products - mean) / spread, np.ones(len(features))])


def _centre(X: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Compute the means and deviations of columns; constant ones get an infinite deviation."""
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    constant = spread <= 1e-12 * np.abs(X).max(axis=0, initial=1.0)
    return mean, np.where(constant, np.inf, spread)
