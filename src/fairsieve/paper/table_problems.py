"""Problems from somebody's own table: repeated splits, labels as they are, with flips added, or verified ones."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from fairsieve.data.splits import Splits, split_indices
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.estimate import estimate_clean_ratio
from fairsieve.metrics import accuracy_from_table, disparity_from_table
from fairsieve.paper.problems import NoisyProblem, attack_problem
from fairsieve.paper.records import Record
from fairsieve.samples import Samples
from fairsieve.tabular.answers import table_checksum
from fairsieve.tabular.evaluation import FEW
from fairsieve.tabular.preparation import TableProblem, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.settings import TableSettings

TEST = 0.2
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
def _read_source(source: TableSource) -> TableProblem:
    """Read a table once for all runs of a worker."""
    return read_whole(source.asked)


def make_table_problem(source: TableSource, noise: str, rate: float, seed: int) -> NoisyProblem:
    """Split a table by the seed, then flip training labels if asked to.

    Without verified labels, 20 % of the rows are tested on and the rest is split 10 : 1 into training and validation,
    every cell alike. With verified labels, all rows that have one are tested on, by it; each seed trains on other
    80 % of the rest. Rows without a group are left out.
    """
    whole = _read_source(source)
    part = whole.train.take(whole.train.grouped)
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


def _positive_last(codes: NDArray[np.int64], whole: TableProblem) -> NDArray[np.int64]:
    """Recode labels so that the positive one is the last, as the methods expect."""
    classes = whole.labels.classes
    order = sorted(classes, key=lambda name: name == whole.labels.positive)
    return np.array([order.index(name) for name in classes])[codes]


def _settings(asked: TableSettings, train: Samples, whole: TableProblem, seed: int) -> dict[str, Any]:
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


DRAWS = 1000
LEVELS = (2.5, 97.5)


@dataclass(frozen=True)
class Difference:
    """A mean difference between two methods, and its 95 % interval (None where one split cannot tell)."""

    value: float
    interval: tuple[float, float] | None


def compare_pairs(
    records: Sequence[Record], method: str, baseline: str, measure: str, *, overlapping: bool = True
) -> Difference | None:
    """Compare two methods split by split; None where they have no split in common.

    Training parts of repeated splits overlap, so that differences are not independent: the variance is corrected as
    Nadeau and Bengio (2003) do, by the ratio of the test part's size to the training part's. Draws do not overlap.

    Examples
    --------
    >>> def record(name, seed, accuracy):
    ...     settings = {"method": name, "seed": seed}
    ...     return {"settings": settings, "metrics": {"accuracy": accuracy}, "rows": {"train": 80, "test": 20}}
    >>> records = [record("a", 0, 0.5), record("b", 0, 0.6), record("a", 1, 0.5), record("b", 1, 0.8)]
    >>> found = compare_pairs(records, "b", "a", "accuracy")
    >>> round(found.value, 3), [round(bound, 2) for bound in found.interval]
    (0.2, [-1.36, 1.76])
    """
    values = {name: _by_seed(records, name) for name in (method, baseline)}
    shared = sorted(set(values[method]) & set(values[baseline]))
    if not shared:
        return None
    pairs = [(values[method][seed], values[baseline][seed]) for seed in shared]
    apart = np.array([one["metrics"][measure] - other["metrics"][measure] for one, other in pairs])
    if len(apart) < 2:
        return Difference(float(apart[0]), None)
    rows = pairs[0][0]["rows"]
    ratio = rows["test"] / rows["train"] if overlapping else 0.0
    spread = apart.std(ddof=1) * np.sqrt(1 / len(apart) + ratio)
    half = float(student.ppf(0.975, len(apart) - 1) * spread)
    middle = float(apart.mean())
    return Difference(middle, (middle - half, middle + half))


def _by_seed(records: Sequence[Record], method: str) -> dict[int, Record]:
    """Return the results of a method by their seeds."""
    return {
        record["settings"]["seed"]: record
        for record in records
        if record["settings"]["method"] == method and "metrics" in record
    }


def compare_verified(
    records: Sequence[Record],
    method: str,
    baseline: str,
    measure: str,
    *,
    test: Samples,
    weights: NDArray[np.float64],
) -> Difference | None:
    """Compare two methods on the same verified rows; the interval is the bootstrap's over those rows.

    Each method counts by its mean over the training parts.
    """
    codes = {
        name: [np.array(one["predicted"]) for one in _by_seed(records, name).values()]
        for name in (method, baseline)
    }
    if not all(codes.values()):
        return None
    fairness = "equalized_odds" if measure == "accuracy" else measure

    def apart(own: NDArray[np.float64]) -> NDArray[np.float64]:
        means = [
            np.mean(
                [
                    measure_tables(prediction_tables(test, one, own), test, fairness)[measure]
                    for one in codes[name]
                ],
                axis=0,
            )
            for name in (method, baseline)
        ]
        return np.asarray(means[0] - means[1])

    rng = np.random.default_rng(0)
    draws = rng.multinomial(len(test), np.full(len(test), 1 / len(test)), size=DRAWS)
    low, high = np.percentile(apart(weights * draws), LEVELS)
    return Difference(float(apart(weights)), (float(low), float(high)))
