"""List each sample once for every class that may be its true one, as far as checked labels say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.clean_ratio_estimate import CleanRatioEstimate
from fairsieve.label_noise.true_counts import transitions
from fairsieve.label_noise.weighting import LabelWeights, by_cell
from fairsieve.selection.cells import Cells

__all__ = ["PossibleLabels"]

UNLIKELY = 0.01  # classes that are less likely are left out; the other chances of the sample make up for it


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
    chances: NDArray[np.float64]
    cells: Cells
    found: CleanRatioEstimate

    @property
    def clean_ratio(self) -> float:
        """Share of right labels among the given ones."""
        return self.found.clean_ratio

    @property
    def flip_rates(self) -> NDArray[np.float64]:
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

    def __call__(self, probabilities: NDArray[np.float64], ratios: NDArray[np.float64]) -> LabelWeights:
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
