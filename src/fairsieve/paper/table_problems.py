"""Problems from somebody's own table: repeated splits, labels as they are, with flips added, or verified ones."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.splits import Splits, split_indices
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.estimate import estimate_clean_ratio
from fairsieve.metrics import accuracy_from_table, disparity_from_table
from fairsieve.paper.problems import NoisyProblem, attack_problem
from fairsieve.samples import Samples
from fairsieve.tabular.answers import table_checksum
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.preparation import WholeTable, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.request import Asked

__all__ = [
    "TableSource",
    "make_table_problem",
    "measure_tables",
    "prediction_tables",
    "table_source",
    "verified_test",
]

TEST = 0.2
SMALLEST_BATCH, LARGEST_BATCH = 25, 2000
BATCHES = 20  # in an epoch, within these bounds


@dataclass(frozen=True)
class TableSource:
    """A table, what is asked of it, and a checksum of both that names it in records."""

    asked: Asked
    checksum: str

    def record(self) -> dict[str, Any]:
        """Return what a run's record says of the table."""
        asked = self.asked
        return {
            "name": asked.data.name,
            "checksum": self.checksum,
            "label": asked.label,
            "sensitive": list(asked.sensitive),
            "positive": asked.positive,
            "bins": list(asked.bins),
            "small_groups": asked.small_groups,
            "keep_sensitive": asked.keep_sensitive,
            "drop": list(asked.drop),
            "categories": list(asked.categories),
            "missing": list(asked.reading.missing),
            "clean_ratio": asked.clean_ratio,
            "verified": len(asked.verified) > 0,
        }


def table_source(asked: Asked) -> tuple[TableSource, WholeTable]:
    """Read a table, check that it can be compared on, and name it."""
    whole = read_whole(asked)
    if asked.fairness == "equal_opportunity" and whole.labels.positive is None:
        raise InvalidInputError(
            f"--positive must be given for equal opportunity with {len(whole.labels.classes)} labels; they are "
            f"{', '.join(whole.labels.classes)}"
        )
    digest = hashlib.sha256(table_checksum(whole.table).encode())
    if whole.answers is not None:
        for array in (whole.answers.rows, whole.answers.codes, whole.answers.weights):
            digest.update(array.tobytes())
    return TableSource(asked, digest.hexdigest()[:16]), whole


@lru_cache(maxsize=1)
def _read_source(source: TableSource) -> WholeTable:
    """Read a table once for all runs of a worker."""
    return read_whole(source.asked)


def make_table_problem(source: TableSource, noise: str, rate: float, seed: int) -> NoisyProblem:
    """Split a table by the seed, then flip training labels if asked to.

    Without verified labels, 20 % of the rows are tested on and the rest is split 10 : 1 into training and validation,
    every cell alike. With verified labels, all rows that have one are tested on, by it; each seed trains on other
    80 % of the rest. Rows without a group are left out.
    """
    whole = _read_source(source)
    part = whole.part.take(whole.part.grouped)
    tested = np.zeros(len(part), bool) if part.verified is None else part.verified >= 0
    rest = np.flatnonzero(~tested)
    train, test, validation = (
        rest[rows] for rows in split_indices(part.take(rest).cells, test=TEST, seed=seed)
    )
    prepared = Preparation().fit(part.take(train).values)
    labels = _positive_last(part.label_codes, whole)
    weights = None
    if tested.any():
        test = np.flatnonzero(tested)
        assert part.verified is not None
        assert part.verified_weight is not None
        labels = np.where(tested, _positive_last(np.maximum(part.verified, 0), whole), labels)
        weights = part.verified_weight[test]

    def samples(rows: NDArray[np.int64]) -> Samples:
        return Samples(
            prepared.transform(part.take(rows).values),
            labels[rows],
            part.groups.codes[rows].astype(np.int64),
            classes=list(range(len(whole.labels.classes))),
            group_values=list(range(len(whole.groups.names))),
        )

    found = attack_problem(Splits(samples(train), samples(test), samples(validation)), noise, rate, seed)
    return replace(found, weights=weights, changes=_settings(source.asked, found.train, whole, seed))


def _positive_last(codes: NDArray[np.int64], whole: WholeTable) -> NDArray[np.int64]:
    """Recode labels so that the positive one is the last, as the methods expect."""
    classes = whole.labels.classes
    order = sorted(classes, key=lambda name: name == whole.labels.positive)
    return np.array([order.index(name) for name in classes])[codes]


def _settings(asked: Asked, train: Samples, whole: WholeTable, seed: int) -> dict[str, Any]:
    """Return the settings that depend on the training part: how many labels are right, and the size of a batch."""
    ratio: float
    if asked.clean_ratio == "auto":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairsieveWarning)
            estimate = estimate_clean_ratio(
                train.features, train.labels, sensitive_features=train.groups, random_state=seed
            )
        ratio = estimate.clean_ratio if estimate.credible else 1.0
    else:
        ratio = float(asked.clean_ratio)
    size = int(np.clip(len(train) // BATCHES, SMALLEST_BATCH, LARGEST_BATCH))
    found: dict[str, Any] = {"clean_ratio": ratio, "batch_size": min(size, len(train))}
    if whole.labels.positive is not None:
        found["pos_label"] = len(whole.labels.classes) - 1
    return found


def verified_test(source: TableSource) -> tuple[Samples, NDArray[np.float64]]:
    """Return the rows that are tested on by their verified labels, and their weights."""
    problem = make_table_problem(source, "none", 0.0, 0)
    assert problem.weights is not None
    return problem.test, problem.weights


def prediction_tables(
    test: Samples, predicted: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up (label, group, prediction) of test samples by their weights, of shape (n,) or (draws, n).

    Examples
    --------
    >>> test = Samples(np.zeros((2, 1)), [0, 1], ["a", "a"])
    >>> prediction_tables(test, np.array([0, 0]), np.array([[1.0, 3.0], [0.0, 2.0]])).reshape(2, -1).tolist()
    [[1.0, 0.0, 3.0, 0.0], [0.0, 0.0, 2.0, 0.0]]
    """
    classes, groups = test.cells.shape
    cell = (test.cells.label_codes * groups + test.cells.group_codes) * classes + predicted
    kinds = np.zeros((len(test), classes * groups * classes))
    kinds[np.arange(len(test)), cell] = 1.0
    return np.asarray((weights @ kinds).reshape(*weights.shape[:-1], classes, groups, classes))


def measure_tables(
    tables: NDArray[np.float64], test: Samples, fairness: str
) -> dict[str, NDArray[np.float64]]:
    """Compute accuracy and a disparity of one or more tables; cells of fewer than ten people do not count for it."""
    counts = test.cells.counts
    people = counts.sum(axis=0, keepdims=True) if fairness == "demographic_parity" else counts
    enough = np.broadcast_to((people >= FEW)[:, :, None], (*test.cells.shape, 1))
    return {
        "accuracy": accuracy_from_table(tables),
        fairness: disparity_from_table(tables * enough, fairness),
    }
