"""A fair and robust classifier with scikit-learn's interface."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import FairnessWarning, FairsieveWarning, InvalidInputError
from fairsieve.estimators._parts import DaskTable, PartTable, predict_lazily
from fairsieve.estimators.base import (
    MOST_ARRANGED,
    Arrangement,
    FairEstimator,
    check_two_classes,
    compare_models,
)
from fairsieve.label_noise.estimate import CleanRatioEstimate, Rule, estimate_with_rule, warn_if_inconclusive
from fairsieve.label_noise.flip_model import transitions
from fairsieve.label_noise.survey import content_folds
from fairsieve.label_noise.verified import (
    Verification,
    check_verification,
    gain_on_checked,
    refuse_known_ratio,
    suspects_of,
)
from fairsieve.notions import EO
from fairsieve.progress import progress_bar
from fairsieve.samples import Checked, check_features, check_samples, draw_rows, read_seed, warn_of_groups
from fairsieve.selection.cells import Cells, Floats, Integers, Values, positive_code
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.compromises import SURE, Point, Solution, SolverSettings
from fairsieve.training.newton import (
    RIDGES,
    Cleaning,
    LinearModel,
    choose_cleaning,
    choose_ridge,
    keep_believable,
)
from fairsieve.training.rows import LinearRows, Table, to_host
from fairsieve.training.solver import MANY, Folds, keep_fairer, solve
from fairsieve.validation import check_positive, is_dask

FOLDS, DEALT_AGAIN = 5, 2_000  # rows up to which a named tolerance is judged by three deals
MOST_CHOSEN_BY = 6_000  # rows by which the ridge and the cleaning are chosen
MOST_CLASSES, FEW_CLASSES = 100, 10  # more are ids or numbers, not classes; of few rows, a few may be
LARGEST = 1e150
LEARNT_BY_HEART = 200  # rows for each parameter, below which a model does better on its own rows
FEWEST = 40  # rows of a class, or there is too little to set a fold aside


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a fit solves for.

    Attributes
    ----------
    roles : Table
        The rows as they are trained on, believed, judged and given.
    folds : Folds or None
    ridge, clean_ratio : float
    looked_at : LinearRows
        The rows as they came; of a table in parts, its sample.
    arrangement : Arrangement or None
        How the rows of ``roles`` follow from these.
    """

    roles: Table
    folds: Folds | None
    ridge: float
    clean_ratio: float
    looked_at: LinearRows
    arrangement: Arrangement | None


