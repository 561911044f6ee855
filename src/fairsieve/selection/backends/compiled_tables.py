"""The small tables' functions, made known to compiled code.

The search, the ratios' step and the shares of a batch are written once, in plain Python. Importing
this module lets compiled code call them too. Three that are called most have loops of their own here,
where plain Python has NumPy operations; both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable

from fairsieve.selection import batches, ratios, search, shuffle

__all__: list[str] = []

_PLAIN: tuple[Callable[..., Any], ...] = (
    search.new_walk,
    search.advance,
    search._bit_length,
    search._accumulate,
    search._counts_below,
    search._count_in,
    search._close_full_cells,
    search._zoom,
    search._back_to_top,
    search._set_digit,
    ratios.cell_sizes,
    ratios.move_ratios,
    ratios.selection_bounds,
    batches.batch_count,
    batches.batch_shares,
    shuffle._mix,
    shuffle.shuffle_constants,
    shuffle.shuffle_shape,
)
for _function in _PLAIN:
    register_jitable(_function)


@overload(search.fits)
def _fits(counts: Any, ratios: Any, budget: Any) -> Any:
    def fits(counts: Any, ratios: Any, budget: Any) -> bool:
        classes, groups = ratios.shape
        total = counts.sum()
        if total > budget:
            return False
        bound = budget + max(1e-9, 8.9e-16 * total)
        for label in range(classes):
            of_class = 0
            for group in range(groups):
                of_class += counts[label * groups + group]
            for group in range(groups):
                used = total + counts[label * groups + group] - ratios[label, group] * of_class
                if used > bound:
                    return False
        return True

    return fits


@overload(search._state_at)
def _state_at(walk: Any, counts: Any, digit: Any) -> Any:
    def state_at(walk: Any, counts: Any, digit: Any) -> Any:
        state = np.empty_like(walk.taken)
        for cell in range(state.size):
            if walk.is_open[cell]:
                state[cell] = walk.below[cell] + (counts[cell, digit - 1] if digit > 0 else 0)
            else:
                state[cell] = walk.taken[cell]
        return state

    return state_at


@overload(search._first_broken)
def _first_broken(walk: Any, counts: Any) -> Any:
    def first_broken(walk: Any, counts: Any) -> int:
        low, high = 0, counts.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if search.fits(search._state_at(walk, counts, middle + 1), walk.ratios, walk.budget):
                low = middle + 1
            else:
                high = middle
        return low

    return first_broken
