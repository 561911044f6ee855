"""The one decorator that compiles a kernel, and plain functions made known to compiled code."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["compiled", "warnings_left_alone"]

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


@contextlib.contextmanager
def warnings_left_alone() -> Iterator[None]:
    """Keep numba from recording warnings while it compiles on this thread.

    Which warnings are shown, and by whom, is a state of the whole process. Numba changes it many times while it
    compiles: a warning of another thread would be shown late, and one that enters or leaves
    ``warnings.catch_warnings`` meanwhile would leave the state wrong for good. Our kernels cause no warnings.
    """
    from numba.core import errors

    fixer: Any = getattr(errors, "WarningsFixer", None)  # not public: other versions may not have it
    record = getattr(fixer, "catch_warnings", None)
    if record is None:
        yield
        return
    here = threading.get_ident()

    def record_elsewhere(self: Any, *args: Any, **options: Any) -> Any:
        if threading.get_ident() == here:
            return contextlib.nullcontext()
        return record(self, *args, **options)

    fixer.catch_warnings = record_elsewhere
    try:
        yield
    finally:
        fixer.catch_warnings = record