class FairRobustClassifier(FairEstimator):
    """Train a linear classifier that is fair to groups and robust to wrong labels.

    It starts from a model that takes every group as it comes, and shifts weight between groups until their rates
    differ by no more than ``tolerance``. Labels that are probably wrong are corrected, or left out, on the way. The
    result is one deterministic model that needs no groups to predict.

    Columns are centred and scaled inside; a sample weight of 2 is the same as the sample twice.

    Parameters
    ----------
    fairness : str or None, default="equalized-odds"
        The name of a notion of fairness, see :mod:`fairsieve.notions`.
        None if nothing is to be equal between groups.
    clean_ratio : float in (0, 1] or "auto", default="auto"
        Share of the labels believed to be right; if unsure, choose a lower value. "auto" estimates it, and which
        labels are wrong, as far as the data can say.
    tolerance : float in [0, 1], optional
        The largest difference between any two groups, in the rates that the notion compares, that may remain,
        whatever it costs. When None, 0.02, or one standard error of the widest gap where that is more (the rows could
        not tell), as far as ``max_accuracy_loss`` allows; and the plain model is kept where the fair one is no better:
        neither fairer, nor surely more accurate by more than it is less fair.
    max_accuracy_loss : float in [0, 1] or None, default=0.01
        What that may cost at most in accuracy beside the plain model, at 95 % confidence. It is measured on labels as
        they are believed, or as if every group had the same share of each class if that is kinder, since labels that
        are wrong in one group hide what a fair model gains. None lifts the limit.
    ridge : float or "auto", default="auto"
        How strongly coefficients are held back. Columns are measured by two standard deviations or, of two values, by
        their distance: there 1 is scikit-learn's C=1, and a quarter is C=1 on standardised numbers. "auto" begins at a
        quarter, and where rows are few for the columns it takes more as long as held-out loss surely falls.
    threshold : float or str, default=0.5
        The probability from which on the positive one of two classes is predicted, and at which rates are made
        equal; or a rule that chooses it: "balanced" (highest balanced accuracy), "cost:FP,FN" (lowest cost of false
        positives and false negatives) or "rate:SHARE" (so many are predicted positive).
    max_iter : int, default=200
        The most updates, as a safety limit.
    pos_label : label, optional
        The positive class; the last of two when None.
    device : str, optional
        Where to train, such as "cuda", which needs torch; the CPU when None.
    random_state : int, RandomState or None
        Decides which rows are held out where labels were verified; nothing else depends on it.
    verbose : int, default=0
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
        The widest gap that is left on the rows it is judged on, with corrected labels where labels are corrected. Where
        there are few rows for the columns, models that did not see a row predict it (``comparison_.held_out``).
    stopped_ : {"met", "cost", "unreachable", "limit", "interrupted"}
        Why it ended: the tolerance was met, on the rows that gaps are judged on; no tolerance was named, and less would
        cost more than ``max_accuracy_loss``, or weights do not reach it; nothing that was tried narrows the widest gap
        further; ``max_iter``; Ctrl-C.
    n_iter_ : int
        Updates that were made.
    path_ : DataFrame
        ``accuracy``, ``gap`` and ``selected`` rows of the models that no other beats in both accuracy and gap, from the
        widest gap to the narrowest, and the ``threshold`` from which each predicts the positive class; measured on all
        rows, with labels as they are believed.
    path_models_ : list of LogisticRegression
        The models of the path, as scikit-learn's.
    path_index_ : int
        Which of them was chosen; the fair one, also where the plain model is kept.
    ratios_ : array of shape (classes, groups)
        The shares of each class by group that the model was trained with.
    effective_weights_ : DataFrame
        How strongly each cell, of a class (rows) and a group (columns), pulled, beside what its rows would by
        themselves: its share of the training weight, divided by its share of the rows, and where gaps were constrained
        what that added; below 0, towards another class.
    ridge_ : float
        The ridge that was used.
    left_out_ : integer array
        Rows of the training data that were not trained on, since given labels are predicted better without them. It is
        not said that their labels are wrong, and rates are judged on them too.
    clean_ratio_ : float
        The clean ratio that was used.
    estimate_ : CleanRatioEstimate or None
        What "auto" found.
    sample_indices_ : integer array
        Rows of the training data whose labels were believed, ascending.
    plain_model_ : LogisticRegression
        Plain logistic regression on the same rows and labels, as scikit-learn's: it predicts. With another threshold
        than .5 it is inside scikit-learn's FixedThresholdClassifier.
    comparison_ : PlainComparison or None
        The fair model beside the plain one, and a ``verdict``; None where no fairness was asked for.
    is_plain_ : bool
        Whether the plain model was kept.
    threshold_ : float
        As given, or as the rule chose it.
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
        fairness: str | None = EO,
        *,
        clean_ratio: float | Literal["auto"] = "auto",
        tolerance: float | None = None,
        max_accuracy_loss: float | None = 0.01,
        ridge: float | Literal["auto"] = "auto",
        threshold: float | str = 0.5,
        max_iter: int = 200,
        pos_label: Any = None,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fairness = fairness
        self.clean_ratio = clean_ratio
        self.tolerance = tolerance
        self.max_accuracy_loss = max_accuracy_loss
        self.ridge = ridge
        self.threshold = threshold
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
            collections too. Then the share of right labels is estimated on a sample of the rows, and predictions,
            ``suspects()`` and ``sample_indices_`` are lazy; a model that is stored or copied has the latter two no
            more.
        y : n labels
            Of any type, two or more classes.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            A weight of 2 is the same as the sample twice; a sample of weight 0 is left out. Weights that sum to less
            than there are samples are shares, and are given the mean 1.
        verified_labels : n labels, optional
            The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given
            labels. The chance of every row's true label is learnt from them; needs ``clean_ratio="auto"``.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        """
        self._check_parameters()
        if self.ridge != "auto":
            check_positive("ridge", self.ridge)
        rule = ThresholdRule.parse(self.threshold)
        table, checked, verified = self._check_samples(
            X, y, sensitive_features, sample_weight, verified_labels, verified_weight
        )
        cells = checked.data.cells
        check_two_classes(rule, cells)
        _check_classes(cells)
        _check_sizes(checked.data.features)
        if sensitive_features is not None and self.fairness is not None:
            warn_of_groups(cells)
        compared = self._check_fairness(checked, sensitive_features)
        chances_of = self._estimate(checked, verified)
        rows = self._prepare_rows(table, checked, chances_of)
        with progress_bar("updates", self.max_iter, shown=bool(self.verbose)) as report:
            settings = self._settings(
                cells, compared, clean_ratio=rows.clean_ratio, threshold=rule, report=report
            )
            solution = solve(rows.roles, settings, rows.folds, rows.ridge)
        self.ridge_, clean_ratio = rows.ridge, rows.clean_ratio
        can_choose = compared and self.tolerance is None and solution.stopped != "interrupted"
        if can_choose and verified is not None and verified.enough and (verified.codes < 0).any():
            solution = self._keep_fairer(checked, rows, settings, solution)
        if rows.arrangement is not None:
            given = cast("LinearRows", rows.roles.given)
            solution = rows.arrangement.restore(solution, rows.looked_at, given)
        self._remember(solution, settings, checked, clean_ratio)
        self._set_doubts(table, checked, rows, solution)
        self._tell()
        if self.stopped_ == "met" and self.tolerance is not None and solution.held_out:
            error = max((gap.error for gap in self._gaps[:1]), default=0.0)
            if error > self.tolerance:
                warnings.warn(
                    f"the widest gap is {self.gap_:.3f} on rows that the models did not see, with a standard error of "
                    f"{error:.3f}: so few cannot tell whether others will meet the tolerance of {self.tolerance:.3g}. "
                    "More rows would, or a larger tolerance",
                    FairnessWarning,
                    stacklevel=2,
                )
        return self

    def _check_samples(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, labels: Any, weight: Any
    ) -> tuple[PartTable | None, Checked, Verification | None]:
        """Check what ``fit`` was given; of a table in parts, return the table and a sample of its rows."""
        if is_dask(X):
            dask = DaskTable(self, X, y, sensitive_features, sample_weight, labels)
            return dask, dask.checked, None
        table = X if isinstance(X, PartTable) else None  # of fairsieve.tabular
        if table is not None:
            checked = table.checked
        else:
            checked = check_samples(self, X, y, sensitive_features, sample_weight, keep_sparse=True)
        return table, checked, check_verification(checked, labels, weight)

    def _prepare_rows(
        self, table: PartTable | None, checked: Checked, chances_of: Rule | None, like: _Rows | None = None
    ) -> _Rows:
        """Say in which roles rows are solved for: believed, corrected, left out, arranged, dealt to folds.

        Where they were prepared before, they are arranged ``like`` that.
        """
        believed, given, clean_ratio = self._believe(checked)
        looked_at, arranged, arrangement = given, checked, None
        if table is None and self.device in (None, "cpu") and given.samples * given.columns <= MOST_ARRANGED:
            arrangement = Arrangement.of(checked, believed.host_labels)
        if like is not None:
            arrangement = like.arrangement
        if arrangement is not None:
            arranged = arrangement.arrange(checked)
            given = arrangement.relabel(looked_at, LinearRows.of(arranged.data, arranged.weights).near_zero())
            believed = given if believed is looked_at else arrangement.relabel(believed, given)
        size = len(arranged.data) if table is None else table.parts.samples
        part, is_small = draw_rows(given.samples, MOST_CHOSEN_BY), self._is_small(arranged, size)
        dealt = np.arange(given.samples) if is_small else part
        deals = self._deal(arranged, dealt)
        own_deals = [deal[np.searchsorted(dealt, part)] for deal in deals]
        ridge, cleaning = self._choose_by_held_out(believed, given, part, own_deals, is_small, clean_ratio)
        train, folds = believed, None
        if table is not None:
            share = 0.0 if cleaning is None else cleaning.share
            train, believed, given = table.roles(chances_of if clean_ratio == 1.0 else None, share, ridge)
        elif cleaning is not None:
            train = believed.with_weights(believed.host_weights * cleaning.kept)
        if table is None and deals and is_small:
            # What is left out in training for a fold was found without it, for one deal.
            folds = Folds([deals[0], *deals[2:]])
            if cleaning is not None:
                folds = Folds(deals[:1], cleaning.by_fold or None)
        self.left_out_, to_true = np.zeros(0, np.int64), self._correction()
        if cleaning is not None and not isinstance(
            table, DaskTable
        ):  # of a table in parts, those of its sample
            kept = cleaning.kept if arrangement is None else cleaning.kept[arrangement.place]
            self.left_out_ = checked.rows[~kept]
        if to_true is not None and arrangement is not None:
            to_true = to_true[arrangement.groups]
        roles = Table(train, believed, believed if to_true is None else given, given, to_true)
        return _Rows(roles, folds, ridge, clean_ratio, looked_at, arrangement)

    def _remember(
        self, solution: Solution, settings: SolverSettings, checked: Checked, clean_ratio: float
    ) -> None:
        """Set what is known of the path and of the model that was chosen, or of the plain one where it is kept."""
        self._solution, self._points, self._positive = solution, solution.points, settings.positive
        self.tolerance_ = solution.tolerance
        self.n_iter_, self.stopped_ = max(solution.n_iter, 1), solution.stopped
        selected = [float(each.models[0].masses.sum()) for each in solution.points]
        self._describe_path(selected, [*map(self._read_threshold, solution.points)])
        chosen = next(place for place, point in enumerate(self._points) if point is solution.chosen)
        self.path_index_ = chosen
        self.comparison_, self._comparisons, self._selects = None, [], clean_ratio < 1.0
        if settings.named_groups and solution.stopped != "interrupted":
            believed = clean_ratio == 1.0 and (self.estimate_ is None or bool(self.estimate_.credible))
            known: Any = {"believed": believed, "held_out": solution.held_out, "noise": 1 - clean_ratio}
            self._comparisons = [compare_models(both, settings, **known) for both in solution.together]
            self.comparison_ = self._comparisons[chosen]
        self.is_plain_ = self._prefers_plain() if solution.is_plain is None else solution.is_plain
        cells = checked.data.cells
        self.classes_ = np.asarray(cells.classes, dtype=checked.data.labels.dtype)
        plain = self._as_sklearn(solution.plain.linear)
        self.plain_model_ = self._at_threshold(plain, self._read_threshold(solution.plain))
        self.path_models_ = [self._as_sklearn(point.linear) for point in solution.points]
        self.sensitive_values_ = cells.groups
        self._store(solution.plain if self.is_plain_ else solution.chosen)

    def _set_doubts(self, table: PartTable | None, checked: Checked, rows: _Rows, solution: Solution) -> None:
        """List the labels to check and the rows that were believed, for each point where each selected its own."""
        # A plain model drops nobody: its suspects are those of the natural ratios, as many as clean_ratio says.
        by_natural = self.is_plain_ or solution.chosen.lagrangian is not None
        chosen_point = solution.natural if by_natural else solution.chosen
        self._believed: dict[str, Integers] = {}
        self._kept = checked.rows
        linear = LinearModel(self.coef_, self.intercept_)
        self._suspects, self._selected = self._doubt(checked, rows, chosen_point, linear)
        if table is not None:
            table.list_suspects(self, chosen_point)
        elif self._selects and rows.roles.given.samples <= MANY:
            # Where gaps were constrained, the model with natural ratios had selected the rows.
            selecting = [each if each.lagrangian is None else solution.natural for each in self._points]
            pairs = zip(selecting, self._points, strict=True)
            doubts = [self._doubt(checked, rows, by, each.linear) for by, each in pairs]
            self._keep_doubts(dict(enumerate(doubts)))

    def _keep_fairer(
        self, checked: Checked, rows: _Rows, settings: SolverSettings, solution: Solution
    ) -> Solution:
        """Return what is found without the checked labels, where what is found with them is not surely as fair.

        A few checks change what is believed of all rows, and so which model looks fair. Neither judgement is sure, and
        what somebody checked shall not make a model less fair: so the model with checks is taken if its gap is no wider
        in either. But where the checks say that this would cost more accuracy than fairness may cost, labels are wrong
        in such a way that what is seen without checks means little.
        """
        other = clone(self).set_params(verbose=0)
        with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
            other._estimate(checked, None)
        before = other._prepare_rows(None, checked, None, rows)
        settings = replace(settings, report=lambda _: None)
        asked = replace(settings, clean_ratio=before.clean_ratio)
        without = solve(before.roles, asked, before.folds, before.ridge)
        estimate, most = cast("CleanRatioEstimate", self.estimate_), self.max_accuracy_loss
        place = slice(None) if rows.arrangement is None else rows.arrangement.place

        def is_better(ours: Integers, theirs: Integers) -> bool:
            gain, error = gain_on_checked(estimate, ours[place], theirs[place], checked.counts)
            return most is not None and gain - SURE * error > most

        roles = (rows.roles, rows.folds), (before.roles, before.folds)
        kept = keep_fairer(solution, without, *roles, settings, is_better)
        if kept is not solution:
            self.ridge_, self.left_out_ = before.ridge, other.left_out_
        return kept

    def _check_fairness(self, checked: Checked, sensitive_features: Any) -> bool:
        """Say whether groups are to be compared; warn where that was asked for and cannot be."""
        if self.fairness is None:
            return False
        positive_code(self.fairness, checked.data.cells, self.pos_label)  # names what is wrong at once
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

    def _estimate(self, checked: Checked, verified: Verification | None) -> Rule | None:
        """Take the clean ratio that was given, or estimate it; return how rows that were not looked at are judged."""
        seed, given = read_seed(self.random_state), self.clean_ratio
        if given == "auto":
            self.estimate_, chances_of = estimate_with_rule(checked, seed, verified)
            self.clean_ratio_ = self.estimate_.clean_ratio
            warn_if_inconclusive(self.estimate_)
            return chances_of if self.estimate_.acts else None
        if verified is not None:
            refuse_known_ratio(given)
        self.estimate_, self.clean_ratio_ = None, float(given)
        if int(given * len(checked.data) + 1e-9) < 1:
            raise InvalidInputError(
                f"clean_ratio must select at least one sample; {given} of {len(checked.data)} samples is none: "
                "raise it"
            )
        return None

    def _believe(self, checked: Checked) -> tuple[LinearRows, LinearRows, float]:
        """Return the rows as they are believed, the rows as they are labelled, and the share to select by loss."""
        data, estimate = checked.data, self.estimate_
        plain = LinearRows.of(data, checked.weights).near_zero().on_device(self.device)
        if estimate is None:
            return plain, plain, self.clean_ratio_
        if estimate.acts:
            return plain.with_labels(data.cells.label_codes, estimate.true_class), plain, 1.0
        if estimate.verified_codes is not None:  # too few to learn from, but known
            plain = plain.with_labels(estimate.true_codes)
        return plain, plain, estimate.clean_ratio if estimate.aimed else 1.0

    def _correction(self) -> Floats | None:
        """Return what turns counts by given label into counts by true class, where labels are flipped at random."""
        estimate = self.estimate_
        if estimate is None or not estimate.acts or estimate.verified is not None or estimate.aimed:
            return None
        return np.asarray(np.linalg.inv(transitions(estimate.flip_rates)))

    def _is_small(self, checked: Checked, size: int) -> bool:
        """Say whether a model would learn so many rows by heart, so that it must be judged on others."""
        data = checked.data
        parameters = (data.features.shape[1] + 1) * max(len(data.cells.classes) - 1, 1)
        return bool(size * checked.counts.mean() < LEARNT_BY_HEART * parameters)

    def _deal(self, checked: Checked, rows: Integers) -> list[Integers]:
        """Deal some rows to folds, twice or more; equal rows go to the same one. None where there is too little."""
        data = checked.data if len(rows) == len(checked.data) else checked.data.take(rows)
        weights = checked.counts[rows]
        masses = np.bincount(data.cells.label_codes, weights)
        if masses[masses > 0].min() < FEWEST:
            return []
        # Of few rows, which fold each is in decides how wide a gap looks, and so what a tolerance costs.
        several = self.tolerance is not None and len(data) <= DEALT_AGAIN
        return content_folds(data, weights, FOLDS, deals=4 if several else 2)

    def _choose_by_held_out(
        self,
        believed: LinearRows,
        given: LinearRows,
        part: Integers,
        deals: list[Integers],
        is_small: bool,
        clean_ratio: float,
    ) -> tuple[float, Cleaning | None]:
        """Choose the ridge, and which labels to leave out, by a part of the rows and two deals of them to folds."""
        known = RIDGES[0] if self.ridge == "auto" else float(self.ridge)
        is_open = self.ridge == "auto" and is_small
        # Where somebody checked every label, none is left to doubt.
        all_known = self.estimate_ is not None and len(self.estimate_.checked) == len(self.estimate_.wrong)
        cleans = clean_ratio >= 1.0 and self.clean_ratio == "auto" and not all_known
        if not deals or not (is_open or cleans):
            return known, None
        few, (outer, inner) = given.take(part), deals[:2]
        ridge = choose_ridge(few, outer) if is_open else known
        if not cleans:
            return ridge, None
        few_believed = few if believed is given else believed.take(part)
        cleaning = choose_cleaning(few, few_believed, outer, inner, ridge)
        if cleaning is not None and len(part) < given.samples:
            cleaning = Cleaning(cleaning.share, keep_believable(given, cleaning.share, ridge), [])
        return ridge, cleaning

    def _choose(self, place: int) -> None:
        """Take another model of the path."""
        self.is_plain_, self.path_index_ = False, place
        self._store(self._points[place])
        self.comparison_ = self._comparisons[place] if self._comparisons else None
        if self._selects:  # each point selected other rows
            self._take_doubts(place)

    def _store(self, point: Point) -> None:
        """Store a model of the path, or the plain one."""
        self.coef_, self.intercept_ = point.linear.coef, point.linear.intercept
        self.gap_, self._cut, self._gaps = point.gap, point.cut, point.gaps
        self.threshold_ = self._read_threshold(point)
        self.ratios_, self._effective = point.ratios, point.effective

    def _read_threshold(self, point: Point) -> float:
        """Return the probability of the positive class from which on a point predicts it."""
        return float(expit(point.cut if self._positive == 1 else -point.cut))

    def _doubt(
        self, checked: Checked, rows: _Rows, point: Point, linear: LinearModel
    ) -> tuple[pd.DataFrame, Integers]:
        """List the rows whose labels a model doubts, and the rows that were believed."""
        data, estimate = checked.data, self.estimate_
        wrong, believed = None, np.arange(len(data))
        if rows.clean_ratio < 1.0:
            model = point.models[0]
            believed = np.flatnonzero(to_host(rows.looked_at.select(model.parameters, model.limit).weights))
        elif estimate is not None and estimate.acts:
            is_believed = np.zeros(len(data), bool)
            is_believed[estimate.believed] = is_believed[estimate.checked] = True
            believed = np.flatnonzero(is_believed)
            wrong = estimate.wrong
        doubted = believed if estimate is None or estimate.credible else np.arange(len(data))
        decision = linear.decision(data.features)
        suspects = suspects_of(decision, data, doubted, checked.rows, wrong=wrong, share=1 - rows.clean_ratio)
        return suspects, checked.rows[believed]

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
        shift = self._cut if kind == "predict_codes" else 0.0
        predict = partial(_predict_part, LinearModel(self.coef_, self.intercept_ - shift), kind, labels)
        if is_dask(X):
            return predict_lazily(self, X, predict)
        return predict(check_features(self, X))

    def to_sklearn(self) -> Any:
        """Return the fitted model as scikit-learn's own LogisticRegression.

        It predicts the same, and everything that knows scikit-learn can store, convert or explain it without
        fairsieve: skops, MLflow, skl2onnx, shap. With another threshold than .5 it is inside scikit-learn's
        FixedThresholdClassifier.
        """
        check_is_fitted(self)
        return self._at_threshold(self._as_sklearn(LinearModel(self.coef_, self.intercept_)), self.threshold_)

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


