"""Threads of the linear solver: one for BLAS libraries, and a pool of ours for long products.

The threads of a BLAS library wait for each other after every product, in a busy loop. Products of a few thousand rows
take less time than that, and where other processes are at work the waiting takes several times as long as the
product. So BLAS gets one thread, and long products are cut into chunks of rows for threads of ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

MOST_THREADS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread(kind: str) -> Iterator[None]:
    """Let libraries of a kind, "blas" or "openmp", use one thread, in a block or a function that this decorates.

    Where several threads of Python limit BLAS at once, threadpoolctl lets the first one decide. OpenMP is limited
    where it is called from this thread.
    """
    with _libraries(kind).limit(limits=1):
        yield


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
