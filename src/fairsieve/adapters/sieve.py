"""What all adapters have in common: a shard, its sampler and loader, and the beginning of an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

from fairsieve.errors import InvalidInputError
from fairsieve.notions import EO
from fairsieve.sampling.losses import (
    Forward,
    LossFunction,
    check_outputs,
    compute_outputs,
    cross_entropy,
    forward_features,
    run_in_chunks,
)
from fairsieve.sampling.sampler import groups_of
from fairsieve.sampling.sharded import ShardedBatchSampler, shard_of
from fairsieve.sampling.states import check_dataset
from fairsieve.sampling.summary import pass_warnings
from fairsieve.selection.batches import batch_count
from fairsieve.selection.cells import Cells, Integers, as_array, check_lengths
from fairsieve.validation import check_at_least, check_share


class Sieve:
    """The method for a dataset that every process can read; each takes a shard of it.

    Made after ``torch.distributed`` is initialised. Frameworks count on epochs of equal length and on
    batches that are not empty: every epoch has as many batches as the data fill, going through the
    selection again at its end, and a process that has none of a batch's samples takes one of its own,
    which :meth:`weight` does not count.

    Parameters
    ----------
    dataset : map-style dataset
        All samples, in the order of the labels.
    labels, sensitive_features : arrays
        Of all samples.
    batch_size : int
        Of a global batch, over all processes.
    held_out : float in [0, 1)
        Share of the samples that are set aside, and never trained on: groups are then weighted by the gaps of their
        rates there, and less where the weights cost accuracy.
    share : float
        How many of the samples that an epoch left out are looked at before the next; samples whose
        losses nobody observes are all looked at.
    forward : callable, optional
        ``forward(model, batch)`` → logits, where a batch does not start with the features.
    loss : callable
        ``loss(outputs, class_indices)`` → one loss per sample.
    **options
        As for :class:`~fairsieve.FairRobustBatchSampler`, and ``timeout``.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        labels: Any,
        sensitive_features: Any,
        batch_size: int,
        *,
        held_out: float = 0.0,
        share: float = 0.2,
        forward: Forward | None = None,
        loss: LossFunction = cross_entropy,
        **options: Any,
    ) -> None:
        groups = groups_of(labels, sensitive_features, options.get("fairness", EO))
        labels, groups = as_array("labels", labels), as_array("sensitive_features", groups)
        check_lengths(len(labels), len(groups))
        check_dataset(dataset, len(labels))
        trained, aside = set_aside(labels, groups, held_out, options.get("seed", 0))
        own = shard_of(len(trained))
        rows = trained[own.start : own.stop]
        self.sampler = _FilledBatches(labels[rows], groups[rows], batch_size, **options)
        self.shard = Subset(dataset, rows.tolist())
        self.aside = Subset(dataset, aside.tolist())
        self._labels_aside = labels[aside], groups[aside]
        self.share, self.forward, self.loss = share, forward or forward_features, loss
        self.is_observed = False
        self.convert: Callable[[Any], Any] = lambda batch: batch
        self.precision: Callable[[], AbstractContextManager[Any]] = nullcontext

    @classmethod
    def of_length(cls, limits: Any, dataset: Any, labels: Any, *data: Any, **options: Any) -> Self:
        """Return a sieve for a training of known length; warn where that is short.

        ``limits`` are the epochs and the optimiser steps after which it ends, and the batches of a step. The others are
        as for the sieve.
        """
        epochs, steps, accumulated = limits
        samples = len(labels) - round(check_share("held_out", options.get("held_out", 0.0)) * len(labels))
        length = count_epochs(epochs, steps, samples, data[-1], accumulated)
        whole = None if length is None else max(1, math.ceil(length))  # the last one may end early
        sieve = cls(dataset, labels, *data, **({"epochs": whole} | options))
        warmup = sieve.sampler.plan.warmup_epochs
        if length is not None and 0 <= length <= warmup:
            sieve.sampler._tell(
                "nothing",
                f"warmup_epochs={warmup} is not less than the {length:g} epochs to train: every epoch trains on all "
                "samples and none is selected. Lower warmup_epochs or train longer",
            )
        return sieve

    def loader(self, **options: Any) -> DataLoader[Any]:
        """Return a loader of this process's batches."""
        return DataLoader(self.shard, batch_sampler=self.sampler, **options)

    def begin_epoch(self, model: nn.Module, epoch: int | None = None, **loading: Any) -> None:
        """Look again at what must be, and select what the coming epoch (the next when None) trains on."""
        if epoch is not None:
            self.sampler.plan.epoch = check_at_least("epoch", epoch, 0)
        if self.sampler.needs_update:
            share = self.share if self.is_observed else 1.0
            self.sampler.refresh(model, self.shard, share, loss=self.loss, forward=self._outputs, **loading)
            size, validation = max(256, 4 * self.sampler.plan.batch_size), None
            if len(self.aside):
                held_out = compute_outputs(
                    model, self.aside, chunk_size=size, forward=self._outputs, **loading
                )
                validation = held_out, *self._labels_aside
            self.sampler.update(validation=validation)

    def _outputs(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """Return a model's outputs in the precision that the framework trains it in."""
        with self.precision():
            return self.forward(model, self.convert(batch))

    def probe(self, model: nn.Module, collate: Callable[[list[Any]], Any]) -> None:
        """Run the model over the first samples, so that batches which it does not take are told before the training."""
        items = [self.shard[place] for place in range(min(2, len(self.shard)))]
        if items:
            (_, outputs), *_ = run_in_chunks(model, [collate(items)], forward=self._outputs)
            check_outputs(outputs, len(items), self.sampler.plan.cells.shape[0])

    def continue_epoch(self, skip: int = 0) -> None:
        """Go on inside the epoch that a loaded state was taken in: its samples are selected already.

        ``skip`` leaves out as many batches of the next pass, where the loop does not do so itself.
        """
        self.sampler.plan.epoch = max(0, self.sampler.epoch - 1)
        self.sampler.skip = skip

    def weight(self, batch: int) -> float:
        """Return what a mean loss over this process's part of a batch is multiplied by.

        Gradients that are then averaged over processes are those of the mean over the global batch,
        though its samples are not shared out evenly. On one process it is 1.
        """
        own, whole = self.sampler.own_sizes[batch], self.sampler.plan.global_batch_size
        return own * self.sampler.workers.size / whole

    def observe(self, batch: int, losses: torch.Tensor) -> None:
        """Remember the losses of the samples of a batch of this epoch, in order."""
        self.is_observed = True
        self.sampler.observe_losses(self.sampler.present[batch], losses)

    def observe_outputs(self, batch: int, outputs: torch.Tensor) -> None:
        """Do what :meth:`observe` does for the model's outputs."""
        self.is_observed = True
        self.sampler.observe(self.sampler.present[batch], outputs, loss=self.loss)

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state, of all processes; all call it together."""
        parts = self.sampler.workers.gather_objects(self.sampler.state_dict())
        return {"parts": parts, "is_observed": self.is_observed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, of as many processes or of another number."""
        self.is_observed = bool(state["is_observed"])
        self.sampler.load_state_dict(state["parts"])


def set_aside(labels: Any, groups: Any, share: Any, seed: int) -> tuple[Integers, Integers]:
    """Return the samples to train on and those set aside, by chance and ascending; a class or group is never lost.

    >>> [part.tolist() for part in set_aside([0, 1, 1, 1], list("aaab"), 0.75, seed=0)]
    [[0, 3], [1, 2]]
    """
    if check_share("held_out", share) == 1:
        raise InvalidInputError("held_out must be below 1, or nothing would be trained on; got 1")
    is_aside = np.zeros(len(labels), bool)
    if share:
        chosen = np.random.default_rng(seed).permutation(len(labels))
        is_aside[chosen[: round(share * len(labels))]] = True
        cells = Cells.of(labels, groups, missing="own")
        for codes in (cells.label_codes, cells.group_codes):
            lost = np.flatnonzero(~np.isin(codes, codes[~is_aside]))
            is_aside[lost[np.unique(codes[lost], return_index=True)[1]]] = False
    return np.flatnonzero(~is_aside), np.flatnonzero(is_aside)


def count_epochs(
    epochs: float | None, steps: int, samples: int, batch_size: int, accumulated: int
) -> float | None:
    """Return how many epochs a training has that ends after so many epochs or optimiser steps; None without an end.

    >>> count_epochs(None, 70, 2000, 100, 1)
    3.5
    """
    each = -(-batch_count(samples, batch_size) // max(1, accumulated))
    by_steps = steps / max(1, each) if steps > 0 else None
    limits = [limit for limit in (epochs, by_steps) if limit is not None]
    return min(limits) if limits else None


class _FilledBatches(ShardedBatchSampler):
    """Every pass has as many batches, none is empty, and the present ones are remembered."""

    is_open = True  # a pass that comes before its epoch has begun is empty while this is False
    skip = 0  # batches that the next pass leaves out

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: frameworks' loaders tell how often they were gone through, from 0 after every start."""

    def __len__(self) -> int:
        return batch_count(self.plan.samples, self.plan.batch_size)

    def batches(self) -> Iterator[torch.Tensor]:
        """Give a pass as index tensors."""
        if not self.is_open:
            return
        found = self.plan.batches(len(self))
        for kind, message in pass_warnings(self.plan, len(found), self.epochs):
            self._tell(kind, message)
        self.plan.epoch += 1
        self.position.has_begun = False
        self.own_sizes = [len(batch) for batch in found]
        spare = self.plan.indices[:1] if len(self.plan.indices) else np.zeros(1, np.int64)
        self.present = [torch.from_numpy(batch if len(batch) else spare) for batch in found]
        first, self.skip = self.skip, 0
        yield from self.present[first:]
