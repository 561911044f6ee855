"""Algorithm 1 without its loop: where the greedy walk closes each cell, from counts alone.

The walk takes samples from the lowest loss up and refuses one that would break a budget. Every
budget's left side only grows, so once a cell's sample is refused all its later ones are too: a
cell *closes*. Between two closings the walk takes everything, so its state at any point of the
order is given by how many samples of each open cell lie below that point. A closing point is then
found over counts of finer and finer digits of the losses' bit patterns (then, among equal losses,
of the index), which locate it exactly.

The search is turned inside out: :class:`Walk` holds its state, ``walk.asked`` says which counts
it wants next, and :meth:`Walk.advance` takes them. Whoever holds the losses answers: an array,
tensor operations on a device, or a sum over workers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairsieve.selection.cells import Flags, Floats, Integers

NO_LIMIT = 2**64 - 1
WIDTH = 10  # bits counted at once for up to four cells; wider digits are larger messages between workers


class Window(NamedTuple):
    """The question how many samples of each cell have each digit ``(order >> shift) & (2**width − 1)``.

    It is asked of the samples whose order agrees with ``prefix`` above the digit. The order is the key (the
    loss's bits, less the smallest) or, where ``key`` is given, the index of the samples with that key.
    """

    prefix: int
    shift: int
    width: int
    key: int | None = None

    def first_digit(self, shift: int) -> int:
        """Return the digit of the first window, which has the given shift, that this one lies in."""
        if self.key is not None:
            return self.key >> shift
        return self.prefix << self.width + self.shift >> shift


def budget_used(total: Any, count: Any, ratio: Any, of_class: Any) -> Any:
    """Return how much of the budget the constraint of a cell uses (Eq. 7), for numbers or arrays of them.

    The selection takes ``total`` samples in all, ``count`` of the cell and ``of_class`` of the cell's class, of which
    the cell should have the share ``ratio``.

    >>> budget_used(total=10, count=4, ratio=0.5, of_class=6)
    11.0
    """
    return total + count - ratio * of_class


class Limits(NamedTuple):
    """What bounds a selection: the budgets of Eq. 7, and the most samples that each cell may have."""

    ratios: Floats  # classes × groups; where all are 1, the budget alone bounds
    budget: int
    caps: Integers | None = None  # of each cell

    def keep(self, states: Integers) -> Flags:
        """Return which states, the columns of (cells, states), respect every budget and cap.

        ``Σk ≤ T`` and, for each cell c of class y, ``Σk + k_c − ratio_c · K_y ≤ T``. Rounding does
        not decide: a budget is broken only beyond 1e-9, or the rounding of doubles at that size.
        """
        table = states.reshape(*self.ratios.shape, -1)
        of_class = table.sum(axis=1)
        total = of_class.sum(axis=0)
        used = budget_used(total, table, self.ratios[:, :, None], of_class[:, None]).max(axis=(0, 1))
        kept = (total <= self.budget) & (used <= self.budget + np.maximum(1e-9, 8.9e-16 * total))
        return np.asarray(kept if self.caps is None else kept & (states <= self.caps[:, None]).all(axis=0))


class Walk:
    """The state of the search.

    Parameters
    ----------
    limits : Limits
    key_range : int
        The largest key; the smallest is 0.
    samples : int
    """

    def __init__(self, limits: Limits, key_range: int, samples: int) -> None:
        cells = limits.ratios.size
        self.limits = limits
        self.bits = int(key_range).bit_length(), max(samples - 1, 0).bit_length()
        # A table of many cells and few digits stays in the cache.
        self.width = max(4, WIDTH - max(0, (cells - 1).bit_length() - 2))
        self.top: Integers | None = None  # cumulative counts of the first window, cells × digits
        self.below = np.zeros(cells, np.int64)  # samples of each cell below the present window
        self.is_open = np.ones(cells, np.bool_)  # cells that may still take samples
        self.taken = np.zeros(cells, np.int64)
        # A cell takes keys below its limit, and equal keys whose index is below the second limit.
        self.key_limit, self.index_limit = np.zeros(cells, np.uint64), np.zeros(cells, np.uint64)
        self.asked = self._window(0, self.bits[0])

    def _window(self, prefix: int, left: int, key: int | None = None) -> Window:
        """Look at the highest bits of those ``left`` that are not known yet."""
        width = min(left, self.width)
        return Window(prefix, left - width, width, key)

    def advance(self, counts: Integers) -> bool:
        """Use the counts that were asked for, cells × digits; return True when the walk is over.

        The literal walk takes samples one by one, from the lowest loss up. Its states only grow, so the first sample
        that is refused can be found by looking at states far apart, and then between two of them:

        1. Add up counts by digit: the states after all samples of each digit.
        2. The first digit after which a budget is broken holds the first refused sample.
        3. Where it holds more than one sample of open cells, ask for the next digits inside it; where losses are equal
           to the last bit, for digits of the index.
        4. Else close the cell of that sample, and all that cannot take one more, and go on from the first window with
           the cells that are left.
        """
        counts = counts.cumsum(axis=1)
        if self.top is None:
            self.top = counts
            self._close_full_cells(0, 0)
        while True:
            # 1. The states after each digit, all of which are tried at once. A closed cell keeps what it has taken.
            states = np.where(self.is_open[:, None], self.below[:, None] + counts, self.taken[:, None])
            kept = self.limits.keep(states)
            if kept[-1]:  # only in the first window: what is left can all be taken
                self.taken = states[:, -1]
                self.key_limit[self.is_open] = NO_LIMIT
                return True
            digit = int(kept.argmin())  # 2. the first whose samples cannot all be taken
            before = self.below + (counts[:, digit - 1] if digit > 0 else 0)
            inside = self.below + counts[:, digit] - before
            prefix = self.asked.prefix << self.asked.width | digit
            if inside[self.is_open].sum() > 1:  # 3. ask for the next digits inside this one
                self.below = before
                if self.asked.shift or self.asked.key is not None:
                    self.asked = self._window(prefix, self.asked.shift, self.asked.key)
                else:  # equal losses: go on by index
                    self.asked = self._window(0, self.bits[1], prefix)
                return False
            # 4. The digit holds one sample of an open cell, the first that is refused.
            self.taken = np.where(self.is_open, before, self.taken)
            point, key = prefix << self.asked.shift, self.asked.key
            self._close_full_cells(point if key is None else key, 0 if key is None else point)
            self.asked, self.below = self._window(0, self.bits[0]), np.zeros_like(self.below)
            counts = self.top

    def _close_full_cells(self, key: int, index: int) -> None:
        """Close the cells that cannot take one more after a point."""
        more = self.limits.keep(self.taken[:, None] + np.eye(len(self.taken), dtype=np.int64))
        closing = self.is_open & ~more
        self.key_limit[closing], self.index_limit[closing] = key, index
        self.is_open &= more
