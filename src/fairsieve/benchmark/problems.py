"""Problems: from a data set or somebody's table, an attack and a seed to samples for training and for measuring."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.data.catalogue import DATASETS, dataset
from fairsieve.data.flips import NoisyLabels, flip_greedily, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.splits import Splits, split, split_indices
from fairsieve.data.synthetic import load_authors_arrays, synthetic_splits
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.estimate import estimate_clean_ratio
from fairsieve.metrics import accuracy_from_table, disparity_from_table, has_enough
from fairsieve.notions import EO, NOTIONS
from fairsieve.samples import Samples
from fairsieve.selection.cells import Flags, Floats, Integers, Values
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import TablePart, TableProblem, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.settings import TableSettings
from fairsieve.training.trainer import Settings
from fairsieve.validation import check_choice

ATTACKS = ("label", "group-targeted")
NOISES = ("none", *ATTACKS, *(f"{name}-without-group" for name in ATTACKS), "uniform", "greedy")


def add_noise(
    samples: Samples, noise: str, rate: float, *, seed: int, validation: Samples | None = None
) -> NoisyLabels:
    """Flip ``rate`` of the labels by the attack called ``noise``.

    The attacks whose names hold ``without-group`` are those of the paper's authors: their regression does not see
    the group, and is fitted on ``validation`` too. ``group-targeted:women`` attacks the group called ``women``; without
    a name, the group whose attack lowers accuracy most is attacked.
    """
    name, _, group = noise.partition(":")
    targeted = name.startswith("group-targeted")
    check_choice("noise", name if targeted else noise, NOISES)
    if name == "none":
        return NoisyLabels(samples.labels.copy(), np.zeros(len(samples), dtype=bool))
    if name == "uniform":
        return flip_uniform(samples, rate, seed=seed)
    if name == "greedy":
        return flip_greedily(samples, rate, validation=validation)
    theirs = name.endswith("without-group")
    seen: Any = {"validation": validation if theirs else None, "sees_group": not theirs}
    if not targeted:
        return flip_margin(samples, rate, **seen)
    values = {str(value): value for value in samples.cells.groups}
    if group and group not in values:
        raise InvalidInputError(f"noise must attack one of the groups {', '.join(values)}; got {group!r}")
    return flip_group_targeted(samples, rate, group=values[group] if group else None, **seen)


@dataclass(frozen=True, eq=False)
class NoisyProblem:
    """What a method is given, and what it is measured on.

    Attributes
    ----------
    train : Samples
        With flipped labels.
    flipped : boolean array
    test : Samples
        With right labels.
    clean_validation, noisy_validation : Samples
        For the methods that use one: with right labels, and attacked as the training set is.
    checksum : str
        Of everything above.
    weights : array, optional
        Of the test samples, where they were not chosen at random.
    fewest : int
        Test samples that a cell needs to count for disparities.
    changes : mapping
        Settings that depend on the data, in place of the paper's.
    """

    train: Samples
    flipped: Flags
    test: Samples
    clean_validation: Samples
    noisy_validation: Samples
    checksum: str
    weights: Floats | None = None
    fewest: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=1)  # for the next method: Adult takes seconds to load and attack
def make_problem(data: str, noise: str, rate: float, seed: int, *, arrays: str | None = None) -> NoisyProblem:
    """Draw or split the data by the seed, then flip training labels.

    ``arrays`` is a folder of the authors' arrays, used for ``data="synthetic"`` in place of a draw:
    the same data for every seed, with the authors' own flips at a rate of 10 %.
    """
    noisy: Values | None = None
    if data != "synthetic":
        parts = split(dataset(data).load(), seed=seed)
    elif arrays is None:
        parts = synthetic_splits(seed)
    else:
        parts, published = load_authors_arrays(arrays)
        name = noise.removesuffix("-without-group")
        if rate == 0.1:
            noisy = published.get("general" if name == "label" else name)
    return attack_problem(parts, noise, rate, seed, noisy)


def attack_problem(
    parts: Splits, noise: str, rate: float, seed: int, noisy: Values | None = None
) -> NoisyProblem:
    """Flip training labels, and those of the validation set in the same way.

    ``noisy`` are the labels after an attack that somebody else made.
    """
    if noisy is None:
        noisy = add_noise(parts.train, noise, rate, seed=seed, validation=parts.validation).labels
    flipped = noisy != parts.train.labels
    try:
        labels = add_noise(parts.validation, noise, rate, seed=seed).labels
    except InvalidInputError:  # too small for the attack
        labels = add_noise(parts.validation, "uniform", rate, seed=seed).labels
    train, validation = parts.train.with_labels(noisy), parts.validation.with_labels(labels)
    checksum = hashlib.sha256()
    for part in (train, parts.test, parts.validation, validation):
        for array in (part.features, part.cells.codes):
            checksum.update(np.ascontiguousarray(array).tobytes())
    return NoisyProblem(train, flipped, parts.test, parts.validation, validation, checksum.hexdigest()[:16])


def paper_settings(data: str, noise: str, rate: float, fairness: str) -> Settings:
    """Return the paper's settings: batch sizes by data set, and more epochs where its authors took them."""
    check_choice("data", data, [name for name, entry in DATASETS.items() if entry.batch_size])
    epochs = 400
    if noise.startswith("group-targeted"):
        epochs = 450 if fairness == EO else 500
    ratio = 1.0 if noise == "none" else 1 - rate
    return Settings(fairness=fairness, clean_ratio=ratio, epochs=epochs, batch_size=DATASETS[data].batch_size)


