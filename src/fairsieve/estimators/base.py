"""What the classifier and the sieve share: the path, warnings, and the comparison with a plain model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.util import hash_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import FairnessWarning, FairsieveWarning, InvalidInputError
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.survey import DRAWN_BY, row_keys, row_phases
from fairsieve.metrics import Rates
from fairsieve.notions import EO, find_notion
from fairsieve.samples import Checked, Samples, dense
from fairsieve.selection.cells import Cells, Codes, Floats, Integers, Values, positive_code
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.compromises import (
    Point,
    RateGap,
    Solution,
    SolverSettings,
    Together,
    accuracy_gain,
    choose_point,
    is_better,
)
from fairsieve.training.rows import LinearRows
from fairsieve.validation import check_at_least, check_clean_ratio, check_share, is_dask

Verdict = Literal["better", "no different", "worse", "cannot be known"]

STANDARD_ERRORS = 2.0
ROWS_GONE = (
    "needs the training rows. They stayed on the dask cluster when this model was stored or copied, or there were too "
    "many to keep what each point of a path selects when this one was made by at(): ask the fitted model itself, or "
    "fit with this tolerance"
)


@dataclass(frozen=True)
class PlainComparison:
    """How a fair model does beside a plain one.

    Attributes
    ----------
    accuracy, plain_accuracy : float
    gap, plain_gap : float
        The widest gap between two groups.
    accuracy_error, gap_error : float
        Standard errors of the two differences.
    noise : float
        The share of labels that may be wrong, where none could be corrected.
    believed : bool
        Whether the labels it was measured on can be believed.
    held_out : bool
        Whether it was measured on rows that neither model saw.
    """

    accuracy: float
    plain_accuracy: float
    gap: float
    plain_gap: float
    accuracy_error: float
    gap_error: float
    noise: float
    believed: bool
    held_out: bool

    @property
    def has_collapsed(self) -> bool:
        """Whether it is certainly less accurate, whichever labels are wrong.

        Accuracy on wrong labels differs from that on the true labels of the same rows by at most the share of wrong
        ones.
        """
        return self.noise > 0 and self.accuracy + self.noise < self.plain_accuracy - self.noise

    @property
    def verdict(self) -> Verdict:
        """Whether the fair model is the better one, as far as one can know."""
        if self.has_collapsed:
            return "worse"
        # Either by more than chance: what is gained, and what is lost.
        accuracy, narrowed = self.accuracy - self.plain_accuracy, self.plain_gap - self.gap
        margins = STANDARD_ERRORS * self.accuracy_error, STANDARD_ERRORS * self.gap_error
        gained = accuracy > margins[0] or narrowed > margins[1]
        if not (gained or -accuracy > margins[0] or -narrowed > margins[1]):
            return "no different"
        if not self.believed:
            return "cannot be known"
        return "better" if gained else "worse"

    def __str__(self) -> str:
        where = "rows that neither saw" if self.held_out else "the training rows"
        return (
            f"on {where} the fair model is right {self.accuracy:.1%} of the time with a widest gap of {self.gap:.3f}, "
            f"the plain one {self.plain_accuracy:.1%} with {self.plain_gap:.3f}"
        )


def compare_models(
    together: Together, settings: SolverSettings, *, believed: bool, held_out: bool, noise: float = 0.0
) -> PlainComparison:
    """Compare two models by what they predict for the same rows.

    >>> both = Together(np.array([[[[8.0, 0.0], [0.0, 2.0]]], [[[2.0, 0.0], [0.0, 8.0]]]]))
    >>> settings = SolverSettings(fairness="equal_opportunity", positive=1, named_groups=1, tolerance=None)
    >>> compare_models(both, settings, believed=True, held_out=False).verdict
    'no different'
    """
    tables = [np.maximum(together.counts.sum(axis=axis), 0.0) for axis in (3, 2)]
    _, accuracy_error = accuracy_gain(together)
    (plain_accuracy, before), (fair_accuracy, after) = map(settings.measure, tables)
    return PlainComparison(
        accuracy=fair_accuracy,
        plain_accuracy=plain_accuracy,
        gap=after[0].size if after else 0.0,
        plain_gap=before[0].size if before else 0.0,
        accuracy_error=accuracy_error,
        gap_error=_gap_error(together, tables, (before[0], after[0])) if before else 0.0,
        noise=noise,
        believed=believed,
        held_out=held_out,
    )


def _gap_error(together: Together, tables: list[Floats], gaps: tuple[RateGap, RateGap]) -> float:
    """Return the standard error of the difference between two gaps, which are measured on the same rows."""
    parts = []  # what each row adds to the gaps
    for gap, table in zip(gaps, tables, strict=True):
        signs = np.zeros((1, table.shape[1]))
        signs[0, [gap.high, gap.low]] = 1.0, -1.0
        parts.append(Rates([gap.rate]).derivative(table, signs))
    return float(np.sqrt(together.add_squares(parts[0][:, :, :, None] - parts[1][:, :, None, :])))


class FairEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the sieve have in common.

    Their ``fit`` sets ``comparison_``, ``estimate_``, ``is_plain_``, ``path_``, ``stopped_`` and ``tolerance_``.
    """

    estimate_: CleanRatioEstimate | None
    gap_: float
    tolerance: float | None

    def at(self, *, tolerance: float) -> Any:
        """Return the most accurate model of the path whose gap is at most ``tolerance``, without another fit.

        That of a :class:`~fairsieve.estimators.sieve.SieveClassifier` needs ``keep_path``.

        Raises
        ------
        InvalidInputError
            Where no model of the path is within the tolerance.
        """
        check_is_fitted(self)
        wanted = check_share("tolerance", tolerance)
        if not getattr(self, "keep_path", True):
            raise InvalidInputError("at() needs keep_path=True, which fits the classifier of every round")
        smallest = float(self.path_["gap"].min())
        if smallest > wanted:
            way_out = "see path_" if self.tolerance is not None else f"name it in a fit, tolerance={wanted}"
            raise InvalidInputError(
                "tolerance must be at least the smallest gap of the path, "
                f"{smallest:.3f}; got {wanted}: {way_out}"
            )
        chosen = copy(self)
        chosen.tolerance = chosen.tolerance_ = wanted
        chosen.stopped_ = "met"
        chosen._choose(choose_point(self._points, wanted))
        return chosen

    def _describe_path(self, selected: Sequence[float], thresholds: Sequence[float]) -> None:
        """Set what is known of each point of the path."""
        rows = zip(self._points, selected, thresholds, strict=True)
        described = [(each.accuracy, each.gap, count, threshold) for each, count, threshold in rows]
        self.path_ = pd.DataFrame(described, columns=["accuracy", "gap", "selected", "threshold"])

    def suspects(self) -> pd.DataFrame:
        """List the training samples whose labels to check, the likeliest wrong label first.

        With "auto" they are those whose label is more likely wrong than right. With a given ``clean_ratio`` they are
        those that the selection left out and to which the model would give another label, the highest loss first, and
        no more than that ratio says. Where the estimate is inconclusive there are none. The losses of a sieve are
        out of fold.

        Returns
        -------
        DataFrame
            ``row`` in the training data, ``label``, ``suggested`` (the likeliest class), ``loss``, ``probability`` of
            the suggested label, and ``group``.
        """
        check_is_fitted(self)
        if self._suspects is None:
            raise InvalidInputError(f"suspects() {ROWS_GONE}")
        return self._suspects.copy()

    @property
    def sample_indices_(self) -> Any:
        """Rows of the training data whose labels were believed, ascending."""
        check_is_fitted(self)
        if self._selected is None:
            raise AttributeError(f"sample_indices_ {ROWS_GONE}")
        return self._selected

    def _keep_doubts(self, doubts: dict[int, tuple[pd.DataFrame, Integers]]) -> None:
        """Keep the suspects and the believed rows of points of the path, in a form that can be stored."""
        self._doubts = pd.concat([frame.assign(place=place) for place, (frame, _) in doubts.items()])
        self._believed = {str(place): rows for place, (_, rows) in doubts.items()}

    def _take_doubts(self, place: int) -> None:
        """Take the suspects and the believed rows of a point of the path; None where they are not kept."""
        self._suspects = self._selected = None
        if str(place) in self._believed:
            doubts = self._doubts[self._doubts["place"] == place]
            self._suspects = doubts.drop(columns="place").reset_index(drop=True)
            self._selected = self._believed[str(place)]

    @property
    def effective_weights_(self) -> pd.DataFrame:
        """How much each class (a row) of each group (a column) weighed in training."""
        try:
            weights = self._effective
        except AttributeError:
            raise AttributeError("effective_weights_ is known once the estimator is fitted") from None
        groups = pd.Index(self.sensitive_values_, name="group", tupleize_cols=False)
        return pd.DataFrame(weights, index=pd.Index(self.classes_, name="class"), columns=groups)

    def __getstate__(self) -> Any:
        """Return what is stored or copied: not what lies on a dask cluster, which another process does not reach.

        Data frames are stored as their columns, which skops takes too.
        """
        state = super().__getstate__()
        kept = {name: None if is_dask(value) else value for name, value in state.items()}
        frames = {name: value for name, value in kept.items() if isinstance(value, pd.DataFrame)}
        columns = {name: {key: _as_stored(frame[key]) for key in frame} for name, frame in frames.items()}
        return {name: value for name, value in kept.items() if name not in frames} | {"_frames": columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        frames = {
            name: pd.DataFrame(
                {key: pd.Series(values, dtype=kind) for key, (values, kind) in columns.items()}
            )
            for name, columns in state.get("_frames", {}).items()
        }
        super().__setstate__({name: value for name, value in state.items() if name != "_frames"} | frames)

    def next_to_verify(self, n: int) -> tuple[Integers, Floats]:
        """Choose rows of the training data to check next, with weights for ``verified_weight``."""
        check_is_fitted(self)
        if self.estimate_ is None:
            raise InvalidInputError(
                "next_to_verify needs clean_ratio='auto', which estimates which labels are wrong; got "
                f"clean_ratio={self.clean_ratio!r}"
            )
        chosen, weights = self.estimate_.next_to_verify(n)
        return chosen if self._kept is None else self._kept[chosen], weights

    def _at_threshold(self, classifier: Any, threshold: float) -> Any:
        """Return a classifier of scikit-learn that predicts by a threshold of the positive class."""
        positive = self.classes_[1] if self.pos_label is None else self.pos_label
        return classifier if threshold == 0.5 else at_threshold(classifier, threshold, positive)

    @property
    def _most_updates(self) -> int:
        """The most updates."""
        most: int = self.max_iter
        return most

    def _check_parameters(self) -> None:
        """Check the parameters that decide when to stop."""
        check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        if self.tolerance is not None:
            check_share("tolerance", self.tolerance)
        if self.max_accuracy_loss is not None:
            check_share("max_accuracy_loss", self.max_accuracy_loss)
        check_at_least("max_iter", self._most_updates, 1)

    def _settings(self, cells: Cells, compared: bool, **more: Any) -> SolverSettings:
        """Say what is compared between groups, and when to stop."""
        notion = find_notion(self.fairness or EO)
        return SolverSettings(
            fairness=notion.name,
            positive=positive_code(notion.name, cells, self.pos_label),
            named_groups=cells.named_groups if compared else 0,
            tolerance=None if self.tolerance is None else float(self.tolerance),
            max_iter=self._most_updates,
            classes=len(cells.classes),
            max_accuracy_loss=self.max_accuracy_loss,
            **more,
        )

    def _prefers_plain(self) -> bool:
        """Say whether the plain model is to be kept: no tolerance was named, and the fair one is no better."""
        found: PlainComparison | None = self.comparison_
        if self.tolerance is not None or found is None:
            return False
        gain = found.accuracy - found.plain_accuracy, found.accuracy_error
        return found.verdict == "worse" or not is_better(found.plain_gap - found.gap, *gain)

    def _describe_gap(self) -> str:
        """Say between whom the widest gap of the model is, and in which rate."""
        gaps = getattr(self, "_gaps", [])
        if not gaps:
            return ""
        rate, names = gaps[0].rate, self.sensitive_values_
        low, high = names[gaps[0].low], names[gaps[0].high]
        if rate.predicted < 0 or rate.of_predicted >= 0:
            return f" (between the groups {low} and {high})"
        among = "" if rate.of_true < 0 else f" of those labelled {self.classes_[rate.of_true]}"
        return f" (how often {self.classes_[rate.predicted]} is predicted{among}: {low} least, {high} most)"

    def _tell(self) -> None:
        """Warn where training was stopped, a gap above the tolerance is left, or the fair model is not better."""
        best, verdict = float(self.path_["gap"].min()), self.comparison_ and self.comparison_.verdict
        gap = (
            f"{best:.3f}"  # nobody should pay accuracy for the last bit, so that the model's own may be wider
        )
        if gap != f"{self.gap_:.3f}":
            gap += f" at best ({self.gap_:.3f} of the model that is kept)"
        stops: dict[str, tuple[str, type[Warning]]] = {
            "interrupted": (
                f"training was stopped after {self.n_iter_} updates; the model is the best of those",
                FairsieveWarning,
            ),
            "limit": (
                f"the widest gap is {gap} after max_iter={self._most_updates} updates, above the tolerance of "
                f"{self.tolerance_:.3g}: raise max_iter",
                ConvergenceWarning,
            ),
            "unreachable": (
                f"the widest gap between groups is {gap}, above the tolerance of {self.tolerance_:.3g}, and "
                f"nothing that was tried narrows it further{self._describe_gap()}. What would help: the group, or a "
                "column that stands for it, among the features; thresholds by group (fairlearn's ThresholdOptimizer); "
                "or a larger tolerance",
                FairnessWarning,
            ),
        }
        # Who names no tolerance asks for what a few updates reach.
        if self.stopped_ in stops and not (self.stopped_ == "limit" and self.tolerance is None):
            warnings.warn(*stops[self.stopped_], stacklevel=3)
        found = self.comparison_
        loss = found.plain_accuracy - found.accuracy if found is not None else 0.0
        if self.tolerance is not None and found is not None and loss > max(0.01, 2 * found.accuracy_error):
            warnings.warn(
                f"the tolerance of {self.tolerance_:.3g} costs {loss:.1%} of accuracy: {found}. at(tolerance=…) gives "
                "milder models of the path",
                FairnessWarning,
                stacklevel=3,
            )
        finding = {
            "worse": "came out worse than the plain one",
            "no different": "is neither fairer nor more accurate than the plain one beyond two standard errors",
        }.get(verdict or "")
        if finding is not None and (self.is_plain_ or self.tolerance is not None):
            kept = "plain model is kept" if self.is_plain_ else "fair model is kept, as tolerance was named"
            warnings.warn(
                f"the fair model {finding}: {self.comparison_}. The {kept}", FairnessWarning, stacklevel=3
            )


def _as_stored(column: pd.Series) -> tuple[Values, str | None]:
    """Return a column as an array, and its type where that is pandas' own one of texts."""
    return column.to_numpy(), "str" if isinstance(column.dtype, pd.StringDtype) else None


def at_threshold(classifier: Any, threshold: float, positive: Any) -> FixedThresholdClassifier:
    """Return a classifier that predicts ``positive`` where its probability is the threshold or more."""
    told: Any = {"threshold": threshold, "pos_label": positive, "response_method": "predict_proba"}
    return FixedThresholdClassifier(classifier, **told)


def check_two_classes(rule: ThresholdRule, cells: Cells) -> None:
    """Refuse a threshold where there are more than two classes."""
    if not rule.is_default and len(cells.classes) != 2:
        raise InvalidInputError(
            f"threshold must be 0.5 for more than two labels, of which the likeliest is predicted; got {rule} with "
            f"{len(cells.classes)} labels: leave it out, or make two labels of them"
        )


# ---- An order of rows, columns and groups that follows from what they hold
#
# Sums in another order differ in their last digits, and a search that is not convex makes much of that. So
# the linear solver gets the rows of a table in an order of their own: neither names, nor the order of rows,
# columns and groups, nor a constant column decides anything, and a row that stands there twice is the row
# with a weight of 2, to the last digit.

MOST_ARRANGED = 5_000_000  # numbers in the table: a larger one would be copied at a cost that is felt
GRAIN = 2.0**30  # sums are rounded to this part of the largest: their last digits depend on the order


@dataclass(frozen=True, eq=False)
class Arrangement:
    """How a table was arranged.

    Attributes
    ----------
    first, place : integer arrays
        The first of each different row, in the new order; and the place there of every row.
    columns : integer array
        The columns that are not constant, in the new order.
    groups, rank : integer arrays
        The groups in the new order, and the place of each; samples without a group stay the last.
    """

    first: Codes
    place: Codes
    columns: Codes
    groups: Codes
    rank: Codes

    @classmethod
    def of(cls, checked: Checked, labels: Codes) -> Arrangement:
        """Arrange the rows; equal ones are one, unless their ``labels``, as they are believed, differ."""
        data, cells = checked.data, checked.data.cells
        weights = checked.counts
        content = row_keys(row_phases(data, weights)[0], DRAWN_BY)
        spread = weights * (content / 2.0**64)  # a number for each row, which says nothing about it
        features = np.asarray(dense(data.features), np.float64) + 0.0  # a negative zero is a zero
        low, high = features.min(axis=0), features.max(axis=0)
        share = (features - low) / np.where(high > low, high - low, 1.0)
        # Columns are known by their moments and, as several may hold as many ones, by the rows that have these.
        moments = spread @ share, weights @ share**2, weights @ share
        columns = np.lexsort([*map(_rounded, moments)])
        columns = columns[(high > low)[columns]] if (high > low).any() else columns
        masses = [_rounded(_count(cells.group_codes, each, cells.shape[1])) for each in (spread, weights)]
        groups = np.lexsort([*masses, np.arange(cells.shape[1]) >= cells.named_groups])
        rank = np.argsort(groups)
        factors = hash_array(np.arange(len(columns)), categorize=False) | np.uint64(1)
        values = np.ascontiguousarray(features[:, columns]).view(np.uint64)
        whole = hash_array(values @ factors, categorize=False)
        keys = labels, rank[cells.group_codes], cells.label_codes, whole, content
        order = np.lexsort(keys)
        differs = np.ones(len(order), bool)
        differs[1:] = np.any([np.diff(key[order].astype(np.uint64)) != 0 for key in keys[:-1]], axis=0)
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(differs) - 1
        return cls(order[differs], place, columns, groups, rank)

    def arrange(self, checked: Checked) -> Checked:
        """Return different rows by the codes of their labels and groups."""
        data, cells = checked.data, checked.data.cells
        classes, groups = (list(range(count)) for count in cells.shape)
        codes = cells.label_codes[self.first], self.rank[cells.group_codes[self.first]]
        features = data.features[self.first][:, self.columns]
        samples = Samples(features, *codes, classes=classes, group_values=groups)
        counts = _count(self.place, checked.counts, len(self.first))
        return Checked(samples, counts, np.arange(len(self.first)), len(self.first))

    def relabel(self, rows: LinearRows, like: LinearRows) -> LinearRows:
        """Return arranged rows under other labels; chances of equal rows are averaged."""
        chances = rows.chances
        if chances is not None:
            weighted = [_count(self.place, rows.weights * each, len(self.first)) for each in chances.T]
            chances = np.stack(weighted, axis=1) / like.host_weights[:, None]
        return like.with_labels(rows.host_labels[self.first], chances)

    def restore(self, solution: Solution, before: LinearRows, after: LinearRows) -> Solution:
        """Return what was found for the rows as they came, ``before`` they were arranged."""
        known: dict[int, Point] = {}
        width = before.columns
        shift = np.broadcast_to(before.shift, width)
        moved = shift[self.columns] - np.broadcast_to(after.shift, len(self.columns))

        def back(point: Point) -> Point:
            if id(point) not in known:
                model = point.models[0]
                parameters = np.zeros((len(model.parameters), width + 1))
                parameters[:, self.columns] = model.parameters[:, :-1]
                parameters[:, -1] = model.parameters[:, -1] + model.parameters[:, :-1] @ moved
                tables: Any = {
                    name: getattr(point, name)[:, self.rank] for name in ("ratios", "effective", "counts")
                }
                gaps = [
                    gap._replace(low=int(self.groups[gap.low]), high=int(self.groups[gap.high]))
                    for gap in point.gaps
                ]
                masses = model.masses[:, self.rank]
                models = [model._replace(parameters=parameters, masses=masses, curvature=None)]
                known[id(point)] = replace(point, models=models, gaps=gaps, shift=before.shift, **tables)
            return known[id(point)]

        return replace(
            solution,
            points=[back(point) for point in solution.points],
            natural=back(solution.natural),
            plain=back(solution.plain),
            chosen=back(solution.chosen),
            together=[each.take_groups(self.rank) for each in solution.together],
        )


def _count(places: Codes, weights: Floats, size: int) -> Floats:
    """Add up weights by place."""
    return np.asarray(np.bincount(places, weights, size), np.float64)


def _rounded(sums: Floats) -> Floats:
    return np.asarray(np.rint(sums / np.abs(sums).max(initial=1e-300) * GRAIN))
