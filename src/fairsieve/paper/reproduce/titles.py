"""Titles of methods, columns and numbers on the reproduction's page."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.published import Line, PaperColumn
from fairsieve.report.number_format import number

__all__ = ["FLIPS", "TITLES", "column_title", "line_title", "number", "plus_minus", "signed"]

TITLES = {"synthetic": "Synthetic", "compas": "COMPAS", "adult": "Adult"}
FLIPS = {
    "none": "no flips",
    "label": "label flips",
    "group-targeted": "group-targeted flips",
    "group-targeted:Female": "flips among women",
    "group-targeted:Male": "flips among men",
}
VALIDATION = {
    "clean": "",
    "noisy": ", noisy validation set",
    "cleaned": ", noisy validation set cleaned by ITLM",
}


def column_title(column: PaperColumn, *, with_data: bool = False) -> str:
    """Return a column's title, for example "label flips, EO"."""
    title = f"{FLIPS[column.noise]}, {column.short}"
    return f"{TITLES[column.data]}, {title}" if with_data else title


def line_title(line: Line) -> str:
    """Return a method's title, with its validation set where that is not clean."""
    return METHODS[line.method].short + VALIDATION[line.validation]


def signed(value: float) -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5)
    ('+.012', '−.500')
    """
    return f"{'−' if value < 0 else '+'}{number(abs(value))}"


def plus_minus(values: ArrayLike) -> str:
    """Format mean ± standard deviation as the paper prints them."""
    array = np.asarray(values, dtype=np.float64)
    return f"{number(float(array.mean()))}±{number(float(array.std()))}"
