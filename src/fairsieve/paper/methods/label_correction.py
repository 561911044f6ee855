"""Fair label correction: flip back what an ensemble contradicts, towards equal base rates.

After Fair-OBNC (Oliveira e Silva et al. 2024). The members of a bagged ensemble judge the samples
they were not trained on. Labels are flipped from the most contradicted down, but only where the flip
moves the group's share of the class towards everybody's share, and no more than a budget.

It helps where the noise is what sets the groups apart. Where base rates truly differ it makes wrong
labels of right ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.corruption.flips import flipped_to
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.group_confident_learning import PLAIN, class_probabilities
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.selection.select import count_budget
from fairsieve.training.fit import check_data
from fairsieve.training.result import Fitted
from fairsieve.validation import check_at_least, check_share

__all__ = ["train_fair_label_correction"]


@dataclass(frozen=True, eq=False)
class _CorrectedLabels:
    """Labels, some of them changed.

    Attributes
    ----------
    labels : array of shape (n,)
    changed : boolean array of shape (n,)
        Which of them differ from those given.
    """

    labels: NDArray[Any]
    changed: NDArray[np.bool_]


def _correct_labels(samples: Samples, rate: float, *, members: int = 20, seed: int) -> _CorrectedLabels:
    """Change the labels that an ensemble contradicts most, towards equal base rates.

    Parameters
    ----------
    rate : float in [0, 1]
        The most labels to change, as a share of all samples.
    members : int
        Logistic regressions in the ensemble.
    seed : int
        Decides what each of them is trained on.

    Returns
    -------
    CorrectedLabels
        Of every cell that has samples, at least one keeps its label.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> corrected = _correct_labels(make_synthetic(1000, seed=0), 0.1, seed=0)
    >>> int(corrected.changed.sum())
    100
    """
    cells, everyone = samples.cells, np.arange(len(samples))
    budget = count_budget(rate, len(samples)) if check_share("rate", rate) > 0 else 0
    others = _out_of_bag_probabilities(samples, members=members, seed=seed)
    own = others[everyone, cells.label_codes]
    others[everyone, cells.label_codes] = -1.0
    suggested = others.argmax(axis=1)
    flips = _flips_towards_parity(cells, suggested, others[everyone, suggested] - own, budget)
    result = flipped_to(samples, flips, suggested[flips])
    return _CorrectedLabels(result.labels, result.flipped)


def _out_of_bag_probabilities(samples: Samples, *, members: int, seed: int) -> NDArray[np.float64]:
    """Compute mean probabilities of the classes, (n, classes), by the members that did not see the sample.

    All 0 for a sample that every member saw.
    """
    rng = np.random.default_rng(check_at_least("seed", seed, 0))
    size, classes = len(samples), samples.cells.shape[0]
    labels = samples.cells.label_codes
    sums, judges = np.zeros((size, classes)), np.zeros((size, 1))
    for _ in range(check_at_least("members", members, 1)):
        bag = rng.integers(0, size, size)
        out = np.ones(size, dtype=bool)
        out[bag] = False
        sums[out] += class_probabilities(samples.features[bag], labels[bag], samples.features[out], classes)
        judges[out] += 1
    return np.asarray(sums / np.maximum(judges, 1))


def _flips_towards_parity(
    cells: Cells, suggested: NDArray[np.int64], margins: NDArray[np.float64], budget: int
) -> NDArray[np.int64]:
    """Choose whom to flip, in order: always the largest margin among the flips that may be made.

    Margins say how much likelier the suggested class is than the label; only positive ones count.
    A flip may be made while its group has at least as much too many (over everybody's share) of
    the class left as of the class entered. With a single group that is always so.
    """
    counts = cells.counts.copy()
    sizes, labels, groups = counts.sum(axis=0), cells.label_codes, cells.group_codes
    order = np.argsort(-margins, kind="stable")
    order = order[margins[order] > 0]
    waiting: dict[tuple[int, int, int], list[int]] = {}
    for i in order[::-1].tolist():  # so that each list ends with its largest margin
        waiting.setdefault((int(groups[i]), int(labels[i]), int(suggested[i])), []).append(i)
    flips: list[int] = []
    while len(flips) < budget:
        surplus = counts / np.maximum(sizes, 1) - counts.sum(axis=1, keepdims=True) / len(cells)
        ready = [
            (margins[members[-1]], -members[-1], kind)
            for kind, members in waiting.items()
            if members and _may_flip(kind, surplus, counts)
        ]
        if not ready:
            break
        group, left, entered = max(ready)[2]
        flips.append(waiting[group, left, entered].pop())
        counts[left, group] -= 1
        counts[entered, group] += 1
    return np.array(flips, dtype=np.int64)


def _may_flip(kind: tuple[int, int, int], surplus: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Return whether a flip moves towards parity and leaves its cell a sample."""
    group, left, entered = kind
    return bool(surplus[left, group] >= surplus[entered, group] - 1e-12 and counts[left, group] > 1)


def train_fair_label_correction(
    given: TrainingInput,
    *,
    members: int = 20,
    rate: float | None = None,
    **hyperparameters: Any,
) -> Fitted:
    """Change labels by :func:`_correct_labels`, then train plainly on them; any module.

    Parameters
    ----------
    members : int
        Logistic regressions in the ensemble.
    rate : float, optional
        The most labels to change, as a share; what ``settings.clean_ratio`` leaves when None.
    """
    name = "fair-label-correction"
    data, settings = given.data, settings_with(name, given.settings, hyperparameters, ("members", "rate"))
    check_data(data, given.evaluation)
    started = time.perf_counter()
    if rate is None:
        rate = 1 - count_budget(settings.clean_ratio, len(data)) / len(data)
    corrected = _correct_labels(data, rate, members=members, seed=given.seed)
    fitted = PLAIN(replace(given, data=data.with_labels(corrected.labels), settings=settings))
    return replace(fitted, method=name, seconds=time.perf_counter() - started)
