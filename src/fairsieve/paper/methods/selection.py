"""The methods that differ in how they select and weigh samples, trained by the paper's loop.

LR, ITLM, FairBatch, the covariance penalty, the paper's method and its ablations, two-step methods, and the method
as its authors' code selects.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from fairsieve.notions import EO
from fairsieve.paper.methods.contract import Trained, TrainingInput, trained_linear
from fairsieve.samples import Samples
from fairsieve.selection.select import select_cells
from fairsieve.training.fit import fit
from fairsieve.training.linear import LinearTrainer
from fairsieve.training.settings import Settings, TrainingSpec, selection_method

# LR and ITLM train this many times as long as the others: after the others' epochs ITLM has not converged.
LONGER = 4
LONGEST = 800  # epochs, with batches as large as those of Adult; its accuracy is the same from there on
LARGE_BATCH = 2000
TRACED = 100  # epochs of a training whose losses are recorded


try:  # without numba the loop in NumPy takes ten times as long
    COMPILED = find_spec("numba") is not None
except ImportError:
    COMPILED = False


def train_loop(given: TrainingInput, method: str, *, longer: bool = False) -> Trained:
    """Train by a method of :data:`~fairsieve.training.settings.SELECTION_METHODS`; ``longer``, four times as long."""
    settings = given.settings
    if longer:
        most = LONGEST if settings.batch_size >= LARGE_BATCH else settings.epochs * LONGER
        settings = replace(settings, epochs=max(settings.epochs, min(settings.epochs * LONGER, most)))
    fitted = fit(None, given.data, method, seed=given.seed, compiled=COMPILED, **vars(settings))
    if fitted.interrupted:  # half a training is a model, but not a result
        raise KeyboardInterrupt
    history = fitted.history
    shown = np.arange(0, settings.epochs, max(1, settings.epochs // TRACED))
    return Trained(
        predict=lambda samples: fitted.predict(samples.features),
        indices=fitted.indices,
        epochs=settings.epochs,
        trace={
            "classes": [str(label) for label in history.classes],
            "groups": [str(group) for group in history.groups],
            "counts": history.counts[0].tolist(),
            "epochs": shown.tolist(),
            "cell_losses": history.cell_losses[shown].round(4).tolist(),
        },
    )


def train_two_steps(given: TrainingInput, then: str, cleaning_penalty_weight: float = 0.0) -> Trained:
    """Clean with ITLM, with a penalty that has some weight, and train on what it selected with another method."""
    settings = replace(given.settings, penalty_weight=cleaning_penalty_weight, step_size=0.0)
    if not cleaning_penalty_weight:  # plain ITLM knows no fairness
        settings = replace(settings, fairness=EO)
    kept = _clean(given.data, settings, given.seed)
    second = train_loop(replace(given, data=given.data.take(kept)), then)
    return replace(second, indices=kept[second.indices])


@lru_cache(maxsize=1)
def _clean(data: Samples, settings: Settings, seed: int) -> NDArray[np.int64]:
    """Return what ITLM selects: the same for both notions of fairness and all hyperparameters of the second step."""
    return train_loop(TrainingInput(data=data, settings=settings, seed=seed), "itlm", longer=True).indices


def authors_prefix(
    losses: NDArray[np.float64], data: Samples, ratios: NDArray[np.float64], clean_ratio: float
) -> NDArray[np.int64]:
    """Select as the authors' code does: the lowest losses, until the first budget is full.

    Their loop tests all budgets before it takes a sample and takes nothing more once one is full. Algorithm 1 of the
    paper passes over a sample that does not fit, and goes on.
    """
    cells, budget = data.cells, int(clean_ratio * len(data))
    order = np.argsort(losses, kind="stable")
    taken = np.eye(cells.counts.size)[cells.codes[order]].cumsum(axis=0).reshape(-1, *cells.shape)
    by_class = taken.sum(axis=2, keepdims=True)
    used = np.arange(1, len(data) + 1)[:, None, None] + taken - ratios * by_class
    full = np.maximum(used.max(axis=(1, 2)), np.arange(1, len(data) + 1)) >= budget
    size = int(full.argmax()) + 1 if full.any() else len(data)
    return np.sort(order[: min(size, budget)])


def train_as_authors(given: TrainingInput, *, as_text: bool = False) -> Trained:
    """Train the paper's method epoch by epoch in NumPy, selecting as the authors' code does (two classes).

    ``as_text`` selects by Algorithm 1 as printed, for the trace of how far its selections are from the lowest losses.
    """
    data = given.data
    # Their code divides by count + 1.
    offset = int(given.settings.fairness == EO and not as_text)
    settings = replace(given.settings, count_offset=offset)
    spec = TrainingSpec(data=data, method=selection_method("fairsieve"), settings=settings, seed=given.seed)
    trainer, apart, selecting, started = LinearTrainer(spec), [], 0.0, time.perf_counter()
    plan = trainer.plan
    for _ in range(settings.epochs):
        measured, began = trainer.measure(), time.perf_counter()
        if not plan.in_warmup:
            plan.update(measured.losses, measured.signals)
            if not as_text:
                plan.indices = authors_prefix(measured.losses, data, plan.ratios, settings.clean_ratio)
            lowest = select_cells(measured.losses, data.cells, None, len(plan.indices) / len(data)).indices
            apart.append(len(np.setdiff1d(lowest, plan.indices)))
        selecting += time.perf_counter() - began
        trainer.train(plan.batches())
        plan.epoch += 1
    seconds = time.perf_counter() - started
    return trained_linear(
        trainer.parameters,
        data,
        indices=np.asarray(plan.indices),
        epochs=settings.epochs,
        trace={"prefix_differences": apart, "selecting": round(selecting / seconds, 4)},
    )
