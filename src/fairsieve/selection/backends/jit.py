"""The one decorator that compiles a kernel, and plain functions made known to compiled code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile ``function`` to machine code on first use, cached on disk where a folder can be written.

    Kernels release the interpreter lock, keep IEEE arithmetic (no fast-math), and so give the
    same bits on every run.
    """
    import numba

    try:
        kernel: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no writable cache folder: compile anew in each process
        kernel = numba.njit(nogil=True, error_model="numpy")(function)
    else:  # a full or read-only disk must not end the call that compiles
        kernel._cache._guard_against_spurious_io_errors = lambda: contextlib.suppress(OSError)
    return kernel  # type: ignore[no-any-return]
