"""Reweighing (Kamiran & Calders 2012): weights under which label and group are independent.

A sample of class y in group z weighs P(y)·P(z) / P(y, z). These are the weights of Eq. 3 for ratios
that are the same in every class, λ(y, z) = P(z); unlike those of the method they never move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.training.fit import check_data
from fairsieve.training.methods import SelectionMethod
from fairsieve.training.result import Fitted

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


def train_reweighing(given: TrainingInput, **hyperparameters: Any) -> Fitted:
    """Train plainly with fixed weights on the samples' losses; any module."""
    settings = settings_with(REWEIGHING.name, given.settings, hyperparameters)
    check_data(given.data, given.evaluation)
    fitted = given.fit(REWEIGHING, settings, sample_weight=_independence_weights(given.data.cells))
    ratios = _independent_ratios(given.data.cells)
    always = np.broadcast_to(ratios, fitted.history.ratios.shape)
    return replace(fitted, ratios=ratios, history=replace(fitted.history, ratios=always))
