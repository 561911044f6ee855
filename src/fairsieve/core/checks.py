"""Checks of single values, with one form of message."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, TypeVar

from fairsieve.errors import InvalidInputError

__all__ = ["check_at_least", "check_choice", "check_positive", "check_share"]

Value = TypeVar("Value")


def check_at_least(name: str, value: Any, lowest: int) -> int:
    """A whole number of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < lowest:
        raise InvalidInputError(f"{name} must be a whole number of at least {lowest}; got {value!r}")
    return int(value)


def check_share(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise InvalidInputError(f"{name} must be a number in [0, 1]; got {value!r}")
    return float(value)


def check_positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise InvalidInputError(f"{name} must be a finite number above 0; got {value!r}")
    return float(value)


def check_choice(name: str, value: Value, choices: Collection[Any]) -> Value:
    """One of a few values."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(str, choices))}; got {value!r}")
    return value
