"""The settings of each function of ``fairsieve.tabular``, by name and type, for editors and type checkers.

What they mean, and their defaults, are in :class:`~fairsieve.tabular.settings.TableSettings`; a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Required, TypedDict


class PredictArguments(TypedDict, total=False):
    """How the text of a file is read."""

    separator: str
    decimal: str
    missing: Sequence[str]
    backend: str
    memory: str | None


class TableArguments(PredictArguments, total=False):
    """What a table holds, but for the label and the groups."""

    seed: int
    bins: Sequence[str]
    small_groups: Literal["stop", "merge", "ignore"]
    drop: Sequence[str]
    categories: Sequence[str]
    dates: Sequence[str]
    verified: Sequence[Any]


class ReviewArguments(TableArguments, total=False):
    """What a table holds; a run may say what the label and the groups are."""

    label: str
    sensitive: Sequence[str]


class AuditArguments(TableArguments, total=False):
    """What a table holds, and what fairness asks for."""

    label: Required[str]
    sensitive: Required[Sequence[str]]
    positive: str | None
    fairness: str


class TrainArguments(AuditArguments, total=False):
    """What a table holds, what fairness asks for, and how to train."""

    tolerance: float | None
    model: str
    max_accuracy_loss: float | None
    clean_ratio: float | Literal["auto"]
    threshold: Any
    trees: int
    max_iter: int | None
    keep_sensitive: bool
    test: float | None
    test_file: Any
    show_columns: bool
