"""The method around any classifier that takes sample weights: boosters, forests, pipelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._encoding import numbers_of
from fairsieve.estimators._folds import fit_weighted, out_of_fold, parts_of, weight_argument
from fairsieve.estimators._rounds import Round, Rule, best_of, run_rounds
from fairsieve.estimators.resampler import rows_of
from fairsieve.inputs import (
    Checked,
    check_classes,
    check_columns,
    check_groups,
    check_labels_known,
    lasting_seed_of,
    warn_of_groups,
)
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of
from fairsieve.label_noise.suspects import suspects_of
from fairsieve.label_noise.weighting import Believer, Flips
from fairsieve.progress import progress_bar
from fairsieve.samples import Samples, weighted_rows
from fairsieve.selection.fairness import comparisons
from fairsieve.training.checkpoint.round_results import KeptAnswers, sieving_of
from fairsieve.validation import (
    check_at_least,
    check_choice,
    check_clean_ratio,
    check_positive,
    check_share,
)

__all__ = ["SieveClassifier"]


def _estimator_has(method: str) -> Any:
    """Whether the wrapped classifier, fitted or not, has a method."""

    def check(sieve: SieveClassifier) -> bool:
        getattr(getattr(sieve, "estimator_", sieve.estimator), method)  # its own AttributeError says why
        return True

    return check


class SieveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Makes any classifier that takes ``sample_weight`` fair to groups and robust to wrong labels.

    The classifier is fitted a few times, each time under other weights. A sample weighs what its label
    is worth, times what its group's share of the class should be; the shares move, round by round,
    towards the group that is served worse. How a round did is measured out of fold, on labels
    corrected for the flips that the data show, and the fairest round within ``tolerance`` of the best
    accuracy is fitted to everything. The result is one deterministic model that needs no groups to
    predict.

    Parameters
    ----------
    estimator : classifier
        With ``fit(X, y, sample_weight=…)`` and ``predict_proba``; in a pipeline the last step takes
        the weights. It gets ``X`` as it is: categories, gaps, sparse matrices are its business.
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    clean_ratio : float in (0, 1] or "auto"
        The share of right labels; "auto" estimates it.
    flips : {"auto", "random", "aimed"}
        How labels went wrong; "auto" looks for it in the data. Where at random, all samples stay,
        weighed by the chance that their label is right. Where on purpose, samples are selected by
        the paper's walk, from the lowest loss up.
    rounds : int
        Sieved rounds, after a plain one. Each costs ``cv`` fits.
    cv : int or None
        Folds behind the losses. None takes losses in-sample, for models that cannot learn labels by heart.
    step_size : float
        How far the shares move in a round at first, as a multiple of the disparity.
    tolerance : float in [0, 1]
        The most accuracy, out of fold, that fairness may cost.
    signal : {"error", "loss"}
        What is compared between groups.
    pos_label : label, optional
        The positive class; the last of two when None.
    random_state : int, RandomState or None
        Decides the folds and the samples looked at by the estimate; the classifier has its own.
    n_jobs : int, optional
        Folds fitted at a time.
    verbose : int
        Above 0, a progress bar.
    checkpoint_dir : path, optional
        A folder to keep what each round came to in. Fitted again on the same data, rounds that are kept
        are not fitted again. Needs a ``random_state``, and a classifier that repeats itself.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to everything, under ``weights_``.
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last one None stands for the samples
        without a group, which train but do not count for fairness.
    weights_ : array of shape (n,)
        What each sample weighed, its own weight aside.
    sample_indices_ : integer array
        Rows whose label is believed: those selected or, where none are left out, those whose label is
        likelier right than wrong.
    ratios_ : array of shape (classes, groups)
        The shares of each class by group.
    clean_ratio_ : float
        As given or estimated.
    flip_rates_ : array of shape (classes, groups) or None
        How often labels of each true class are flipped in each group; None where samples are selected.
    history_ : dict of arrays
        ``accuracy`` and ``disparity``, out of fold, and samples ``kept`` of every round, the plain one first.
    best_round_ : int
        The one that ``estimator_`` is fitted by; 0 is plain.

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
        rounds: int = 6,
        cv: int | None = 5,
        step_size: float = 1.0,
        tolerance: float = 0.005,
        signal: Literal["error", "loss"] = "error",
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
    ) -> SieveClassifier:
        """Train on labels that may be wrong.

        Parameters
        ----------
        X : whatever the classifier takes
        y : n labels
            Of any type, two or more classes.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            Each multiplies its sample's weight in training; a sample of weight 0 is left out.
        """
        rule = self._rule()
        X, labels = _check_labels(self, X, y)
        data, own, rows, given = _samples_without_features(labels, sensitive_features, sample_weight)
        X = X if len(rows) == given else rows_of(X, rows)
        if sensitive_features is not None:
            warn_of_groups(data.cells)
        seed = lasting_seed_of(self.random_state, self.checkpoint_dir)
        comparisons(self.fairness, data.cells, self.pos_label)  # names what is wrong before any work
        labels, classes = data.labels, np.asarray(data.cells.classes, dtype=data.labels.dtype)
        parts = parts_of(data.cells, self.cv, seed)

        def fit_and_ask(weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
            together = _combined(weights, own)
            return out_of_fold(self.estimator, X, labels, classes, together, parts, self.n_jobs)

        def estimate() -> CleanRatioEstimate:
            numeric = Samples(numbers_of(X), data.labels, data.groups, missing="own")
            return estimate_of(Checked(numeric, own, np.arange(len(data)), len(data)), seed)

        ask: Callable[[NDArray[np.float64] | None], NDArray[np.float64]] = fit_and_ask
        if self.checkpoint_dir is not None:
            settings: dict[str, Any] = {"rule": repr(rule), "cv": self.cv, "seed": seed}
            settings |= {"clean_ratio": self.clean_ratio, "flips": self.flips}
            sieving, shape = sieving_of(self.estimator, X, data, own, **settings), (len(labels), len(classes))
            ask = KeptAnswers(fit_and_ask, Path(self.checkpoint_dir), sieving, shape, self.rounds + 1)
        believe = Believer(data.cells, self.clean_ratio, self.flips, estimate)
        with progress_bar("sieving", self.rounds, shown=bool(self.verbose)) as report:
            rounds = run_rounds(ask, believe, data.cells, rule, self.rounds, report)
        best = best_of(rounds, self.tolerance)
        self.estimator_ = fit_weighted(self.estimator, X, labels, _combined(rounds[best].weights, own))
        self.classes_ = classes
        self.clean_ratio_, self.flip_rates_ = believe.clean_ratio, believe.flip_rates
        return self._take_over(rounds, best, data, rows, given)

    def _rule(self) -> Rule:
        """Check the parameters; what of them the rounds go by."""
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise InvalidInputError(
                f"estimator must be a classifier, not its class; got {name}: pass {name}()"
            )
        weight_argument(self.estimator)
        if not hasattr(self.estimator, "predict_proba"):
            raise InvalidInputError(
                "estimator must have predict_proba, which the losses come from; got "
                f"{type(self.estimator).__name__}: wrap it in sklearn.calibration.CalibratedClassifierCV"
            )
        check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        check_at_least("rounds", self.rounds, 1)
        check_at_least("cv", 2 if self.cv is None else self.cv, 2)
        check_share("tolerance", self.tolerance)
        check_choice("signal", self.signal, ("error", "loss"))
        check_choice("flips", self.flips, get_args(Flips))
        step_size = check_positive("step_size", self.step_size)
        return Rule(self.fairness, self.signal, step_size, self.tolerance, self.pos_label)

    def _take_over(
        self, rounds: list[Round], best: int, data: Samples, rows: NDArray[np.int64], given: int
    ) -> SieveClassifier:
        """Keep what the rounds came to."""
        chosen = rounds[best]
        self.best_round_, self.ratios_ = best, chosen.ratios
        self.sensitive_values_ = data.cells.groups
        self.weights_ = np.zeros(given)
        self.weights_[rows] = 1.0 if chosen.weights is None else chosen.weights
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
        self._suspects = suspects_of(decision, data, kept, times, rows)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def suspects(self) -> dict[str, NDArray[Any]]:
        """The training samples whose label is not believed, the highest out-of-fold loss first.

        Returns
        -------
        dict of arrays
            The columns of :meth:`FairRobustClassifier.suspects
            <fairsieve.estimators.classifier.FairRobustClassifier.suspects>`, with rounds for epochs.
        """
        check_is_fitted(self)
        return {name: column.copy() for name, column in self._suspects.items()}

    def predict(self, X: Any) -> NDArray[Any]:
        """The wrapped classifier's predictions."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, classes)."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The wrapped classifier's decision values, where it has any."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_labels(sieve: SieveClassifier, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Features in a container whose rows can be picked, and their labels."""
    if y is None:
        raise InvalidInputError(
            f"{type(sieve).__name__} requires y to be passed, but the target y is None: pass the labels"
        )
    if X is None:
        raise InvalidInputError("X must be a table of features; got None: pass an array or a data frame")
    check_columns(X)
    check_labels_known(y)
    X, labels = indexable(X, column_or_1d(y, warn=True))
    if len(labels) == 0:
        raise InvalidInputError("X and y must have at least one sample; got 0 samples")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return X, labels


def _samples_without_features(
    labels: NDArray[Any], sensitive_features: Any, sample_weight: ArrayLike | None
) -> Checked:
    """Labels, groups and weights, checked; the features are the classifier's business."""
    groups = check_groups(sensitive_features, len(labels))
    rows, weights = weighted_rows(sample_weight, len(labels))
    labels = labels[rows]
    check_classes(labels)
    data = Samples(np.zeros((len(rows), 1)), labels, groups[rows], missing="own")
    return Checked(data, weights, rows, len(groups))


def _combined(
    weights: NDArray[np.float64] | None, own: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The product of two sets of weights, either of which may be None for ones."""
    return own if weights is None else weights if own is None else weights * own
