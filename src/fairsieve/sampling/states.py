"""What a sampler remembers: where it stands in an epoch, what it saw of each sample, and both as a state that is saved.

Training computes the loss of every sample it takes, so those need no pass of their own. The samples that are left out
of training are looked at again a slice at a time. States are plain values and tensors, of one process or in the parts
of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.sampling.losses import refuse_stream
from fairsieve.selection.batches import GOLDEN
from fairsieve.selection.cells import Integers, as_array, slices
from fairsieve.selection.epoch import Plan
from fairsieve.validation import check_at_least, check_share, shown

WAITING = 2**20  # losses that may wait on their device before they are brought over
CHUNK = 2**20  # samples looked through together

Batch = TypeVar("Batch")


class Position:
    """The epoch of a plan, whether it has begun, and how many of its batches were handed out.

    An epoch begins by :meth:`begin` (the sampler's ``update``) or :meth:`set_epoch`. It ends with the last batch of a
    pass, or when the next one begins. A pass that is begun and dropped uses up nothing.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.handed_out = 0  # batches of the present epoch
        self.has_begun = False
        self.is_resumed = False  # the epoch goes on from a state: its samples are selected already
        self._present: object = None  # the latest pass; those before it count no more
        self._latest: tuple[int, int] | None = None  # epoch and batches of the present or just ended pass

    @property
    def coming(self) -> int:
        """The epoch that comes after the batches that were handed out."""
        return self.plan.epoch + (self.handed_out > 0)

    def begin(self) -> None:
        """Begin an epoch: the next one where the present one has begun and some of it was trained."""
        if self.has_begun and self.handed_out:
            self.plan.epoch += 1
        self.has_begun, self.handed_out = True, 0
        self._present = self._latest = None

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch is trained next; an epoch that goes on from a state is left where it is."""
        if self.is_resumed and epoch == self.plan.epoch:
            return
        self.plan.epoch = check_at_least("epoch", epoch, 0)
        self.has_begun, self.handed_out, self.is_resumed = False, 0, False
        self._present = self._latest = None

    def hand_out(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        """Give the batches of a pass, those that a loaded state had trained left out."""
        if not self.is_resumed:
            self.handed_out = 0
        self.is_resumed = False
        present = self._present = object()
        self._latest = self.plan.epoch, len(batches)
        for batch in batches[self.handed_out :]:
            if self._present is present:
                self.handed_out += 1
                if self.handed_out == len(batches):  # the epoch ends with its last batch
                    self.plan.epoch += 1
                    self.has_begun, self.handed_out = False, 0
            yield batch

    def state_dict(self, trained: int | None = None) -> dict[str, Any]:
        """Return the position; ``trained`` says how many batches of the latest pass were, where it was read ahead."""
        if trained is not None and self._latest is not None:
            epoch, batches = self._latest
            is_over = check_at_least("trained", trained, 0) >= batches
            return {"epoch": epoch + is_over, "position": 0 if is_over else trained, "has_begun": not is_over}
        return {"epoch": self.plan.epoch, "position": self.handed_out, "has_begun": self.has_begun}

    def load_state_dict(self, state: Any) -> None:
        """Continue from a state; the next update is left out where it was made before the state was taken."""
        self.plan.epoch = check_at_least("the state's epoch", state["epoch"], 0)
        self.handed_out = check_at_least("the state's position", state["position"], 0)
        self.has_begun = bool(state["has_begun"])
        self.is_resumed = self.has_begun or self.handed_out > 0
        self._present = self._latest = None


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as numbers, texts and lists, which any file can hold."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return sorted([str(key), float(share)] for key, share in value.items())
        if isinstance(value, (str, int, float, type(None))):
            return value
        return as_array("settings", value).tolist() if np.ndim(value) else str(value)

    return {name: plain(value) for name, value in settings.items()}


def check_origin(state: Mapping[str, Any], settings: Mapping[str, Any], checksum: int) -> None:
    """Refuse the state of a sampler of other samples or settings, and say what differs."""
    if not isinstance(state, Mapping) or "settings" not in state:
        raise InvalidInputError(f"state must be a sampler's state_dict(); got {shown(state)}")
    theirs = state["settings"]
    differs = [
        f"{name} is {shown(theirs.get(name))} there and {shown(value)} here"
        for name, value in plain_settings(settings).items()
        if theirs.get(name) != value
    ]
    if state.get("checksum") != checksum:
        differs.insert(0, "labels or sensitive features are others")
    if differs:
        raise InvalidInputError(f"state must be of a sampler like this one; {'; '.join(differs)}")


def as_tensors(state: Any) -> Any:
    """Return a nested state with tensors for arrays, which ``torch.load`` reads without running anything.

    >>> as_tensors({"epoch": 3, "running": {"seen": np.arange(2)}})
    {'epoch': 3, 'running': {'seen': tensor([0, 1])}}
    """
    if isinstance(state, Mapping):
        return {name: as_tensors(value) for name, value in state.items()}
    return torch.from_numpy(state) if isinstance(state, np.ndarray) else state


def join_parts(state: Mapping[str, Any] | Iterable[Mapping[str, Any]], samples: int) -> dict[str, Any]:
    """Return the whole state over so many samples, from its parts in any order, or from one that is whole."""
    parts = [state] if isinstance(state, Mapping) else list(state)
    if not parts:
        raise InvalidInputError("state must hold at least one part; got none")
    parts.sort(key=lambda part: (part.get("first", 0), part.get("size", 0)))
    covered = 0
    for part in parts:
        if part.get("samples") != samples:
            raise InvalidInputError(
                f"state must be of the same {samples} samples; got one of {part.get('samples')}"
            )
        covered = covered + part.get("size", samples) if part.get("first", 0) == covered else -1
    if covered != samples:
        raise InvalidInputError(
            f"state must be the parts of all workers, each once, of all {samples} samples: load the files of all ranks"
        )

    def join(values: list[Any]) -> Any:
        if isinstance(values[0], Mapping):
            return {name: join([each[name] for each in values]) for name in values[0]}
        return np.concatenate([np.asarray(each) for each in values], axis=-1)

    whole = {**parts[0], "first": 0, "size": samples}
    for name in ("indices", "running", "averages"):  # the last two, where every worker had them
        if found := [part[name] for part in parts if name in part]:
            whole[name] = join(found) if len(found) == len(parts) else None
    return {name: value for name, value in whole.items() if value is not None}


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
        self, samples: int, rows: int = 0, folder: str | Path | None = None, momentum: float = 0.0
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
        self._waiting: list[tuple[Integers, torch.Tensor, int]] = []
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
        """Store the losses that wait on their device; several of one sample count in their order."""
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
        # One after the other, so that it does not matter how many wait when a state is taken.
        for part in repeats(where) if self.momentum else [slice(None)]:
            chosen, found = where[part], table[:, part]
            if self.momentum:
                kept = np.where(self.seen[chosen] < 0, 0.0, self.momentum).astype(np.float32)
                found = (
                    kept * np.vstack([self.losses[None, chosen], self.signals[:, chosen]])
                    + (1 - kept) * found
                )
            self.losses[chosen], self.signals[:, chosen] = found[0], found[1:]
            self.seen[chosen] = epoch[part]

    def stale(self, share: float, epoch: int, first: int = 0) -> Integers:
        """Return the samples without a loss, and ``share`` of those whose loss is older than ``epoch``, ascending.

        Whose turn it is follows from the epoch and the index (in a shard: beyond ``first``), so the
        same samples come up however they are sharded, each within every ⌈1/share⌉ epochs.
        """
        self.settle()
        part = int(check_share("share", share) * 2**64)
        found = []
        for some in slices(len(self.seen), CHUNK):  # so that little is held besides the answer
            old = np.flatnonzero(self.seen[some] < epoch) + some.start
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


def repeats(places: Integers) -> list[Integers]:
    """Return where each place comes for the first time, where for the second, and so on.

    >>> [part.tolist() for part in repeats(np.array([5, 7, 5, 5, 7]))]
    [[0, 1], [2, 4], [3]]
    """
    order = np.argsort(places, kind="stable")
    is_first = np.diff(places[order], prepend=-1) != 0
    each = np.arange(len(places))
    times = each - np.maximum.accumulate(np.where(is_first, each, 0))
    ranked, ends = order[np.argsort(times, kind="stable")], np.cumsum(np.bincount(times))
    return [np.sort(part) for part in np.split(ranked, ends[:-1])]


def as_indices(indices: ArrayLike | torch.Tensor, samples: int) -> Integers:
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
