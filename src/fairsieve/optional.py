"""The packages of the extra ``table``, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fairsieve.errors import MissingExtraError

__all__ = ["check_packages", "package"]


def package(name: str, purpose: str) -> Any:
    """A package by name, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(name.partition(".")[0], extra="table", purpose=purpose) from None


def check_packages() -> None:
    """Say what is not installed before the work, not after it."""
    package("pandas", "reading a table")
    package("skops.io", "keeping a model without pickle")
