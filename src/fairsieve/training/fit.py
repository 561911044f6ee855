"""``fit``: one call that trains a model by a method of selection, and what it returns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fairsieve.errors import FairsieveWarning, InvalidInputError, require
from fairsieve.progress import progress_bar
from fairsieve.samples import Samples, check_kind_of_samples, weighted_rows
from fairsieve.selection.cells import Floats, Integers, Values, as_array
from fairsieve.selection.select import count_budget
from fairsieve.training.linear_trainer import LinearTrainer
from fairsieve.training.newton import LinearModel, likeliest, log_probabilities
from fairsieve.training.trainer import (
    History,
    SelectionMethod,
    Settings,
    Trainer,
    TrainingSpec,
    selection_method,
)
from fairsieve.validation import check_at_least, check_seed

if TYPE_CHECKING:
    import torch
    from torch import nn

    from fairsieve.training.models import AutogradTrainer, Checkpoints

    ModelLike = nn.Module | Callable[[torch.Generator], nn.Module] | None
else:
    ModelLike = Any  # so that annotations can be evaluated without torch


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model and how it came to be.

    Attributes
    ----------
    predictor : LinearModel or nn.Module
        What predicts: the linear model in NumPy, or the trained module.
    history : History
    indices : integer array
        The last selection, ascending.
    ratios : array of shape (classes, groups)
        The last ratios.
    classes : list
        What the model's outputs stand for.
    interrupted : bool
        Whether training was stopped early; the model is then the best state so far.

    Examples
    --------
    >>> from fairsieve import fit
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> fitted.predict([[1.0, 1.0, 0.0]]).tolist(), fitted.ratios.shape, fitted.interrupted
    ([1], (2, 2), False)
    """

    predictor: LinearModel | nn.Module
    history: History
    indices: Integers
    ratios: Floats
    classes: list[Any]
    interrupted: bool = False

    @cached_property
    def model(self) -> nn.Module:
        """The trained model as a module; a linear model becomes a ``LogisticRegression`` (needs torch)."""
        if not isinstance(self.predictor, LinearModel):
            return self.predictor
        require("torch", purpose="a linear model as a torch module")
        from fairsieve.training.models import LogisticRegression

        return LogisticRegression.from_linear(self.predictor)

    def predict(self, features: ArrayLike | torch.Tensor) -> Values:
        """Predict labels."""
        return np.asarray(self.classes)[likeliest(self._decide(features))]

    def predict_proba(self, features: ArrayLike | torch.Tensor) -> Floats:
        """Compute the probabilities of the classes, (n, classes)."""
        return np.exp(log_probabilities(self._decide(features)))

    def _decide(self, features: ArrayLike | torch.Tensor) -> Floats:
        """Compute logits, on the CPU: (n,) of a single output, else (n, classes)."""
        numbers = as_array("features", features)
        if numbers.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"features must be numbers; got {numbers.dtype}: encode them as in training"
            )
        if not np.isfinite(numbers).all():
            raise InvalidInputError(
                f"features must be finite; {(~np.isfinite(numbers)).sum()} are not: impute them first"
            )
        if isinstance(self.predictor, LinearModel):
            return self.predictor.decision(numbers)
        import torch

        from fairsieve.sampling.losses import compute_outputs, is_single

        dtype = next(self.model.parameters()).dtype
        try:
            outputs = compute_outputs(self.model, torch.as_tensor(numbers).to(dtype)).double().cpu()
        except RuntimeError as error:
            raise InvalidInputError(
                f"features must have the columns that the model was trained on; got the shape {numbers.shape}: {error}"
            ) from error
        return (outputs.reshape(-1) if is_single(outputs) else outputs).numpy()


