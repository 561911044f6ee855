"""Where a training stands inside its epochs, and its state as it is saved, so that it goes on at any batch.

States are plain values and tensors, of one process or in the parts of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import as_array
from fairsieve.selection.epoch import Plan
from fairsieve.validation import check_at_least, shown

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
        self._latest: tuple[int, int] | None = (
            None  # epoch and number of batches of the present or just ended pass
        )

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
