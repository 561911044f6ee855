"""Algorithm 1 without its loop: where the greedy walk closes each cell, from counts alone.

The walk takes samples from the lowest loss up and refuses one that would break a budget. Every
budget's left side only grows, so once a cell's sample is refused all its later ones are too: a
cell *closes*. Between two closings the walk takes everything, so its state at any point of the
order is given by how many samples of each open cell lie below that point. A closing point is then
found by bisection over counts, and counts of finer and finer digits of the losses' bit patterns
(then, among equal losses, of the index) locate it exactly.

The search is turned inside out: :class:`Walk` holds its state, ``walk.window`` says which counts
it wants next, and :func:`advance` takes them. Whoever holds the losses answers: a compiled loop
over an array, tensor operations on a device, or a sum over workers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_LIMIT", "Walk", "advance", "asked_digit", "digit_width", "fits", "new_walk"]

NO_LIMIT = np.uint64(2**64 - 1)

# The fields of a window: count, by cell, the digit `(order >> SHIFT) & (2**WIDTH - 1)` of the
# samples whose order agrees with PREFIX above the digit. The order is the key (the loss's bits,
# less the smallest) or, with ON_INDEX, the position of the samples whose key is KEY.
ON_INDEX, KEY, PREFIX, SHIFT, WIDTH, TOP = range(6)


class Walk(NamedTuple):
    """The state of the search; arrays, so that compiled code can update it in place."""

    window: NDArray[np.uint64]  # what to count next, see the fields above
    top: NDArray[np.int64]  # cumulative counts of the first window, cells × digits
    below: NDArray[np.int64]  # samples of each cell below the present window
    is_open: NDArray[np.bool_]  # cells that may still take samples
    taken: NDArray[np.int64]  # samples each cell has taken
    key_limit: NDArray[np.uint64]  # a cell takes keys below its limit,
    index_limit: NDArray[np.uint64]  # and equal keys whose index is below this one
    ratios: NDArray[np.float64]  # classes × groups
    bits: NDArray[np.uint64]  # of the largest key, of the largest index, and of a digit
    budget: int


def digit_width(samples: int, cells: int) -> int:
    """Return the bits counted at once: few for little data, and a table that stays in the cache."""
    wide = 8 if samples <= 2**13 else 10 if samples <= 2**17 else 12
    return max(4, wide - max(0, (cells - 1).bit_length() - 2))


def new_walk(ratios: NDArray[np.float64], budget: int, key_range: Any, samples: int, width: int) -> Walk:
    """Start a walk over ``samples`` whose keys span ``[0, key_range]``."""
    cells = ratios.size
    bits = np.zeros(3, np.uint64)
    bits[0] = _bit_length(np.uint64(key_range))
    bits[1] = _bit_length(np.uint64(max(samples - 1, 0)))
    bits[2] = width
    window = np.zeros(6, np.uint64)
    _set_digit(window, bits[0], bits[2])
    window[TOP] = np.uint64(1)
    return Walk(
        window,
        np.zeros((cells, 1 << int(window[WIDTH])), np.int64),
        np.zeros(cells, np.int64),
        np.ones(cells, np.bool_),
        np.zeros(cells, np.int64),
        np.zeros(cells, np.uint64),
        np.zeros(cells, np.uint64),
        ratios,
        bits,
        budget,
    )


def _bit_length(value: Any) -> int:
    """Count the bits needed to write ``value``."""
    bits = 0
    while value != np.uint64(0):
        value >>= np.uint64(1)
        bits += 1
    return bits


def fits(counts: NDArray[np.int64], ratios: NDArray[np.float64], budget: int) -> bool:
    """Return whether a state respects every budget of Eq. 7.

    ``Σk ≤ T`` and, for each cell c of class y, ``Σk + k_c − ratio_c · K_y ≤ T``. Rounding does
    not decide: a budget is broken only beyond 1e-9, or the rounding of doubles at that size.
    """
    table = counts.reshape(ratios.shape)
    total = counts.sum()
    if total > budget:
        return False
    used = total + table - ratios * table.sum(axis=1)[:, None]
    return bool((used <= budget + max(1e-9, 8.9e-16 * total)).all())


def advance(walk: Walk, counts: NDArray[np.int64]) -> bool:
    """Use the counts that ``walk.window`` asked for (cells × digits; overwritten).

    Returns True when the walk is over, else ``walk.window`` holds the next question.
    """
    window = walk.window
    _accumulate(counts)
    if window[TOP]:
        window[TOP] = np.uint64(0)
        walk.top[:] = counts
        if _close_full_cells(walk, np.uint64(0), np.uint64(0)):
            return True
        _back_to_top(walk)
    while True:
        digit = _first_broken(walk, counts)
        if _count_in(walk, counts, digit) > 1:
            _zoom(walk, counts, digit)
            return False
        # The digit holds one sample of an open cell, the first that is refused.
        point = (window[PREFIX] << window[WIDTH] | np.uint64(digit)) << window[SHIFT]
        for cell in range(walk.taken.size):
            if walk.is_open[cell]:
                walk.taken[cell] = _counts_below(walk, counts, cell, digit)
        if window[ON_INDEX]:
            over = _close_full_cells(walk, window[KEY], point)
        else:
            over = _close_full_cells(walk, point, np.uint64(0))
        if over:
            return True
        _back_to_top(walk)
        counts = walk.top


def _accumulate(counts: NDArray[np.int64]) -> None:
    """Turn counts of digits into counts up to and including each digit, in place."""
    for cell in range(counts.shape[0]):
        counts[cell] = np.cumsum(counts[cell])


def _counts_below(walk: Walk, counts: NDArray[np.int64], cell: int, digit: int) -> int:
    """Return the samples of ``cell`` before ``digit`` of the present window."""
    return int(walk.below[cell] + (counts[cell, digit - 1] if digit > 0 else 0))


def _state_at(walk: Walk, counts: NDArray[np.int64], digit: int) -> NDArray[np.int64]:
    """Return what each cell would hold if the open ones took everything before ``digit``."""
    before = walk.below + counts[:, digit - 1] if digit > 0 else walk.below
    return np.where(walk.is_open, before, walk.taken)


def _first_broken(walk: Walk, counts: NDArray[np.int64]) -> int:
    """Return the first digit whose samples cannot all be taken; all digits are tried at once."""
    digits, shape = counts.shape[1], (*walk.ratios.shape, counts.shape[1])
    open_cells = walk.is_open[:, None]
    state = np.where(open_cells, walk.below[:, None] + counts, walk.taken[:, None]).reshape(shape)
    of_class = state.sum(axis=1)
    total = of_class.sum(axis=0)
    used = (total + state - walk.ratios[:, :, None] * of_class[:, None]).max(axis=(0, 1))
    broken = (total > walk.budget) | (used > walk.budget + np.maximum(1e-9, 8.9e-16 * total))
    return int(broken.argmax()) if broken[-1] else digits - 1


def _count_in(walk: Walk, counts: NDArray[np.int64], digit: int) -> int:
    """Count the samples of open cells in one digit."""
    return int((_state_at(walk, counts, digit + 1) - _state_at(walk, counts, digit)).sum())


def _close_full_cells(walk: Walk, key: Any, index: Any) -> bool:
    """Close the cells that cannot take one more after the point (key, index); return True when the walk is over."""
    any_open = False
    for cell in range(walk.taken.size):
        if walk.is_open[cell]:
            walk.taken[cell] += 1
            if fits(walk.taken, walk.ratios, walk.budget):
                any_open = True
            else:
                walk.is_open[cell] = False
                walk.key_limit[cell] = key
                walk.index_limit[cell] = index
            walk.taken[cell] -= 1
    if any_open:
        last = walk.top.shape[1] - 1
        everything = walk.taken.copy()
        for cell in range(everything.size):
            if walk.is_open[cell]:
                everything[cell] = walk.top[cell, last]
        if not fits(everything, walk.ratios, walk.budget):
            return False
        for cell in range(everything.size):
            if walk.is_open[cell]:
                walk.taken[cell] = everything[cell]
                walk.key_limit[cell] = NO_LIMIT
    return True


def _zoom(walk: Walk, counts: NDArray[np.int64], digit: int) -> None:
    """Ask for the next digits inside one digit of the present window."""
    window = walk.window
    for cell in range(walk.below.size):
        walk.below[cell] = _counts_below(walk, counts, cell, digit)
    prefix = window[PREFIX] << window[WIDTH] | np.uint64(digit)
    shift = window[SHIFT]
    if shift == np.uint64(0):  # equal losses: go on by index
        window[ON_INDEX] = np.uint64(1)
        window[KEY] = prefix
        prefix = np.uint64(0)
        shift = walk.bits[1]
    window[PREFIX] = prefix
    _set_digit(window, shift, walk.bits[2])


def _back_to_top(walk: Walk) -> None:
    """Look at the first window again, whose counts are kept."""
    walk.window[ON_INDEX] = np.uint64(0)
    walk.window[PREFIX] = np.uint64(0)
    _set_digit(walk.window, walk.bits[0], walk.bits[2])
    walk.below[:] = 0


def _set_digit(window: NDArray[np.uint64], left: Any, width: Any) -> None:
    """Look at the highest ``width`` of the ``left`` bits that are not known yet."""
    window[WIDTH] = min(left, width)
    window[SHIFT] = left - window[WIDTH]


def asked_digit(window: NDArray[np.uint64], top: Any) -> int:
    """Return the digit of the first window, whose shift is ``top``, that a later question is about."""
    if window[ON_INDEX]:
        return int(window[KEY]) >> int(top)
    return int(window[PREFIX]) << int(window[WIDTH]) + int(window[SHIFT]) >> int(top)
