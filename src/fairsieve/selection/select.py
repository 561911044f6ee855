"""Clean and fair selection: Algorithm 1 in O(n), with no sort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.backends.compiled import select_on_cpu
from fairsieve.selection.backends.torch import select_on_device
from fairsieve.selection.backends.torch_cells import codes_on_device
from fairsieve.selection.cells import Cells, as_array
from fairsieve.validation import check_clean_ratio

__all__ = ["Selection", "as_losses", "budget_of", "select", "select_cells"]

# Integers as wide as a float, and the bit pattern of infinity.
FORMATS = {
    torch.float16: (torch.int16, 0x7C00),
    torch.bfloat16: (torch.int16, 0x7F80),
    torch.float32: (torch.int32, 0x7F800000),
    torch.float64: (torch.int64, 0x7FF0000000000000),
}


@dataclass(frozen=True, eq=False)
class Selection:
    """The samples to train on.

    Attributes
    ----------
    indices : integer array or tensor
        Positions of the selected samples, ascending.
    counts : integer array or tensor of shape (classes, groups)
        How many each cell gave.
    budget : int
        The most a selection could have held, ⌊clean_ratio · n⌋.
    """

    indices: Any
    counts: Any
    budget: int

    def __len__(self) -> int:
        return len(self.indices)


def select(
    losses: ArrayLike | torch.Tensor,
    labels: ArrayLike | torch.Tensor,
    groups: ArrayLike | torch.Tensor,
    ratios: ArrayLike | torch.Tensor | None,
    clean_ratio: float,
    *,
    classes: Sequence[Any] | None = None,
    group_values: Sequence[Any] | None = None,
) -> Selection:
    """Select the low-loss samples that respect the ratios (Algorithm 1 of the paper).

    Samples are taken from the lowest loss up, ties by index, as long as none of the budgets of
    Eq. 7 breaks. The cost is linear in the number of samples.

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

    Returns
    -------
    Selection
        NumPy in, NumPy out; tensors in, tensors out, on the device of ``losses``.

    Examples
    --------
    >>> chosen = select([0.1, 0.2, 0.9, 0.3], [0, 0, 1, 1], ["a", "b", "a", "b"], [[.5, .5], [.5, .5]], 0.75)
    >>> chosen.indices.tolist(), chosen.budget
    ([0, 1], 3)
    """
    wanted = None if ratios is None else _check_ratios(as_array("ratios", ratios))
    if wanted is not None and classes is None and group_values is None:
        for codes, are_right in codes_on_device(labels, groups, wanted.shape, losses):
            chosen = select_codes(losses, codes, wanted, budget_of(clean_ratio, len(codes)))
            if are_right():
                return chosen
    cells = Cells.of(
        labels,
        groups,
        classes=classes if wanted is None else _rows_of("labels", labels, classes, wanted.shape[0]),
        group_values=group_values
        if wanted is None
        else _rows_of("groups", groups, group_values, wanted.shape[1]),
    )
    if wanted is not None and wanted.shape != cells.shape:
        raise InvalidInputError(
            f"ratios must have one row per class and one column per group, {cells.shape} here (classes "
            f"{cells.classes}, groups {cells.groups}); got the shape {wanted.shape}. Pass classes= and "
            "group_values= when some are absent from the data"
        )
    return select_cells(losses, cells, wanted, clean_ratio)


def select_cells(
    losses: Any, cells: Cells, ratios: NDArray[np.float64] | None, clean_ratio: float
) -> Selection:
    """:func:`select` for cells that are known and ratios that are valid."""
    budget = budget_of(clean_ratio, len(cells))
    on_host = not isinstance(losses, torch.Tensor) or losses.device.type == "cpu"
    codes = cells.codes if on_host else cells.codes_on(losses.device)
    if ratios is not None:
        return select_codes(losses, codes, ratios, budget)
    # One cell of everything has no budget but Σk ≤ T.
    nothing = np.zeros_like(codes) if isinstance(codes, np.ndarray) else torch.zeros_like(codes)
    chosen = select_codes(losses, nothing, np.ones((1, 1)), budget)
    size = cells.counts.size
    counts: Any
    if isinstance(codes, np.ndarray):
        counts = np.bincount(codes[np.asarray(chosen.indices)], minlength=size).reshape(cells.shape)
        counts = torch.from_numpy(counts) if isinstance(losses, torch.Tensor) else counts
    else:
        counts = torch.bincount(codes[chosen.indices], minlength=size).reshape(cells.shape)
    return Selection(chosen.indices, counts, budget)


def select_codes(losses: Any, codes: Any, ratios: NDArray[np.float64], budget: int) -> Selection:
    """:func:`select` for the code of each sample's cell, an array or a tensor where the losses are."""
    is_tensor = isinstance(losses, torch.Tensor)
    values = losses.detach() if is_tensor else torch.from_numpy(_as_numbers(as_array("losses", losses)))
    _check_shape(values, len(codes))
    bits, infinity = bit_patterns(values)
    found: tuple[Any, Any] | None
    if len(codes) == 0:
        found = np.zeros(0, np.int64), np.zeros(ratios.size, np.int64)
    elif values.device.type == "cpu":
        found = select_on_cpu(bits.numpy(), codes, ratios, budget, infinity)
    else:
        found = select_on_device(bits, codes, ratios, budget, infinity)
    if found is None:
        _refuse_nan(values)
    indices, taken = found
    counts = taken.reshape(ratios.shape)
    if is_tensor:
        at = values.device
        return Selection(torch.as_tensor(indices, device=at), torch.as_tensor(counts, device=at), budget)
    return Selection(np.asarray(indices), counts, budget)