def fit(
    model: ModelLike,
    data: Samples,
    method: str = "sample-selection",
    *,
    seed: int = 0,
    sample_weight: ArrayLike | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    checkpoint_dir: Path | str | None = None,
    checkpoint_every: int | None = None,
    **settings: Any,
) -> Fitted:
    """Train a model by a method of selection.

    Parameters
    ----------
    model : nn.Module, callable or None
        Any module that gives one logit (two classes) or one per class; it is not changed, a copy is
        trained. A callable is given a seeded ``torch.Generator`` and makes the module. None is the
        paper's logistic regression, which needs no torch.
    data : Samples
        What to train on.
    method : str, default="sample-selection"
        ``"sample-selection"`` (the paper's), ``"lr"``, ``"itlm"``, ``"fairbatch"``,
        ``"sample-selection-no-constraints"``, ``"sample-selection-no-weights"``; ``compare`` calls them the same.
    seed : int, default=0
        Decides everything random: the first weights (where the model is made here), the batches,
        dropout. Two trainings with one seed give the same bits on a CPU, in threads too.
    sample_weight : n numbers, optional
        Each multiplies its sample's training loss; only their proportions matter, since they are
        divided by their mean. Selection and ratios do not look at them, except that a sample of
        weight 0 is left out of everything.
    evaluation : Samples, optional
        Measured on every epoch, never trained on.
    progress : bool, default=False
        Show a progress bar.
    checkpoint_dir : path, optional
        A folder for checkpoints of a module. If it holds some of this training, training goes on from the last whole
        one, to the same bits on a CPU as if it had not been stopped. Those of another training are an
        error.
    checkpoint_every : int, optional
        Epochs from one checkpoint to the next; a twentieth of all when None.
    **settings
        See :class:`~fairsieve.training.trainer.Settings`: ``fairness``, ``clean_ratio``,
        ``epochs``, ``warmup_epochs``, ``batch_size``, ``learning_rate``, ``step_size``,
        ``average_last``, …

    Returns
    -------
    Fitted
        After an interruption (Ctrl-C) too: then with the best state so far.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit(None, make_synthetic(500, seed=0), clean_ratio=0.9, epochs=5, warmup_epochs=2)
    >>> fitted.history.ratios.shape
    (5, 2, 2)
    """
    chosen, wanted = selection_method(method), Settings.of(settings)
    check_data(data, evaluation)
    check_selection(chosen, wanted, len(data))
    if checkpoint_every is not None:
        check_at_least("checkpoint_every", checkpoint_every, 1)
    rows, weights = weighted_rows(sample_weight, len(data))
    if weights is not None:
        weights = None if (weights == weights[0]).all() else weights / weights.mean()
    spec = TrainingSpec(
        data=data if len(rows) == len(data) else data.take(rows),
        method=chosen,
        settings=wanted,
        seed=check_seed("seed", seed),
        evaluation=evaluation,
        weights=weights,
    )
    trainer, kept = _new_trainer(model, spec), None
    if checkpoint_dir is not None:
        if isinstance(trainer, LinearTrainer):
            raise InvalidInputError(
                "checkpoint_dir must be None for the linear model, which trains in seconds: leave it out, or pass a "
                "module"
            )
        from fairsieve.training.models import Checkpoints

        kept = Checkpoints(trainer, Path(checkpoint_dir), checkpoint_every)
    fitted = run_training(trainer, progress=progress, kept=kept)
    return replace(fitted, indices=rows[fitted.indices])


def run_training(trainer: Trainer, *, progress: bool = False, kept: Checkpoints | None = None) -> Fitted:
    """Train the epochs that are left, and return what came of it, after an interruption too."""
    spec, epochs = trainer.spec, trainer.settings.epochs
    # Below this an interruption is an exception; here it ends the training, and the result says so.
    with progress_bar(spec.method.name, epochs, shown=progress) as report, suppress(KeyboardInterrupt):
        if kept is not None:
            kept.resume()
        while trainer.done < epochs:
            trainer.run_epoch()
            if kept is not None:
                kept.write_if_due()
            report(trainer.done)
    interrupted = trainer.done < epochs
    return Fitted(
        predictor=trainer.finish(interrupted=interrupted),
        history=trainer.history(),
        indices=np.asarray(trainer.plan.indices),
        ratios=trainer.plan.ratios,
        classes=spec.data.cells.classes,
        interrupted=interrupted,
    )


def check_data(data: Samples, evaluation: Samples | None) -> None:
    """Require something to learn, and an evaluation set of the same kind."""
    shown = data if evaluation is None else evaluation
    for name, given in (("data", data), ("evaluation", shown)):
        check_kind_of_samples(name, given)
    if len(data) == 0:
        raise InvalidInputError("data must have at least one sample; got none")
    if data.cells.shape[0] < 2:
        raise InvalidInputError(f"data must have two or more classes to tell apart; got {data.classes}")
    if (data.classes, data.group_values) != (shown.classes, shown.group_values):
        raise InvalidInputError(
            f"evaluation must have the classes and groups of data, {data.classes} and {data.group_values}; got "
            f"{shown.classes} and {shown.group_values}. Pass classes= and group_values= to Samples when some are absent"
        )


def check_selection(method: SelectionMethod, settings: Settings, samples: int) -> None:
    """Refuse a clean ratio that selects nobody; warn when training ends before anything is selected."""
    if not method.cleans:
        return
    if count_budget(settings.clean_ratio, samples) < 1:
        raise InvalidInputError(
            f"clean_ratio must select at least one sample; {settings.clean_ratio} of {samples} samples selects nobody: "
            f"pass {1 / samples:.2g} or more"
        )
    if settings.warmup_epochs >= settings.epochs:
        warnings.warn(
            f"warmup_epochs must be below epochs for {method.name} to select anything; got "
            f"{settings.warmup_epochs} and {settings.epochs}: all epochs train plainly on everything",
            FairsieveWarning,
            stacklevel=4,
        )


def _new_trainer(model: ModelLike, spec: TrainingSpec) -> LinearTrainer | AutogradTrainer:
    """Make a trainer at its start: without torch for the linear model, by autograd for any other."""
    settings = spec.settings
    own = settings.loss or settings.optimizer or settings.device not in (None, "cpu")  # what needs torch
    if model is None and not own:
        return LinearTrainer(spec)
    require("torch", purpose="training a module by autograd")
    from fairsieve.training import models

    return models.AutogradTrainer(models.make_module(model, spec.data, spec.seed), spec)