def measure(
    predicted: Values, samples: Samples, weights: Floats | None = None, fewest: int = 1
) -> dict[str, Any]:
    """Measure the accuracy and every disparity of predicted labels; cells of fewer samples do not count for those.

    Weights are of shape (n,), or (draws, n) for as many values of each measure.

    Examples
    --------
    >>> test = Samples(np.zeros((2, 1)), [0, 1], ["a", "a"])
    >>> measure(np.array([0, 0]), test, np.array([[1.0, 3.0], [0.0, 2.0]]))["accuracy"].tolist()
    [0.25, 0.0]
    """
    cells, (classes, groups) = samples.cells, samples.cells.shape
    codes = cells.codes.astype(np.int64) * classes + samples.with_labels(predicted).cells.label_codes
    kinds = np.eye(classes * groups * classes)[codes]
    people = kinds.sum(axis=0).reshape(classes, groups, classes)
    weights = np.ones(len(samples)) if weights is None else weights
    tables = (weights @ kinds).reshape(*weights.shape[:-1], classes, groups, classes)
    return {"accuracy": accuracy_from_table(tables)} | {
        name: disparity_from_table(tables, name, counted=has_enough(people, name, fewest)) for name in NOTIONS
    }


# Somebody's own table: repeated splits, with labels as they are, with flips added, or with verified ones.

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


def pool_tested(source: TableSource, seeds: Sequence[int]) -> tuple[Samples, Integers]:
    """Return all rows with their given labels, and which of them the splits of some seeds test, one after another."""
    whole, part = _grouped_rows(source)
    prepared, every = Preparation().fit(part.values), np.arange(len(part))
    samples = _samples(whole, part, _positive_last(part.label_codes, whole), prepared, every)
    return samples, np.concatenate([_split(part, seed)[1] for seed in seeds])


@lru_cache(maxsize=1)
def _grouped_rows(source: TableSource) -> tuple[TableProblem, TablePart]:
    """Read a table once for all runs of a worker; return it, and its rows that have a group."""
    whole = read_whole(source.asked)
    return whole, whole.train.take(whole.train.grouped)


def _split(part: TablePart, seed: int) -> list[Integers]:
    """Split the rows that nobody verified into training, test and validation; copies go to one side."""
    copies = part.find_copies()
    kinds = np.arange(len(part)) if copies is None else copies
    rest = np.flatnonzero(~np.isin(kinds, kinds[part.verified >= 0]))
    different, first = np.unique(kinds[rest], return_index=True)
    parts = split_indices(part.take(rest[first]).cells, seed=seed)
    return [rest[np.isin(kinds[rest], different[rows])] for rows in parts]


def _samples(
    whole: TableProblem, part: TablePart, labels: Integers, prepared: Preparation, rows: Values
) -> Samples:
    features, groups = prepared.transform(part.take(rows).values), part.groups.codes[rows].astype(np.int64)
    classes, values = (list(range(len(names))) for names in (whole.labels.classes, whole.groups.names))
    return Samples(features, labels[rows], groups, classes=classes, group_values=values)


def _positive_last(codes: Integers, whole: TableProblem) -> Integers:
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
