"""Weigh the labels by how likely they are right: by a classifier's out-of-fold probabilities, or by checked labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.clean_ratio_estimate import CleanRatioEstimate
from fairsieve.label_noise.true_counts import chance_right, scaled_rates, transitions
from fairsieve.selection.cells import Cells
from fairsieve.selection.select import select_cells

__all__ = ["LabelWeighting", "LabelWeights", "PossibleLabels", "by_cell"]

Floats = NDArray[np.float64]

UNLIKELY = 0.01  # classes that are less likely are left out; the other chances of the sample make up for it


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
    kept[_rightest_of_each_class(losses, cells)] = True
    mass = kept.astype(np.float64)
    return LabelWeights(mass, ratios.copy(), kept, mass, transitions(np.zeros(cells.shape)))


class LabelWeighting:
    """Turn out-of-fold probabilities and ratios into weights of the labels, round after round.

    Parameters
    ----------
    cells : Cells
    clean_ratio : float or "auto"
    estimate : callable
        Estimates the labels from the data alone, which says how they went wrong; called once.

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
        estimate: Callable[[], CleanRatioEstimate],
    ) -> None:
        self.cells, self.given, self.estimate = cells, clean_ratio, estimate
        self.flip_rates: Floats | None = None
        self.found: CleanRatioEstimate | None = None
        self.first: LabelWeights | None = None

    def __call__(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh the labels for one round.

        The flip rates are found once. A selection
        is made anew each time, but models are judged on the first one, since each agrees with its own ever more.
        """
        if self.first is None:
            self.find_rates()
            self.first = self.weigh(probabilities, ratios)
            return self.first
        if self.flip_rates is not None:
            return self.first
        return replace(self.weigh(probabilities, ratios), judged=self.first.judged)

    def find_rates(self) -> None:
        """Find how many labels are wrong, and whether at random."""
        found = self.found = self.estimate()
        self.clean_ratio = found.clean_ratio if self.given == "auto" else float(self.given)
        if not found.aimed:
            noise, rates = 1 - self.clean_ratio, found.flip_rates
            self.flip_rates = rates if self.given == "auto" else scaled_rates(rates, noise, self.cells)

    def weigh(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh the labels by the rates that were found, or select."""
        if self.flip_rates is None:
            return _select_by_loss(probabilities, self.cells, ratios, self.clean_ratio)
        return _weigh_by_chance(probabilities, self.cells, self.flip_rates)


def by_cell(values: Floats, cells: Cells) -> Floats:
    """Sum ``values`` in each cell, (classes, groups)."""
    sums = np.bincount(cells.codes, weights=values, minlength=cells.counts.size)
    return sums.astype(np.float64).reshape(cells.shape)


def _rightest_of_each_class(wrong: Floats, cells: Cells) -> NDArray[np.int64]:
    """Return one sample of each class that has any, so that none is lost."""
    own = (np.flatnonzero(cells.label_codes == code) for code in range(cells.shape[0]))
    return np.array([rows[wrong[rows].argmin()] for rows in own if len(rows)], np.int64)


@dataclass(frozen=True, eq=False)
class PossibleLabels:
    """Samples under every label that may be right, with its chance.

    Attributes
    ----------
    rows : integer array of shape (m,)
        Which sample each entry is; ascending.
    chances : array of shape (m,)
        How likely that label is the true one; they sum to 1 for each sample.
    cells : Cells
        Labels and groups of the entries.
    found : CleanRatioEstimate
        Where the chances come from.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> from fairsieve.label_noise.estimate import estimate_clean_ratio
    >>> data = make_synthetic(200, seed=0)
    >>> found = estimate_clean_ratio(
    ...     data.features, data.labels, sensitive_features=data.groups, verified_labels=data.labels, random_state=0
    ... )
    >>> PossibleLabels.of(found).cells.label_codes.tolist() == data.labels.tolist()
    True
    """

    rows: NDArray[np.int64]
    chances: Floats
    cells: Cells
    found: CleanRatioEstimate

    @property
    def clean_ratio(self) -> float:
        """Share of right labels among the given ones."""
        return self.found.clean_ratio

    @property
    def flip_rates(self) -> Floats:
        """Chance of a label of each true class and group to be wrong, (classes, groups)."""
        return self.found.flip_rates

    @classmethod
    def of(cls, estimate: CleanRatioEstimate) -> PossibleLabels:
        """List the labels that the chances of an estimate allow."""
        chances = np.where(estimate.true_class < UNLIKELY, 0.0, estimate.true_class)
        chances /= chances.sum(axis=1, keepdims=True)
        rows, codes = np.nonzero(chances)
        cells = estimate.cells
        listed = Cells(codes * cells.shape[1] + cells.group_codes[rows], cells.classes, cells.groups)
        return cls(rows, chances[rows, codes], listed, estimate)

    def __call__(self, probabilities: Floats, ratios: Floats) -> LabelWeights:
        """Weigh each label by its chance, whatever a classifier predicts."""
        sums = by_cell(self.chances, self.cells)
        totals = sums.sum(axis=1, keepdims=True)
        return LabelWeights(
            self.chances,
            np.divide(sums, totals, out=ratios.copy(), where=totals > 0),
            self.chances >= 0.5,
            self.chances,
            transitions(np.zeros(self.cells.shape)),
        )
