"""A fair and robust classifier in scikit-learn's manner."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.inputs import (
    Checked,
    check_features,
    check_samples,
    dense_chunks,
    lasting_seed_of,
    warn_of_groups,
)
from fairsieve.label_noise.collapse import Collapse, OnCollapse, collapse_of, handle
from fairsieve.label_noise.correction import train_auto
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_of
from fairsieve.label_noise.suspects import probabilities_of, suspects_of
from fairsieve.samples import Samples
from fairsieve.sampling.losses import is_single, outputs_of
from fairsieve.selection.batches import batch_count
from fairsieve.training.fit import ModelLike, fit
from fairsieve.training.history import History
from fairsieve.training.models import LogisticRegression
from fairsieve.training.result import Fitted
from fairsieve.validation import check_at_least, check_choice, check_clean_ratio

__all__ = ["FairRobustClassifier"]

ModuleLike = nn.Module | Callable[[int, int], nn.Module] | None
Auto = Literal["auto"]


class FairRobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is fair to groups and robust to wrong labels.

    Every epoch it trains on the samples that look rightly labelled, as long as no group's share of a
    class falls behind, and shifts those shares towards the group that is served worse. The result is
    one deterministic model that needs no groups to predict.

    It learns by gradient steps and does not scale the features: put a
    :class:`~sklearn.preprocessing.StandardScaler` before it, in a pipeline.

    Parameters
    ----------
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    clean_ratio : float in (0, 1] or "auto"
        Share of the labels believed to be right; rather too low than too high. "auto" estimates it,
        by group, and selects accordingly: see :mod:`~fairsieve.label_noise.correction`.
    module : None, nn.Module, or callable
        None is the paper's logistic regression, which has a compiled loop. A module is copied and
        trained. A class or other callable is called as ``module(n_features, n_classes)`` and makes
        one; its first weights follow ``random_state``. It gives a logit per class or, for two
        classes, one logit.
    epochs, warmup_epochs : int
        Epochs in all, and how many of them train plainly on everything first; a quarter of all, at
        most 100, when None.
    batch_size : int or "auto"
        "auto" is a twentieth of the samples, between 100 and 2,000.
    learning_rate : float or "auto"
        Of Adam. "auto" is 0.01 divided by the number of batches in an epoch, so that an epoch leads
        equally far on little and on much data; the paper's 0.0005 for 20 batches.
    step_size : float
        How far the shares move in an epoch.
    average_last : int
        The result averages the parameters after each of the last so many epochs.
    random_state : int, RandomState or None
        An int gives the same model every time.
    device : str, optional
        Where to train, such as "cuda"; the CPU when None.
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
        A folder to keep checkpoints in, of the fair and the plain model. Fitted again on the same data,
        training goes on from the last, see :func:`~fairsieve.training.fit.fit`. Needs a ``random_state``.
    checkpoint_every : int, optional
        Epochs from one checkpoint to the next; a twentieth of all when None.

    Attributes
    ----------
    classes_ : array
    sensitive_values_ : list
        The groups; tuples, where several columns are crossed. A last one None stands for the samples
        without a group, which train but do not count for fairness.
    sample_indices_ : integer array
        Rows of the training data that the last epoch kept, ascending.
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
    module_ : nn.Module
        The trained model.
    n_features_in_ : int
    feature_names_in_ : array
        Where the features have names.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(500, seed=0)
    >>> model = FairRobustClassifier(clean_ratio=0.9, epochs=20, warmup_epochs=5, random_state=0)
    >>> model.fit(data.features, data.labels, sensitive_features=data.groups).ratios_.shape
    (2, 2)
    """

    module_: nn.Module
    history_: History
    estimate_: CleanRatioEstimate | None
    collapse_: Collapse | None

    def __init__(
        self,
        fairness: str = "equalized_odds",
        clean_ratio: float | Auto = "auto",
        module: ModuleLike = None,
        epochs: int = 400,
        warmup_epochs: int | None = None,
        batch_size: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        step_size: float = 0.0005,
        average_last: int = 1,
        random_state: Any = None,
        device: str | None = None,
        verbose: int = 0,
        on_collapse: OnCollapse = "warn",
        signal: Literal["loss", "error"] | None = None,
        pos_label: Any | None = None,
        checkpoint_dir: Path | str | None = None,
        checkpoint_every: int | None = None,
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

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> FairRobustClassifier:
        """Train on labels that may be wrong.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            A sparse one is made dense to train on.
        y : n labels
            Of any type, two or more classes.
        sensitive_features : n values, or several columns of them, which are crossed
            Some may be missing. None is one group: then the model is robust and nothing more.
        sample_weight : n numbers, optional
            Each multiplies its sample's training loss; a sample of weight 0 is left out.
        """
        check_choice("on_collapse", self.on_collapse, ("warn", "fallback", "raise"))
        given = check_clean_ratio("clean_ratio", self.clean_ratio, auto=True)
        checked = check_samples(self, X, y, sensitive_features, sample_weight)
        if sensitive_features is not None:
            warn_of_groups(checked.data.cells)
        seed = lasting_seed_of(self.random_state, self.checkpoint_dir)
        if given == "auto":
            self.estimate_ = estimate_of(checked, seed)
            self.clean_ratio_ = self.estimate_.clean_ratio
        else:
            self.estimate_, self.clean_ratio_ = None, given
        fitted = self._train(checked, seed)
        plain = fitted if fitted.interrupted else self._train(checked, seed, plain=True)
        self.interrupted_ = plain.interrupted
        if plain.interrupted:
            warnings.warn(
                f"training was stopped after {len(fitted.history)} of {self.epochs} epochs; the model is the "
                "best of those, and was not compared with a plain one",
                FairsieveWarning,
                stacklevel=2,
            )
            self.collapse_ = None
            return self._take_over(fitted, checked)
        self.collapse_ = collapse_of(
            _codes_of(_decision_of(fitted.model, checked.data.features)),
            _codes_of(_decision_of(plain.model, checked.data.features)),
            checked.data.cells.label_codes,
            1 - self.clean_ratio_,
            estimate=self.estimate_,
            weights=checked.weights,
        )
        return self._take_over(plain if handle(self.collapse_, self.on_collapse) else fitted, checked)

    def _train(self, checked: Checked, seed: int, *, plain: bool = False) -> Fitted:
        """Train on checked samples."""
        data, batch_size, learning_rate = checked.data, self.batch_size, self.learning_rate
        if batch_size == "auto":
            batch_size = auto_batch_size(len(data))
        if learning_rate == "auto":
            learning_rate = 0.01 / batch_count(len(data), check_at_least("batch_size", batch_size, 1))
        model = model_of(self.module, data, seed)
        settings: dict[str, Any] = {
            "seed": seed,
            "sample_weight": checked.weights,
            "progress": bool(self.verbose),
            "watched": bool(self.verbose),
            "fairness": self.fairness,
            "epochs": self.epochs,
            "warmup_epochs": _warmup_of(self.epochs) if self.warmup_epochs is None else self.warmup_epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "step_size": self.step_size,
            "average_last": self.average_last,
            "pos_label": self.pos_label,
            "device": self.device,
            "checkpoint_dir": self.checkpoint_dir
            and Path(self.checkpoint_dir) / ("plain" if plain else "fair"),
            "checkpoint_every": self.checkpoint_every,
        }
        if plain:
            return fit(model, data, "lr", **settings)
        if self.estimate_ is not None:
            return train_auto(model, data, self.estimate_, signal=self.signal, **settings)
        settings |= {"clean_ratio": self.clean_ratio_, "signal": self.signal or "loss"}
        return fit(model, data, "fairsieve", **settings)

    def _take_over(self, fitted: Fitted, checked: Checked) -> FairRobustClassifier:
        """Keep what training came to."""
        data, rows = checked.data, checked.rows
        decision = _decision_of(fitted.model, data.features)
        trusted = fitted.indices
        if self.estimate_ is not None and self.estimate_.credible:
            trusted = self.estimate_.believed  # who was kept is partly chance
        self._suspects = suspects_of(decision, data, trusted, fitted.history.times_selected, rows)
        fitted = fitted.over(rows, checked.given)
        self.module_, self.history_ = fitted.model, fitted.history
        self.ratios_, self.sample_indices_ = fitted.ratios, fitted.indices
        self.classes_ = np.asarray(data.cells.classes, dtype=data.labels.dtype)
        self.sensitive_values_ = data.cells.groups
        return self

    def suspects(self) -> dict[str, NDArray[Any]]:
        """The training samples whose labels to check, the highest loss first.

        They are those that the last selection left out; with "auto", those whose label is more likely
        wrong than right or, where labels look wrong on purpose, surely wrong.

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

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Logits: of the second class against the first, (n,), or of each of many, (n, classes)."""
        features = check_features(self, X)  # first, for it says when there is no model yet
        return _decision_of(self.module_, features)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, classes)."""
        return probabilities_of(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each sample."""
        codes = _codes_of(self.decision_function(X))
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _warmup_of(epochs: int) -> int:
    """The paper's 100 epochs, and at most a quarter of all.

    >>> [_warmup_of(epochs) for epochs in (2, 30, 400, 500)]
    [0, 7, 100, 100]
    """
    return min(check_at_least("epochs", epochs, 1) // 4, 100)


def auto_batch_size(samples: int) -> int:
    """A twentieth of the samples, as in the paper's experiments, within [100, 2000].

    >>> [auto_batch_size(n) for n in (30, 2000, 3800, 31000, 10**6)]
    [100, 100, 190, 1550, 2000]
    """
    return min(max(samples // 20, 100), 2000)


def _decision_of(module: nn.Module, features: Any) -> NDArray[np.float64]:
    """Logits of dense or sparse features: one per sample for two classes, else one per class."""
    dtype = next(module.parameters()).dtype
    chunks = (torch.tensor(chunk, dtype=dtype) for chunk in dense_chunks(features))
    outputs = torch.cat([outputs_of(module, chunk).cpu() for chunk in chunks]).double()
    if is_single(outputs):
        return outputs.reshape(-1).numpy()
    return (outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs).numpy()


def _codes_of(decision: NDArray[np.float64]) -> NDArray[np.int64]:
    """The likeliest class of each sample, by its number."""
    return (decision > 0).astype(np.int64) if decision.ndim == 1 else decision.argmax(axis=1)


def model_of(module: ModuleLike, data: Samples, seed: int) -> ModelLike:
    """What ``fit`` trains; logistic regression in double precision, as scikit-learn's."""
    sizes = data.features.shape[1], data.cells.shape[0]
    if module is None:
        return lambda generator: LogisticRegression(*sizes, generator=generator).double()
    if isinstance(module, nn.Module):
        return module
    if not callable(module):
        raise InvalidInputError(
            "module must be None, an nn.Module, or a callable (n_features, n_classes) → nn.Module; "
            f"got {module!r}"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = module(*sizes)
    if not isinstance(made, nn.Module):
        raise InvalidInputError(f"module must make an nn.Module when called; got {type(made).__name__}")
    return made
