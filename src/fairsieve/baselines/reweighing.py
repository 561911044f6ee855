"""Reweighing (Kamiran & Calders 2012): weights under which label and group are independent.

A sample of class y in group z weighs P(y)·P(z) / P(y, z). These are the weights of Eq. 3 for ratios
that are the same in every class, λ(y, z) = P(z); unlike those of the method they never move.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fairsieve.baselines.fitted_estimator import settings_with
from fairsieve.core.batches import sample_weights
from fairsieve.core.cells import Cells
from fairsieve.core.plan import Plan
from fairsieve.samples import Samples
from fairsieve.training.fitted import Fitted
from fairsieve.training.loop import ModelLike, advance_together, check_data, fitted_of, make_module
from fairsieve.training.methods import SelectionMethod
from fairsieve.training.progress import progress_bar
from fairsieve.training.runs import AutogradRun
from fairsieve.training.settings import Settings

__all__ = ["independence_weights", "train_reweighing"]

REWEIGHING = SelectionMethod(
    "reweighing", "Reweighing", cleans=False, fair=False, constrained=False, weighted=True
)


def independence_weights(cells: Cells) -> NDArray[np.float64]:
    """One weight per sample; weighted by them, label and group are independent.

    The weights of a class sum to its size. Where a class lacks a group, independence is out of
    reach, and the weight that the empty cell should have goes to the class's other cells.

    Examples
    --------
    >>> independence_weights(Cells.of([0, 0, 0, 1], ["a", "a", "b", "b"])).round(3).tolist()
    [0.75, 0.75, 1.5, 1.0]
    """
    return sample_weights(np.arange(len(cells)), cells.codes, independent_ratios(cells), cells.counts)


def independent_ratios(cells: Cells) -> NDArray[np.float64]:
    """P(z), in the row of every class."""
    shares = cells.counts.sum(axis=0) / len(cells)
    return np.tile(shares, (cells.shape[0], 1))


def train_reweighing(
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    model: ModelLike = None,
    validation: Samples | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    **hyperparameters: Any,
) -> Fitted:
    """Plain training with each sample's loss weighted, once and for all; any module."""
    settings = settings_with(REWEIGHING.name, settings, hyperparameters)
    check_data(data, evaluation)
    started = time.perf_counter()
    plan = Plan(
        data.cells,
        settings.batch_size,
        fairness=None,
        warmup_epochs=0,
        constrained=False,
        weighted=False,  # in the loss, not in the batches
        pos_label=settings.pos_label,
        seed=seed,
    )
    plan.ratios = independent_ratios(data.cells)
    weights = independence_weights(data.cells)
    run = WeightedRun(weights, make_module(model, data, seed), data, plan, settings, evaluation)
    with progress_bar(REWEIGHING.title, settings.epochs, shown=progress) as report:
        interrupted = advance_together([run], [seed], settings.epochs, report)
    return fitted_of(run, settings, REWEIGHING, seed, time.perf_counter() - started, interrupted)


class WeightedRun(AutogradRun):
    """Plain training, each sample's loss times its weight."""

    def __init__(
        self,
        weights: NDArray[np.float64],
        model: nn.Module,
        data: Samples,
        plan: Plan,
        settings: Settings,
        evaluation: Samples | None,
    ) -> None:
        super().__init__(model, data, plan, settings, evaluation)
        self.weights = torch.from_numpy(weights).to(self.device, self.features.dtype)

    def train(self, batches: NDArray[np.int64]) -> None:
        self.model.train()
        for batch in torch.from_numpy(batches).to(self.device):
            self.optimizer.zero_grad(set_to_none=True)
            losses = self.loss(self.model(self.features[batch]), self.labels[batch])
            (losses * self.weights[batch]).mean().backward()
            self.optimizer.step()
