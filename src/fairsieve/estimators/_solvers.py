"""The two ways to train a classifier: Newton steps for the linear model, and the paper's loop for any model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from sklearn.exceptions import ConvergenceWarning

from fairsieve.errors import InvalidInputError
from fairsieve.inputs import Checked
from fairsieve.label_noise.correction import train_auto
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.optional import require
from fairsieve.samples import Samples
from fairsieve.selection.batches import batch_count
from fairsieve.training.fit import ModelLike, fit
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.newton import (
    AVERAGED,
    UPDATES,
    PlainOptimum,
    find_plain_optimum,
    fit_newton,
    new_objective,
)
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings
from fairsieve.validation import check_at_least, check_choice

if TYPE_CHECKING:
    from fairsieve.estimators.classifier import FairRobustClassifier

__all__ = ["EPOCHS", "ModuleLike", "SolverName", "auto_batch_size", "choose_solver", "model_of", "new_solver"]

ModuleLike = Any  # None, an nn.Module, or a callable (n_features, n_classes) → nn.Module
SolverName = Literal["auto", "newton", "adam"]

PAPER_LOOP = (
    "module",
    "warmup_epochs",
    "batch_size",
    "learning_rate",
)  # parameters of the paper's loop alone
EPOCHS, ADAM_STEP_SIZE = 400, 0.001


class _Solver(Protocol):
    """Trains the models of one fit."""

    @property
    def steps(self) -> int:
        """Epochs, or updates, of the fair model."""

    def train_fair(self, clean_ratio: float, estimate: CleanRatioEstimate | None) -> Fitted:
        """Train the fair and robust model, as the estimate suggests if there is one."""

    def train_plain(self) -> Any | None:
        """Train the model on everything, plainly; return what predicts, or None on Ctrl-C."""

    def describe_plain(self) -> Fitted:
        """Return the plain model, once it is trained, with its history."""


def choose_solver(estimator: FairRobustClassifier) -> Literal["newton", "adam"]:
    """Return the solver that ``solver`` and the parameters of the paper's loop ask for."""
    name = check_choice("solver", estimator.solver, ("auto", "newton", "adam"))
    given = [parameter for parameter in PAPER_LOOP if getattr(estimator, parameter) not in (None, "auto")]
    if name == "newton" and given:
        raise InvalidInputError(
            f"solver='newton' trains the linear model on full batches; {given[0]} belongs to the paper's loop: leave "
            "it out, or pass solver='adam'"
        )
    return "newton" if name == "newton" or (name == "auto" and not given) else "adam"


def new_solver(estimator: FairRobustClassifier, checked: Checked, seed: int) -> _Solver:
    """Make the solver of a fit."""
    kind = _NewtonSolver if choose_solver(estimator) == "newton" else _AdamSolver
    return kind(estimator, checked, seed)


