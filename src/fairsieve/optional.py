"""Optional packages, imported when they are needed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from fairsieve.errors import MissingExtraError

# The extra of fairsieve that has each package that may be missing; others are what fairsieve itself depends on.
EXTRAS = {
    "accelerate": "accelerate",
    "dask": "dask",
    "fairlearn": "fairlearn",
    "lightgbm": "lightgbm",
    "lightning": "lightning",
    "matplotlib": "plot",
    "numba": "reproduce",
    "pyarrow": "table",
    "torch": "torch",
    "transformers": "transformers",
}


def require(name: str, *, purpose: str) -> Any:
    """Import a package, or raise an error that says how to install it.

    Examples
    --------
    >>> require("no_such_package", purpose="training a module")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingExtraError: training a module needs no_such_package: pip install no_such_package
    """
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, purpose=purpose) from None


def missing(name: str, *, purpose: str) -> MissingExtraError:
    """Return the error that says how to install a package, by its own name or that of one of its modules.

    >>> str(missing("matplotlib.pyplot", purpose="drawing figures"))
    "drawing figures needs matplotlib: pip install 'fairsieve[plot]'"
    """
    package = name.partition(".")[0]
    return MissingExtraError(package, extra=EXTRAS.get(package), purpose=purpose)


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