def budget_of(clean_ratio: float, samples: int) -> int:
    """⌊clean_ratio · n⌋, where rounding does not decide (.29 of 100 is 29).

    >>> budget_of(0.29, 100)
    29
    """
    share = float(check_clean_ratio("clean_ratio", clean_ratio))
    return min(samples, math.floor(share * samples + 1e-9))


def _rows_of(name: str, values: Any, known: Sequence[Any] | None, size: int) -> Sequence[Any] | None:
    """What ``size`` rows (or columns) stand for: codes 0, 1, … where the data fit them."""
    if known is not None:
        return known
    array = as_array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return None
    return range(size) if array.min(initial=0) >= 0 and array.max(initial=0) < size else None


def _check_ratios(ratios: NDArray[Any]) -> NDArray[np.float64]:
    """Ratios as doubles, or a clear error."""
    if ratios.ndim != 2 or ratios.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"ratios must be a table of numbers, classes × groups; got {ratios.dtype} of shape {ratios.shape}"
        )
    table = np.ascontiguousarray(ratios, dtype=np.float64)
    if not (np.isfinite(table).all() and (table >= -1e-9).all() and (table <= 1 + 1e-9).all()):
        raise InvalidInputError(f"ratios must lie in [0, 1]; got {table.tolist()}")
    sums = table.sum(axis=1)
    row = int(np.abs(sums - 1).argmax()) if len(sums) else 0
    if len(sums) and abs(sums[row] - 1) > 1e-5:
        raise InvalidInputError(
            f"each row of ratios must sum to 1; row {row} sums to {sums[row]:.9g}: divide it by its sum"
        )
    return table


def as_losses(losses: Any, samples: int) -> NDArray[np.floating[Any]]:
    """Losses as a checked, contiguous NumPy array of float32 or float64."""
    if isinstance(losses, torch.Tensor):
        losses = losses.detach().cpu()
        losses = losses if losses.dtype in (torch.float32, torch.float64) else losses.float()
    values = _as_numbers(as_array("losses", losses))
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    _check_losses(torch.from_numpy(values), samples)
    return values


def _as_numbers(losses: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Losses in a float format whose bits we can order, contiguous and writable."""
    if losses.dtype.kind not in "fiub":
        raise InvalidInputError(f"losses must be real numbers; got {losses.dtype}")
    exact = losses.dtype.kind == "f" and losses.dtype.itemsize <= 8
    dtype = losses.dtype.newbyteorder("=") if exact else np.dtype(np.float64)
    return np.require(losses, dtype=dtype, requirements=["C", "W"])


def _check_losses(losses: torch.Tensor, samples: int) -> None:
    """One loss per sample, and none of them NaN, which has no place in the order."""
    _check_shape(losses, samples)
    if samples and bool(torch.isnan(torch.aminmax(losses).min)):  # NaN is the least and the greatest
        _refuse_nan(losses)


def _check_shape(losses: torch.Tensor, samples: int) -> None:
    if tuple(losses.shape) != (samples,):
        raise InvalidInputError(
            f"losses must have one value per sample, the shape ({samples},); got {tuple(losses.shape)}. "
            "Use reduction='none' to keep a loss per sample"
        )


def _refuse_nan(losses: torch.Tensor) -> NoReturn:
    missing = torch.isnan(losses)
    count, first = int(missing.sum()), int(missing.int().argmax())
    raise InvalidInputError(
        f"losses must not be NaN; got {count}, the first at {first}. A model that diverges gives NaN: "
        "lower its learning rate or clip its gradients"
    )


def bit_patterns(losses: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The losses' bits as signed integers of the same width, and those of infinity."""
    if losses.dtype.is_complex:
        raise InvalidInputError(f"losses must be real numbers; got {losses.dtype}")
    if losses.dtype not in FORMATS:
        losses = losses.double()
    integers, infinity = FORMATS[losses.dtype]
    return losses.contiguous().view(integers), infinity
