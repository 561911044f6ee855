"""The paper's method with one of its parts exchanged: who is believed, or how the knapsack is filled.

The method believes small losses, as ITLM does; the paper says that other robust methods can be used in its place. A
*cleaner* gives every sample a score, and low ones are believed: the loss, the loss averaged over epochs, or the weights
of learning to reweight. A *selector* fills the knapsack of Eq. 7 by these scores: greedily, as Algorithm 1 is printed;
as the authors' code does; or exactly, by an integer program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from fairsieve.benchmark.methods import Trained, TrainingInput
from fairsieve.notions import EO
from fairsieve.samples import Samples
from fairsieve.selection.search import budget_used
from fairsieve.selection.select import count_budget, select_cells
from fairsieve.training.trainer import selection_method
from fairsieve_reproduction.methods.loop import PaperSpec, PaperTrainer
from fairsieve_reproduction.methods.noise_losses import train_learning_to_reweight
from fairsieve_reproduction.methods.selection import trained_linear

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
CleanerName = Literal["loss", "averaged-loss", "reweighting"]
SelectorName = Literal["greedy", "authors", "exact"]

SMOOTH = 0.9  # of an averaged loss, what is kept from epoch to epoch


def authors_prefix(scores: Floats, data: Samples, ratios: Floats, clean_ratio: float) -> Rows:
    """Select as the authors' code does: the lowest losses, until the first budget is full.

    Their loop tests all budgets before it takes a sample and takes nothing more once one is full. Algorithm 1 of the
    paper passes over a sample that does not fit, and goes on.
    """
    cells, budget = data.cells, int(clean_ratio * len(data))
    order = np.argsort(scores, kind="stable")
    taken = np.eye(cells.counts.size)[cells.codes[order]].cumsum(axis=0).reshape(-1, *cells.shape)
    by_class = taken.sum(axis=2, keepdims=True)
    used = budget_used(np.arange(1, len(data) + 1)[:, None, None], taken, ratios, by_class)
    full = np.maximum(used.max(axis=(1, 2)), np.arange(1, len(data) + 1)) >= budget
    size = int(full.argmax()) + 1 if full.any() else len(data)
    return np.sort(order[: min(size, budget)])


def exact_selection(scores: Floats, data: Samples, ratios: Floats, clean_ratio: float) -> Rows:
    """Select what maximises Σ (max ℓ − ℓᵢ) pᵢ under the budgets of Eq. 7: the knapsack that Algorithm 1 fills greedily.

    The samples of a cell weigh the same, so an optimum takes the lowest losses of each. Only the cells' sizes must be
    whole numbers then, and the integer program has as many integers as there are cells.
    """
    cells, samples = data.cells, len(data)
    own, labels = np.eye(cells.counts.size), np.repeat(np.arange(cells.shape[0]), cells.shape[1])
    of_class = labels[:, None] == labels
    sizes = np.vstack(
        [np.ones(len(own)), budget_used(1, own, ratios.reshape(-1, 1), of_class)]
    )  # what a sample of each cell uses
    members = sparse.csr_array((np.ones(samples), (cells.codes.astype(np.int64), np.arange(samples))))
    members.resize((len(own), samples))
    used = sparse.hstack([sparse.csr_array((len(sizes), samples)), sparse.csr_array(sizes)])
    tied = sparse.hstack([members, -sparse.eye_array(len(own))])
    optimum = milp(
        np.append(scores - scores.max(), np.zeros(len(own))),
        constraints=[
            LinearConstraint(used, -np.inf, count_budget(clean_ratio, samples) + 1e-9),
            LinearConstraint(tied, 0, 0),
        ],
        integrality=np.append(np.zeros(samples), np.ones(len(own))),
        bounds=Bounds(0, np.append(np.ones(samples), cells.counts.ravel())),
        options={"mip_rel_gap": 0.0},
    )
    wanted = optimum.x[samples:].round().astype(np.int64)
    order = np.lexsort((scores, cells.codes))
    first = np.append(0, np.cumsum(cells.counts.ravel())[:-1])
    return np.sort(np.concatenate([order[at : at + size] for at, size in zip(first, wanted, strict=True)]))


SELECTORS: dict[str, Callable[[Floats, Samples, Floats, float], Rows]] = {
    "authors": authors_prefix,
    "exact": exact_selection,
}


def train_variant(
    given: TrainingInput, cleaner: CleanerName = "loss", selector: SelectorName = "greedy"
) -> Trained:
    """Train the paper's method epoch by epoch in NumPy, with a cleaner and a selector.

    The trace tells how far selections are from the lowest scores.
    """
    data = given.data
    # The authors' code divides a cell's loss by its count + 1.
    offset, settings = int(given.settings.fairness == EO and selector == "authors"), given.settings
    method = selection_method("sample-selection")
    spec = PaperSpec(data=data, method=method, settings=settings, seed=given.seed, count_offset=offset)
    trainer, apart, selecting, started = PaperTrainer(spec, compiled=False), [], 0.0, time.perf_counter()
    plan, scores, helpful = trainer.plan, None, None
    if cleaner == "reweighting":  # it has a validation set, and judges samples once
        helpful = np.asarray(train_learning_to_reweight(given).trace["weights"])
    for _ in range(settings.epochs):
        measured, began = trainer.measure(), time.perf_counter()
        if helpful is not None:
            scores = helpful.max() - helpful
        elif scores is None or cleaner == "loss":
            scores = np.asarray(measured.losses, np.float64)
        else:
            scores = SMOOTH * scores + (1 - SMOOTH) * measured.losses
        if not plan.in_warmup:
            plan.update(scores, measured.signals)
            if selector in SELECTORS:
                plan.indices = SELECTORS[selector](scores, data, plan.ratios, settings.clean_ratio)
            lowest = select_cells(scores, data.cells, None, len(plan.indices) / len(data)).indices
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
