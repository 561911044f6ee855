"""What a backend must answer.

A plan (:mod:`fairsieve.selection.epoch`) holds the order of an epoch and a few small tables. Everything that
has one value per sample belongs to its backend: where the values are stored, on how many threads,
devices or workers they are looked at. All backends give the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.batches import Draw
from fairsieve.selection.search import Walk, advance, digit_width, new_walk

__all__ = ["Backend", "Keys", "SearchBackend", "check_shape", "refuse_nan"]


class Backend(ABC):
    """Answers a plan's questions about the samples of some cells.

    ``measured`` is what :meth:`measure` makes of losses and signals, and ``selected`` what
    :meth:`select` returns; a plan hands both back and never looks inside.
    """

    name: str
    device: Any = None  # of torch, where the samples' values are on one

    @abstractmethod
    def measure(self, losses: Any, signals: Any | None) -> Any:
        """Take in one loss per sample, and signals of shape (targets, samples); refuse NaN among the losses.

        The signals are the losses themselves when None.
        """

    @abstractmethod
    def sum_signals(self, measured: Any, selected: Any) -> NDArray[np.int64]:
        """Add up the signals of the selected samples by cell, exactly: digits, (targets, cells, slots).

        See :mod:`fairsieve.selection.exact_sums`.
        """

    @abstractmethod
    def select(
        self, measured: Any, bounds: NDArray[np.float64] | None, budget: int
    ) -> tuple[Any, NDArray[np.int64]]:
        """Select by Algorithm 1 under ``bounds`` (classes × groups); without bounds, the ``budget`` lowest losses.

        Returns
        -------
        selected, counts
            The selection, and how many samples of each cell it holds.
        """

    @abstractmethod
    def draw(self, selected: Any, counts: NDArray[np.int64], draw: Draw) -> Any:
        """Draw an epoch's batches from the selected samples; ``counts`` are those of their cells."""

    @abstractmethod
    def hold(self, indices: Any | None) -> tuple[Any, NDArray[np.int64]]:
        """Return the selection of the given ascending indices (all samples when None), and its counts."""

    @abstractmethod
    def indices(self, selected: Any) -> Any:
        """Return the ascending indices of a selection."""


class Keys(ABC):
    """The losses of some samples as integers of the same order, for the search over their bits."""

    least: int  # of the samples here; greater than `greatest` where there are none
    greatest: int

    @abstractmethod
    def count(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Count the samples by cell and by the digit that ``walk.window`` asks for.

        ``least`` is the key that the walk counts from.
        """

    @abstractmethod
    def take(self, walk: Walk, least: int) -> NDArray[np.int64]:
        """Return the samples below their cell's closing point, ascending."""


class SearchBackend(Backend):
    """A backend that selects by counting digits of the losses' bits, and sorts nothing."""

    @abstractmethod
    def keys(self, measured: Any, by_cell: bool, first: int = 0) -> Keys:
        """Return the losses as keys; ``first`` is the number of the first sample among all."""

    def select(
        self, measured: Any, bounds: NDArray[np.float64] | None, budget: int
    ) -> tuple[Any, NDArray[np.int64]]:
        """Search the closing points and take the samples below them."""
        samples = len(measured.losses)
        if samples == 0 or (bounds is None and budget >= samples):
            return self.hold(None)
        keys = self.keys(measured, bounds is not None)
        ratios = np.ones((1, 1)) if bounds is None else bounds
        width = digit_width(samples, ratios.size)
        walk = new_walk(ratios, budget, np.uint64(keys.greatest - keys.least), samples, width)
        while not advance(walk, keys.count(walk, keys.least)):
            pass
        selected = keys.take(walk, keys.least)
        return (selected, walk.taken) if bounds is not None else self.hold(selected)


def check_shape(losses: Any, samples: int) -> None:
    """Refuse losses that are not one per sample."""
    if tuple(losses.shape) != (samples,):
        raise InvalidInputError(
            f"losses must have one value per sample, the shape ({samples},); got {tuple(losses.shape)}. "
            "Use reduction='none' to keep a loss per sample"
        )


def refuse_nan(count: int, first: int) -> NoReturn:
    """Raise the error for losses that are NaN, which have no place in the order."""
    raise InvalidInputError(
        f"losses must not be NaN; got {count}, the first at {first}. A model that diverges gives NaN: "
        "lower its learning rate or clip its gradients"
    )
