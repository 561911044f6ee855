"""Optional packages, imported when they are needed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from fairsieve.errors import MissingExtraError


def require(name: str, *, extra: str | None, purpose: str) -> Any:
    """Import a package, or raise an error that says how to install it.

    Examples
    --------
    >>> require("no_such_package", extra="torch", purpose="training a module")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingExtraError: training a module needs no_such_package: pip install 'fairsieve[torch]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(name.partition(".")[0], extra=extra, purpose=purpose) from None


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
