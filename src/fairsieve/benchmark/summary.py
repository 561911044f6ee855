"""What a comparison found: the mean of every method, and how far it lies from that of the first.

On somebody's own table the labels that are measured on may be wrong. There the numbers are for right labels, as far as
an estimate over the whole table tells them (:mod:`fairsieve.label_noise.judgement`), with those on the given labels
beside them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from fairsieve.benchmark.methods import Method
from fairsieve.benchmark.problems import NoisyProblem, TableSource, measure, pool_tested
from fairsieve.benchmark.run import Comparison
from fairsieve.benchmark.workers import Record
from fairsieve.errors import FairsieveWarning
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.label_noise.judgement import Basis, Judgement, judge
from fairsieve.selection.cells import Cells, Floats

DRAWS = 1000
LEVELS = (2.5, 97.5)

Difference = tuple[float, float, float]  # between the means of two methods, and its 95 % interval
Runs = Mapping[int, Record]  # a method's, by seed


@dataclass(frozen=True)
class Line:
    """What was found of one method.

    Attributes
    ----------
    method : Method
    values : list of float
        Accuracy and disparity (NaN where too few people are compared); empty without results.
    given : list of float
        The same on the labels as they are given, where ``values`` are for right labels.
    apart : list of Difference or None
        ``values`` less those of the first method, with 95 % intervals.
    seconds : list of float
        Means of the time to train, and of the time to tune, where hyperparameters were chosen.
    """

    method: Method
    values: list[float]
    given: list[float]
    apart: list[Difference | None]
    seconds: list[float]


@dataclass(frozen=True)
class Summary:
    """Every method's results; ``basis`` says what right labels are known from, None where labels are right."""

    lines: list[Line]
    first: Method
    runs: int
    basis: Basis | None = None
    estimate: CleanRatioEstimate | None = None


def summarise(asked: Comparison, methods: Sequence[Method], records: Sequence[Record]) -> Summary:
    """Summarise the records of some methods."""
    done: dict[str, dict[int, Record]] = {method.name: {} for method in methods}
    for record in records:
        asked_for = record["settings"]
        if asked_for["method"] in done and "metrics" in record:
            done[asked_for["method"]][asked_for["seed"]] = record
    present = [method for method in methods if done[method.name]]
    first = present[0] if present else methods[0]
    verified = asked.table is not None and len(asked.table.asked.verified) > 0
    judged = estimate = None
    if asked.table is not None and not verified and present:
        judged, estimate = judge_on_table(asked, asked.table, [done[method.name] for method in present])
    lines, measures = [], ("accuracy", asked.fairness)
    for method in methods:
        mine = done[method.name]
        runs = mine.values()
        given = [float(np.mean([run["metrics"][name] for run in runs])) for name in measures if mine]
        times = [[run[key] for run in runs if key in run] for key in ("seconds", "tuning_seconds")]
        seconds = [float(np.mean(each)) for each in times if each]
        if mine and judged is not None and judged.basis != "given labels":
            lines.append(_judged_line(method, judged, present.index(method), given, seconds))
            continue
        apart: list[Difference | None] = []
        for name in measures if mine and method is not first else ():
            pair = mine, done[first.name], name
            apart.append(compare_verified(*pair, asked.problem(0)) if verified else compare_pairs(*pair))
        lines.append(Line(method, given, [], apart, seconds))
    most = max(map(len, done.values()), default=0)
    return Summary(lines, first, most, judged.basis if judged else None, estimate)


def _judged_line(
    method: Method, judged: Judgement, place: int, given: list[float], seconds: list[float]
) -> Line:
    """Return a method's line for right labels, from a judgement that has the method at a place."""
    model, changes = judged.models[place], judged.change(0, place)
    values = [model.accuracy.value, model.disparity.value]
    scores = [changes[name] for name in ("accuracy", "disparity")] if place else []
    apart: list[Difference | None] = [(score.value, *score.interval) for score in scores]
    if model.disparity.interval == (0.0, 0.0):  # no rate has people enough to compare
        values[1], given, apart[1:] = np.nan, [given[0], np.nan], [None] * len(apart[1:])
    return Line(method, values, given, apart, seconds)


