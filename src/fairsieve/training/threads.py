"""Threads of the linear solver: one for BLAS libraries, and a pool of ours for long products.

The threads of a BLAS library wait for each other after every product, in a busy loop. Products of a few thousand rows
take less time than that, and where other processes are at work the waiting takes several times as long as the
product. So BLAS gets one thread, and long products are cut into chunks of rows for threads of ours.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

MOST_THREADS = 8

_lock = threading.Lock()
_limits: dict[str, tuple[int, Any]] = {}  # how many are inside, and what takes the limit back

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread(kind: str) -> Iterator[None]:
    """Let libraries of a kind, "blas" or "openmp", use one thread, in a block or a function that this decorates.

    The limit is the whole process's for BLAS, and OpenMP's of this thread. Where several threads of Python are inside
    at once, the first one sets it, and the last one that leaves takes it back: each by itself would take the limit
    of another for what had been there before.
    """
    key = kind if kind == "blas" else f"{kind} {threading.get_ident()}"
    with _lock:
        inside, limiter = _limits.get(key, (0, None))
        limiter = limiter or _libraries(kind).limit(limits=1)
        _limits[key] = inside + 1, limiter
    try:
        yield
    finally:
        with _lock:
            inside, limiter = _limits.pop(key)
            if inside > 1:
                _limits[key] = inside - 1, limiter
            else:
                limiter.restore_original_limits()


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Apply a function to each item on some threads; return the results in order.

    The function must not call this again: all calls share one pool. Where it multiplies matrices, call this inside
    of :func:`one_thread`.

    Examples
    --------
    >>> map_in_threads(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    if threads <= 1:
        return [function(item) for item in items]
    return list(_pool(threads).map(function, items))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="fairsieve")


@cache
def _libraries(kind: str) -> Any:
    """Return the libraries of this process that have threads; looking for them takes some milliseconds."""
    return ThreadpoolController().select(user_api=kind)


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
