"""Reweighing (Kamiran & Calders 2012): weights under which label and group are independent.

A sample of class y in group z weighs P(y)·P(z) / P(y, z). These are the weights of Eq. 3 for ratios
that are the same in every class, λ(y, z) = P(z); unlike those of the method they never move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.planned import as_options
from fairsieve.samples import Samples
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.training.fit import ModelLike, check_data, fit
from fairsieve.training.methods import SelectionMethod
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["train_reweighing"]

REWEIGHING = SelectionMethod(name="reweighing")  # weights in the loss, not in the batches


def _independence_weights(cells: Cells) -> NDArray[np.float64]:
    """Compute weights under which label and group are independent.

    The weights of a class sum to its size. Where a class lacks a group, independence is out of
    reach, and the weight that the empty cell should have goes to the class's other cells.

    Examples
    --------
    >>> _independence_weights(Cells.of([0, 0, 0, 1], ["a", "a", "b", "b"])).round(3).tolist()
    [0.75, 0.75, 1.5, 1.0]
    """
    return sample_weights(np.arange(len(cells)), cells.codes, _independent_ratios(cells), cells.counts)


def _independent_ratios(cells: Cells) -> NDArray[np.float64]:
    """Return P(z) in the row of every class."""
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
    """Train plainly with fixed weights on the samples' losses; any module."""
    settings = settings_with(REWEIGHING.name, settings, hyperparameters)
    check_data(data, evaluation)
    fitted = fit(
        model,
        data,
        REWEIGHING,
        seed=seed,
        sample_weight=_independence_weights(data.cells),
        evaluation=evaluation,
        progress=progress,
        watched=progress,
        **as_options(settings),
    )
    ratios = _independent_ratios(data.cells)
    always = np.broadcast_to(ratios, fitted.history.ratios.shape)
    return replace(fitted, ratios=ratios, history=replace(fitted.history, ratios=always))