class _NewtonSolver:
    """Second-order steps on full batches."""

    def __init__(self, estimator: FairRobustClassifier, checked: Checked, seed: int) -> None:
        self.estimator, self.checked, self.seed = estimator, checked, seed
        self.steps = UPDATES if estimator.epochs is None else estimator.epochs
        self.settings: dict[str, Any] = {
            "fairness": estimator.fairness,
            "epochs": self.steps,
            "average_last": AVERAGED if estimator.average_last is None else estimator.average_last,
            "pos_label": estimator.pos_label,
            "device": estimator.device,
        }
        if estimator.step_size is not None:
            self.settings["step_size"] = estimator.step_size
        Settings.of(self.settings)  # before anything is trained

    @cached_property
    def optimum(self) -> PlainOptimum:
        """The plain model."""
        return find_plain_optimum(
            new_objective(self.checked.data, self.estimator.device), self.checked.weights
        )

    def train_fair(self, clean_ratio: float, estimate: CleanRatioEstimate | None) -> Fitted:
        """Train the fair and robust model."""
        data, weights, estimator = self.checked.data, self.checked.weights, self.estimator
        options: dict[str, Any] = self.settings | {
            "progress": bool(estimator.verbose),
        }
        if estimate is not None:
            options |= {"seed": self.seed, "sample_weight": weights, "signal": estimator.signal}
            return train_auto(None, data, estimate, train=fit_newton, **options)
        options |= {"clean_ratio": clean_ratio, "signal": estimator.signal or "loss"}
        return fit_newton(None, data, "fairsieve", seed=self.seed, sample_weight=weights, **options)

    def train_plain(self) -> LinearModel | None:
        """Return the plain optimum, or None on Ctrl-C."""
        try:
            converged = self.optimum.converged
        except KeyboardInterrupt:
            return None
        if not converged:
            warnings.warn(
                f"the plain model has not converged after {self.optimum.steps} steps; scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self.optimum.model

    def describe_plain(self) -> Fitted:
        """Return the plain optimum with a history of one update."""
        settings = self.settings | {"epochs": 1, "average_last": 1}
        data, weights, start = self.checked.data, self.checked.weights, self.optimum.parameters
        fitted = fit_newton(None, data, "lr", seed=self.seed, sample_weight=weights, start=start, **settings)
        return replace(fitted, predictor=self.optimum.model)


class _AdamSolver:
    """The paper's loop: Adam on batches, for the linear model and for any module."""

    def __init__(self, estimator: FairRobustClassifier, checked: Checked, seed: int) -> None:
        self.estimator, self.checked, self.seed = estimator, checked, seed
        self.steps = EPOCHS if estimator.epochs is None else estimator.epochs
        samples, batch_size, learning_rate = len(checked.data), estimator.batch_size, estimator.learning_rate
        if batch_size == "auto":
            batch_size = auto_batch_size(samples)
        if learning_rate == "auto":
            learning_rate = 0.01 / batch_count(samples, check_at_least("batch_size", batch_size, 1))
        warmup = _warmup_epochs(self.steps) if estimator.warmup_epochs is None else estimator.warmup_epochs
        self.settings: dict[str, Any] = {
            "fairness": estimator.fairness,
            "epochs": self.steps,
            "warmup_epochs": warmup,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "step_size": ADAM_STEP_SIZE if estimator.step_size is None else estimator.step_size,
            "average_last": 1 if estimator.average_last is None else estimator.average_last,
            "pos_label": estimator.pos_label,
            "device": estimator.device,
        }
        Settings.of(self.settings)  # before anything is trained
        self.model = model_of(estimator.module, checked.data, seed)

    def train_fair(self, clean_ratio: float, estimate: CleanRatioEstimate | None) -> Fitted:
        """Train the fair and robust model."""
        data, options = self.checked.data, self.options("fair")
        if estimate is not None:
            return train_auto(self.model, data, estimate, signal=self.estimator.signal, **options)
        options |= {"clean_ratio": clean_ratio, "signal": self.estimator.signal or "loss"}
        return fit(self.model, data, "fairsieve", **options)

    def train_plain(self) -> Any | None:
        """Train the model on everything, plainly; return what predicts, or None on Ctrl-C."""
        return None if self.plain.interrupted else self.plain.predictor

    @cached_property
    def plain(self) -> Fitted:
        """The plain model."""
        return fit(self.model, self.checked.data, "lr", **self.options("plain"))

    def describe_plain(self) -> Fitted:
        """Return the plain model with its history."""
        return self.plain

    def options(self, name: str) -> dict[str, Any]:
        """Return everything that ``fit`` takes but the model, the data and the method."""
        estimator = self.estimator
        return self.settings | {
            "seed": self.seed,
            "sample_weight": self.checked.weights,
            "progress": bool(estimator.verbose),
            "checkpoint_dir": estimator.checkpoint_dir and Path(estimator.checkpoint_dir) / name,
            "checkpoint_every": estimator.checkpoint_every,
        }


def _warmup_epochs(epochs: int) -> int:
    """Return the paper's 100 epochs, and at most a quarter of all.

    >>> [_warmup_epochs(epochs) for epochs in (2, 30, 400, 500)]
    [0, 7, 100, 100]
    """
    return min(check_at_least("epochs", epochs, 1) // 4, 100)


def auto_batch_size(samples: int) -> int:
    """Return a twentieth of the samples, as in the paper's experiments, within [100, 2000].

    >>> [auto_batch_size(n) for n in (30, 2000, 3800, 31000, 10**6)]
    [100, 100, 190, 1550, 2000]
    """
    return min(max(samples // 20, 100), 2000)


def model_of(module: ModuleLike, data: Samples, seed: int) -> ModelLike:
    """Return what ``fit`` trains; None is the linear model in double precision."""
    if module is None:
        return None
    if not callable(module):
        raise InvalidInputError(
            "module must be None, an nn.Module, or a callable (n_features, n_classes) → nn.Module; "
            f"got {module!r}"
        )
    torch = require("torch", extra="torch", purpose="training a module")
    if isinstance(module, torch.nn.Module):
        return cast("ModelLike", module)
    from fairsieve.training.autograd import random_numbers

    with random_numbers({}, seed):
        made = module(data.features.shape[1], data.cells.shape[0])
    if not isinstance(made, torch.nn.Module):
        raise InvalidInputError(f"module must make an nn.Module when called; got {type(made).__name__}")
    return cast("ModelLike", made)
