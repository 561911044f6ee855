"""Use the method with any classifier that takes sample weights: boosters, forests, pipelines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairsieve.estimators._encoding import encode_table
from fairsieve.estimators._folds import FittedCopy, TrainingTask, make_folds, select_rows
from fairsieve.estimators._rounds import Round, RoundSettings, choose_threshold, find_best_round, run_rounds
from fairsieve.estimators._sieve_inputs import (
    check_estimator,
    check_sieve_samples,
    check_targets,
    check_two_classes,
)
from fairsieve.estimators._sieve_task import SieveTask, describe_task
from fairsieve.inputs import Checked, read_lasting_seed, warn_of_groups
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of
from fairsieve.label_noise.possible_labels import PossibleLabels
from fairsieve.label_noise.suspects import choose_to_verify, suspects_of
from fairsieve.label_noise.verified import Verification, check_verification, refuse_known_ratio
from fairsieve.label_noise.weighting import Flips, LabelWeighting
from fairsieve.progress import progress_bar
from fairsieve.samples import Samples, merge_rows
from fairsieve.selection.fairness import comparisons
from fairsieve.thresholds import ThresholdRule
from fairsieve.training.checkpoints import remember_calls
from fairsieve.validation import (
    check_at_least,
    check_choice,
    check_clean_ratio,
    check_positive,
    check_share,
)

__all__ = ["SieveClassifier"]


def _estimator_has(method: str) -> Any:
    """Return a check that the wrapped classifier, fitted or not, has a method."""

    def check(sieve: SieveClassifier) -> bool:
        getattr(getattr(sieve, "estimator_", sieve.estimator), method)  # its own AttributeError says why
        return True

    return check


class SieveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Make any classifier that takes ``sample_weight`` fair to groups and robust to wrong labels.

    The classifier is fitted in several rounds, each under other weights. The weight of a sample is the
    probability that its label is right, times a factor that gives its group a ratio of its class. After
    each round the ratios move in favour of the group that the classifier serves worse. Accuracy and
    disparity of a round are measured out of fold, on labels corrected for the label noise that was
    estimated. Of the rounds whose accuracy is within ``tolerance`` of the best, the fairest is fitted to
    all samples. The result is one deterministic model, which needs no groups to predict.

    Parameters
    ----------
    estimator : classifier
        With ``fit(X, y, sample_weight=…)`` and ``predict_proba``; in a pipeline the last step takes
        the weights. It gets ``X`` unchanged, with categories, missing values or as a sparse matrix.
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    clean_ratio : float in (0, 1] or "auto"
        The share of right labels; "auto" estimates it.
    flips : {"auto", "random", "aimed"}
        How labels went wrong; "auto" estimates it from the data. For random flips all samples are used,
        weighted by the probability that their label is right. For aimed flips samples are selected by
        Algorithm 1 of the paper, in order of their loss.
    rounds : int
        Rounds after the plain one. Each costs as many fits as there are folds.
    cv : int, splitter, iterable or None
        The folds behind the losses. A number deals the samples of every class and group evenly; a splitter
        of scikit-learn splits ``X`` and ``y``; an iterable holds pairs of rows, (train, test), for example
        ``list(GroupKFold().split(X, y, households))``. Every sample must be in a test fold. None predicts
        the training samples themselves, for models that cannot memorise labels.
    step_size : float
        How far the ratios move in the first round, as a multiple of the disparity.
    tolerance : float in [0, 1]
        The most accuracy, out of fold, that fairness may cost.
    signal : {"error", "loss"}
        What is compared between groups.
    threshold : float or str
        The probability from which on the positive one of two classes is predicted, or a rule that chooses it
        out of fold: "balanced" (highest balanced accuracy), "cost:FP,FN" (lowest cost of false positives and
        false negatives) or "rate:SHARE" (so many are predicted positive).
    keep_rounds : bool
        Fit the classifier of every round to all samples, as ``round_estimators_``.
    pos_label : label, optional
        The positive class; the last of two when None.
    random_state : int, RandomState or None
        Determines the folds and which samples the estimate uses; the classifier has its own.
    n_jobs : int, optional
        How many folds are fitted at a time.
    verbose : int
        Show a progress bar if above 0.
    checkpoint_dir : path, optional
        A folder for the results of each round. A second fit to the same data does not repeat the rounds
        that are stored there. Needs a ``random_state``, and a deterministic classifier.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all samples, under ``weights_``.
    plain_estimator_ : classifier
        Fitted to all samples without the method, to compare with; the same object where
        ``best_round_`` is 0.
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last value None stands for the samples
        without a group, which train but do not count for fairness.
    weights_ : array of shape (n,)
        The weight of each sample, without its own ``sample_weight``; with verified labels, of all labels
        together that may be right.
    sample_indices_ : integer array
        The selected rows; for random flips, those whose label is more likely right than wrong.
    ratios_ : array of shape (classes, groups)
        The share of each group in each class.
    clean_ratio_ : float
        As given or estimated.
    estimate_ : CleanRatioEstimate or None
        What was estimated; None where ``clean_ratio`` and ``flips`` were both given.
    flip_rates_ : array of shape (classes, groups) or None
        How often labels of each true class are flipped in each group; None where samples are selected.
    history_ : dict of arrays
        ``accuracy`` and ``disparity``, out of fold, and the number of samples ``kept`` in every round,
        the plain one first.
    best_round_ : int
        The round that ``estimator_`` comes from; 0 is the plain one.
    threshold_ : float
        As given, or chosen by the rule.
    rounds_, round_estimators_ : lists
        What each round weighed, predicted out of fold and scored; and the classifiers, with ``keep_rounds``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(500, seed=0)
    >>> model = SieveClassifier(DecisionTreeClassifier(max_depth=4, random_state=0), clean_ratio=0.9, rounds=2)
    >>> model.fit(data.features, data.labels, sensitive_features=data.groups).ratios_.shape
    (2, 2)
    """

    def __init__(
        self,
        estimator: Any,
        fairness: str = "equalized_odds",
        clean_ratio: float | Literal["auto"] = "auto",
        flips: Flips = "auto",
        *,
        rounds: int = 6,
        cv: Any = 5,
        step_size: float = 1.0,
        tolerance: float = 0.005,
        signal: Literal["error", "loss"] = "error",
        threshold: float | str = 0.5,
        keep_rounds: bool = False,
        pos_label: Any | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint_dir: Path | str | None = None,
    ) -> None:
        self.estimator = estimator
        self.fairness = fairness
        self.clean_ratio = clean_ratio
        self.flips = flips
        self.rounds = rounds
        self.cv = cv
        self.step_size = step_size
        self.tolerance = tolerance
        self.signal = signal
        self.threshold = threshold
        self.keep_rounds = keep_rounds
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
            labels. The chance of every row's true label is learnt from them; needs ``clean_ratio="auto"`` and
            ``flips="auto"``. The classifier is then fitted to each sample under every label that may be
            right, weighted by its chance, and rounds are compared by the same chances.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        **fit_params
            Further arguments of the classifier's ``fit``, for every copy of it that is fitted, such as
            ``eval_set=[(X_check, y_check)]`` for early stopping; in a pipeline with the name of the step,
            as in ``model__eval_set``. An array, series or column of n values is divided as the samples are.
        """
        settings = self._check_settings()
        X, labels = check_targets(type(self).__name__, X, y)
        checked = check_sieve_samples(labels, sensitive_features, sample_weight)
        data, own, rows, given = checked.data, checked.weights, checked.rows, checked.given
        if len(rows) < given:
            X = _safe_indexing(X, rows)
            fit_params = {name: select_rows(value, rows, given) for name, value in fit_params.items()}
        if sensitive_features is not None:
            warn_of_groups(data.cells)
        seed = read_lasting_seed(self.random_state, self.checkpoint_dir)
        comparisons(self.fairness, data.cells, self.pos_label)  # names what is wrong before any work
        check_two_classes("threshold", settings.threshold, data.cells)

        def encode() -> Checked:
            numeric = Samples(encode_table(X), data.labels, data.groups, missing="own")
            return Checked(numeric, None if own is None else own / own.mean(), rows, given)

        verified = None
        if verified_labels is not None or verified_weight is not None:
            verified = check_verification(encode(), verified_labels, verified_weight)
            refuse_known_ratio("clean_ratio", self.clean_ratio)
            refuse_known_ratio("flips", self.flips)
        folds = make_folds(self.cv, X, data.cells, rows, given, seed)
        if verified is not None and not verified.enough:
            data = data.with_labels(verified.correct(data))
        plain_task = TrainingTask(
            estimator=self.estimator,
            X=X,
            labels=data.labels,
            classes=np.asarray(data.cells.classes, dtype=data.labels.dtype),
            fit_params=fit_params,
            n_jobs=self.n_jobs,
        )
        task = SieveTask(plain=plain_task, plain_cells=data.cells, folds=folds, own=own)

        def estimate() -> CleanRatioEstimate:
            return estimate_of(encode(), seed, verified)

        weigh_labels: Any = LabelWeighting(data.cells, self.clean_ratio, self.flips, estimate)
        if verified is not None and verified.enough:
            found = estimate()
            weigh_labels = PossibleLabels.of(found)
            task = replace(task, entries=weigh_labels)
        rounds = self._run_rounds(task, weigh_labels, settings, seed, data, verified)
        best = find_best_round(rounds, self.tolerance)
        plain = task.fit(None)
        fitted = plain if best == 0 else task.fit(rounds[best].weights)
        self.plain_estimator_, self.estimator_ = plain.estimator, fitted.estimator
        if self.keep_rounds:
            again = {0: plain, best: fitted}
            copies = [again.get(number) or task.fit(one.weights) for number, one in enumerate(rounds)]
            self.round_estimators_ = [copy.estimator for copy in copies]
        self.classes_, self._fitted_classes = plain_task.classes, fitted.classes
        self.estimate_ = weigh_labels.found
        self.clean_ratio_, self.flip_rates_ = weigh_labels.clean_ratio, weigh_labels.flip_rates
        self.rounds_ = task.by_sample(rounds)
        self.threshold_ = 0.5
        if not settings.threshold.is_default:
            self.threshold_ = choose_threshold(self.rounds_[best].probabilities, data.cells, settings)
        return self._store_rounds(best, data, rows, given)

    def _run_rounds(
        self,
        task: SieveTask,
        weigh_labels: Any,
        settings: RoundSettings,
        seed: int,
        data: Samples,
        verified: Verification | None,
    ) -> list[Round]:
        """Run the rounds, and take from checkpoints what they hold."""
        ask: Callable[[Any], NDArray[np.float64]] = task.out_of_fold
        if self.checkpoint_dir is not None:
            learner = type(self.estimator).__qualname__, repr(self.estimator.get_params())
            described = describe_task(self, settings, seed, task, verified)
            inputs = task.plain.X, data.cells.codes, data.cells.classes, data.cells.groups, task.own
            fingerprint = joblib.hash((learner, described, inputs))
            ask = remember_calls(Path(self.checkpoint_dir) / "rounds.npz", fingerprint, ask)
        with progress_bar("sieving", self.rounds, shown=bool(self.verbose)) as report:
            return run_rounds(ask, weigh_labels, task.cells, settings, self.rounds, report)

    def _check_settings(self) -> RoundSettings:
        """Check the parameters; return those that the rounds need."""
        check_estimator(self.estimator)
        check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        check_at_least("rounds", self.rounds, 1)
        check_share("tolerance", self.tolerance)
        check_choice("signal", self.signal, ("error", "loss"))
        check_choice("flips", self.flips, get_args(Flips))
        return RoundSettings(
            fairness=self.fairness,
            signal=self.signal,
            step_size=check_positive("step_size", self.step_size),
            tolerance=self.tolerance,
            pos_label=self.pos_label,
            threshold=ThresholdRule.parse(self.threshold),
        )

    def _store_rounds(self, best: int, data: Samples, rows: NDArray[np.int64], given: int) -> SieveClassifier:
        """Store the results of the rounds as fitted attributes."""
        rounds = self.rounds_
        chosen = rounds[best]
        self.best_round_, self.ratios_ = best, chosen.ratios
        self.sensitive_values_ = data.cells.groups
        self.weights_ = np.zeros(given)
        self.weights_[rows] = 1.0 if chosen.weights is None else chosen.weights
        if best == 0 and len(rounds) > 1:  # which labels look wrong, the next round knows
            chosen = rounds[1]
        kept = np.flatnonzero(chosen.kept)
        self.sample_indices_ = rows[kept]
        self.history_ = {
            "accuracy": np.array([each.accuracy for each in rounds]),
            "disparity": np.array([each.disparity for each in rounds]),
            "kept": np.array([int(each.kept.sum()) for each in rounds]),
        }
        times = np.asarray([each.kept for each in rounds[1:]], np.int32).sum(axis=0, dtype=np.int32)
        logits = np.log(np.maximum(chosen.probabilities, 1e-12))
        decision = logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits
        if self.estimate_ is not None:  # what somebody checked needs no second look
            kept = merge_rows(len(data), kept, self.estimate_.checked)
        self._suspects, self._rows = suspects_of(decision, data, kept, times, rows), rows
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def suspects(self) -> dict[str, NDArray[Any]]:
        """Return the training samples that were not selected, the highest out-of-fold loss first.

        Returns
        -------
        dict of arrays
            The columns of :meth:`FairRobustClassifier.suspects
            <fairsieve.estimators.classifier.FairRobustClassifier.suspects>`, with rounds for epochs.
        """
        check_is_fitted(self)
        return {name: column.copy() for name, column in self._suspects.items()}

    def next_to_verify(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Choose rows of the training data to check next, with weights for ``verified_weight``.

        See :meth:`FairRobustClassifier.next_to_verify
        <fairsieve.estimators.classifier.FairRobustClassifier.next_to_verify>`.
        """
        check_is_fitted(self)
        return choose_to_verify(self.estimate_, n, self._rows, self.clean_ratio)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each sample, or by the threshold; an array of shape (n,)."""
        chances = self.predict_proba(X)
        if self.threshold_ == 0.5:
            return np.asarray(self.classes_[chances.argmax(axis=1)])
        place = 1 if self.pos_label is None else self.classes_.tolist().index(self.pos_label)
        return np.asarray(self.classes_[np.where(chances[:, place] >= self.threshold_, place, 1 - place)])

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probabilities of ``classes_``, an array of shape (n, classes)."""
        check_is_fitted(self)
        return FittedCopy(self.estimator_, self._fitted_classes).predict_proba(X, self.classes_)

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values of the wrapped classifier, if it has any."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
