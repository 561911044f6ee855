"""The order of one epoch, and its state.

After the warm-up every epoch goes: losses of all samples → the ratios move, judged over the
previous selection → a new selection under the new ratios → batches drawn from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.notions import EO
from fairsieve.selection.backends import Backend, choose_backend
from fairsieve.selection.batches import (
    Draw,
    batch_count,
    batch_offsets,
    batch_shares,
    cell_quotas,
    share_edges,
)
from fairsieve.selection.cells import Cells, Floats, Integers, as_array, tensor_device
from fairsieve.selection.ratios import (
    Balance,
    LossGap,
    SignalName,
    balanced_ratios,
    cell_caps,
    cell_sizes,
    check_ratio_table,
    class_shares,
    comparisons,
    estimate_ratios,
    find_loss_gaps,
    move_ratios,
    rounded,
    selection_bounds,
)
from fairsieve.selection.search import Limits
from fairsieve.selection.select import count_budget
from fairsieve.validation import check_at_least, check_choice, check_seed, check_share, shown

Batching = Literal["even", "paper"]


@dataclass(frozen=True, kw_only=True)
class SamplingMethod:
    """What a sampler does after the warm-up.

    Parameters
    ----------
    step_size : float in [0, 1] or None, default=None
        The paper's step of the ratios, which follow the training losses. None doubts labels and balances groups in
        place of it.
    balance : float in [0, 1] or "auto", default="auto"
        α: groups are weighted within their class by (share of what is kept)^α. 0 is groups of equal weight, 1 natural
        weights. ``"auto"`` is between .6 and 1, as the network foretells what weights bring and cost.
    momentum : float in [0, 1), default=0.5
        How much of what is known of a sample's label is kept when an epoch brings something new; 0 takes the present
        alone.
    signal : {"loss", "error"}, default="loss"
        What the paper's step compares between groups: mean losses or error rates.
    constrained : bool, default=False
        Whether the ratios bound the selection (Eq. 7).
    weighted : bool, default=True
        Whether the ratios weigh the batches (Eq. 3).
    batching : {"even", "paper"}, default="even"
        How many batches an epoch has, and how quotas are rounded; see :class:`~fairsieve.selection.epoch.Plan`.

    Examples
    --------
    >>> SamplingMethod(balance=0).momentum
    0.5
    """

    step_size: float | None = None
    balance: float | str = "auto"
    momentum: float = 0.5
    signal: SignalName = "loss"
    constrained: bool = False
    weighted: bool = True
    batching: Batching = "even"

    def __post_init__(self) -> None:
        if check_share("momentum", self.momentum) == 1:
            raise InvalidInputError("momentum must be below 1, or nothing new would ever count; got 1")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's method, or parts of it changed.

        >>> SamplingMethod.paper(signal="error").step_size
        0.001
        """
        paper: dict[str, Any] = {
            "step_size": 0.001,
            "momentum": 0.0,
            "constrained": True,
            "batching": "paper",
        }
        return cls(**(paper | changes))


class Judged(NamedTuple):
    """What groups are compared by: signals added up by cell."""

    sums: Floats  # (targets, cells)
    squares: Floats  # of the squared signals
    counts: Integers  # samples in each cell
    costs_accuracy: bool = False  # whether held-out samples are predicted worse than by natural weights


