"""Checks of single values, with one form of message. NumPy is not imported here: the command line starts without it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Iterable, Set
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

from fairsieve.errors import InvalidInputError, require, spell

Value = TypeVar("Value")

LONGEST = 100  # letters of a value in a message


def shown(value: Any) -> str:
    """Write a value for a message: short, and without the names of NumPy's types.

    >>> import numpy as np
    >>> shown(np.int64(3)), shown("a")
    ('3', "'a'")
    """
    text = f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else repr(_as_python(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _as_python(value: Any) -> Any:
    """Return Python's own number for one of NumPy's, and everything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _check_number(
    name: str, value: Any, kind: type, is_within: Callable[[Any], bool], rule: str, hint: str = ""
) -> Any:
    """Check that a value is a number of a kind, within bounds; True and False are none, though Python says 1 and 0."""
    if isinstance(value, bool) or not isinstance(value, kind) or not is_within(value):
        raise InvalidInputError(f"{spell(name)} must be {rule}; got {shown(value)}{hint}")
    return value


def check_at_least(name: str, value: Any, lowest: int) -> int:
    """Check that a value is a whole number of at least ``lowest``."""
    rule = f"a whole number of at least {lowest}"
    return int(_check_number(name, value, Integral, lambda number: number >= lowest, rule))


def check_seed(name: str, value: Any) -> int:
    """Check that a value is a whole number that NumPy, torch and compiled code all take for a seed."""
    rule = "a whole number of at least 0 and below 2**63"
    return int(_check_number(name, value, Integral, lambda number: 0 <= number < 2**63, rule))


def check_share(name: str, value: Any, most: float = 1) -> float:
    """Check that a value is a number in [0, ``most``]."""
    rule, hint = f"a number in [0, {most}]", percent_hint(value)
    return float(_check_number(name, value, Real, lambda number: 0 <= number <= most, rule, hint))


def check_positive(name: str, value: Any) -> float:
    """Check that a value is a finite number above 0."""
    rule = "a finite number above 0"
    return float(_check_number(name, value, Real, lambda number: 0 < number < float("inf"), rule))


def check_clean_ratio(name: str, value: Any, *, auto: bool = False) -> float | Literal["auto"]:
    """Check that a value is a share of right labels above 0; or "auto", where it can be estimated.

    >>> check_clean_ratio("clean_ratio", 90, auto=True)
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: clean_ratio must be a number in (0, 1], the share of right labels (1.0 keeps
    every sample), or "auto" to have it estimated; got 90: for 90 % pass 0.9
    """
    if auto and isinstance(value, str) and value == "auto":
        return "auto"
    also = ', or "auto" to have it estimated' if auto else ""
    rule = f"a number in (0, 1], the share of right labels (1.0 keeps every sample){also}"
    hint = percent_hint(value)
    if isinstance(value, str):
        hint = closest_hint(value, ["auto"]) if auto else hint
        hint = ': write "auto" in small letters' if auto and value.lower() == "auto" else hint
        hint = ": estimate_clean_ratio finds one" if not auto and value == "auto" else hint
    return float(_check_number(name, value, Real, lambda number: 0 < number <= 1, rule, hint))


def percent_hint(value: Any) -> str:
    """Say what to pass in place of a percentage; return nothing for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 1 < float(value) <= 100:
        return ""
    return f": for {float(value):g} % pass {float(value) / 100:g}"


def check_kind(name: str, value: Any, kinds: Any, rule: str) -> Any:
    """Check that a value is of one of some types."""
    if not isinstance(value, kinds):
        got = shown(value) if value is None or isinstance(value, str | Real) else f"a {type(value).__name__}"
        raise InvalidInputError(f"{spell(name)} must be {rule}; got {got}")
    return value


def check_truth(name: str, value: Any) -> bool:
    """Check that a value is True or False: the text "no" would be taken for true."""
    return bool(check_kind(name, _as_python(value), bool, "True or False"))


def as_path(name: str, value: Any, rule: str = "a path") -> Path:
    """Return a path; refuse what is none."""
    return Path(check_kind(name, value, (str, PathLike), rule))


def as_text(name: str, value: Any, rule: str = "the name of a column") -> str:
    """Return a text or a number, such as the name of a column, as a text; refuse anything else."""
    return str(check_kind(name, value, (str, Real), rule))


def as_texts(name: str, values: Any, rule: str) -> tuple[str, ...]:
    """Return one text or several as texts.

    >>> as_texts("missing", -999, "a text or a number"), as_texts("drop", ["age", 0], "the name of a column")
    (('-999',), ('age', '0'))
    """
    return tuple(as_text(name, value, f"{rule}, or a list of such") for value in several(values))


def several(values: Any) -> Collection[Any]:
    """Return one value as a sequence of one, None as an empty one, and several as they are."""
    if isinstance(values, list | tuple | Set):
        return values
    return () if values is None else (values,)


def check_choice(name: str, value: Value, choices: Collection[Any]) -> Value:
    """Check that a value is one of a few texts; offer the closest."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(
            f"{spell(name)} must be one of {', '.join(map(str, choices))}; got "
            f"{shown(value)}{closest_hint(value, choices)}"
        )
    return value


def check_device(device: Any) -> Any:
    """Check that torch can use a device here; return torch."""
    torch = require("torch", purpose=f"training on the device {shown(device)}")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:  # as torch tells of what it lacks
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInputError(
            f"device must be one that torch can use here, such as 'cpu'; got {shown(device)} ({reason}): leave device "
            "out to train on the CPU"
        ) from None
    return torch


def closest_hint(value: Any, choices: Iterable[Any]) -> str:
    """Offer the closest of some choices, whatever the case; return nothing where none is close.

    >>> closest_hint("Fairsive", ["lr", "fairsieve"]), closest_hint("x", ["lr"])
    (". Did you mean 'fairsieve'?", '')
    """
    by_lower = {str(choice).lower(): choice for choice in choices}
    close = difflib.get_close_matches(value.lower(), by_lower, n=1) if isinstance(value, str) else []
    return f". Did you mean {by_lower[close[0]]!r}?" if close else ""


def is_dask(value: Any) -> bool:
    """Return whether ``value`` is a dask collection, without importing dask.

    Examples
    --------
    >>> is_dask([1.0, 2.0])
    False
    """
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(value))


def is_tensor(value: Any) -> bool:
    """Return whether ``value`` is a torch tensor, without importing torch.

    Examples
    --------
    >>> is_tensor([1.0, 2.0])
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)
