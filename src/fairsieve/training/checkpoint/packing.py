"""Nested state, such as an optimiser's → plain JSON and named tensors, and back; never pickle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from fairsieve.errors import CheckpointError, InvalidInputError

__all__ = ["pack", "unpack"]


def pack(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """``value`` as JSON; its tensors go into ``tensors``, under names that begin with ``name``.

    Examples
    --------
    >>> tensors = {}
    >>> pack({0: {"step": torch.tensor(2.0), "betas": (0.9, 0.999)}}, "adam", tensors)
    {'dict': [[0, {'dict': [['step', {'tensor': 'adam.0.step'}], ['betas', {'tuple': [0.9, 0.999]}]]}]]}
    >>> tensors
    {'adam.0.step': tensor(2.)}
    """
    if isinstance(value, torch.Tensor):
        while name in tensors:  # the keys 1 and "1" are two
            name += "+"
        tensors[name] = value
        return {"tensor": name}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, (list, tuple)):
        packed = [pack(part, f"{name}.{i}", tensors) for i, part in enumerate(value)]
        return {"tuple": packed} if isinstance(value, tuple) else packed
    if isinstance(value, Mapping) and all(type(key) in (int, str) for key in value):
        return {"dict": [[key, pack(part, f"{name}.{key}", tensors)] for key, part in value.items()]}
    raise InvalidInputError(
        f"a checkpoint must hold numbers, text and tensors only; {name} is a {type(value).__name__}: use another "
        "optimizer, or train without checkpoint_dir"
    )


def unpack(packed: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """What :func:`pack` was given.

    >>> unpack({"dict": [["betas", {"tuple": [0.9, {"float": "inf"}]}]]}, {})
    {'betas': (0.9, inf)}
    """
    if packed is None or isinstance(packed, (bool, int, float, str)):
        return packed
    if isinstance(packed, list):
        return [unpack(part, tensors) for part in packed]
    if isinstance(packed, dict) and len(packed) == 1:
        ((kind, content),) = packed.items()
        if kind == "tensor" and isinstance(content, str) and content in tensors:
            return tensors[content]
        if kind == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if kind == "tuple" and isinstance(content, list):
            return tuple(unpack(part, tensors) for part in content)
        if kind == "dict" and isinstance(content, list) and all(_is_item(item) for item in content):
            return {key: unpack(part, tensors) for key, part in content}
    raise CheckpointError("a checkpoint holds a state that was not written by fairsieve")


def _is_item(item: Any) -> bool:
    """Whether this is a key and a value."""
    return isinstance(item, list) and len(item) == 2 and type(item[0]) in (int, str)
