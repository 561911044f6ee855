"""Weigh the labels by how likely they are right, given a classifier's out-of-fold probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.clean_ratio_estimate import CleanRatioEstimate, rightest_of_each_class
from fairsieve.label_noise.true_counts import chance_right, refined_rates, scaled_rates, transitions
from fairsieve.selection.cells import Cells
from fairsieve.selection.select import select_cells

__all__ = [
    "Flips",
    "LabelWeighting",
    "LabelWeights",
    "by_cell",
]

Floats = NDArray[np.float64]
Flips = Literal["auto", "random", "aimed"]


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """What the labels are worth.

    Attributes
    ----------
    mass : array of shape (n,)
        What each sample weighs in training, before the ratios.
    ratios : array of shape (classes, groups)
        The shares of each class by group that these labels have by themselves, or should have.
    kept : boolean array of shape (n,)
        The samples whose label is likely right.
    judged : array of shape (n,)
        What each sample counts when a model is judged.
    table : array of shape (groups, classes, classes)
        How true classes turn into those labels.
    """

    mass: Floats
    ratios: Floats
    kept: NDArray[np.bool_]
    judged: Floats
    table: Floats


def _weigh_by_chance(probabilities: Floats, cells: Cells, flip_rates: Floats) -> LabelWeights:
    """Weigh labels that are wrong at random: nobody is left out, each counts by the chance to be right."""
    table = transitions(flip_rates)
    right, mass = chance_right(probabilities, cells, table)
    sums = by_cell(mass, cells)
    ratios = sums / sums.sum(axis=1, keepdims=True)
    return LabelWeights(mass, ratios, right >= 0.5, np.ones(len(cells)), table)


def _select_by_loss(probabilities: Floats, cells: Cells, ratios: Floats, clean_ratio: float) -> LabelWeights:
    """Select by losses, under the ratios, where labels are wrong on purpose (Algorithm 1)."""
    own = probabilities[np.arange(len(cells)), cells.label_codes]
    losses = -np.log(np.maximum(own, 1e-12))
    bounds = ratios.copy()
    if cells.has_ungrouped:
        bounds[:, -1] = 1.0  # bounds nothing
    kept = np.zeros(len(cells), bool)
    kept[select_cells(losses, cells, bounds, clean_ratio).indices] = True
    kept[rightest_of_each_class(losses, cells)] = True
    mass = kept.astype(np.float64)
    return LabelWeights(mass, ratios.copy(), kept, mass, transitions(np.zeros(cells.shape)))


class LabelWeighting:
    """Turn out-of-fold probabilities and ratios into weights of the labels, round after round.

    Parameters
    ----------
    cells : Cells
    clean_ratio, flips
        As :class:`~fairsieve.estimators.sieve.SieveClassifier` takes them.
    estimate : callable
        Estimates the labels from the data alone; called once, and only where that is not given.

    Attributes
    ----------
    clean_ratio : float
    flip_rates : array of shape (classes, groups) or None
        None where samples are selected.
    found : CleanRatioEstimate or None
        What was estimated.
    """

    def __init__(
        self,
        cells: Cells,
        clean_ratio: float | Literal["auto"],
        flips: Flips,
        estimate: Callable[[], CleanRatioEstimate],
    ) -> None:
        self.cells, self.flips, self.estimate = cells, flips, estimate
        self.given = None if clean_ratio == "auto" else float(clean_ratio)
        self.flip_rates: Floats | None = None
        self.found: CleanRatioEstimate | None = None
        self.first: LabelWeights | None = None

    def __call__(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh the labels for one round.

        The flip rates are found from the first probabilities, those of a plain model, and stay. A selection
        is made anew each time, but models are judged on the first one, since each agrees with its own ever more.
        """
        if self.first is None:
            self.find_rates(probabilities)
            self.first = self.weigh(probabilities, ratios)
            return self.first
        if self.flip_rates is not None:
            return self.first
        return replace(self.weigh(probabilities, ratios), judged=self.first.judged)

    def find_rates(self, probabilities: Floats) -> None:
        """Find how many labels are wrong, and whether at random."""
        found = self.estimate() if self.given is None or self.flips == "auto" else None
        self.found, aimed = found, self.flips == "aimed"
        if found is not None:
            self.clean_ratio = found.clean_ratio
            aimed = found.aimed if self.flips == "auto" else aimed
        if self.given is not None:
            self.clean_ratio = self.given
        if aimed:
            return
        rates = np.full(self.cells.shape, 1 - self.clean_ratio) if found is None else found.flip_rates
        rates = refined_rates(rates, probabilities, self.cells)
        self.flip_rates = rates if self.given is None else scaled_rates(rates, 1 - self.given, self.cells)

    def weigh(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh the labels by the rates that were found, or select."""
        if self.flip_rates is None:
            return _select_by_loss(probabilities, self.cells, ratios, self.clean_ratio)
        return _weigh_by_chance(probabilities, self.cells, self.flip_rates)


def by_cell(values: Floats, cells: Cells) -> Floats:
    """Sum ``values`` in each cell, (classes, groups)."""
    sums = np.bincount(cells.codes, weights=values, minlength=cells.counts.size)
    return sums.astype(np.float64).reshape(cells.shape)
