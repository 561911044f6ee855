"""What a backend must answer, and which one does.

A plan (:mod:`fairsieve.selection.epoch`) holds the order of an epoch and a few small tables. Everything that
has one value per sample belongs to its backend: where the values are stored, on which device or on how many
workers they are looked at. All backends select the same samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from fairsieve.errors import InvalidInputError, require
from fairsieve.selection.batches import Draw
from fairsieve.selection.cells import Cells, Floats, Integers
from fairsieve.selection.search import Limits
from fairsieve.validation import check_choice


class Measured(NamedTuple):
    """Losses of all samples, float32 or float64, and signals of shape (targets, samples)."""

    losses: Any
    signals: Any


class Backend(ABC):
    """Answers a plan's questions about the samples of some cells.

    ``measured`` is what :meth:`measure` makes of losses and signals, which a plan hands back and never looks
    inside. ``selected`` is what :meth:`select` returns: it has the ascending ``indices`` of the selected samples,
    and ``counts``, how many of each cell there are.
    """

    device: Any = None  # of torch, where the samples' values are on one

    def __init__(self, cells: Cells) -> None:
        self.cells = cells

    def measure(self, losses: Any, signals: Any | None) -> Measured:
        """Take in one loss per sample, and signals of shape (targets, samples); refuse NaN among the losses.

        The signals are the losses themselves when None.
        """
        values = self.numbers("losses", losses)
        check_shape(values, len(self.cells))
        if len(values) and bool((least := values.min()) != least):  # NaN is the least and the greatest
            missing = values != values
            raise InvalidInputError(
                f"losses must not be NaN; got {int(missing.sum())}, the first at {int((missing * 1).argmax())}. A "
                "model that diverges gives NaN: lower its learning rate or clip its gradients"
            )
        return Measured(values, values[None] if signals is None else self.numbers("signals", signals))

    @abstractmethod
    def numbers(self, name: str, values: Any) -> Any:
        """Return values as float32 or float64, where the samples are; narrower floats become float32."""

    @abstractmethod
    def sum_signals(self, measured: Any, selected: Any) -> Floats:
        """Add up the signals of the selected samples, and their squares, by cell: (2, targets, cells)."""

    @abstractmethod
    def select(self, measured: Any, limits: Limits) -> Any:
        """Select by Algorithm 1."""

    @abstractmethod
    def count_below(self, measured: Any, limits: Floats) -> Integers:
        """Count the samples of each cell, of all, whose loss is at most the limit of the cell."""

    @abstractmethod
    def draw(self, selected: Any, draw: Draw) -> Any:
        """Draw an epoch's batches from the selected samples."""

    @abstractmethod
    def hold(self, indices: Any | None) -> Any:
        """Return the selection of the given ascending indices; of all samples when None."""


def choose_backend(name: str | Backend, cells: Cells, device: Any = None) -> Backend:
    """Return the backend of that name; ``"auto"`` is torch where there is a device, else NumPy."""
    if isinstance(name, Backend):
        return name
    check_choice("backend", name, ("auto", "numpy", "torch"))
    if name == "torch" or (name == "auto" and device is not None):
        require("torch", purpose="selecting where tensors are")
        from fairsieve.selection.backends.torch import TorchBackend

        return TorchBackend(cells, device or "cpu")
    from fairsieve.selection.backends.numpy import NumpyBackend

    return NumpyBackend(cells)


def check_shape(losses: Any, samples: int) -> None:
    """Refuse losses that are not one per sample."""
    if tuple(losses.shape) != (samples,):
        raise InvalidInputError(
            f"losses must have one value per sample, the shape ({samples},); got {tuple(losses.shape)}. "
            "Use reduction='none' to keep a loss per sample"
        )
