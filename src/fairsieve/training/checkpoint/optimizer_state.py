"""The state of a torch optimiser as plain JSON and named arrays, and back; never pickle. Needs torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError, InvalidInputError

__all__ = ["as_tensor", "pack", "restore_optimizer", "tensor_array"]

ADAM = {"step", "exp_avg", "exp_avg_sq"}
MOST_STEPS = 2**53


def tensor_array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as an array; bfloat16, which NumPy lacks, as its bits."""
    tensor = tensor.detach().cpu()
    return np.asarray((tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy())


def as_tensor(array: NDArray[Any], like: torch.Tensor) -> torch.Tensor:
    """Make a tensor of what :func:`tensor_array` made of a tensor like this."""
    tensor = torch.from_numpy(np.array(array))
    return tensor.view(torch.bfloat16) if like.dtype == torch.bfloat16 else tensor


def pack(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Turn ``value`` into JSON; its tensors go into ``tensors``, under names that begin with ``name``.

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
        return {"bfloat16" if value.dtype == torch.bfloat16 else "tensor": name}
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


def _unpack(packed: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return what :func:`pack` was given; its tensors are made of ``arrays``.

    >>> _unpack({"dict": [["betas", {"tuple": [0.9, {"float": "inf"}]}]]}, {})
    {'betas': (0.9, inf)}
    """
    if packed is None or isinstance(packed, (bool, int, float, str)):
        return packed
    if isinstance(packed, list):
        return [_unpack(part, arrays) for part in packed]
    if isinstance(packed, dict) and len(packed) == 1:
        ((kind, content),) = packed.items()
        if kind in ("tensor", "bfloat16") and isinstance(content, str) and content in arrays:
            tensor = torch.from_numpy(np.array(arrays[content]))
            if kind == "tensor":
                return tensor
            if tensor.dtype == torch.int16:
                return tensor.view(torch.bfloat16)
        if kind == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if kind == "tuple" and isinstance(content, list):
            return tuple(_unpack(part, arrays) for part in content)
        if kind == "dict" and isinstance(content, list) and all(_is_item(item) for item in content):
            return {key: _unpack(part, arrays) for key, part in content}
    raise CheckpointError("it holds a state that was not written by fairsieve")


def _is_item(item: Any) -> bool:
    """Return whether this is a key and a value."""
    return isinstance(item, list) and len(item) == 2 and type(item[0]) in (int, str)


def restore_optimizer(
    optimizer: torch.optim.Optimizer, packed: Any, arrays: Mapping[str, NDArray[Any]], *, adam: bool
) -> None:
    """Give the optimiser its state back, if it fits the parameters; ``adam`` when it is our own Adam."""
    refusal = "it has no state of this optimiser"
    state = _unpack(packed, arrays)
    if not (isinstance(state, dict) and isinstance(state.get("state"), dict)):
        raise CheckpointError(refusal)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    everything = sum(parameter.numel() for parameter in parameters)
    for number, own in state["state"].items():
        if not (isinstance(number, int) and 0 <= number < len(parameters) and isinstance(own, dict)):
            raise CheckpointError(refusal)
        if adam and not _is_adam(own, parameters[number]):
            raise CheckpointError(f"{refusal}: Adam's of parameter {number} does not fit")
        tensors = [value for value in own.values() if isinstance(value, torch.Tensor)]
        if any(tensor.numel() > max(everything, 1) for tensor in tensors):
            raise CheckpointError(f"{refusal}: it has a tensor larger than the model")
    if adam:  # the settings decide what else Adam needs
        state["param_groups"] = optimizer.state_dict()["param_groups"]
    try:
        optimizer.load_state_dict(state)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{refusal}: {error}") from error


def _is_adam(state: Mapping[Any, Any], parameter: torch.Tensor) -> bool:
    """Return whether this is Adam's state of a parameter."""
    if state.keys() != ADAM or not all(isinstance(value, torch.Tensor) for value in state.values()):
        return False
    moments = state["exp_avg"], state["exp_avg_sq"]
    fits = all(m.shape == parameter.shape and m.dtype == parameter.dtype for m in moments)
    return fits and state["step"].numel() == 1 and 0 <= float(state["step"]) <= MOST_STEPS
