"""Problems from somebody's own table: repeated splits, labels as they are, with flips added, or verified ones."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.benchmark.problems import NoisyProblem, attack_problem
from fairsieve.data.splits import Splits, split_indices
from fairsieve.errors import FairsieveWarning
from fairsieve.label_noise.estimate import estimate_clean_ratio
from fairsieve.samples import Samples
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import TablePart, TableProblem, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.settings import TableSettings

SMALLEST_BATCH, LARGEST_BATCH = 25, 2000
BATCHES = 20  # in an epoch, within these bounds


@dataclass(frozen=True)
class TableSource:
    """A table, what is asked of it, and a checksum of both that names it in records."""

    asked: TableSettings
    checksum: str

    def record(self) -> dict[str, Any]:
        """Return what a run's record says of the table."""
        asked = self.asked
        named = ("label", "positive", "small_groups", "keep_sensitive", "clean_ratio")
        listed = ("sensitive", "bins", "drop", "categories", "missing", *(("dates",) if asked.dates else ()))
        return (
            {"name": asked.data.name, "checksum": self.checksum, "verified": len(asked.verified) > 0}
            | {name: getattr(asked, name) for name in named}
            | {name: list(getattr(asked, name)) for name in listed}
        )


def table_source(asked: TableSettings) -> tuple[TableSource, TableProblem]:
    """Read a table, and name it."""
    whole = read_whole(asked)
    digest = hashlib.sha256(repr(whole.table.columns).encode())
    digest.update(pd.util.hash_pandas_object(whole.table.frame, index=False).to_numpy().tobytes())
    if whole.answers is not None:
        digest.update(pd.util.hash_pandas_object(whole.answers.frame).to_numpy().tobytes())
    return TableSource(asked, digest.hexdigest()[:16]), whole


@lru_cache(maxsize=1)
def _read_source(source: TableSource) -> TableProblem:
    """Read a table once for all runs of a worker."""
    return read_whole(source.asked)


@lru_cache(maxsize=1)
def make_table_problem(source: TableSource, noise: str, rate: float, seed: int) -> NoisyProblem:
    """Split a table by the seed, then flip training labels if asked to.

    Without verified labels, 20 % of the rows are tested on and the rest is split 10 : 1 into training and validation,
    every cell alike. With verified labels, all rows that have one are tested on, by it; each seed trains on other
    80 % of the rest. Rows without a group are left out.
    """
    whole, part = _grouped_rows(source)
    tested = np.flatnonzero(part.verified >= 0)
    train, test, validation = _split(part, seed)
    labels, weights = _positive_last(part.label_codes, whole), None
    if len(tested):
        test, weights = tested, part.verified_weight[tested]
        labels[tested] = _positive_last(part.verified[tested], whole)
    prepared = Preparation().fit(part.take(train).values)
    parts = (_samples(whole, part, labels, prepared, rows) for rows in (train, test, validation))
    problem = attack_problem(Splits(*parts), noise, rate, seed)
    changes = _settings(source.asked, problem.train, whole, seed)
    return replace(problem, weights=weights, fewest=POLICY.fewest, changes=changes)


def pool_tested(source: TableSource, seeds: Sequence[int]) -> tuple[Samples, NDArray[np.int64]]:
    """Return all rows with their given labels, and which of them the splits of some seeds test, one after another."""
    whole, part = _grouped_rows(source)
    prepared, every = Preparation().fit(part.values), np.arange(len(part))
    samples = _samples(whole, part, _positive_last(part.label_codes, whole), prepared, every)
    return samples, np.concatenate([_split(part, seed)[1] for seed in seeds])


def _grouped_rows(source: TableSource) -> tuple[TableProblem, TablePart]:
    """Return a table, and its rows that have a group."""
    whole = _read_source(source)
    return whole, whole.train.take(whole.train.grouped)


def _split(part: TablePart, seed: int) -> list[NDArray[np.int64]]:
    """Split the rows that nobody verified into training, test and validation."""
    rest = np.flatnonzero(part.verified < 0)
    return [rest[rows] for rows in split_indices(part.take(rest).cells, seed=seed)]


def _samples(
    whole: TableProblem,
    part: TablePart,
    labels: NDArray[np.int64],
    prepared: Preparation,
    rows: NDArray[np.int64],
) -> Samples:
    return Samples(
        prepared.transform(part.take(rows).values),
        labels[rows],
        part.groups.codes[rows].astype(np.int64),
        classes=list(range(len(whole.labels.classes))),
        group_values=list(range(len(whole.groups.names))),
    )


def _positive_last(codes: NDArray[np.int64], whole: TableProblem) -> NDArray[np.int64]:
    """Recode labels so that the positive one is the last, as the methods expect."""
    classes = whole.labels.classes
    order = sorted(classes, key=lambda name: name == whole.labels.positive)
    return np.array([order.index(name) for name in classes])[codes]


def _settings(asked: TableSettings, train: Samples, whole: TableProblem, seed: int) -> dict[str, Any]:
    """Return the settings that depend on the training part: how many labels are right, and the size of a batch."""
    ratio = asked.clean_ratio
    if ratio == "auto":
        with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
            estimate = estimate_clean_ratio(
                train.features, train.labels, sensitive_features=train.groups, random_state=seed
            )
        ratio = estimate.clean_ratio if estimate.credible else 1.0
    size = int(np.clip(len(train) // BATCHES, SMALLEST_BATCH, LARGEST_BATCH))
    changes: dict[str, Any] = {"clean_ratio": float(ratio), "batch_size": min(size, len(train))}
    if whole.labels.positive is not None:
        changes["pos_label"] = len(whole.labels.classes) - 1
    return changes
