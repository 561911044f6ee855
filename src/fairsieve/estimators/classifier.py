"""A fair and robust classifier with scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import FairnessWarning, FairsieveWarning, InvalidInputError
from fairsieve.inputs import (
    Checked,
    check_features,
    check_samples,
    read_seed,
    rename_parameters,
    warn_of_groups,
)
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of, warn_if_inconclusive
from fairsieve.label_noise.flip_model import transitions, true_sums
from fairsieve.label_noise.survey import content_folds
from fairsieve.label_noise.suspects import suspects_of
from fairsieve.label_noise.verified import Verification, check_verification, refuse_known_ratio
from fairsieve.optional import is_dask
from fairsieve.progress import progress_bar
from fairsieve.samples import merge_rows
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import comparisons, fairness_name
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.linear_rows import LinearRows, to_host
from fairsieve.training.ratio_search import Gap, SolverSettings, Stopped, choose_point
from fairsieve.training.solver import Point, solve
from fairsieve.validation import check_at_least, check_clean_ratio, check_share

__all__ = ["FairEstimator", "FairRobustClassifier", "PlainComparison", "compare_models"]

Floats = NDArray[np.float64]

Verdict = Literal["better", "no different", "worse", "cannot be known"]

STANDARD_ERRORS = 2.0
LEARNT_BY_HEART = 200  # rows for each parameter, below which a model does better on its own rows
FEWEST = 40  # rows of a class, or there is too little to set a fold aside

OLD_NAMES = {
    "epochs": "max_iter",
    "step_size": "tolerance",
    "average_last": "tolerance",
    "on_collapse": "tolerance (a named tolerance keeps the fair model)",
    "module": "fairsieve.fit(module, …)",
    "warmup_epochs": "fairsieve.fit(module, warmup_epochs=…)",
    "batch_size": "fairsieve.fit(module, batch_size=…)",
    "learning_rate": "fairsieve.fit(module, learning_rate=…)",
    "solver": "fairsieve.fit for the paper's loop",
    "signal": "nothing: rates are compared",
    "checkpoint_dir": "nothing: a fit takes seconds",
    "checkpoint_every": "nothing: a fit takes seconds",
}


class FairEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the sieve have in common."""

    comparison_: PlainComparison | None
    estimate_: CleanRatioEstimate | None
    is_plain_: bool
    path_: pd.DataFrame
    stopped_: Stopped
    tolerance_: float

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
            raise InvalidInputError(
                f"tolerance must be at least the smallest gap of the path, {smallest:.3f}; got {wanted}: see path_"
            )
        found = copy(self)
        found.tolerance = found.tolerance_ = wanted
        found.stopped_ = "met"
        found._choose(choose_point(self._points, wanted))
        return found

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
        return self._suspects.copy()

    def next_to_verify(self, n: int) -> tuple[NDArray[np.int64], Floats]:
        """Choose rows of the training data to check next, with weights for ``verified_weight``."""
        check_is_fitted(self)
        if self.estimate_ is None:
            raise InvalidInputError(
                "next_to_verify needs clean_ratio='auto', which estimates which labels are wrong; got "
                f"clean_ratio={self.clean_ratio!r}"
            )
        chosen, weights = self.estimate_.next_to_verify(n)
        return chosen if self._kept is None else self._kept[chosen], weights

    def _check_parameters(self) -> None:
        """Check the parameters that decide when to stop."""
        check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        if self.tolerance is not None:
            check_share("tolerance", self.tolerance)
        check_at_least("max_iter", self.max_iter, 1)

    def _settings(self, cells: Cells, compared: bool, **more: Any) -> SolverSettings:
        """Say what is compared between groups, and when to stop."""
        positive = 0
        # of more than two classes, only equal opportunity has a positive one
        if len(cells.classes) <= 2 or self.pos_label is not None or self.fairness == "equal_opportunity":
            positive = cells.class_index(self.pos_label) if self.fairness is not None else 0
        return SolverSettings(
            fairness=fairness_name(self.fairness or "equalized_odds"),
            positive=positive,
            named_groups=cells.named_groups if compared else 0,
            tolerance=None if self.tolerance is None else float(self.tolerance),
            max_iter=self.max_iter,
            **more,
        )

    def _prefers_plain(self) -> bool:
        """Say whether the plain model is to be kept: no tolerance was named, and the fair one is not better."""
        verdict = self.comparison_ and self.comparison_.verdict
        return self.tolerance is None and verdict in ("worse", "no different")

    def _tell(self) -> None:
        """Warn where training was stopped, a gap above the tolerance is left, or the fair model is not better."""
        if self.stopped_ == "interrupted":
            warnings.warn(
                f"training was stopped after {self.n_iter_} updates; the model is the best of those",
                FairsieveWarning,
                stacklevel=3,
            )
            return
        gap, verdict = float(self.path_["gap"].min()), self.comparison_ and self.comparison_.verdict
        if self.stopped_ == "limit":
            warnings.warn(
                f"the widest gap is {gap:.3f} after max_iter={self.max_iter} updates, above the tolerance of "
                f"{self.tolerance_:.3g}: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif self.stopped_ == "exhausted":
            warnings.warn(
                f"the widest gap between groups is {gap:.3f}, above the tolerance of {self.tolerance_:.3g}, and no "
                "shift of weight between groups narrows it further. What would help: the group, or a column that "
                "stands for it, among the features; thresholds by group (fairlearn's ThresholdOptimizer); or a larger "
                "tolerance",
                FairnessWarning,
                stacklevel=3,
            )
        if verdict in ("worse", "no different"):
            finding = {
                "worse": "came out worse than the plain one",
                "no different": "is neither fairer nor more accurate than the plain one beyond two standard errors",
            }[verdict]
            model = (
                "The plain model is kept"
                if self.is_plain_
                else "The fair model is kept, as tolerance was named"
            )
            warnings.warn(
                f"the fair model {finding}: {self.comparison_}. {model}", FairnessWarning, stacklevel=3
            )


@rename_parameters(OLD_NAMES)
class FairRobustClassifier(FairEstimator):
    """Train a linear classifier that is fair to groups and robust to wrong labels.

    It starts from a model that takes every group as it comes, and shifts weight between groups until their rates
    differ by no more than ``tolerance``. Labels that are probably wrong are corrected, or left out, on the way. The
    result is one deterministic model that needs no groups to predict.

    Columns are centred and scaled inside; a sample weight of 2 is the same as the sample twice.

    Parameters
    ----------
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"} or None
        What is to be equal between groups; None if nothing is.
    clean_ratio : float in (0, 1] or "auto"
        Share of the labels believed to be right; if unsure, choose a lower value. "auto" estimates it, and which
        labels are wrong, as far as the data can say.
    tolerance : float in [0, 1], optional
        The largest difference between any two groups, in the rates that the notion compares, that may remain. When
        None, 0.02, or one standard error of the widest gap where that is more (the rows could not tell); then the
        plain model is kept where the fair one is not measurably better.
    max_iter : int
        The most updates, as a safety limit.
    pos_label : label, optional
        The positive class; the last of two when None.
    device : str, optional
        Where to train, such as "cuda", which needs torch; the CPU when None.
    random_state : int, RandomState or None
        Decides which rows are held out where labels were verified; nothing else depends on it.
    verbose : int
        Above 0, a progress bar.

    Attributes
    ----------
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last one None stands for the samples
        without a group, which train but do not count for fairness.
    coef_, intercept_ : arrays of shape (1, d) and (1,), or (classes, d) and (classes,)
        In the units of the features, as scikit-learn's LogisticRegression has them.
    tolerance_ : float
        The tolerance that was used.
    gap_ : float
        The widest gap that is left on the rows it is judged on, with corrected labels where labels are corrected.
    gap_held_out_ : float or None
        The same number where those rows were held out, as where there are few rows for the columns; None elsewhere.
    stopped_ : {"met", "exhausted", "limit", "interrupted"}
        Why it ended: the tolerance was met; no shift of weight narrows the widest gap further; ``max_iter``; Ctrl-C.
    n_iter_ : int
        Updates that were made.
    path_ : DataFrame
        ``accuracy``, ``gap`` and ``selected`` rows of every model on the way, the one with natural ratios first.
    path_models_ : list of LogisticRegression
        The models of the path, as scikit-learn's.
    ratios_ : array of shape (classes, groups)
        The shares of each class by group that the model was trained with.
    effective_weights_ : array of shape (classes, groups)
        The share of the training weight that each cell had, divided by its share of the rows.
    clean_ratio_ : float
        The clean ratio that was used.
    estimate_ : CleanRatioEstimate or None
        What "auto" found.
    sample_indices_ : integer array
        Rows of the training data whose labels were believed, ascending.
    plain_model_ : LogisticRegression
        Plain logistic regression on the same rows and labels, as scikit-learn's: it predicts.
    comparison_ : PlainComparison or None
        The fair model beside the plain one, and a ``verdict``; None where no fairness was asked for.
    is_plain_ : bool
        Whether the plain model was kept.
    interrupted_ : bool
        Whether training was stopped early; the model is then the best so far.
    n_features_in_ : int
    feature_names_in_ : array
        Where the features have names.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(2000, seed=0)
    >>> model = FairRobustClassifier(clean_ratio=0.9, tolerance=0.05)
    >>> model.fit(data.features, data.labels, sensitive_features=data.groups).stopped_
    'met'
    >>> model.gap_ <= 0.05, model.coef_.shape
    (True, (1, 3))
    """

    def __init__(
        self,
        fairness: str | None = "equalized_odds",
        *,
        clean_ratio: float | Literal["auto"] = "auto",
        tolerance: float | None = None,
        max_iter: int = 200,
        pos_label: Any | None = None,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fairness = fairness
        self.clean_ratio = clean_ratio
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
        verified_labels: Any = None,
        verified_weight: ArrayLike | None = None,
    ) -> FairRobustClassifier:
        """Train on labels that may be wrong.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            With a dask array or data frame, whose partitions stay on their workers, ``y`` and the others are dask
            collections too. Then the share of right labels is estimated on a sample of the rows, rows are left out by
            their loss, and predictions, ``suspects()`` and ``sample_indices_`` are lazy.
        y : n labels
            Of any type, two or more classes.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            A weight of 2 is the same as the sample twice; a sample of weight 0 is left out.
        verified_labels : n labels, optional
            The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given
            labels. The chance of every row's true label is learnt from them; needs ``clean_ratio="auto"``.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        """
        self._check_parameters()
        table, verified = None, None
        if is_dask(X):
            from fairsieve.estimators._dask import DaskTable

            table = DaskTable(self, X, y, sensitive_features, sample_weight, verified_labels)
            checked = table.checked
        else:
            checked = check_samples(self, X, y, sensitive_features, sample_weight, keep_sparse=True)
            verified = check_verification(checked, verified_labels, verified_weight)
        cells = checked.data.cells
        if sensitive_features is not None and self.fairness is not None:
            warn_of_groups(cells)
        compared = self._check_fairness(checked, sensitive_features)
        self._estimate(checked, verified)
        if table is None:
            rows, plain_rows, clean_ratio = self._believe(checked)
            folds = self._folds(checked)
        else:
            rows, plain_rows, clean_ratio = table.believe(self.estimate_, self.clean_ratio_)
            folds = None
        with progress_bar("updates", self.max_iter, shown=bool(self.verbose)) as report:
            settings = self._settings(
                cells, compared, clean_ratio=clean_ratio, correct=self._correction(), report=report
            )
            solution = solve(rows, plain_rows, settings, folds)
        self._solution, self._points = solution, solution.points
        self.tolerance_ = solution.tolerance
        self.n_iter_, self.stopped_ = max(solution.n_iter, 1), solution.stopped
        self.interrupted_ = solution.stopped == "interrupted"
        self.path_ = pd.DataFrame(
            [(each.accuracy, each.gap, float(each.models[0].masses.sum())) for each in solution.points],
            columns=["accuracy", "gap", "selected"],
        )
        self.comparison_ = None
        if compared and not self.interrupted_:
            self.comparison_ = compare_models(
                solution.together,
                settings,
                noise=1 - clean_ratio,
                believed=clean_ratio == 1.0 and (self.estimate_ is None or bool(self.estimate_.credible)),
                held_out=solution.held_out,
            )
        self.is_plain_ = self._prefers_plain()
        self.classes_ = np.asarray(cells.classes, dtype=checked.data.labels.dtype)
        self.plain_model_ = self._as_sklearn(solution.plain.linear)
        self.path_models_ = [self._as_sklearn(point.linear) for point in solution.points]
        self.sensitive_values_ = cells.groups
        self._store(solution.plain if self.is_plain_ else solution.points[solution.chosen])
        # A plain model drops nobody: its suspects are those of the natural ratios, as many as clean_ratio says.
        chosen = solution.points[0 if self.is_plain_ else solution.chosen]
        if table is None:
            self._list_suspects(checked, rows, chosen, clean_ratio)
        else:
            table.list_suspects(self, chosen)
        self._tell()
        return self

    def _check_fairness(self, checked: Checked, sensitive_features: Any) -> bool:
        """Say whether groups are to be compared; warn where that was asked for and cannot be."""
        if self.fairness is None:
            return False
        comparisons(self.fairness, checked.data.cells, self.pos_label)  # names what is wrong before any work
        if sensitive_features is None:
            warnings.warn(
                "no fairness was asked for, since no group was named: pass sensitive_features= to fit (to that of a "
                "pipeline as STEP__sensitive_features=, STEP being this step's name, or through metadata routing), or "
                "fairness=None if that is meant",
                FairnessWarning,
                stacklevel=3,
            )
            return False
        return checked.data.cells.named_groups > 1

    def _estimate(self, checked: Checked, verified: Verification | None) -> None:
        """Take the clean ratio that was given, or estimate it."""
        seed, given = read_seed(self.random_state), self.clean_ratio
        if given == "auto":
            self.estimate_ = estimate_of(checked, seed, verified)
            self.clean_ratio_ = self.estimate_.clean_ratio
            warn_if_inconclusive(self.estimate_)
            return
        if verified is not None:
            refuse_known_ratio(given)
        self.estimate_, self.clean_ratio_ = None, float(given)
        if int(given * len(checked.data) + 1e-9) < 1:
            raise InvalidInputError(
                f"clean_ratio must select at least one sample; {given} of {len(checked.data)} samples is none: "
                "raise it"
            )

    def _believe(self, checked: Checked) -> tuple[LinearRows, LinearRows, float]:
        """Return the rows as they are believed, the rows as they are labelled, and the share to select by loss."""
        data, estimate = checked.data, self.estimate_
        plain = LinearRows.of(data, checked.weights).on_device(self.device)
        if estimate is None:
            return plain, plain, self.clean_ratio_
        if estimate.acts:
            return plain.with_labels(data.cells.label_codes, estimate.true_class), plain, 1.0
        if estimate.verified_codes is not None:  # too few to learn from, but known
            plain = plain.with_labels(estimate.true_codes)
        return plain, plain, estimate.clean_ratio if estimate.aimed else 1.0

    def _correction(self) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """Return what turns counts by given label into counts by true class, where labels are flipped at random."""
        estimate = self.estimate_
        if estimate is None or not estimate.acts or estimate.verified is not None or estimate.aimed:
            return None
        table = transitions(estimate.flip_rates)
        return lambda counts: true_sums(counts, table)

    def _folds(self, checked: Checked) -> NDArray[np.int64] | None:
        """Deal the rows to folds where a model would learn them by heart; equal rows go to the same one."""
        data = checked.data
        parameters = (data.features.shape[1] + 1) * max(len(data.cells.classes) - 1, 1)
        counts = data.cells.counts.sum(axis=1)
        if len(data) >= LEARNT_BY_HEART * parameters or counts[counts > 0].min() < FEWEST:
            return None
        return content_folds(data)

    def _choose(self, place: int) -> None:
        """Take another model of the path."""
        self.is_plain_ = False
        self._store(self._points[place])

    def _store(self, point: Point) -> None:
        """Store a model of the path, or the plain one."""
        self.coef_, self.intercept_ = point.linear.coef, point.linear.intercept
        self.gap_ = point.gap
        self.gap_held_out_ = point.gap if self._solution.held_out else None
        self.ratios_, self.effective_weights_ = point.ratios, self._solution.effective_weights(point)

    def _list_suspects(self, checked: Checked, rows: LinearRows, point: Point, clean_ratio: float) -> None:
        """List the rows whose labels are doubted, and store what was believed."""
        data, estimate = checked.data, self.estimate_
        wrong, believed = None, np.arange(len(data))
        if clean_ratio < 1.0:
            model = point.models[0]
            believed = np.flatnonzero(to_host(rows.select(model.parameters, model.limit).weights))
        elif estimate is not None and estimate.acts:
            believed = merge_rows(len(data), estimate.believed, estimate.checked)
            wrong = estimate.wrong
        doubted = believed if estimate is None or estimate.credible else np.arange(len(data))
        decision = LinearModel(self.coef_, self.intercept_).decision(data.features)
        self._suspects = suspects_of(
            decision, data, doubted, checked.kept, wrong=wrong, share=1 - clean_ratio
        )
        self._kept = checked.kept
        self.sample_indices_ = believed if checked.kept is None else checked.kept[believed]

    def decision_function(self, X: Any) -> Any:
        """Compute logits: of the second class against the first, (n,), or of each of many, (n, classes)."""
        return self._predict(X, "decision")

    def predict_proba(self, X: Any) -> Any:
        """Compute the probabilities of the classes, (n, classes)."""
        return self._predict(X, "probabilities")

    def predict(self, X: Any) -> Any:
        """Predict the likeliest class of each sample."""
        return self._predict(X, "predict_codes")

    def _predict(self, X: Any, kind: str) -> Any:
        """Predict by a method of the linear model; for a dask array or data frame, when it is computed."""
        check_is_fitted(self)
        labels = self.classes_ if kind == "predict_codes" else None
        predict = partial(_predict_part, LinearModel(self.coef_, self.intercept_), kind, labels)
        if is_dask(X):
            from fairsieve.estimators._dask import predict_lazily

            return predict_lazily(self, X, predict)
        return predict(check_features(self, X))

    def to_sklearn(self) -> LogisticRegression:
        """Return the fitted model as scikit-learn's own LogisticRegression.

        It predicts the same, and everything that knows scikit-learn can store, convert or explain it without
        fairsieve: skops, MLflow, skl2onnx, shap.
        """
        check_is_fitted(self)
        return self._as_sklearn(LinearModel(self.coef_, self.intercept_))

    def _as_sklearn(self, model: LinearModel) -> LogisticRegression:
        made = LogisticRegression()
        made.coef_, made.intercept_ = model.coef.copy(), model.intercept.copy()
        made.classes_, made.n_features_in_ = self.classes_.copy(), self.n_features_in_
        made.n_iter_ = np.array([self.n_iter_], np.int32)
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_.copy()
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _predict_part(model: LinearModel, kind: str, labels: NDArray[Any] | None, X: Any) -> NDArray[Any]:
    """Predict by a method of the model, and name the classes that it finds."""
    found = getattr(model, kind)(X if sparse.issparse(X) else np.asarray(X))
    return np.asarray(found if labels is None else labels[found])


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
    joint: Floats, settings: SolverSettings, *, believed: bool, held_out: bool, noise: float = 0.0
) -> PlainComparison:
    """Compare two models by a table of what they predict together, (classes, groups, plain, fair).

    >>> joint = np.array([[[[8.0, 0.0], [0.0, 2.0]]], [[[2.0, 0.0], [0.0, 8.0]]]])
    >>> settings = SolverSettings(fairness="equalized_odds", positive=1, named_groups=1, tolerance=None)
    >>> compare_models(joint, settings, believed=True, held_out=False).verdict
    'no different'
    """
    plain, fair = joint.sum(axis=3), joint.sum(axis=2)
    total = float(joint.sum())
    labels = np.arange(len(joint))
    # How much more often the fair model is right than the plain one: −1, 0 or 1 for each row.
    right = (labels[:, None] == labels).astype(float)
    change = right[:, None, None, :] - right[:, None, :, None]
    mean = float((joint * change).sum()) / total
    accuracy_error = np.sqrt(max(float((joint * change**2).sum()) / total - mean**2, 0.0) / total)
    (plain_accuracy, before), (fair_accuracy, after) = (settings.measure(table) for table in (plain, fair))
    return PlainComparison(
        accuracy=fair_accuracy,
        plain_accuracy=plain_accuracy,
        gap=after[0].size if after else 0.0,
        plain_gap=before[0].size if before else 0.0,
        accuracy_error=float(accuracy_error),
        gap_error=_gap_error(joint, before[0], after[0]) if before else 0.0,
        noise=noise,
        believed=believed,
        held_out=held_out,
    )


def _gap_error(joint: Floats, plain: Gap, fair: Gap) -> float:
    """Return the standard error of the difference between two gaps, which are measured on the same rows."""
    classes, groups = joint.shape[:2]
    weights = [np.zeros((classes, groups, classes)) for _ in range(2)]  # what a row adds to each gap
    for weight, gap in zip(weights, (plain, fair), strict=True):
        for group, sign in ((gap.high, 1.0), (gap.low, -1.0)):
            conditions = slice(None) if gap.condition < 0 else slice(gap.condition, gap.condition + 1)
            weight[conditions, group, gap.predicted] = sign / joint[conditions, group].sum()
    added = weights[0][:, :, :, None] - weights[1][:, :, None, :]
    # The rates are taken within (condition, group): what varies is around the mean of each.
    if plain.condition < 0:
        joint, added = joint.sum(axis=0), added.sum(axis=0) / classes
    counts = joint.sum(axis=(-2, -1))
    means = (joint * added).sum(axis=(-2, -1)) / np.maximum(counts, 1e-300)
    variance = (joint * (added - means[..., None, None]) ** 2).sum()
    return float(np.sqrt(variance))
