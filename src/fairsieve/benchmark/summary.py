"""What a comparison found: the mean of every method, and how far it lies from that of the first.

On somebody's own table the labels that are measured on may be wrong. There the numbers are for right labels, as far as
an estimate over the whole table tells them (:mod:`fairsieve.label_noise.judgement`), with those on the given labels
beside them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairsieve.benchmark.contract import Method
from fairsieve.benchmark.measures import Difference, compare_pairs, compare_verified
from fairsieve.benchmark.records import Record
from fairsieve.benchmark.run import Comparison
from fairsieve.benchmark.table_problems import TableSource, pool_tested
from fairsieve.errors import FairsieveWarning
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.label_noise.judgement import Basis, Judgement, judge
from fairsieve.selection.cells import Cells


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
    done = {method.name: [one for one in records if one["settings"]["method"] == method.name and "metrics" in one]
            for method in methods}  # fmt: skip
    present = [method for method in methods if done[method.name]]
    first = present[0] if present else methods[0]
    measures = ("accuracy", asked.fairness)
    found: list[Line] = []
    judged = estimate = None
    if asked.table is not None and not asked.table.asked.verified and present:
        judged, estimate = judge_on_table(asked, asked.table, [done[method.name] for method in present])
    for method in methods:
        mine = done[method.name]
        values = [float(np.mean([one["metrics"][name] for one in mine])) for name in measures] if mine else []
        apart: list[Difference | None] = []
        for name in measures if mine and method is not first else ():
            if asked.table is not None and asked.table.asked.verified:
                apart.append(compare_verified(records, method.name, first.name, name, asked.problem(0)))
            else:
                apart.append(compare_pairs(records, method.name, first.name, name))
        times = [[one[key] for one in mine if key in one] for key in ("seconds", "tuning_seconds")]
        found.append(Line(method, values, [], apart, [float(np.mean(each)) for each in times if each]))
    runs = max(map(len, done.values()), default=0)
    if judged is None or estimate is None or judged.basis == "given labels":
        return Summary(found, first, runs, judged.basis if judged else None, estimate)
    lines = []
    for line in found:
        if line.values:
            place = present.index(line.method)
            model, changes = judged.models[place], judged.change(0, place)
            right, given = [model.accuracy.value, model.disparity.value], line.values
            scores = [changes[name] for name in ("accuracy", "disparity")] if place else []
            apart = [(score.value, *score.interval) for score in scores]
            if model.disparity.interval == (0.0, 0.0):  # no rate has people enough to compare
                right[1], given, apart[1:] = np.nan, [given[0], np.nan], [None] * len(apart[1:])
            line = Line(line.method, right, given, apart, line.seconds)
        lines.append(line)
    return Summary(lines, first, runs, judged.basis, estimate)


def judge_on_table(
    asked: Comparison, source: TableSource, runs: Sequence[Sequence[Record]]
) -> tuple[Judgement, CleanRatioEstimate] | tuple[None, None]:
    """Judge methods for right labels, over the splits that all of them have: rows that none of a split's models saw.

    A row that several splits test is drawn again as one. The estimate is made once, of all rows of the table.
    """
    seeds = set.intersection(
        *({one["settings"]["seed"] for one in each if "predicted" in one} for each in runs)
    )
    if not seeds:
        return None, None
    whole, rows = pool_tested(source, sorted(seeds))
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        estimate = estimate_clean_ratio(
            whole.features, whole.labels, sensitive_features=whole.groups, random_state=0
        )
    predicted = []
    for each in runs:
        by_seed = {one["settings"]["seed"]: one.get("predicted") for one in each}
        predicted.append(np.concatenate([np.array(by_seed[seed], np.int64) for seed in sorted(seeds)]))
    codes = whole.cells.host_codes[rows]
    cells = Cells(codes, whole.cells.classes, whole.cells.groups)
    judged = judge(cells, predicted, asked.fairness, estimate=estimate.take(rows), clusters=rows)
    return judged, estimate