def judge_on_table(
    asked: Comparison, source: TableSource, methods: Sequence[Runs]
) -> tuple[Judgement, CleanRatioEstimate] | tuple[None, None]:
    """Judge methods for right labels, over the splits that all of them have: rows that none of a split's models saw.

    A row that several splits test is drawn again as one. The estimate is made once, of all rows of the table.
    """
    told = [{seed for seed, run in runs.items() if "predicted" in run} for runs in methods]
    seeds = sorted(set.intersection(*told))
    if not seeds:
        return None, None
    whole, rows = pool_tested(source, seeds)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        estimate = estimate_clean_ratio(
            whole.features, whole.labels, sensitive_features=whole.groups, random_state=0
        )
    predicted = [
        np.concatenate([np.array(runs[seed]["predicted"], np.int64) for seed in seeds]) for runs in methods
    ]
    cells = Cells(whole.cells.host_codes[rows], whole.cells.classes, whole.cells.groups)
    return judge(cells, predicted, asked.fairness, estimate=estimate.take(rows), clusters=rows), estimate


def standard_error(values: Floats, ratio: float = 0.0) -> float:
    """Compute the standard error of a mean over draws, or over splits, which share rows (Nadeau and Bengio 2003).

    ``ratio`` is the size of a split's test part to that of its training part.
    """
    return float(values.std(ddof=1) * np.sqrt(1 / len(values) + ratio))


def compare_pairs(mine: Runs, theirs: Runs, name: str) -> Difference | None:
    """Compare two methods by a measure, split by split; None where they have no split in common.

    Training parts of repeated splits overlap, and the error allows for that; draws of the synthetic data do not. One
    split has no interval.

    Examples
    --------
    >>> def runs(*accuracies):
    ...     about = {"settings": {"data": "adult"}, "rows": {"train": 80, "test": 20}}
    ...     return {seed: about | {"metrics": {"accuracy": one}} for seed, one in enumerate(accuracies)}
    >>> [round(value, 2) for value in compare_pairs(runs(0.6, 0.8), runs(0.5, 0.5), "accuracy")]
    [0.2, -1.36, 1.76]
    """
    shared = sorted(set(mine) & set(theirs))
    if not shared:
        return None
    apart = np.array([mine[seed]["metrics"][name] - theirs[seed]["metrics"][name] for seed in shared])
    half = np.nan
    if len(apart) > 1:
        rows, data = mine[shared[0]]["rows"], mine[shared[0]]["settings"]["data"]
        error = standard_error(apart, 0.0 if data == "synthetic" else rows["test"] / rows["train"])
        half = float(student.ppf(0.975, len(apart) - 1)) * error
    return float(apart.mean()), float(apart.mean()) - half, float(apart.mean()) + half


def compare_verified(mine: Runs, theirs: Runs, name: str, problem: NoisyProblem) -> Difference | None:
    """Compare two methods by a measure on the same verified rows, those of a problem's test.

    Each method counts by its mean over the training parts. The interval is the bootstrap's over the rows.
    """
    if not (mine and theirs):
        return None
    test, weights = problem.test, problem.weights
    assert weights is not None

    def mean(runs: Runs, own: Floats) -> Any:
        predicted = (np.array(run["predicted"]) for run in runs.values())
        return np.mean([measure(each, test, own, problem.fewest)[name] for each in predicted], axis=0)

    def apart(own: Floats) -> Floats:
        return np.asarray(mean(mine, own) - mean(theirs, own))

    draws = np.random.default_rng(0).multinomial(len(test), np.full(len(test), 1 / len(test)), size=DRAWS)
    low, high = np.percentile(apart(weights * draws), LEVELS)
    return float(apart(weights)), float(low), float(high)
