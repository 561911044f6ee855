"""``fit``: one call that trains a model by a method of selection."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from fairsieve.errors import InvalidInputError
from fairsieve.progress import progress_bar
from fairsieve.samples import Samples, weighted_rows
from fairsieve.selection.epoch import Plan
from fairsieve.training.checkpoint.resume import Keeper, epochs_between, seed_folders, training_of
from fairsieve.training.history import history_of
from fairsieve.training.methods import SelectionMethod, selection_method
from fairsieve.training.models import LogisticRegression
from fairsieve.training.progression import advance_together
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings
from fairsieve.training.trainer import AutogradRun, CompiledRun, Run, can_compile
from fairsieve.validation import check_choice, check_seed, shown

__all__ = ["ModelLike", "check_data", "fit", "fit_seeds", "make_module"]

Engine = Literal["auto", "compiled", "autograd"]
ModelLike = nn.Module | Callable[[torch.Generator], nn.Module] | None


def fit(
    model: ModelLike,
    data: Samples,
    method: str | SelectionMethod = "fairsieve",
    *,
    seed: int = 0,
    sample_weight: ArrayLike | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    engine: Engine = "auto",
    watched: bool = True,
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
        paper's logistic regression.
    data : Samples
        What to train on.
    method : str
        ``"fairsieve"``, ``"lr"``, ``"itlm"``, ``"fairbatch"``, ``"fairsieve-no-constraints"``,
        ``"fairsieve-no-weights"``.
    seed : int
        Decides everything random: the first weights (where the model is made here), the batches,
        dropout. Two runs with one seed give the same bits on a CPU.
    sample_weight : n numbers, optional
        Each multiplies its sample's training loss; only their proportions matter, since they are
        divided by their mean. Selection and ratios do not look at them, except that a sample of
        weight 0 is left out of everything.
    evaluation : Samples, optional
        Measured on every epoch, never trained on.
    progress : bool
        Show a progress bar.
    engine : {"auto", "compiled", "autograd"}
        The linear model has a compiled loop of its own beside the autograd one; auto uses it where
        it can.
    watched : bool
        Go epoch by epoch, so that Ctrl-C stops within one. Otherwise the linear model goes through
        twenty slices of epochs, each in one compiled call, in about half the time; the result is the
        same.
    checkpoint_dir : path, optional
        A folder to keep checkpoints in. Where it holds some of this training, training goes on from the
        last whole one, to the same bits on a CPU as if it had not been stopped; some of another training
        are an error.
    checkpoint_every : int, optional
        Epochs from one checkpoint to the next; a twentieth of all when None.
    **settings
        See :class:`~fairsieve.training.settings.Settings`: ``fairness``, ``clean_ratio``,
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
    return fit_seeds(
        model,
        data,
        method,
        seeds=[seed],
        sample_weight=sample_weight,
        evaluation=evaluation,
        progress=progress,
        engine=engine,
        watched=watched,
        checkpoint_dir=checkpoint_dir,
        checkpoint_every=checkpoint_every,
        **settings,
    )[0]


def fit_seeds(
    model: ModelLike,
    data: Samples,
    method: str | SelectionMethod = "fairsieve",
    *,
    seeds: Sequence[int],
    sample_weight: ArrayLike | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    engine: Engine = "auto",
    watched: bool = True,
    checkpoint_dir: Path | str | None = None,
    checkpoint_every: int | None = None,
    **settings: Any,
) -> list[Fitted]:
    """:func:`fit` for several seeds at once; each result is that of its seed alone.

    Each seed of several has checkpoints of its own, in ``seed-0`` and so on below ``checkpoint_dir``.
    """
    chosen, wanted = selection_method(method), Settings.of(settings)
    check_data(data, evaluation)
    _check_seeds(seeds)
    started = time.perf_counter()
    rows, weights = weighted_rows(sample_weight, len(data))
    part = data if len(rows) == len(data) else data.take(rows)
    every = epochs_between(checkpoint_every, wanted.epochs)
    keepers = []
    for seed, folder in zip(seeds, seed_folders(checkpoint_dir, seeds), strict=True):
        run = _new_run(model, part, chosen, wanted, seed, evaluation, engine, weights)
        training = {} if folder is None else training_of(run, part, chosen, seed, weights)
        keepers.append(Keeper(run, folder, every, training))
    with progress_bar(
        f"{chosen.title}, {len(keepers)} seeds", wanted.epochs * len(keepers), shown=progress
    ) as report:
        interrupted = advance_together(keepers, list(seeds), wanted.epochs, report, watched=watched)
    seconds = time.perf_counter() - started
    return [
        _fitted_of(keeper.run, wanted, chosen, seed, seconds, interrupted).over(rows, len(data))
        for keeper, seed in zip(keepers, seeds, strict=True)
    ]


def _check_seeds(seeds: Sequence[int]) -> None:
    """A list of whole numbers, each a seed."""
    if not isinstance(seeds, Sequence | np.ndarray) or isinstance(seeds, str):
        raise InvalidInputError(
            f"seeds must be a list of whole numbers; got {shown(seeds)}: for the first three pass range(3)"
        )
    for seed in seeds:
        check_seed("seed", seed)


def check_data(data: Samples, evaluation: Samples | None) -> None:
    """Something to learn, and an evaluation set of the same kind."""
    if not isinstance(data, Samples):
        raise InvalidInputError(f"data must be Samples(features, labels, groups); got {type(data).__name__}")
    if len(data) == 0:
        raise InvalidInputError("data must have at least one sample; got none")
    if data.cells.shape[0] < 2:
        raise InvalidInputError(f"data must have two or more classes to tell apart; got {data.classes}")
    if evaluation is not None:
        if not isinstance(evaluation, Samples):
            raise InvalidInputError(
                f"evaluation must be Samples(features, labels, groups); got {type(evaluation).__name__}"
            )
        same = (data.classes, data.group_values) == (evaluation.classes, evaluation.group_values)
        if not same:
            raise InvalidInputError(
                f"evaluation must have the classes and groups of data, {data.classes} and {data.group_values}; got "
                f"{evaluation.classes} and {evaluation.group_values}. Pass classes= and group_values= to Samples "
                "when some are absent"
            )


def make_module(model: ModelLike, data: Samples, seed: int) -> nn.Module:
    """A module of its own to train: made, copied, or the paper's logistic regression."""
    generator = torch.Generator().manual_seed(check_seed("seed", seed))
    if model is None:
        return LogisticRegression(data.features.shape[1], data.cells.shape[0], generator=generator)
    if isinstance(model, nn.Module):
        made: Any = copy.deepcopy(model)
    else:
        made = model(generator) if callable(model) else model
    if not isinstance(made, nn.Module):
        raise InvalidInputError(
            "model must be None, an nn.Module, or a callable (torch.Generator) → nn.Module; got "
            f"{shown(model)}{f', which makes {shown(made)}' if callable(model) else ''}"
        )
    if not any(parameter.requires_grad for parameter in made.parameters()):
        raise InvalidInputError(
            f"model must have parameters to train; got {shown(made)}, which has none, or all are frozen: unfreeze some "
            "with requires_grad_(True)"
        )
    return made


