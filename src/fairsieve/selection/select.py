"""Clean and fair selection: Algorithm 1, in time that grows with the samples and not faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairsieve.errors import InvalidInputError
from fairsieve.notebook import cells_html
from fairsieve.selection.backends import Backend, choose_backend
from fairsieve.selection.cells import Cells, Floats, Values, as_array, tensor_device, unmasked
from fairsieve.selection.search import Limits
from fairsieve.validation import check_clean_ratio, is_tensor


@dataclass(frozen=True, eq=False)
class Selection:
    """The samples to train on.

    Attributes
    ----------
    indices : integer array or tensor
        Positions of the selected samples, ascending.
    counts : integer array or tensor of shape (classes, groups)
        How many samples of each cell are selected.
    budget : int
        The most a selection could have held, ⌊clean_ratio · n⌋.
    cells : Cells
        The classes and groups of ``counts``.

    Examples
    --------
    >>> from fairsieve import select
    >>> labels, groups = ["no", "no", "yes", "yes"], ["a", "b", "a", "b"]
    >>> chosen = select([0.1, 0.2, 0.9, 0.3], labels, groups, ratios=[[0.5, 0.5]] * 2, clean_ratio=0.75)
    >>> len(chosen), chosen.indices.tolist(), chosen.budget
    (2, [0, 1], 3)
    """

    indices: Any
    counts: Any
    budget: int
    cells: Any

    def __len__(self) -> int:
        return len(self.indices)

    def _repr_html_(self) -> str:
        kept = np.asarray(self.counts.tolist()) / np.maximum(self.cells.counts, 1)
        title = f"{len(self):,} of {len(self.cells):,} samples selected, at most {self.budget:,}"
        return cells_html(title, self.cells, kept, ("samples", "selected"))


def select(
    losses: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    ratios: ArrayLike | None,
    clean_ratio: float,
    *,
    classes: Sequence[Any] | None = None,
    group_values: Sequence[Any] | None = None,
    backend: str | Backend = "auto",
) -> Selection:
    """Select the low-loss samples that respect the ratios (Algorithm 1 of the paper).

    Samples are taken from the lowest loss up, ties by index, as long as none of the budgets of
    Eq. 7 breaks.

    Parameters
    ----------
    losses : array or tensor of shape (n,)
        One loss per sample. Infinite losses come last; NaN is refused.
    labels, groups : arrays or tensors of n values
        Any type. ``groups`` may have several columns, which are crossed.
    ratios : array of shape (classes, groups), or None
        The share of each class that each group should have; every row sums to 1. Rows and columns
        are in sorted order of the labels and the groups. None leaves the fairness out: the
        ``budget`` lowest losses.
    clean_ratio : float in (0, 1]
        Share of the samples believed to carry right labels.
    classes, group_values : sequences, optional
        What the rows and columns of ``ratios`` stand for, when some may be absent from the data.
        Integer labels 0, 1, … that fit the shape of ``ratios`` need none.
    backend : {"auto", "numpy", "torch"}, default="auto"
        Who does the work. All give the same answer.

    Returns
    -------
    Selection
        NumPy in, NumPy out; tensors in, tensors out, on the device of ``losses``.

    Examples
    --------
    >>> selection = select([0.1, 0.2, 0.9, 0.3], [0, 0, 1, 1], ["a", "b", "a", "b"], [[.5, .5], [.5, .5]], 0.75)
    >>> selection.indices.tolist(), selection.budget
    ([0, 1], 3)
    """
    wanted = None if ratios is None else _check_ratios(as_array("ratios", ratios))
    shape = (0, 0) if wanted is None else wanted.shape
    cells = Cells.of(labels, groups, classes=classes, group_values=group_values, shape=shape)
    if wanted is not None and wanted.shape != cells.shape:
        raise InvalidInputError(
            f"ratios must have one row per class and one column per group, {cells.shape} here (classes "
            f"{cells.classes}, groups {cells.groups}); got the shape {wanted.shape}. Pass classes= and "
            "group_values= when some are absent from the data"
        )
    return select_cells(losses, cells, wanted, clean_ratio, backend=backend)


def select_cells(
    losses: Any, cells: Cells, ratios: Floats | None, clean_ratio: float, *, backend: str | Backend = "auto"
) -> Selection:
    """Do what :func:`select` does for cells that are known and ratios that are valid."""
    budget = count_budget(clean_ratio, len(cells))
    engine = choose_backend(backend, cells, tensor_device(losses))
    limits = Limits(np.ones(cells.shape) if ratios is None else ratios, budget)
    selected = engine.select(engine.measure(unmasked(losses, numbers=True), None), limits)
    indices, counts = selected.indices, selected.counts.reshape(cells.shape)
    if not is_tensor(losses):
        return Selection(as_array("indices", indices), counts, budget, cells)
    import torch

    indices, counts = (torch.as_tensor(each, device=losses.device) for each in (indices, counts))
    return Selection(indices, counts, budget, cells)


def count_budget(clean_ratio: float, samples: int) -> int:
    """Return ⌊clean_ratio · n⌋, where rounding does not decide (.29 of 100 is 29).

    >>> count_budget(0.29, 100)
    29
    """
    return min(samples, math.floor(float(check_clean_ratio("clean_ratio", clean_ratio)) * samples + 1e-9))


def _check_ratios(ratios: Values) -> Floats:
    """Return ratios as doubles, or raise a clear error."""
    if ratios.ndim != 2 or ratios.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"ratios must be a table of numbers, classes × groups; got {ratios.dtype} of shape {ratios.shape}"
        )
    table = np.ascontiguousarray(ratios, dtype=np.float64)
    if not ((table >= -1e-9) & (table <= 1 + 1e-9)).all():
        raise InvalidInputError(f"ratios must lie in [0, 1]; got {table.tolist()}")
    for row, total in enumerate(table.sum(axis=1)):
        if abs(total - 1) > 1e-5:
            raise InvalidInputError(
                f"each row of ratios must sum to 1; row {row} sums to {total:.9g}: divide it by its sum"
            )
    return table
