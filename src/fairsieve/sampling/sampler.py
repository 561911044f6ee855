"""A batch sampler for ``DataLoader(batch_sampler=…)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.utils.data import Dataset, Sampler

from fairsieve.errors import InvalidInputError
from fairsieve.sampling.label_weights import expected_losses, follow_weights
from fairsieve.sampling.losses import LossFunction, as_outputs, check_outputs, compute_signals, cross_entropy
from fairsieve.sampling.observed import Forward, RunningLosses, as_indices, check_dataset, outputs_in_chunks
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan, check_room
from fairsieve.selection.fairness import OWN_LABEL, SignalName
from fairsieve.validation import check_at_least

__all__ = ["FairRobustBatchSampler"]


class FairRobustBatchSampler(Sampler[list[int]]):
    """Batches of clean and fair samples, selected anew every epoch.

    Tell it the model's outputs once an epoch and it picks what to train on; nothing else in a
    training loop changes. The first ``warmup_epochs`` train on everything, plainly.

    Parameters
    ----------
    labels : array of n labels
        Any type; the classes are their sorted values.
    sensitive_features : array of n values, or of several columns, which are crossed
    batch_size : int
    fairness : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    clean_ratio : float in (0, 1]
        Share of the labels believed to be right. Rather too low than too high.
    step_size : float
        How far the ratios move in an epoch. The default is the step of the paper's authors.
    warmup_epochs : int
    seed : int
        The order of an epoch is a function of (seed, epoch).
    signal : {"loss", "error"}
        What is compared between groups: their mean losses (the paper's) or their error rates.
    constrained, weighted : bool
        Parts of the method that can be left out; see :class:`~fairsieve.selection.epoch.Plan`.
    pos_label : label, optional
    folder : path, optional
        Keep observed losses (see :meth:`observe`) in files there, memory-mapped; in memory when None.
    device : torch device, optional
        Where codes, selection and batches are kept. When None: the device of labels, sensitive features
        or outputs that are on one, else the host. On a device no vector of length n leaves it, and
        :meth:`batches` gives tensors there.
    label_weights : array of shape (n, classes), optional
        The chance of each class to be a sample's true one, such as ``true_class`` of
        :func:`~fairsieve.estimate_clean_ratio` with verified labels. Losses and errors become expectations
        over them, and a sample belongs to the cell of its likeliest class. Train on the same chances:
        ``cross_entropy(outputs, sampler.label_weights[indices])``, with ``clean_ratio=1.0`` unless some samples
        are to be left out.

    Examples
    --------
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> x, y, z = torch.randn(8, 2), torch.tensor([0, 1] * 4), ["a"] * 4 + ["b"] * 4
    >>> sampler = FairRobustBatchSampler(y, z, 4, clean_ratio=0.9, warmup_epochs=1)
    >>> loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
    >>> model = torch.nn.Linear(2, 2)
    >>> for epoch in range(3):
    ...     if sampler.needs_update:
    ...         sampler.update(model(x))
    ...     for features, targets in loader:
    ...         pass  # train as ever
    """

    def __init__(
        self,
        labels: ArrayLike | torch.Tensor,
        sensitive_features: ArrayLike | torch.Tensor,
        batch_size: int,
        *,
        fairness: str | None = "equalized_odds",
        clean_ratio: float,
        step_size: float = 0.001,
        warmup_epochs: int = 100,
        seed: int = 0,
        signal: SignalName = "loss",
        constrained: bool = True,
        weighted: bool = True,
        pos_label: Any | None = None,
        folder: str | Path | None = None,
        device: torch.device | str | None = None,
        label_weights: ArrayLike | torch.Tensor | None = None,
    ) -> None:
        cells = self._find_cells(labels, sensitive_features)
        self.label_weights: torch.Tensor | None = None
        if label_weights is not None:
            cells, self.label_weights = self._agree(lambda: follow_weights(cells, label_weights))
        self.plan = self._new_plan(
            cells,
            batch_size,
            fairness=fairness,
            clean_ratio=clean_ratio,
            step_size=step_size,
            warmup_epochs=warmup_epochs,
            seed=seed,
            signal=signal,
            constrained=constrained,
            weighted=weighted,
            pos_label=pos_label,
            **({} if device is None else {"device": torch.device(device)}),
        )
        check_room(self.plan, clean_ratio)
        self._folder = folder
        self._running: RunningLosses | None = None

    def _find_cells(self, labels: Any, sensitive_features: Any) -> Cells:
        cells = Cells.of(labels, sensitive_features)
        if len(cells) == 0:
            raise InvalidInputError("labels must have at least one sample; got none")
        return cells

    def _new_plan(self, cells: Cells, batch_size: int, **options: Any) -> Plan:
        return Plan(cells, batch_size, **options)

    def _agree(self, compute: Callable[[], Any]) -> Any:
        """Compute something, or fail; several workers fail together."""
        return compute()

    @property
    def epoch(self) -> int:
        """The epoch that the next pass trains."""
        return self.plan.epoch

    @property
    def needs_update(self) -> bool:
        """Whether the coming epoch selects, so that :meth:`update` matters."""
        return not self.plan.in_warmup

    @property
    def ratios(self) -> NDArray[np.float64]:
        """The present ratios, classes × groups."""
        return self.plan.ratios.copy()

    @property
    def indices(self) -> Any:
        """The present selection, ascending: an array, or a tensor where the samples are on a device."""
        found = self.plan.indices
        return found.clone() if isinstance(found, torch.Tensor) else found.copy()

    def update(self, outputs: torch.Tensor | None = None, *, loss: LossFunction = cross_entropy) -> None:
        """Select the coming epoch's samples, from the model's outputs for *all* samples in order.

        Parameters
        ----------
        outputs : tensor of shape (n,) or (n, 1), or (n, classes)
            Logits: one per sample for two classes, or one per class. When None, each sample's
            latest loss of those given to :meth:`observe` counts.
        loss : callable
            ``loss(outputs, class_indices)`` → one loss per sample.
        """
        if self.plan.in_warmup:
            if outputs is not None:  # better told now than when it matters
                check_outputs(as_outputs(outputs), len(self.plan.cells), self.plan.cells.shape[0])
            return
        self._begin(lambda: self._measured(outputs, loss))

    def _begin(self, measured: Callable[[], tuple[Any, Any]]) -> None:
        """Begin an epoch with the losses and signals that ``measured`` gives."""
        self.plan.update(*self._agree(measured))

    def _measured(self, outputs: torch.Tensor | None, loss: LossFunction) -> tuple[Any, Any]:
        """Return losses and signals, from outputs for all samples or from what was observed."""
        if outputs is None:
            return self.running.known()
        outputs = as_outputs(outputs)
        check_outputs(outputs, len(self.plan.cells), self.plan.cells.shape[0])
        targets = self._all_targets(outputs.device)
        if self.label_weights is not None:
            targets = self.label_weights.to(outputs.device)
        losses = expected_losses(outputs, targets, loss)
        return losses, self._signals(outputs, targets, losses, loss)

    def update_losses(
        self,
        losses: ArrayLike | torch.Tensor,
        *,
        signals: ArrayLike | torch.Tensor | None = None,
    ) -> None:
        """Do what :meth:`update` does for losses of your own, one per sample.

        ``signals`` are what groups are compared by, when that is not the losses themselves: one row
        per target label of ``sampler.plan.comparisons.targets``. Demographic parity needs the
        losses against the positive label, whatever the sample's own.
        """
        if isinstance(signals, torch.Tensor):
            signals = torch.atleast_2d(signals.detach())
        elif signals is not None:
            signals = np.atleast_2d(signals)
        self.plan.update(losses, signals)

    @property
    def running(self) -> RunningLosses:
        """The latest loss of every sample, of those given to :meth:`observe`."""
        if self._running is None:
            rows = 0 if self._compares_losses else len(self.plan.comparisons.targets)
            self._running = RunningLosses(len(self.plan.cells), rows, self._folder)
        return self._running

    def observe(
        self,
        indices: ArrayLike | torch.Tensor,
        outputs: torch.Tensor,
        *,
        loss: LossFunction = cross_entropy,
    ) -> None:
        """Remember how the model does on some samples, from its outputs for them: those of a training step."""
        with torch.no_grad():
            outputs = as_outputs(outputs)
            targets = self._targets(indices)
            check_outputs(outputs, len(targets), self.plan.cells.shape[0])
            if self.label_weights is not None:
                targets = self.label_weights[as_indices(indices, len(self.plan.cells))]
            targets = targets.to(outputs.device)
            losses = expected_losses(outputs, targets, loss)
            rows = [losses[None]]
            signals = self._signals(outputs, targets, losses, loss)
            if signals is not None:
                rows.append(signals)
            self.running.record(indices, torch.cat(rows), self.epoch)

    def observe_losses(
        self,
        indices: ArrayLike | torch.Tensor,
        losses: torch.Tensor,
        *,
        signals: torch.Tensor | None = None,
    ) -> None:
        """Do what :meth:`observe` does for losses that are computed already.

        ``signals`` are those of :meth:`update_losses`.
        """
        rows = losses.detach()[None]
        if signals is not None:
            rows = torch.cat([rows, torch.atleast_2d(signals.detach())])
        self.running.record(indices, rows, self.epoch)

    def stale(self, share: float = 0.2) -> NDArray[np.int64]:
        """Return the samples to look at again: ``share`` of those that the last epoch did not train on.

        They take turns, so that each is looked at every 1/share epochs. Samples that have no loss at
        all come in addition.
        """
        return self.running.stale(share, self.epoch)

    def refresh(
        self,
        model: nn.Module,
        dataset: torch.Tensor | Dataset[Any],
        share: float = 0.2,
        *,
        loss: LossFunction = cross_entropy,
        forward: Forward | None = None,
        chunk_size: int = 8192,
        device: torch.device | str | None = None,
        **loading: Any,
    ) -> None:
        """Observe the :meth:`stale` samples, in chunks and in evaluation mode. Nothing in the warm-up.

        Parameters
        ----------
        dataset : tensor, or any map-style dataset
            All samples in order. A dataset's items are the features, or start with them.
        share : float in [0, 1]
            How many of the samples that the last epoch did not train on.
        forward : callable, optional
            ``forward(model, batch)`` → outputs, for batches of another form.
        **loading
            For the ``DataLoader`` of a dataset: ``num_workers``, ``collate_fn``, …
        """
        if self.plan.in_warmup:
            return
        check_dataset(dataset, len(self.plan.cells))
        loading |= {"forward": forward, "chunk_size": chunk_size, "device": device}
        for chunk, outputs in outputs_in_chunks(model, dataset, self.stale(share), **loading):
            self.observe(chunk, outputs, loss=loss)

    def _targets(self, indices: Any) -> torch.Tensor:
        """Return the class indices of some samples."""
        where = as_indices(indices, len(self.plan.cells))
        return torch.from_numpy(
            self.plan.cells.host_codes[where].astype(np.int64) // self.plan.cells.shape[1]
        )

    def _all_targets(self, device: torch.device) -> torch.Tensor:
        """Return the class indices of all samples, on a device."""
        codes = self.plan.cells.codes_on(device)
        return torch.div(codes, self.plan.cells.shape[1], rounding_mode="floor").long()

    @property
    def _compares_losses(self) -> bool:
        """Whether groups are compared by the losses themselves."""
        return self.plan.signal == "loss" and self.plan.comparisons.targets == (OWN_LABEL,)

    def _signals(
        self, outputs: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor, loss: LossFunction
    ) -> torch.Tensor | None:
        """Return what groups are compared by, one row per target; None where it is the losses."""
        if self._compares_losses:
            return None
        wanted = self.plan.comparisons.targets
        return compute_signals(outputs, targets, losses, wanted, self.plan.signal, loss)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; without it every pass moves on by one."""
        self.plan.epoch = check_at_least("epoch", epoch, 0)

    def __len__(self) -> int:
        return self.plan.batches_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches():
            yield batch.tolist()

    def batches(self) -> Iterator[torch.Tensor]:
        """Give a pass as index tensors, for loops without a ``DataLoader``; on a device where the samples are."""
        # A generator, so that an iterator which is made and dropped (as a DataLoader with workers
        # does) does not count as a pass.
        batches = self.plan.batches()
        self.plan.epoch += 1
        yield from map(torch.as_tensor, batches)

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next plan depends on, in numbers and tensors: ``torch.load`` trusts those."""
        state = self.plan.state_dict()
        return _as_tensors(state | ({} if self._running is None else {"running": self._running.state_dict()}))  # type: ignore[no-any-return]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where ``state`` was taken."""
        self.plan.load_state_dict(state)
        if "running" in state:
            self.running.load_state_dict(state["running"])


def _as_tensors(state: Any) -> Any:
    """Return a nested state with tensors for arrays, which ``torch.load`` reads without running anything.

    >>> _as_tensors({"epoch": 3, "running": {"seen": np.arange(2)}})
    {'epoch': 3, 'running': {'seen': tensor([0, 1])}}
    """
    if isinstance(state, Mapping):
        return {name: _as_tensors(value) for name, value in state.items()}
    return torch.from_numpy(state) if isinstance(state, np.ndarray) else state