class Plan:
    """Ratios, selection and batches, epoch by epoch.

    Parameters
    ----------
    cells : Cells
        Class and group of every sample.
    batch_size : int
    fairness : str or None
        The name of a notion, see :mod:`fairsieve.notions`; None never moves the ratios.
    clean_ratio : float in (0, 1], table of them, mapping, or "auto"
        A number is the budget of Algorithm 1. A table (classes × groups, or a mapping from (class, group)) caps
        each cell at its own share of lowest losses instead. ``"auto"`` estimates that table at every update: of each
        cell the losses up to 0 are believed, such as :class:`~fairsieve.sampling.doubt.Doubt` gives them.
    step_size : float in [0, 1], or None
        The paper's step. None balances groups in its place, see :class:`~fairsieve.selection.ratios.Balance`.
    balance, tolerance : float
        α, and gaps of held-out rates that are left alone, for ``step_size=None``.
    epochs : int, optional
        How long the training will be, for the pace at which held-out samples move α; three times the warm-up when None.
    warmup_epochs : int
        Epochs that train on everything, plainly.
    constrained, weighted : bool
        Whether the ratios bound the selection (Eq. 7) and weigh the batches (Eq. 3). Both for the
        full method; neither is ITLM; weights alone, with a clean ratio of 1, is FairBatch.
    signal : {"loss", "error"}
        What the ratios' step compares between groups: cell losses (the paper's) or error rates.
    pos_label : label, optional
        The positive class; the last of two when None.
    batching : {"even", "paper"}
        ``"even"``: every epoch has as many batches as all samples fill, going through a smaller selection again; each
        batch has the floor or the ceiling of every cell's quota, and so has the whole epoch. ``"paper"``: as many as
        the selection fills, all with the same quotas, rounded: a cell with a quota below one half may have no place
        in any.
    seed : int
    backend : {"auto", "numpy", "torch"}
        Who does the work; all select the same. ``"auto"`` is NumPy, or torch on the device of the losses
        where they are on one.
    device : torch device, optional
        Where the samples' values are kept. That of the codes or of the losses when None.

    Examples
    --------
    >>> plan = Plan(Cells.of([0, 0, 1, 1], list("abab")), 2, fairness="equal_opportunity", clean_ratio=1.0,
    ...             warmup_epochs=0)
    >>> plan.update([0.1, 0.2, 0.3, 0.4])
    >>> plan.batches().shape
    (2, 2)
    """

    def __init__(
        self,
        cells: Cells,
        batch_size: int,
        *,
        fairness: str | None = EO,
        clean_ratio: Any = 1.0,
        step_size: float | None = 0.001,
        balance: float | str = "auto",
        tolerance: float = 0.02,
        epochs: int | None = None,
        warmup_epochs: int = 100,
        constrained: bool = True,
        weighted: bool = True,
        signal: SignalName = "loss",
        pos_label: Any = None,
        batching: Batching = "even",
        seed: int = 0,
        backend: str | Backend = "auto",
        device: Any = None,
    ) -> None:
        if not isinstance(cells, Cells):
            raise InvalidInputError(f"cells must be Cells.of(labels, groups); got {type(cells).__name__}")
        self.cells = cells
        self.signal = check_choice("signal", signal, ("loss", "error"))
        self.batching = check_choice("batching", batching, ("even", "paper"))
        self.comparisons = comparisons(fairness, cells, pos_label)
        self._choice = backend
        self.backend = choose_backend(
            backend, cells, tensor_device(cells.codes) if device is None else device
        )
        self._selected = self.backend.hold(None)
        self.cell_counts = self.counts.reshape(cells.shape)  # all samples, of all workers
        self.ratios = class_shares(self.cell_counts)
        self.estimates_ratios = is_auto(clean_ratio)
        self.clean_ratios: Floats | None = None  # of cells; None where one budget holds for all
        if self.estimates_ratios:
            self.clean_ratios = np.ones(cells.shape)
        elif isinstance(clean_ratio, Mapping) or np.ndim(clean_ratio) > 0:
            self.clean_ratios = check_ratio_table(clean_ratio, cells)
        self.rows = np.array(self.comparisons.rows, np.int64).reshape(-1, 3)
        self.step_size = 0.0 if step_size is None else check_share("step_size", step_size)
        self.budget = count_budget(clean_ratio if self.clean_ratios is None else 1.0, self.selected)
        self.constrained, self.weighted = bool(constrained), bool(weighted)
        self.batch_size = check_at_least("batch_size", batch_size, 1)
        self.seed = check_seed("seed", seed)
        self.warmup_epochs = check_at_least("warmup_epochs", warmup_epochs, 0)
        self.count_offset = 0.0  # of a cell's count where its mean loss is taken; the paper's authors add 1
        self.balance: Balance | None = None
        if step_size is None:
            compared = np.isin(np.arange(cells.shape[0]), self.rows[:, 1])
            power = balance if is_auto(balance) else check_share("balance", balance)
            tolerance = check_share("tolerance", tolerance)
            left = 2 * max(1, warmup_epochs) if epochs is None else epochs - warmup_epochs
            self.balance = Balance(compared, power, tolerance, left)
        self.gaps: list[LossGap | None] = []  # of the last update that compared groups
        self._everyone: Any = None  # the selection of all samples
        self.epoch = 0
        self.is_selective = False  # whether a selection has been made yet

    @property
    def in_warmup(self) -> bool:
        """Whether the present epoch trains on everything."""
        return self.epoch < self.warmup_epochs

    @property
    def indices(self) -> Any:
        """The selected samples, ascending: an array, or a tensor where the samples are on a device."""
        return self._selected.indices

    @indices.setter
    def indices(self, indices: Any) -> None:
        self._selected = self.backend.hold(indices)

    @property
    def counts(self) -> Integers:
        """How many samples of each cell are selected."""
        return self._selected.counts  # type: ignore[no-any-return]

    @property
    def selected(self) -> int:
        """How many samples are selected."""
        return int(self.counts.sum())

    @property
    def batches_per_epoch(self) -> int:
        """How many batches the present epoch has."""
        samples = self.selected if self.batching == "paper" else int(self.cell_counts.sum())
        return batch_count(samples, self.batch_size) if self.selected else 0

    @property
    def quotas(self) -> Floats:
        """Samples of each cell that a batch of the present epoch has, on the average."""
        size = min(self.batch_size, self.selected)
        if not self.is_weighted:
            return np.asarray(self.counts * (size / max(1, self.selected)))
        if self.batching == "paper":
            return batch_shares(self.ratios, self.counts, size).astype(np.float64)
        return cell_quotas(self.ratios, self.counts, size)

    @property
    def is_weighted(self) -> bool:
        """Whether the batches of the present epoch follow the ratios."""
        return self.weighted and not self.in_warmup and self.selected > 0

    def update(
        self,
        losses: Any,
        signals: Any = None,
        *,
        judged: Judged | None = None,
    ) -> None:
        """Begin an epoch: move the ratios and select, from the model's present losses.

        Does nothing during the warm-up.

        Parameters
        ----------
        losses : array or tensor of shape (n,)
            One loss per sample; the order in which samples are selected.
        signals : array or tensor of shape (targets, n), optional
            What the groups are compared by: the losses (or 0–1 errors) against each of
            ``plan.comparisons.targets``. The losses themselves when None.
        judged : Judged, optional
            Signals of held-out samples, by which the ratios move in place of the previous selection's.
        """
        if self.in_warmup:
            return
        self._follow(losses)
        measured = self.backend.measure(losses, self._check_signals(signals))
        if len(self.rows) and (judged is not None or self.balance is None):
            if judged is None:
                sums, squares = self.backend.sum_signals(measured, self._selected)
                judged = Judged(sums, squares, self.counts)
            self._judge(judged)
        if self.estimates_ratios:
            below = self.backend.count_below(measured, np.zeros(self.counts.size))
            self.clean_ratios = estimate_ratios(below.reshape(self.cells.shape), self.cell_counts)
        before = self.counts
        self._selected = self.backend.select(measured, self.limits)
        if self.balance is not None:
            self._weigh(self.balance, judged)
        elif self.clean_ratios is not None:
            self._follow_counts(before)
        self.is_selective = True

    def _weigh(self, balance: Balance, judged: Judged | None) -> None:
        """Weight the groups of each class by their share of what is kept."""
        kept = self.counts.reshape(self.cells.shape)
        if judged is not None:
            balance.follow(self.gaps, kept, costs_accuracy=judged.costs_accuracy)
        self.ratios = balanced_ratios(kept, balance.powers, self.cells.has_ungrouped)

    def cell_means(self, values: Any) -> Floats:
        """Return the mean of a value in each cell, over all samples of all workers: classes × groups, 0 where none."""
        self._follow(values)
        if self._everyone is None:
            self._everyone = self.backend.hold(None)
        sums = self.backend.sum_signals(self.backend.measure(values, None), self._everyone)[0, 0]
        means = sums.reshape(self.cells.shape) / np.maximum(self.cell_counts, 1)
        return np.asarray(rounded(means))  # alike however the samples are added up

    def _follow_counts(self, before: Integers) -> None:
        """Let a cell that keeps fewer samples weigh less: those left would make up for the ones believed wrong."""
        moved = self.ratios * (self.counts / np.maximum(before, 1)).reshape(self.ratios.shape)
        totals = moved.sum(axis=1, keepdims=True)
        np.divide(moved, totals, out=self.ratios, where=totals > 0)

    def _judge(self, judged: Judged) -> None:
        """Find the gaps, and let the ratios take the paper's step."""
        by_group = self.comparisons.by_group
        sizes = cell_sizes(judged.counts, by_group, self.count_offset).reshape(self.cells.shape)
        options = {"by_group": by_group, "has_ungrouped": self.cells.has_ungrouped}
        self.gaps = find_loss_gaps(judged.sums, judged.squares, sizes, self.rows, **options)
        if self.balance is None:
            move_ratios(self.ratios, self.gaps, self.step_size)

    @property
    def limits(self) -> Limits:
        """What bounds the next selection: the ratios and the budget (Eq. 7), or caps of cells in their place."""
        bounds, budget = np.ones(self.ratios.shape), self.budget
        if self.clean_ratios is not None:
            return Limits(bounds, budget, cell_caps(self.clean_ratios, self.cell_counts))
        if self.constrained:
            bounds = selection_bounds(self.ratios, self.cells.has_ungrouped)
        return Limits(bounds, budget)

    def _follow(self, losses: Any) -> None:
        """Go to the device of the losses."""
        device = tensor_device(losses)
        if self._choice == "auto" and device is not None and device != self.backend.device:
            selected = self.indices if self.is_selective else None
            self.backend = choose_backend("auto", self.cells, device)
            self._selected, self._everyone = self.backend.hold(selected), None

    def _check_signals(self, signals: Any | None) -> Any | None:
        """Return signals of the right shape, or raise a clear error."""
        if signals is None:
            if self.balance is not None:
                return None
            if self.signal != "loss" or any(target >= 0 for target in self.comparisons.targets):
                raise InvalidInputError(
                    "signals must be given when groups are compared by errors or by demographic parity: "
                    f"one row per target label {self.comparisons.targets}"
                )
            return None
        expected = (len(self.comparisons.targets), len(self.cells))
        shape = tuple(np.shape(signals))
        if shape != expected:
            raise InvalidInputError(
                f"signals must have the shape (targets, samples), {expected}; got {shape}"
            )
        return signals

    def batches(self, count: int | None = None) -> Any:
        """Draw the present epoch's batches of indices, one a row.

        ``count`` asks for another number of them; beyond the selection they go through it again.
        """
        if not self.in_warmup and not self.is_selective:
            raise NotReadyError(
                f"epoch {self.epoch} selects samples, which needs the model's losses: call update() before "
                "each epoch from the end of the warm-up on"
            )
        quotas = self.quotas if self.is_weighted else np.full(1, min(self.batch_size, self.selected))
        batches = self.batches_per_epoch if count is None or self.selected == 0 else count
        offsets = batch_offsets(batches, self.seed, self.epoch)
        draw = Draw(share_edges(quotas), offsets, self.seed, self.epoch, self.is_weighted)
        return self.backend.draw(self._selected, draw)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, in plain types and arrays; enough to resume to the identical next plan."""
        balance = self.balance
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "ratios": self.ratios.copy(),
            "indices": as_array("indices", self.indices).copy(),
            "is_selective": self.is_selective,
            "samples": len(self.cells),
            **({"clean_ratios": np.array(self.clean_ratios)} if self.estimates_ratios else {}),
            **({} if balance is None else {"powers": balance.powers.copy(), "is_judged": balance.is_judged}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a plan over the same samples."""
        if not isinstance(state, Mapping):
            raise InvalidInputError(f"state must be a plan's state_dict(); got {shown(state)}")
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise InvalidInputError(f"state must be a plan's state_dict(); it lacks {', '.join(missing)}")
        try:
            ratios = as_array("ratios", state["ratios"]).astype(np.float64)
            indices = as_array("indices", state["indices"]).astype(np.int64)
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
        self.seed = check_seed("the state's seed", state["seed"])
        self.ratios = ratios
        self.indices = indices
        self.is_selective = bool(state["is_selective"])
        if self.estimates_ratios:
            self.clean_ratios = as_array("clean_ratios", state["clean_ratios"]).astype(np.float64)
        if self.balance is not None:
            self.balance.powers = as_array("powers", state["powers"]).astype(np.float64).reshape(-1)
            self.balance.is_judged = bool(state["is_judged"])


def check_room(plan: Plan, clean_ratio: Any) -> None:
    """Refuse a clean ratio under which no sample could ever be selected."""
    first = np.eye(plan.counts.size, dtype=np.int64)[:, plan.counts > 0]  # one sample of a cell
    if not plan.limits.keep(first).any():
        raise InvalidInputError(
            f"clean_ratio must leave room for at least one sample; {shown(clean_ratio)} of {plan.selected} samples "
            f"is a budget of {plan.budget}, under which none is selected: raise it"
        )


def is_auto(value: Any) -> bool:
    """Return whether a setting is "auto"."""
    return isinstance(value, str) and value == "auto"