def _predict_part(model: LinearModel, kind: str, labels: Values | None, X: Any) -> Values:
    """Predict by a method of the model, and name the classes that it finds."""
    found = getattr(model, kind)(X if sparse.issparse(X) else np.asarray(X))
    return np.asarray(found if labels is None else labels[found])


def _check_classes(cells: Cells) -> None:
    """Refuse so many classes that labels can hardly be classes."""
    classes, rows = len(cells.classes), len(cells)
    if classes > MOST_CLASSES or (classes > FEW_CLASSES and 10 * classes >= rows):
        raise InvalidInputError(
            f"y must have at most {MOST_CLASSES} classes, and fewer than a tenth of the rows; got {classes} classes of "
            f"{rows:,} rows: merge rare labels, or predict a number by a regression"
        )


def _check_sizes(features: Any) -> None:
    """Refuse numbers whose squares overflow."""
    values = features.data if sparse.issparse(features) else features
    edges = (values.max(), values.min()) if values.size else (0.0,)
    largest = max(float(np.abs(edge)) for edge in edges)
    if largest > LARGEST:
        raise InvalidInputError(
            f"X must hold numbers of at most {LARGEST:g} in size, whose squares can be computed; got {largest:g}: "
            "rescale that column, or mark such values as missing"
        )
