"""Running losses, or what is kept in their place: each sample's, from the last time that the model saw it.

Training computes the loss of every sample it takes, so those need no pass of their own. The samples
that are left out of training are looked at again a slice at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.sampling.losses import refuse_stream
from fairsieve.selection.batches import GOLDEN
from fairsieve.validation import check_share

WAITING = 2**20  # losses that may wait on their device before they are brought over
CHUNK = 2**20  # samples looked through together


class RunningLosses:
    """The latest loss of every sample and what groups are compared by; or its belief and rival, averaged.

    Parameters
    ----------
    samples : int
    rows : int
        Values kept beside the losses.
    folder : path, optional
        Keep the arrays in files there, memory-mapped; in memory when None.
    momentum : float in [0, 1)
        How much of a sample's values is kept when new ones come.
    """

    def __init__(
        self,
        samples: int,
        rows: int = 0,
        folder: str | Path | None = None,
        momentum: float = 0.0,
    ) -> None:
        def room(name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
            if folder is None:
                return np.zeros(shape, dtype)
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
                return np.lib.format.open_memmap(Path(folder) / f"{name}.npy", "w+", dtype, shape)
            except OSError as error:
                raise InvalidInputError(
                    f"folder must be one that can be written; {folder}: {error.strerror}"
                ) from error

        self.momentum = momentum
        self.losses = room("losses", "f4", (samples,))
        self.signals = room("signals", "f4", (rows, samples)) if rows else np.zeros((0, samples), "f4")
        self.seen = room("seen", "i4", (samples,))  # the epoch of the latest loss
        self.seen[:] = -1
        self._waiting: list[tuple[NDArray[np.int64], torch.Tensor, int]] = []
        self._waiting_losses = 0

    def record(self, indices: ArrayLike | torch.Tensor, values: torch.Tensor, epoch: int) -> None:
        """Remember losses (and signals), (1 + rows, batch), as they come; they stay on their device for now."""
        where = as_indices(indices, len(self.losses))
        expected = (1 + len(self.signals), len(where))
        if where.ndim != 1 or tuple(values.shape) != expected:
            raise InvalidInputError(
                f"losses must have one value for each of the {where.size} indices (and signals one row each); "
                f"got the shape {tuple(values.shape)} where {expected} is expected"
            )
        if len(where) == 0:
            return
        self._waiting.append((where.astype(np.int64), values, epoch))
        self._waiting_losses += len(where)
        if self._waiting_losses >= WAITING:
            self.settle()

    def settle(self) -> None:
        """Store the losses that wait on their device; of several losses of one sample the last counts."""
        if not self._waiting:
            return
        places, values, epochs = zip(*self._waiting, strict=True)
        self._waiting, self._waiting_losses = [], 0
        where = np.concatenate(places)
        table = torch.cat(values, dim=1).float().cpu().numpy()
        if np.isnan(table).any():
            raise InvalidInputError(
                f"losses must not be NaN; got {int(np.isnan(table[0]).sum())}, the first of sample "
                f"{int(where[np.isnan(table).any(axis=0).argmax()])}. Lower the learning rate or clip gradients"
            )
        epoch = np.repeat(epochs, [len(part) for part in places])
        if self.momentum:
            kept = np.where(self.seen[where] < 0, 0.0, self.momentum).astype(np.float32)
            table[0] = kept * self.losses[where] + (1 - kept) * table[0]
            table[1:] = kept * self.signals[:, where] + (1 - kept) * table[1:]
        self.losses[where], self.signals[:, where] = table[0], table[1:]
        self.seen[where] = epoch

    def stale(self, share: float, epoch: int, first: int = 0) -> NDArray[np.int64]:
        """Return the samples without a loss, and ``share`` of those whose loss is older than ``epoch``, ascending.

        Whose turn it is follows from the epoch and the index (in a shard: beyond ``first``), so the
        same samples come up however they are sharded, each within every ⌈1/share⌉ epochs.
        """
        self.settle()
        part = int(check_share("share", share) * 2**64)
        found = []
        for start in range(0, len(self.seen), CHUNK):  # so that little is held besides the answer
            old = np.flatnonzero(self.seen[start : start + CHUNK] < epoch) + start
            if part < 2**64:
                places = (old + first).astype(np.uint64) * GOLDEN + np.uint64(part * epoch % 2**64)
                old = old[(places < np.uint64(part)) | (self.seen[old] < 0)]
            found.append(old)
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def known(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the losses and signals of all samples."""
        self.settle()
        missing = int((self.seen < 0).sum())
        if missing:
            raise NotReadyError(
                f"{missing} of {len(self.losses)} samples have no loss yet: call sampler.refresh(model, dataset) "
                "before sampler.update(), or observe() all of sampler.stale()"
            )
        return self.losses, self.signals

    def state_dict(self) -> dict[str, Any]:
        """Return what the next epoch depends on."""
        self.settle()
        return {name: np.array(getattr(self, name)) for name in ("losses", "signals", "seen")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of the same samples."""
        for name in ("losses", "signals", "seen"):
            array, own = np.asarray(state[name]), getattr(self, name)
            if array.shape != own.shape:
                raise InvalidInputError(
                    f"state must hold running {name} of the shape {own.shape}; got {array.shape}"
                )
            own[:] = array
        self._waiting, self._waiting_losses = [], 0


def as_indices(indices: ArrayLike | torch.Tensor, samples: int) -> NDArray[np.int64]:
    """Return positions of samples, or raise a clear error."""
    where = indices.cpu().numpy() if isinstance(indices, torch.Tensor) else np.asarray(indices)
    if where.size == 0:
        return where.astype(np.int64)
    if where.dtype.kind not in "iu":
        raise InvalidInputError(
            f"indices must be whole numbers; got {where.dtype}: pass positions, not a mask"
        )
    if where.min() < 0 or where.max() >= samples:
        raise InvalidInputError(
            f"indices must be positions of the {samples} samples; got {where.min()} to {where.max()}"
        )
    return where.astype(np.int64)


def check_dataset(dataset: Any, samples: int) -> None:
    """Refuse a dataset that does not hold all samples, or is a stream."""
    refuse_stream(dataset)
    if hasattr(dataset, "__len__") and len(dataset) != samples:
        raise InvalidInputError(
            f"dataset must hold all {samples} samples, in the order of the labels; got {len(dataset)}: pass the whole "
            "training set"
        )
