"""The order of one epoch, and its state.

After the warm-up every epoch goes: losses of all samples → the ratios move, judged over the
previous selection → a new selection under the new ratios → batches drawn from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.selection.backends.halves import MANY
from fairsieve.selection.batches import batch_count, draw_many
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import SignalName, comparisons
from fairsieve.selection.ratios import initial_ratios
from fairsieve.selection.renewal import (
    Rules,
    bounds_of,
    drawing,
    epoch_batches,
    renew,
    renew_many,
    step_ratios,
)
from fairsieve.selection.search import digit_width
from fairsieve.selection.select import as_losses, budget_of
from fairsieve.validation import check_at_least, check_choice, check_seed, check_share, shown

__all__ = ["Plan", "Rules", "bounds_of", "epoch_batches", "renew", "step_ratios"]


class Plan:
    """Ratios, selection and batches, epoch by epoch.

    Parameters
    ----------
    cells : Cells
        Class and group of every sample.
    batch_size : int
    fairness : str or None
        ``"equalized_odds"``, ``"demographic_parity"``, ``"equal_opportunity"``; None never moves
        the ratios.
    clean_ratio : float in (0, 1]
    step_size : float in [0, 1]
    warmup_epochs : int
        Epochs that train on everything, plainly.
    constrained, weighted : bool
        Whether the ratios bound the selection (Eq. 2) and weigh the batches (Eq. 3). Both for the
        full method; neither is ITLM; weights alone, with a clean ratio of 1, is FairBatch.
    signal : {"loss", "error"}
        What the ratios' step compares between groups: cell losses (the paper's) or error rates.
    pos_label : label, optional
        The positive class; the last of two when None.
    seed : int

    Examples
    --------
    >>> plan = Plan(Cells.of([0, 0, 1, 1], list("abab")), 2, fairness="equalized_odds", clean_ratio=1.0,
    ...             warmup_epochs=0)
    >>> plan.update([0.1, 0.2, 0.3, 0.4])
    >>> plan.batches().shape
    (1, 2)
    """

    def __init__(
        self,
        cells: Cells,
        batch_size: int,
        *,
        fairness: str | None = "equalized_odds",
        clean_ratio: float = 1.0,
        step_size: float = 0.0005,
        warmup_epochs: int = 100,
        constrained: bool = True,
        weighted: bool = True,
        signal: SignalName = "loss",
        pos_label: Any | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(cells, Cells):
            raise InvalidInputError(f"cells must be Cells.of(labels, groups); got {type(cells).__name__}")
        self.cells = cells
        self.signal = check_choice("signal", signal, ("loss", "error"))
        self.comparisons = comparisons(fairness, cells, pos_label)
        self.rules = Rules(
            cells.codes,
            np.zeros_like(cells.codes),
            self.comparisons.rows,
            self.comparisons.by_group,
            check_share("step_size", step_size),
            budget_of(clean_ratio, len(cells)),
            bool(constrained),
            bool(weighted),
            digit_width(len(cells), cells.counts.size),
            check_at_least("batch_size", batch_size, 1),
            check_seed("seed", seed),
            check_at_least("warmup_epochs", warmup_epochs, 0),
            cells.has_ungrouped,
        )
        self.epoch = 0
        self.ratios = initial_ratios(cells)
        self.indices = np.arange(len(cells))
        self.counts = cells.counts.reshape(-1).copy()
        self.is_selective = False  # whether a selection has been made yet

    @property
    def in_warmup(self) -> bool:
        """Whether the present epoch trains on everything."""
        return self.epoch < self.rules.warmup_epochs

    @property
    def batches_per_epoch(self) -> int:
        return batch_count(len(self.indices), self.rules.batch_size)

    def update(self, losses: ArrayLike, signals: NDArray[Any] | None = None) -> None:
        """Begin an epoch: move the ratios and select, from the model's present losses.

        Does nothing during the warm-up.

        Parameters
        ----------
        losses : array of shape (n,)
            One loss per sample; the order in which samples are selected.
        signals : array of shape (targets, n), optional
            What the groups are compared by: the losses (or 0–1 errors) against each of
            ``plan.comparisons.targets``. The losses themselves when None.
        """
        if self.in_warmup:
            return
        values, rows = self.checked(losses, signals)
        bits = values.view(f"i{values.itemsize}")
        state = self.ratios, self.indices, self.counts
        if len(bits) < MANY:
            lowest = np.int64(np.iinfo(bits.dtype).min)
            self.indices, self.counts = renew(self.rules, bits, lowest, rows, *state)
        else:
            infinity = int(values.dtype.type(np.inf).view(bits.dtype))
            self.indices, self.counts = renew_many(self.rules, bits, infinity, rows, *state)
        self.is_selective = True

    def checked(
        self, losses: ArrayLike, signals: NDArray[Any] | None
    ) -> tuple[NDArray[np.floating[Any]], NDArray[Any]]:
        """What :meth:`update` was given, in the form compiled code takes, or a clear error."""
        values = as_losses(losses, len(self.cells))
        if signals is None:
            if self.signal != "loss" or any(target >= 0 for target in self.comparisons.targets):
                raise InvalidInputError(
                    "signals must be given when groups are compared by errors or by demographic parity: "
                    f"one row per target label {self.comparisons.targets}"
                )
            signals = values[None]
        expected = (len(self.comparisons.targets), len(self.cells))
        if np.shape(signals) != expected:
            raise InvalidInputError(
                f"signals must have the shape (targets, samples), {expected}; got {np.shape(signals)}"
            )
        return values, np.ascontiguousarray(signals)

    def batches(self) -> NDArray[np.int64]:
        """The present epoch's batches of indices, one a row."""
        if not self.in_warmup and not self.is_selective:
            raise NotReadyError(
                f"epoch {self.epoch} selects samples, which needs the model's losses: call update() before "
                "each epoch from the end of the warm-up on"
            )
        if len(self.indices) < MANY:
            return epoch_batches(self.rules, self.epoch, self.ratios, self.indices, self.counts)
        codes, counts, shares, batches = drawing(
            self.rules, self.epoch, self.ratios, self.indices, self.counts
        )
        return draw_many(self.indices, codes, counts, shares, batches, self.rules.seed, self.epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state, in plain types and arrays; enough to resume to the identical next plan."""
        return {
            "epoch": self.epoch,
            "seed": self.rules.seed,
            "ratios": self.ratios.copy(),
            "indices": self.indices.copy(),
            "is_selective": self.is_selective,
            "samples": len(self.cells),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state of a plan over the same samples."""
        if not isinstance(state, Mapping):
            raise InvalidInputError(f"state must be a plan's state_dict(); got {shown(state)}")
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise InvalidInputError(f"state must be a plan's state_dict(); it lacks {', '.join(missing)}")
        try:
            ratios = np.asarray(state["ratios"]).astype(np.float64)
            indices = np.asarray(state["indices"]).astype(np.int64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"state must hold ratios and indices that are numbers, as state_dict() gives them; {error}"
            ) from None
        if state["samples"] != len(self.cells) or ratios.shape != self.cells.shape:
            raise InvalidInputError(
                f"state must be of a plan over the same samples, {len(self.cells)} in {self.cells.shape} cells; "
                f"got {state['samples']} in {ratios.shape}"
            )
        if len(indices) and (indices.min() < 0 or indices.max() >= len(self.cells)):
            raise InvalidInputError(
                "state must hold indices of the plan's samples; it points outside of them"
            )
        if not ((ratios >= 0) & (ratios <= 1)).all():
            raise InvalidInputError(
                f"state must hold ratios in [0, 1]; got {ratios.tolist()}: take an older state"
            )
        self.epoch = check_at_least("the state's epoch", state["epoch"], 0)
        self.rules = self.rules._replace(seed=check_seed("the state's seed", state["seed"]))
        self.ratios = ratios
        self.indices = indices
        codes = self.cells.codes[indices]
        self.counts = np.bincount(codes, minlength=self.ratios.size).astype(np.int64)
        self.is_selective = bool(state["is_selective"])
