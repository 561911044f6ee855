"""The state of a sampler as it is saved: plain values and tensors, of one process or in the parts of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import as_array
from fairsieve.validation import shown


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
