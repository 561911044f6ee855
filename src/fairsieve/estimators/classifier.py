"""A fair and robust classifier with scikit-learn's interface."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.estimators._held_out import find_collapse
from fairsieve.estimators._predictions import as_module, decide, likeliest_codes
from fairsieve.estimators._solvers import (
    ModuleLike,
    SolverName,
    auto_batch_size,
    choose_solver,
    model_of,
    new_solver,
)
from fairsieve.inputs import (
    Checked,
    check_features,
    check_samples,
    read_lasting_seed,
    warn_of_groups,
)
from fairsieve.label_noise.collapse import Collapse, OnCollapse, handle
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of, warn_if_inconclusive
from fairsieve.label_noise.suspects import choose_to_verify, probabilities_of, suspects_of
from fairsieve.label_noise.verified import Verification, check_verification, refuse_known_ratio
from fairsieve.samples import merge_rows
from fairsieve.training.history import History
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.result import Fitted
from fairsieve.validation import check_choice, check_clean_ratio

if TYPE_CHECKING:
    from torch import nn

__all__ = ["FairRobustClassifier", "auto_batch_size", "model_of"]

Auto = Literal["auto"]


class FairRobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train a classifier that is fair to groups and robust to wrong labels.

    Again and again it selects the samples with the lowest losses, fewer of them where the groups' ratios demand
    it, moves weight towards the group that is served worse, and improves the model on what it has selected.
    The result is one deterministic model that needs no groups to predict.

    The linear model is trained by Newton steps on all samples; it has no batch size and no learning rate. The
    features are not scaled: put a :class:`~sklearn.preprocessing.StandardScaler` before it, in a pipeline.

    Parameters
    ----------
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    clean_ratio : float in (0, 1] or "auto"
        Share of the labels believed to be right; rather too low than too high. "auto" estimates it,
        by group, and selects accordingly: see :mod:`~fairsieve.label_noise.correction`.
    module : None, nn.Module, or callable
        None is logistic regression. A module is copied and trained; it needs torch. A class or other callable
        is called as ``module(n_features, n_classes)`` and makes one; its first weights follow
        ``random_state``. It gives a logit per class or, for two classes, one logit.
    epochs : int, optional
        With the Newton solver the number of updates, 40 when None: each moves the shares, selects, and takes a
        Newton step. With the paper's loop the number of epochs, 400 when None.
    warmup_epochs : int, optional
        How many epochs of the paper's loop train on everything first; a quarter of all, at most 100,
        when None. As ``batch_size``, ``learning_rate`` and ``module``, it asks for that loop.
    batch_size : int or "auto"
        Of the paper's loop. "auto" is a twentieth of the samples, between 100 and 2,000.
    learning_rate : float or "auto"
        Of Adam, in the paper's loop. "auto" is 0.01 divided by the number of batches in an epoch, so that an
        epoch leads equally far on little and on much data; the paper's 0.0005 for 20 batches.
    step_size : float, optional
        How far the shares move. With the Newton solver in the first update, 0.0096 when None (0.0128 where
        "auto" leaves samples out once and for all); it falls to 0.3 of that in the last. With the
        paper's loop in every epoch, 0.001 when None, as its authors took.
    average_last : int, optional
        The result averages the parameters after each of the last so many updates or epochs; 10 and 1 when None.
    random_state : int, RandomState or None
        An int gives the same model every time.
    device : str, optional
        Where to train, such as "cuda", which needs torch; the CPU when None.
    verbose : int
        Above 0, a progress bar.
    on_collapse : {"warn", "fallback", "raise"}
        What to do with a model that is worse than plain training by more than fairness may cost (see
        :mod:`~fairsieve.label_noise.collapse`): warn with a :class:`CollapseWarning`, warn and keep the
        plain model instead, or raise a :class:`CollapseError`.
    signal : {"loss", "error"}, optional
        What is compared between groups: mean losses or error rates. When None, losses where
        the paper's selection is made, error rates where "auto" could tell which labels are wrong.
    pos_label : label, optional
        The positive class; the last of two when None.
    checkpoint_dir : path, optional
        A folder to keep checkpoints in. Fitted again on the same data, training goes on from the last, see
        :func:`~fairsieve.training.fit.fit`. Needs a ``random_state``.
    checkpoint_every : int, optional
        Epochs or updates from one checkpoint to the next; a twentieth of all when None.
    solver : {"auto", "newton", "adam"}
        "newton" trains the linear model on full batches until it converges, see
        :mod:`~fairsieve.training.newton`. "adam" is the paper's loop, for any model. "auto" is "newton"
        unless ``module``, ``warmup_epochs``, ``batch_size`` or ``learning_rate`` is given.

    Attributes
    ----------
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last one None stands for the samples
        without a group, which train but do not count for fairness.
    sample_indices_ : integer array
        Rows of the training data that were selected last, ascending.
    ratios_ : array of shape (classes, groups)
        The last shares of each class by group.
    clean_ratio_ : float
        The clean ratio that was used.
    estimate_ : CleanRatioEstimate or None
        What "auto" found.
    collapse_ : Collapse or None
        How the model compares with a plain one, where it is worse.
    interrupted_ : bool
        Whether training was stopped early; the model is then the best so far.
    history_ : History
    coef_, intercept_ : arrays of shape (1, d) and (1,), or (classes, d) and (classes,)
        The linear model, as scikit-learn's LogisticRegression has it; not with a ``module``.
    n_iter_ : int
        Updates, or epochs, that were made.
    module_ : nn.Module
        The trained model as a module of torch.
    plain_model_ : LinearModel or nn.Module
        The plain model that the fair one was compared with; None after an interruption.
    n_features_in_ : int
    feature_names_in_ : array
        Where the features have names.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(500, seed=0)
    >>> model = FairRobustClassifier(clean_ratio=0.9)
    >>> model.fit(data.features, data.labels, sensitive_features=data.groups).ratios_.shape
    (2, 2)
    >>> model.n_iter_, model.coef_.shape
    (40, (1, 3))
    """

    history_: History
    estimate_: CleanRatioEstimate | None
    collapse_: Collapse | None

    def __init__(
        self,
        fairness: str = "equalized_odds",
        clean_ratio: float | Auto = "auto",
        module: ModuleLike = None,
        epochs: int | None = None,
        warmup_epochs: int | None = None,
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        step_size: float | None = None,
        average_last: int | None = None,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
        on_collapse: OnCollapse = "warn",
        signal: Literal["loss", "error"] | None = None,
        pos_label: Any | None = None,
        checkpoint_dir: Path | str | None = None,
        checkpoint_every: int | None = None,
        solver: SolverName = "auto",
    ) -> None:
        self.fairness = fairness
        self.clean_ratio = clean_ratio
        self.module = module
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.step_size = step_size
        self.average_last = average_last
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.on_collapse = on_collapse
        self.signal = signal
        self.pos_label = pos_label
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.solver = solver

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
            The Newton solver uses a sparse one as it is; the paper's loop makes it dense.
        y : n labels
            Of any type, two or more classes.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            Each multiplies its sample's training loss; a sample of weight 0 is left out.
        verified_labels : n labels, optional
            The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given
            labels. The chance of every row's true label is learnt from them; needs ``clean_ratio="auto"``.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        """
        check_choice("on_collapse", self.on_collapse, ("warn", "fallback", "raise"))
        given = check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        newton = choose_solver(self) == "newton"
        checked = check_samples(self, X, y, sensitive_features, sample_weight, keep_sparse=newton)
        if sensitive_features is not None:
            warn_of_groups(checked.data.cells)
        seed = read_lasting_seed(self.random_state, self.checkpoint_dir)
        solver = new_solver(self, checked, seed)
        self._estimate(checked, seed, given, check_verification(checked, verified_labels, verified_weight))
        fitted = solver.train_fair(self.clean_ratio_, self.estimate_)
        plain = None if fitted.interrupted else solver.train_plain()
        self.interrupted_ = plain is None
        self.n_iter_ = len(fitted.history)
        self.plain_model_ = plain
        if plain is None:
            warnings.warn(
                f"training was stopped after {len(fitted.history)} of {solver.steps} epochs; the model is the "
                "best of those, and was not compared with a plain one",
                FairsieveWarning,
                stacklevel=2,
            )
            self.collapse_ = None
            return self._take_over(fitted, checked)
        predicted = (
            likeliest_codes(decide(each, checked.data.features)) for each in (fitted.predictor, plain)
        )
        self.collapse_ = find_collapse(self, checked, seed, *predicted)
        if handle(self.collapse_, self.on_collapse):
            fitted = solver.describe_plain()
        return self._take_over(fitted, checked)

    def _estimate(
        self, checked: Checked, seed: int, given: float | Auto, verified: Verification | None
    ) -> None:
        """Take the clean ratio that was given, or estimate it."""
        if given == "auto":
            self.estimate_ = estimate_of(checked, seed, verified)
            self.clean_ratio_ = self.estimate_.clean_ratio
            warn_if_inconclusive(self.estimate_)
            return
        if verified is not None:
            refuse_known_ratio("clean_ratio", given)
        self.estimate_, self.clean_ratio_ = None, given
        if int(given * len(checked.data) + 1e-9) < 1:
            raise InvalidInputError(
                f"clean_ratio must select at least one sample; {given} of {len(checked.data)} samples is none: "
                "raise it"
            )

    def _take_over(self, fitted: Fitted, checked: Checked) -> FairRobustClassifier:
        """Store the result of training."""
        data, kept = checked.data, checked.kept
        decision = decide(fitted.predictor, data.features)
        trusted = fitted.indices
        wrong = None
        if self.estimate_ is not None:  # who was kept is partly chance
            trusted = merge_rows(len(data), self.estimate_.believed, self.estimate_.checked)
            wrong = self.estimate_.wrong
        times = fitted.history.times_selected
        self._suspects = suspects_of(decision, data, trusted, times, kept, wrong=wrong)
        self._kept = kept
        fitted = fitted if kept is None else fitted.over(kept, checked.given)
        self._predictor, self.history_ = fitted.predictor, fitted.history
        if isinstance(fitted.predictor, LinearModel):
            self.coef_, self.intercept_ = fitted.predictor.coef, fitted.predictor.intercept
        self.ratios_, self.sample_indices_ = fitted.ratios, fitted.indices
        self.classes_ = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        self.sensitive_values_ = data.cells.groups
        return self

    def suspects(self) -> dict[str, NDArray[Any]]:
        """List the training samples whose labels to check, the likeliest wrong label first.

        They are those that the last selection left out, the highest loss first; with "auto", those whose
        label is more likely wrong than right or, where labels look wrong on purpose, surely wrong. Where
        the estimate is inconclusive there are none.

        Returns
        -------
        dict of arrays
            Columns of a table, ready for ``pandas.DataFrame``: ``row`` in the training data, ``label``,
            ``suggested`` (the likeliest class; the label itself, where a sample was left out for the
            sake of the shares alone), ``loss``, ``probability`` of the suggested label, ``group``,
            and ``epochs_kept`` (the epochs in which the sample was selected after all).
        """
        check_is_fitted(self)
        return {name: column.copy() for name, column in self._suspects.items()}

    def next_to_verify(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Choose rows of the training data to check next, with weights for ``verified_weight``.

        Half of the choice is at random within cells, half where a check would tell most about the other rows;
        before anything was learnt from checks, three quarters at random and a quarter where it is least certain
        whether the label is right. Rows that were checked already are left out.
        """
        check_is_fitted(self)
        return choose_to_verify(self.estimate_, n, self._kept, self.clean_ratio)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute logits: of the second class against the first, (n,), or of each of many, (n, classes)."""
        features = check_features(self, X)  # first, for it says when there is no model yet
        return decide(self._predictor, features)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, (n, classes)."""
        return probabilities_of(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likeliest class of each sample."""
        codes = likeliest_codes(self.decision_function(X))
        return np.asarray(self.classes_[codes])

    @property
    def module_(self) -> nn.Module:
        """The trained model as a module of torch; a linear model becomes a ``LogisticRegression``."""
        if not hasattr(self, "_predictor"):
            raise AttributeError(f"{type(self).__name__} has no module_ before it is fitted")
        return as_module(self._predictor)

    @property
    def plain_module_(self) -> nn.Module:
        """The plain model as a module of torch."""
        if getattr(self, "plain_model_", None) is None:
            raise AttributeError(f"{type(self).__name__} has no plain_module_: no plain model was trained")
        return as_module(self.plain_model_)

    def to_sklearn(self) -> LogisticRegression:
        """Return the fitted linear model as scikit-learn's own LogisticRegression.

        It predicts the same, and everything that knows scikit-learn can store, convert or explain it without
        fairsieve: skops, MLflow, skl2onnx, shap.
        """
        check_is_fitted(self)
        if not isinstance(self._predictor, LinearModel):
            raise InvalidInputError(
                f"to_sklearn() needs the linear model; this one is a {type(self._predictor).__name__}: fit it without "
                "module"
            )
        made = LogisticRegression()
        made.coef_, made.intercept_, made.classes_ = (
            self.coef_.copy(),
            self.intercept_.copy(),
            self.classes_.copy(),
        )
        made.n_features_in_, made.n_iter_ = self.n_features_in_, np.array([self.n_iter_], np.int32)
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_.copy()
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
