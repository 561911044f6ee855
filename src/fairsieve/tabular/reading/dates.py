"""Dates as numbers: days since 1970."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from fairsieve.tabular.reading.table import NumberColumn, TextColumn

__all__ = ["DATE", "days_since_1970"]

DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](.+))?")
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")  # the day is first wherever points are written
START = datetime(1970, 1, 1)
SECONDS = 86_400.0


def days_since_1970(column: TextColumn | NumberColumn) -> NDArray[np.float64] | None:
    """Return a column of dates as days, NaN where missing; None where some value is no date that can only mean one day.

    Read are 2026-03-04, with a time or without, and 04.03.2026. In 03/04/2026 nobody knows which is the month.

    Examples
    --------
    >>> days_since_1970(TextColumn.of(["1970-01-02", None, "1970-01-03 12:00"])).tolist()
    [1.0, nan, 2.5]
    >>> days_since_1970(TextColumn.of(["03/04/2026"])) is None
    True
    """
    if isinstance(column, NumberColumn):
        return None
    days = [
        _days(text) if count else np.nan for text, count in zip(column.values, column.counts, strict=True)
    ]
    if any(day is None for day in days):
        return None
    found = np.array([*days, np.nan], dtype=np.float64)[column.codes]
    return np.asarray(found)


def _days(text: str) -> float | None:
    """Read one date; None where it is none."""
    try:
        if match := ISO.fullmatch(text):
            year, month, day = (int(part) for part in match.groups()[:3])
            moment = datetime(year, month, day)
            if match[4]:
                clock = datetime.fromisoformat(f"1970-01-01T{match[4].strip()}").replace(tzinfo=None)
                return ((moment - START) + (clock - START)).total_seconds() / SECONDS
        elif match := DOTTED.fullmatch(text):
            moment = datetime(int(match[3]), int(match[2]), int(match[1]))
        else:
            return None
    except ValueError:  # the 30th of February
        return None
    return (moment - START).total_seconds() / SECONDS
