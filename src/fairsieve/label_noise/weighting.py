"""What is believed of the labels, by a classifier's out-of-fold probabilities."""

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
    "Belief",
    "Believer",
    "Flips",
    "by_cell",
]

Floats = NDArray[np.float64]
Flips = Literal["auto", "random", "aimed"]


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed of the labels.

    Attributes
    ----------
    mass : array of shape (n,)
        What each sample weighs in training, before the ratios.
    ratios : array of shape (classes, groups)
        The shares of each class by group that these labels have by themselves, or should have.
    kept : boolean array of shape (n,)
        Whose label is believed.
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


def _trusted(probabilities: Floats, cells: Cells, flip_rates: Floats) -> Belief:
    """Labels wrong at random: nobody is left out, and everybody weighs what the label is worth."""
    table = transitions(flip_rates)
    right, mass = chance_right(probabilities, cells, table)
    sums = by_cell(mass, cells)
    ratios = sums / sums.sum(axis=1, keepdims=True)
    return Belief(mass, ratios, right >= 0.5, np.ones(len(cells)), table)


def _walked(probabilities: Floats, cells: Cells, ratios: Floats, clean_ratio: float) -> Belief:
    """Labels wrong where it hurts: the paper's selection by losses, under the ratios (Algorithm 1)."""
    own = probabilities[np.arange(len(cells)), cells.label_codes]
    losses = -np.log(np.maximum(own, 1e-12))
    bounds = ratios.copy()
    if cells.has_ungrouped:
        bounds[:, -1] = 1.0  # bounds nothing
    kept = np.zeros(len(cells), bool)
    kept[select_cells(losses, cells, bounds, clean_ratio).indices] = True
    kept[rightest_of_each_class(losses, cells)] = True
    mass = kept.astype(np.float64)
    return Belief(mass, ratios.copy(), kept, mass, transitions(np.zeros(cells.shape)))


class Believer:
    """Out-of-fold probabilities and ratios → what is believed of the labels, round after round.

    Parameters
    ----------
    cells : Cells
    clean_ratio, flips
        As :class:`~fairsieve.estimators.sieve.SieveClassifier` takes them.
    estimate : callable
        Says what the data alone show of their labels; called once, and only where that is not given.

    Attributes
    ----------
    clean_ratio : float
    flip_rates : array of shape (classes, groups) or None
        None where samples are selected.
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
        self.first: Belief | None = None

    def __call__(self, probabilities: Floats, ratios: Floats) -> Belief:
        """The flips are looked for by the first probabilities, those of a plain model, and stay.

        A selection is made anew each time. Models are judged on the first of them: each agrees with
        its own ever more.
        """
        if self.first is None:
            self.find_out(probabilities)
            self.first = self.belief(probabilities, ratios)
            return self.first
        if self.flip_rates is not None:
            return self.first
        return replace(self.belief(probabilities, ratios), judged=self.first.judged)

    def find_out(self, probabilities: Floats) -> None:
        """How many labels are wrong, and whether at random."""
        found = self.estimate() if self.given is None or self.flips == "auto" else None
        aimed = self.flips == "aimed"
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

    def belief(self, probabilities: Floats, ratios: Floats) -> Belief:
        """By what was found out."""
        if self.flip_rates is None:
            return _walked(probabilities, self.cells, ratios, self.clean_ratio)
        return _trusted(probabilities, self.cells, self.flip_rates)


def by_cell(values: Floats, cells: Cells) -> Floats:
    """Sums of ``values`` in each cell, (classes, groups)."""
    sums = np.bincount(cells.codes, weights=values, minlength=cells.counts.size)
    return sums.astype(np.float64).reshape(cells.shape)