def _new_run(
    model: ModelLike,
    data: Samples,
    method: SelectionMethod,
    settings: Settings,
    seed: int,
    evaluation: Samples | None,
    engine: Engine,
    weights: NDArray[np.float64] | None = None,
) -> Run:
    """A run at its start."""
    check_choice("engine", engine, ("auto", "compiled", "autograd"))
    module = make_module(model, data, seed)
    plan = Plan(
        data.cells,
        settings.batch_size,
        fairness=settings.fairness if method.fair else None,
        clean_ratio=settings.clean_ratio if method.cleans else 1.0,
        step_size=settings.step_size,
        warmup_epochs=settings.warmup_epochs if method.cleans else 0,
        constrained=method.constrained,
        weighted=method.weighted,
        signal=settings.signal,
        pos_label=settings.pos_label,
        seed=seed,
    )
    compilable = can_compile(module, settings)
    if engine == "compiled" and not compilable:
        raise InvalidInputError(
            "engine='compiled' takes the linear model with its own loss and optimiser on a CPU; use engine='auto'"
        )
    if compilable and engine != "autograd":
        assert isinstance(module, LogisticRegression)
        return CompiledRun(module, data, plan, settings, evaluation, weights)
    return AutogradRun(module, data, plan, settings, evaluation, weights)


def _fitted_of(
    run: Run, settings: Settings, method: SelectionMethod, seed: int, seconds: float, interrupted: bool
) -> Fitted:
    """What a run came to."""
    cells = run.plan.cells
    positive = -1 if settings.pos_label is None else cells.class_index(settings.pos_label)
    history = history_of(
        run.recording,
        cells,
        np.arange(run.done),
        warmup_epochs=run.plan.rules.warmup_epochs,
        evaluated=run.evaluation is not None,
        positive=positive,
    )
    return Fitted(
        run.finish(interrupted=interrupted),
        history,
        run.plan.indices,
        run.plan.ratios,
        cells.classes,
        method.name,
        seed,
        seconds,
        interrupted,
    )
