"""Two halves of an array at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["MANY", "both_halves"]

MANY = 2**18  # elements from which a second thread pays

Result = TypeVar("Result")


def both_halves(size: int, call: Callable[[int, int], Result]) -> tuple[Result, Result]:
    """Results of ``call(first, last)`` for the halves of ``range(size)``, on two threads.

    For calls of kernels, which release the interpreter lock.

    >>> both_halves(5, lambda first, last: list(range(first, last)))
    ([0, 1], [2, 3, 4])
    """
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(call, size // 2, size)
        return call(0, size // 2), second.result()
