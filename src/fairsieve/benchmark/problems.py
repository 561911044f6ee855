"""Problems: from a data set, an attack by its name, and a seed to the samples for training and for measuring."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.catalogue import DATASETS, dataset
from fairsieve.data.flips import NoisyLabels, flip_greedily, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.splits import Splits, split
from fairsieve.data.synthetic import load_authors_arrays, synthetic_splits
from fairsieve.errors import InvalidInputError
from fairsieve.notions import EO
from fairsieve.samples import Samples
from fairsieve.training.settings import Settings
from fairsieve.validation import check_choice

NOISES = (
    "none",
    "label",
    "group-targeted",
    "label-without-group",
    "group-targeted-without-group",
    "uniform",
    "greedy",
)


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
    flipped: NDArray[np.bool_]
    test: Samples
    clean_validation: Samples
    noisy_validation: Samples
    checksum: str
    weights: NDArray[np.float64] | None = None
    fewest: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=1)  # for the next method: Adult takes seconds to load and attack
def make_problem(data: str, noise: str, rate: float, seed: int, *, arrays: str | None = None) -> NoisyProblem:
    """Draw or split the data by the seed, then flip training labels.

    ``arrays`` is a folder of the authors' arrays, used for ``data="synthetic"`` in place of a draw:
    the same data for every seed, with the authors' own flips at a rate of 10 %.
    """
    noisy: NDArray[Any] | None = None
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
    parts: Splits, noise: str, rate: float, seed: int, noisy: NDArray[Any] | None = None
) -> NoisyProblem:
    """Flip training labels, and those of the validation set in the same way.

    ``noisy`` are the labels after an attack that somebody else made.
    """
    if noisy is None:
        noisy = add_noise(parts.train, noise, rate, seed=seed, validation=parts.validation).labels
    flipped = np.asarray(noisy != parts.train.labels)
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
