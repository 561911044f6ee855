"""Forecast what a classifier would predict if some cells weighed more or less, without fitting it.

A classifier that learns probabilities learns those of the weighted table. If the cell of class c and group g weighs
w(c, g) times as much, its score of class c becomes Σ_g P(c, g | x) · w(c, g), up to a factor that all classes share.
The plain model gives P(c | x), out of fold; P(g | x, c) is learnt by logistic regression. So the predictions under any
weights follow from one matrix, and the weights that are needed are searched for there, instead of by fitting a booster
fifty times. What the forecast gets wrong, the next fit shows: the difference between the rates that were measured and
those that were forecast is added from then on.

Of two classes a weight may be below 0: a sample of class 1 with the weight −w is one of class 0 with the weight w, as
the reductions of Agarwal et al. (2018) have it.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from fairsieve.metrics import Rates, expected_counts
from fairsieve.selection.cells import Codes, Floats

LEARNT_FROM = 10_000  # rows, at most, that the chances of groups are learnt from
SOFTNESS = (0.5, 0.25, 0.12)  # of a prediction, in standard deviations of the scores: harder and harder
HELD_BACK = 0.01  # per squared change of a weight: of equal forecasts, the one closer to equal weights
MARGIN = 0.9  # of the tolerance, that is aimed at: rates of new rows differ from those forecast
ROUNDS, STEPS, GROWTH = 8, 60, 1.6  # of the augmented Lagrangian: multipliers, L-BFGS, and its penalty


def group_chances(
    features: Floats,
    chances: Floats,
    labels: Codes,
    groups: Codes,
    folds: list[tuple[Codes, Codes]],
    count: int,
) -> Floats:
    """Estimate P(group | features, class), (n, classes, groups), out of fold.

    Parameters
    ----------
    features : array of shape (n, d)
    chances : array of shape (n, classes)
        Probabilities of the classes, which say more of the features than a line does.
    labels, groups : integer arrays of shape (n,)
    folds : pairs of rows
        As the classifier's own.
    count : int
        How many groups there are.
    """
    classes = chances.shape[1]
    spread = features.std(axis=0)
    columns = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    odds = np.maximum(chances[:, 1:], 1e-6) / np.maximum(chances[:, :1], 1e-6)
    columns = np.hstack([columns, np.log(odds)])
    chances_by_group = np.zeros((len(labels), classes, count))
    for seen, tested in folds:
        part = seen[np.linspace(0, len(seen) - 1, min(len(seen), LEARNT_FROM)).astype(np.int64)]
        shares = np.bincount(groups[part], minlength=count) / len(part)
        if shares.max() == 1:
            chances_by_group[tested] = shares
            continue
        known = np.eye(classes)[labels]
        # Of many groups, and of a fit that could be a little closer.
        with warnings.catch_warnings(action="ignore"):
            model = LogisticRegression(max_iter=200).fit(np.hstack([columns, known])[part], groups[part])
        for label in range(classes):
            asked = np.broadcast_to(np.eye(classes)[label], (len(tested), classes))
            chances_here = model.predict_proba(np.hstack([columns[tested], asked]))
            chances_by_group[np.ix_(tested, np.array([label]), model.classes_)] = chances_here[:, None]
    return chances_by_group


def flatten(chances: Floats, power: float) -> Floats:
    """Raise probabilities to a power, and let them sum to 1 again."""
    return np.asarray(softmax(power * np.log(np.maximum(chances, 1e-9)), axis=1))


def calibrate(chances: Floats, judged: Floats) -> float:
    """Find the power that makes probabilities fit labels they did not see: boosters are too sure of themselves.

    >>> sure, labels = np.array([[0.99, 0.01]] * 4), np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    >>> flatten(sure, calibrate(sure, labels)).round(2)[0].tolist()
    [0.75, 0.25]
    """

    def loss(power: float) -> float:
        return -float((judged * np.log(np.maximum(flatten(chances, power), 1e-12))).sum())

    return float(minimize_scalar(loss, bounds=(0.05, 3.0), method="bounded").x)


class Forecast:
    """The predictions of a classifier under any weights of the cells.

    Parameters
    ----------
    chances : array of shape (n, classes)
        Probabilities of the true classes, out of fold.
    by_group : array of shape (n, classes, groups)
        P(group | features, class).
    members : array of shape (n, classes, groups)
        What each row counts in each cell, by whose rates it is judged; below 0 where labels are corrected.
    rates : Rates
        Those that are to be alike.
    named : int
        How many of the groups are compared; they come first.
    cut : float
        The probability from which on the second of two classes is predicted.
    """

    def __init__(
        self, chances: Floats, by_group: Floats, members: Floats, rates: Rates, named: int, cut: float = 0.5
    ) -> None:
        self.joint, self.chances = chances[:, :, None] * by_group, chances
        self.shape = self.joint.shape[1:]
        self.members, self.rates = members.reshape(len(chances), -1), rates
        self.factors = np.array([cut, 1 - cut]) if self.shape[0] == 2 else np.ones(self.shape[0])
        _, counted = rates.of(self.count(chances))
        there = counted[:, :named] > 1e-9 * len(chances)
        # Triples of a rate, a group that may be the higher one in it, and another that may be the lower one.
        apart = there[:, :, None] & there[:, None, :] & ~np.eye(named, dtype=bool)
        self.pairs = np.argwhere(apart).T

    def predict(self, weights: Floats, softness: float) -> Floats:
        """Return how far each class is predicted, (n, classes)."""
        return np.asarray(softmax(self._score(weights) / softness, axis=1))

    def count(self, predictions: Floats) -> Floats:
        """Count predictions, (classes, groups, predicted)."""
        return (self.members.T @ predictions).reshape(*self.shape, -1)

    def loss(self, before: Floats, after: Floats) -> float:
        """Forecast how much less accurate the model of other weights is.

        It is the lower of two answers, as in :func:`~fairsieve.training.compromises.choose_bargain`: by the rows as
        they are, and as if every group had the same share of each class.
        """
        cells = self.joint.sum(axis=0)
        alike = (self.joint * (expected_counts(cells) / np.maximum(cells, 1e-300))).sum(axis=2)
        rows = np.arange(len(alike))
        first, second = (self._score(weights).argmax(axis=1) for weights in (before, after))
        return min(float((each[rows, first] - each[rows, second]).mean()) for each in (self.chances, alike))

    def gap(self, weights: Floats, start: Floats, table: Floats) -> float:
        """Forecast the widest gap, from what a model fitted with the weights ``start`` predicts out of fold."""
        softness = SOFTNESS[-1] * self._spread(start)
        rates = self._rates(weights, softness) - self._rates(start, softness) + self.rates.of(table)[0]
        place, high, low = self.pairs
        return float((rates[place, high] - rates[place, low]).max(initial=0.0))

    def _score(self, weights: Floats) -> Floats:
        return np.asarray((self.joint * weights).sum(axis=2) * self.factors)

    def _spread(self, weights: Floats) -> float:
        """Return the standard deviation of the scores."""
        return max(float(np.ptp(self._score(weights), axis=1).std()), 1e-6)

    def _rates(self, weights: Floats, softness: float) -> Floats:
        return self.rates.of(self.count(self.predict(weights, softness)))[0]

    def solve(self, start: Floats, tolerance: float, table: Floats) -> Floats:
        """Find the weights of the most accurate forecast whose rates differ by no more than the tolerance.

        Parameters
        ----------
        start : array of shape (classes, groups)
            The weights that a model was fitted with.
        tolerance : float
        table : array of shape (classes, groups, predicted)
            What that model predicts out of fold.
        """
        weights = start.copy()
        for softness in np.array(SOFTNESS) * self._spread(start):
            error = self.rates.of(table)[0] - self._rates(start, softness)
            weights = self._relax(weights, MARGIN * tolerance, error, softness)
        return weights

    def _relax(self, weights: Floats, tolerance: float, error: Floats, softness: float) -> Floats:
        """Minimise the forecast share of wrong predictions, by an augmented Lagrangian for the constraints."""
        place, high, low = self.pairs
        multipliers, penalty = np.zeros(len(place)), 2.0
        bounds = [(0.02 if self.shape[0] > 2 else -np.inf, None)] * weights.size

        def excess(table: Floats) -> Floats:
            rates = self.rates.of(table)[0] + error
            return rates[place, high] - rates[place, low] - tolerance

        def lagrangian(flat: Floats) -> tuple[float, Floats]:
            now = flat.reshape(self.shape)
            predictions = self.predict(now, softness)
            table = self.count(predictions)
            pull = np.maximum(0.0, multipliers + penalty * excess(table))
            value = 1 - float((self.chances * predictions).sum()) / len(predictions)
            value += float((pull**2 - multipliers**2).sum()) / (2 * penalty)
            value += HELD_BACK / 2 * float(((now - 1) ** 2).sum())
            # The chain rule, from the end: rates, counts, predictions, scores, weights.
            by_rate = np.zeros((len(self.rates.rates), self.shape[1]))
            np.add.at(by_rate, (place, high), pull)
            np.add.at(by_rate, (place, low), -pull)
            by_count = self.rates.derivative(table, by_rate).reshape(-1, self.shape[0])
            by_prediction = self.members @ by_count - self.chances / len(predictions)
            centred = by_prediction - (predictions * by_prediction).sum(axis=1, keepdims=True)
            by_score = predictions * centred / softness * self.factors
            slopes = (by_score[:, :, None] * self.joint).sum(axis=0) + HELD_BACK * (now - 1)
            return value, slopes.ravel()

        for _ in range(ROUNDS):
            options = {"maxiter": STEPS}
            relaxed = minimize(
                lagrangian, weights.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            weights = relaxed.x.reshape(self.shape)
            broken = excess(self.count(self.predict(weights, softness)))
            multipliers = np.maximum(0.0, multipliers + penalty * broken)
            if not len(broken) or broken.max() < 0.1 * tolerance:
                break
            penalty *= GROWTH
        return weights
