"""Use the method with any classifier that takes sample weights: boosters, forests, pipelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _estimator_has, check_is_fitted

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._learner import (
    FittedCopy,
    Folds,
    TrainingTask,
    check_estimator,
    check_sieve_samples,
    check_targets,
    make_folds,
    select_rows,
)
from fairsieve.estimators._rounds import CrossFit, Entries, Round, Rounds
from fairsieve.estimators.base import FairEstimator, PlainComparison, check_two_classes, compare_models
from fairsieve.files import make_folder
from fairsieve.label_noise.estimate import CleanRatioEstimate, by_cell, estimate_of
from fairsieve.label_noise.verified import check_verification, refuse_known_ratio, suspects_of
from fairsieve.notions import EO
from fairsieve.progress import progress_bar
from fairsieve.samples import Checked, Samples, draw_rows, read_seed, warn_of_groups, weighted_rows
from fairsieve.selection.cells import Floats, Integers, Values, divide, positive_code, unmasked
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.compromises import SolverSettings, Together, choose_bargain, choose_point
from fairsieve.training.newton import Cleaning, choose_cleaning, choose_ridge, keep_believable
from fairsieve.training.rows import LinearRows
from fairsieve.validation import shown

ROUNDS = 2  # so that a default fit costs at most ten plain ones: benchmarks/sieve_cost.py
CLEANED_ON = 10_000  # rows, at most, that say how many labels to leave out
INNER = 5  # folds inside, by which labels are found that are hard to believe


class SieveClassifier(FairEstimator):
    """Make any classifier that takes ``sample_weight`` fair to groups and robust to wrong labels.

    The classifier is fitted in a few rounds, each under other weights. The weight of a sample is the probability that
    its label is right, times a factor of its cell (its class in its group). Which factors make the rates of groups
    differ by no more than ``tolerance`` is forecast from the classifier's own probabilities; a round measures it out of
    fold, on labels corrected for the label noise that was estimated, and the next forecast is set right by it. The most
    accurate round within the tolerance is fitted to all samples. The result is one deterministic model, which needs no
    groups to predict. With the defaults a fit costs at most ten fits of the classifier.

    Parameters
    ----------
    estimator : classifier
        With ``fit(X, y, sample_weight=…)`` and ``predict_proba``; in a pipeline the last step takes
        the weights. It gets ``X`` unchanged, with categories, missing values or as a sparse matrix.
    fairness : str, default="equalized-odds"
        The name of a notion of fairness, see :mod:`fairsieve.notions`.
    clean_ratio : float in (0, 1] or "auto", default="auto"
        The share of right labels; "auto" estimates it, and how likely each of them is right. Whether labels are wrong
        at random or on purpose is estimated in both cases: of the latter, where a share is given or which labels are
        wrong cannot be known, samples are selected by Algorithm 1 of the paper.
    tolerance : float in [0, 1], optional
        The largest difference between any two groups, in the rates that the notion compares, that may remain out of
        fold. Where no round reaches it, the most accurate of those is taken whose gap lies within a standard error of
        the smallest one, and the plain model is kept where that is measurably worse. When None, 0.02, or one
        standard error of the widest gap where that is more; then the plain model is kept where the fair one is not
        measurably better.
    max_accuracy_loss : float in [0, 1] or None, default=0.01
        What the fair model may cost at most in accuracy, out of fold, where no tolerance is named, at 95 % confidence,
        measured as :class:`~fairsieve.FairRobustClassifier` does; None for any.
    max_iter : int or None, default=None
        The most rounds after the plain one. Each costs as many fits as there are folds. When None, 2, or 3 where a
        tolerance is named.
    cv : int, splitter, iterable or None, default=3
        The folds behind the losses. A number deals the samples of every class and group evenly, and copies of a
        sample to one fold; a splitter of scikit-learn splits ``X`` and ``y``; an iterable holds pairs of rows,
        (train, test), for example ``list(GroupKFold().split(X, y, households))``. Every sample must be in a test fold.
        None predicts the training samples themselves, for models that cannot memorise labels.
    threshold : float or str, default=0.5
        The probability from which on the positive one of two classes is predicted, or a rule that chooses it
        out of fold: "balanced" (highest balanced accuracy), "cost:FP,FN" (lowest cost of false positives and
        false negatives) or "rate:SHARE" (so many are predicted positive).
    keep_path : bool, default=False
        Fit the classifier of every round to all samples, as ``path_models_``, for :meth:`at`.
    pos_label : label, optional
        The positive class; the last of two when None.
    random_state : int, RandomState or None
        Determines the folds; the classifier has its own.
    n_jobs : int, optional
        How many folds are fitted at a time.
    verbose : int, default=0
        Show a progress bar if above 0.
    checkpoint_dir : path, optional
        A folder for the results of each round, which joblib keeps there: a second fit to the same data does not
        repeat them. Needs a ``random_state``, and a deterministic classifier. joblib's files are pickles: use a
        folder that only you can write into.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all samples, under ``weights_``.
    plain_model_ : classifier
        Fitted to all samples without the method, to compare with; the same object where ``is_plain_``. With another
        threshold than .5 it is inside scikit-learn's FixedThresholdClassifier.
    is_plain_ : bool
        Whether the plain model was kept.
    comparison_ : PlainComparison or None
        The fair model beside the plain one, and a ``verdict``; None where there was nothing to compare.
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last value None stands for the samples
        without a group, which train but do not count for fairness.
    gap_ : float
        The widest gap that is left, out of fold, with corrected labels where labels are corrected.
    stopped_ : {"met", "cost", "unreachable", "limit"}
        Why it ended: the tolerance was met; no tolerance was named, and a narrower gap would cost more than
        ``max_accuracy_loss``; no weights are forecast to narrow the widest gap further; ``max_iter``.
    n_iter_ : int
        Rounds after the plain one.
    path_ : DataFrame
        ``accuracy``, ``gap`` and ``selected`` samples of every round, the plain one first, and the ``threshold`` from
        which it predicts the positive class.
    path_models_ : list of classifiers
        Those of the rounds, with ``keep_path``.
    path_index_ : int
        The place of ``estimator_`` in the path.
    weights_ : array of shape (n,)
        The weight of each sample, without its own ``sample_weight``; with verified labels, of all labels
        together that may be right. Below 0, of two classes, where it was taken for one of the other class: some gaps
        close in no other way.
    effective_weights_ : DataFrame, by class (rows) and group (columns)
        The share of the training weight that each cell had, divided by its share of the samples; below 0 where its
        labels were reversed.
    sample_indices_ : integer array
        The selected rows; for random flips, those whose label is more likely right than wrong.
    ratios_ : array of shape (classes, groups)
        The share of each group in each class.
    clean_ratio_ : float
        As given or estimated.
    estimate_ : CleanRatioEstimate or None
        What was estimated.
    flip_rates_ : array of shape (classes, groups) or None
        How often labels of each true class are flipped in each group; None where samples are selected.
    threshold_ : float
        As given, or chosen by the rule.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(500, seed=0)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    >>> model = SieveClassifier(tree, clean_ratio=0.9, tolerance=0.3, random_state=0)
    >>> model.fit(data.features, data.labels, sensitive_features=data.groups).stopped_
    'met'
    """

    estimate_: CleanRatioEstimate

    def __init__(
        self,
        estimator: Any,
        fairness: str = EO,
        *,
        clean_ratio: float | Literal["auto"] = "auto",
        tolerance: float | None = None,
        max_accuracy_loss: float | None = 0.01,
        max_iter: int | None = None,
        cv: Any = 3,
        threshold: float | str = 0.5,
        keep_path: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint_dir: Path | str | None = None,
    ) -> None:
        self.estimator = estimator
        self.fairness = fairness
        self.clean_ratio = clean_ratio
        self.tolerance = tolerance
        self.max_accuracy_loss = max_accuracy_loss
        self.max_iter = max_iter
        self.cv = cv
        self.threshold = threshold
        self.keep_path = keep_path
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
        verified_labels: Any = None,
        verified_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> SieveClassifier:
        """Train on labels that may be wrong.

        Parameters
        ----------
        X : whatever the classifier takes
        y : n labels
            Of any type, two or more classes. XGBoost takes only the labels 0, 1, …, so it is given these.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            Each multiplies its sample's weight in training; a sample of weight 0 is left out.
        verified_labels : n labels, optional
            The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given
            labels. The chance of every row's true label is learnt from them; needs ``clean_ratio="auto"``. The
            classifier is then fitted to each sample under every label that may be right, weighted by its chance, and
            rounds are compared by the same chances.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        **fit_params
            Further arguments of the classifier's ``fit``, for every copy of it that is fitted, such as
            ``eval_set=[(X_check, y_check)]`` for early stopping; in a pipeline with the name of the step,
            as in ``model__eval_set``. An array, series or column of n values is divided as the samples are.
        """
        check_estimator(self.estimator)
        self._check_parameters()
        rule = ThresholdRule.parse(self.threshold)
        X, labels = check_targets(type(self).__name__, X, y)
        checked = check_sieve_samples(X, labels, sensitive_features, sample_weight)
        cells, rows, given = checked.data.cells, checked.rows, checked.given
        if len(rows) < given:
            X = _safe_indexing(X, rows)
            fit_params = {name: select_rows(value, rows, given) for name, value in fit_params.items()}
        if sensitive_features is not None:
            warn_of_groups(cells)
        seed = read_seed(self.random_state, self.checkpoint_dir)
        positive_code(self.fairness, cells, self.pos_label)  # names what is wrong before any work
        check_two_classes(rule, cells)
        folds = make_folds(self.cv, X, cells, rows, given, seed)
        verified = check_verification(checked, verified_labels, verified_weight)
        if verified is not None:
            refuse_known_ratio(self.clean_ratio)
            if not verified.enough:
                checked = checked._replace(data=checked.data.with_labels(verified.correct(checked.data)))
        self.estimate_ = estimate_of(checked, seed, verified)
        own = weighted_rows(sample_weight, given)[1]  # as they are: their mean may matter to the classifier
        fits = self._divide(checked, X, own, fit_params, folds, seed)
        compared = sensitive_features is not None and cells.named_groups > 1
        with progress_bar("sieving", self._most_updates, shown=bool(self.verbose)) as report:
            settings = self._settings(cells, compared, report=report)
            aim = None if self.tolerance is not None else self.max_accuracy_loss
            search = Rounds(fits, checked.counts[fits.entries.rows], settings, rule, aim)
            self.stopped_ = search.run()
        self._kept, self._cells, self._given = rows, checked.data.cells, given
        self._remember(search, fits, checked.data, self._compare_rounds(search, settings))
        self._tell()
        return self

    def _divide(
        self, checked: Checked, X: Any, own: Any, fit_params: dict[str, Any], folds: Folds, seed: int
    ) -> CrossFit:
        """Say what is fitted: plainly, under the labels that may be right, and without each fold."""
        data = checked.data
        entries = Entries.of(self.estimate_, data.cells, self.clean_ratio)
        classes = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        plain = TrainingTask(
            estimator=self.estimator, X=X, labels=data.labels, classes=classes, fit_params=fit_params, own=own
        )
        task = plain
        if entries.chances is not None:
            task = plain.under(plain.classes[entries.cells.label_codes], entries.rows)
        out_of_fold: Any = TrainingTask.out_of_fold
        if self.checkpoint_dir is not None:
            make_folder("checkpoint_dir", Path(self.checkpoint_dir))
            _check_picklable(fit_params)
            out_of_fold = joblib.Memory(self.checkpoint_dir, verbose=0).cache(out_of_fold, ignore=["n_jobs"])
        return CrossFit(
            plain=plain,
            task=task,
            entries=entries,
            features=data.features,
            folds=folds,
            pairs=[(entries.find(seen), entries.find(tested)) for seen, tested in folds],
            cleaning=self._propose(checked, entries, folds, seed),
            predict=out_of_fold,
            n_jobs=self.n_jobs,
        )

    def _compare_rounds(self, search: Rounds, settings: SolverSettings) -> int:
        """Compare the rounds with the plain one, and choose one: 0, where the plain classifier is kept."""
        rounds, self.tolerance_ = search.done_rounds, search.tolerance
        together = [search.predict_together(rounds[0], each) for each in rounds]
        known = {"believed": bool(self.estimate_.credible), "held_out": self.cv is not None}
        self._comparisons: dict[int, PlainComparison] = {}
        for place in range(1, len(rounds)) if settings.named_groups else ():
            found = compare_models(together[place], settings, **known)
            # Of rows, and of models: the folds' models may have gaps that differ more than their rows explain.
            error = float(np.hypot(found.gap_error, search.instability(rounds[place])))
            self._comparisons[place] = replace(found, gap_error=error)
        best = self._choose_round(search, together, settings)
        self.comparison_ = self._comparisons.get(best)
        return 0 if self._prefers_plain() else best

    def _prefers_plain(self) -> bool:
        """Say whether the plain model is to be kept, which a tolerance that no round reaches does not rule out."""
        found = self.comparison_
        if self.tolerance is not None and found is not None and found.gap > self.tolerance:
            return found.verdict == "worse"
        return super()._prefers_plain()

    def _remember(self, search: Rounds, fits: CrossFit, data: Samples, best: int) -> None:
        """Fit the classifier of the round that was chosen to all rows, and set what is known of each round."""
        rounds, entries = search.done_rounds, fits.entries
        plain_copy = fits.plain.fit(None)
        chosen = plain_copy if best == 0 else fits.task.fit(rounds[best].weights)
        if self.keep_path:
            again = {0: plain_copy, best: chosen}
            self._copies = [
                again.get(number) or fits.task.fit(each.weights) for number, each in enumerate(rounds)
            ]
            self.path_models_ = [copy.estimator for copy in self._copies]
        self.classes_ = fits.plain.classes
        self.clean_ratio_, self.flip_rates_ = entries.clean_ratio, entries.flip_rates
        self.n_iter_ = len(rounds) - 1
        self._points = entries.by_sample(rounds, data.cells)
        thresholds = [search.choose_threshold(each.probabilities, data.cells) for each in self._points]
        self._describe_path([int(each.kept.sum()) for each in self._points], thresholds)
        self.sensitive_values_ = data.cells.groups
        self.plain_model_ = self._at_threshold(plain_copy.estimator, thresholds[0])
        places = range(len(rounds)) if self.keep_path else [best]
        self._keep_doubts({place: self._doubt(data, place) for place in places})
        self._store(best, chosen)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _propose(self, checked: Checked, entries: Entries, folds: Folds, seed: int) -> Cleaning | None:
        """Propose the least believable labels, where no label is known to be wrong; a linear model finds them.

        It takes a part of the time of one fit, and what it proposes is tried by the classifier.
        """
        data = checked.data
        tested = np.full(len(data), -1)
        for number, (_, rows) in enumerate(folds):
            tested[rows] = number
        once = sum(len(rows) for _, rows in folds) == len(data)
        apart = all((tested[seen] != number).all() for number, (seen, _) in enumerate(folds))
        unknown = entries.flip_rates is not None and not entries.flip_rates.any() and entries.chances is None
        if not (self.clean_ratio == "auto" and unknown and once and apart):
            return None
        part = draw_rows(len(data), CLEANED_ON)
        table = LinearRows.of(data, checked.weights)
        few, inner = table.take(part), np.random.default_rng(seed).permutation(len(part)) % INNER
        ridge = choose_ridge(few, tested[part])
        cleaning = choose_cleaning(few, few, tested[part], inner, ridge)
        if cleaning is None or len(part) == len(data):
            return cleaning
        masks = []
        for seen, _ in folds:
            masks.append(np.ones(len(data), bool))
            masks[-1][seen] = keep_believable(table.take(seen), cleaning.share, ridge)
        return Cleaning(cleaning.share, keep_believable(table, cleaning.share, ridge), masks)

    @property
    def _most_updates(self) -> int:
        """The most rounds: who names a tolerance wants it met, and not to spend no more than ten plain fits."""
        default = ROUNDS if self.tolerance is None else ROUNDS + 1
        return default if self.max_iter is None else self.max_iter

    def _choose_round(self, search: Rounds, together: list[Together], settings: SolverSettings) -> int:
        """Return the place of a round: within the tolerance that was named, or of the best bargain.

        Where no round reaches the tolerance, nobody should pay accuracy for a gap that chance alone may have narrowed:
        the most accurate of the rounds is taken whose gaps lie within a standard error of the smallest one.
        """
        rounds = search.done_rounds
        if self.tolerance is None:
            best = choose_bargain(rounds, together, self.tolerance_, settings)
            return next(place for place, each in enumerate(rounds) if each is best)
        if len(rounds) == 1:
            return 0
        fairest = min(rounds[1:], key=lambda each: each.gap)
        if fairest.gap <= self.tolerance_:
            return 1 + choose_point(rounds[1:], self.tolerance_)
        if rounds[0].gap <= self.tolerance_:
            return 0

        def unsure(other: Round) -> float:  # by how much chance alone lets the two gaps differ
            both = search.predict_together(other, fairest)
            error = compare_models(both, settings, believed=True, held_out=True).gap_error
            return max(self.tolerance_, error)

        able = [each for each in rounds[1:] if each.gap <= fairest.gap + unsure(each)]
        return rounds.index(max(able, key=lambda each: (each.accuracy, -each.gap)))

    def _choose(self, place: int) -> None:
        """Take another round."""
        self._store(place, self._copies[place])
        self.comparison_ = self._comparisons.get(place)

    def _store(self, place: int, fitted: FittedCopy) -> None:
        """Store the model of a round, and what samples and cells weighed in it."""
        chosen, cells = self._points[place], self._cells
        self.is_plain_, self.path_index_ = place == 0, place
        self.estimator_, self._fitted_classes = fitted
        self.gap_, self.threshold_ = chosen.gap, float(self.path_["threshold"][place])
        self._gaps = chosen.gaps
        self.ratios_ = chosen.ratios
        self.weights_ = np.zeros(self._given)
        self.weights_[self._kept] = 1.0 if chosen.weights is None else chosen.weights
        share = by_cell(self.weights_[self._kept], cells) / max(float(np.abs(self.weights_).sum()), 1e-300)
        counts = cells.counts / len(cells)
        self._effective = divide(share, counts, 1.0)
        self._take_doubts(place)

    def _doubt(self, data: Samples, place: int) -> tuple[pd.DataFrame, Integers]:
        """List the samples whose labels a round doubts, and those that it was trained on."""
        # Which labels look wrong is not known to the plain round, but to the next one.
        chosen = self._points[max(place, min(1, len(self._points) - 1))]
        kept = np.flatnonzero(chosen.kept)
        used = chosen.kept if chosen.weights is None else chosen.kept & (chosen.weights != 0)
        logits = np.log(np.maximum(chosen.probabilities, 1e-12))
        decision = logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits
        if self.clean_ratio == "auto" and not self.estimate_.credible:
            kept = np.arange(len(data))  # the selection was a guess
        kept = np.union1d(kept, self.estimate_.checked)  # what somebody checked needs no second look
        suspects = suspects_of(decision, data, kept, self._kept, share=1 - self.clean_ratio_)
        return suspects, self._kept[used]

    def predict(self, X: Any) -> Values:
        """Predict the most probable class of each sample, or by the threshold; an array of shape (n,)."""
        chances = self.predict_proba(X)
        if self.threshold_ == 0.5:
            return np.asarray(self.classes_[chances.argmax(axis=1)])
        place = 1 if self.pos_label is None else self.classes_.tolist().index(self.pos_label)
        return np.asarray(self.classes_[np.where(chances[:, place] >= self.threshold_, place, 1 - place)])

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Predict the probabilities of ``classes_``, an array of shape (n, classes)."""
        check_is_fitted(self)
        X = unmasked(X, numbers=True)
        return FittedCopy(self.estimator_, self._fitted_classes).predict_proba(X, self.classes_)

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return the decision values of the wrapped classifier, if it has any."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(unmasked(X, numbers=True)))

    def to_sklearn(self) -> Any:
        """Return the fitted classifier alone, which predicts the same without fairsieve.

        With another threshold than .5 it is inside scikit-learn's FixedThresholdClassifier.
        """
        check_is_fitted(self)
        if not np.array_equal(getattr(self.estimator_, "classes_", []), self.classes_):
            raise InvalidInputError(
                f"to_sklearn needs a classifier that predicts your labels; {type(self.estimator_).__name__} predicts "
                f"{shown(self.estimator_.classes_)} for {shown(self.classes_)}: label the rows 0, 1, … and fit again"
            )
        return self._at_threshold(self.estimator_, self.threshold_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_picklable(fit_params: dict[str, Any]) -> None:
    """Refuse what the checkpoints of a fit could not be told apart by."""
    try:
        joblib.hash(fit_params)
    except Exception as error:  # whatever the parameters' own pickling raises
        raise InvalidInputError(
            f"fit parameters must be picklable where checkpoints are kept; {error}: leave out checkpoint_dir"
        ) from None
