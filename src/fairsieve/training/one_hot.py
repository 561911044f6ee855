"""Features of which many columns are 0 but for one: categories as codes, and the products that a linear model needs.

A column of 200 values is one byte for each row here, and 800 in single precision. Products with coefficients look them
up, and products with residuals count; what needs all columns gets them some rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class OneHot:
    """An array of shape (n, d): columns of numbers, then one column for each value of each category.

    Parameters
    ----------
    numbers : array of shape (n, k)
    codes : integer array of shape (n, categories)
        The value of each category; its width stands for none, which leaves all of its columns 0.
    widths : sequence of int
        How many columns each category has.

    Examples
    --------
    >>> features = OneHot(np.array([[0.5], [1.5]], np.float32), np.array([[1], [2]], np.uint8), [2])
    >>> np.asarray(features).tolist(), features.shape
    ([[0.5, 0.0, 1.0], [1.5, 0.0, 0.0]], (2, 3))
    >>> (features[:2] @ np.array([[2.0], [3.0], [4.0]])).ravel().tolist()
    [5.0, 3.0]
    """

    __array_ufunc__ = None  # so that an array on the left leaves the product to __rmatmul__
    ndim = 2

    def __init__(self, numbers: NDArray[Any], codes: NDArray[Any], widths: Sequence[int]) -> None:
        self.numbers, self.codes, self.widths = numbers, codes, tuple(widths)
        self.dtype, self.itemsize = numbers.dtype, numbers.itemsize
        self.shape = len(numbers), numbers.shape[1] + sum(self.widths)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.codes.nbytes)

    def __getitem__(self, rows: Any) -> Any:
        """Return a slice of the rows as they are kept; single or listed rows with all of their columns."""
        if isinstance(rows, slice):
            return OneHot(self.numbers[rows], self.codes[rows], self.widths)
        if isinstance(rows, int):
            return np.asarray(self[rows : rows + 1])[0]
        return np.asarray(OneHot(self.numbers[rows], self.codes[rows], self.widths))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = np.zeros(self.shape, dtype or self.dtype)
        first, rows = self.numbers.shape[1], np.arange(len(self))
        found[:, :first] = self.numbers
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            there = codes < width
            found[rows[there], first + codes[there].astype(np.int64)] = 1
            first += width
        return found

    def __matmul__(self, coefficients: NDArray[Any]) -> NDArray[np.float64]:
        first = self.numbers.shape[1]
        found: NDArray[np.float64] = (self.numbers @ coefficients[:first]).astype(np.float64)
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            table = np.zeros((width + 1, coefficients.shape[1]))
            table[:width] = coefficients[first : first + width]
            found += table.take(codes, axis=0)
            first += width
        return found

    def __rmatmul__(self, residuals: NDArray[Any]) -> NDArray[np.float64]:
        found = [np.asarray(np.atleast_2d(residuals) @ self.numbers, np.float64)]
        for codes, width in zip(self.codes.T, self.widths, strict=True):
            sums = [
                np.bincount(codes, each, minlength=width + 1)[:width] for each in np.atleast_2d(residuals)
            ]
            found.append(np.stack(sums))
        whole = np.concatenate(found, axis=1)
        return np.asarray(whole[0] if residuals.ndim == 1 else whole)

    def __sub__(self, other: Any) -> NDArray[Any]:
        return np.asarray(np.asarray(self) - other)

    def astype(self, dtype: Any) -> NDArray[Any]:
        return np.asarray(self, dtype=dtype)
