"""Runs: draw the data, flip labels, choose hyperparameters, train, measure on clean test data, and record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairsieve.benchmark.methods import Method, TrainingInput
from fairsieve.benchmark.problems import (
    NoisyProblem,
    TableSource,
    make_problem,
    make_table_problem,
    measure,
    paper_settings,
)
from fairsieve.benchmark.workers import Record, fingerprint, read_results, run_and_record
from fairsieve.errors import FairsieveError, installed_versions
from fairsieve.notions import EO, find_notion
from fairsieve.samples import shuffled_places
from fairsieve.selection.cells import Floats, Integers, Values
from fairsieve.training.trainer import Settings

ValidationKind = Literal["clean", "noisy", "cleaned"]
PACKAGES = ("fairsieve", "numpy", "numba", "scikit-learn")
CLOSE = 0.05  # how far below the best accuracy a candidate may be


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that decides a run, except its method and its seed.

    Attributes
    ----------
    data, noise : str
        A data set and an attack.
    rate : float
        Share of the training labels to flip.
    fairness : str
        The notion of fairness that methods are asked for.
    validation : {"clean", "noisy", "cleaned"}
        The validation set of the methods that use one.
    tune : bool
        Choose hyperparameters by cross-validation.
    epochs : int, optional
        The paper's when None.
    arrays : str, optional
        Folder of the authors' synthetic arrays, used instead of a draw.
    fixed : mapping, optional
        Hyperparameters that are given and not chosen.
    history : bool
        Record the cells' losses in every epoch, and how far selections are from the lowest losses.
    table : TableSource, optional
        Somebody's own table, in place of ``data``.
    """

    data: str = "synthetic"
    noise: str = "label"
    rate: float = 0.1
    fairness: str = EO
    validation: ValidationKind = "clean"
    tune: bool = True
    epochs: int | None = None
    arrays: str | None = None
    fixed: Mapping[str, Any] | None = None
    history: bool = False
    table: TableSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fairness", find_notion(self.fairness).name)

    def run_settings(self, method: Method, seed: int) -> dict[str, Any]:
        """Return what identifies a run in the records; where the authors' arrays are, is no part of it."""
        asked = asdict(replace(self, table=None)) | {"method": method.name, "seed": seed}
        asked["arrays"] = self.arrays is not None
        if not method.uses_validation:
            del asked["validation"]
        asked["table"] = None if self.table is None else self.table.record()
        return {
            name: value
            for name, value in asked.items()
            if not (value is None or value is False or value == {}) or name == "tune"
        }

    def problem(self, seed: int) -> NoisyProblem:
        """Make the problem of a seed, or take that of the last run."""
        if self.table is None:
            return make_problem(self.data, self.noise, self.rate, seed, arrays=self.arrays)
        return make_table_problem(self.table, self.noise, self.rate, seed)

    def training_input(self, method: Method, seed: int) -> TrainingInput:
        """Return what a method is given: with a validation set, if it uses one."""
        problem, validation = self.problem(seed), None
        settings = Settings(fairness=self.fairness)
        if self.table is None:
            settings = paper_settings(self.data, self.noise, self.rate, self.fairness)
        if self.epochs is not None:
            warmup = min(settings.warmup_epochs, self.epochs // 4)
            settings = replace(settings, epochs=self.epochs, warmup_epochs=warmup)
        if method.uses_validation:
            validation = problem.clean_validation if self.validation == "clean" else problem.noisy_validation
            if self.validation == "cleaned":
                assert method.clean_validation is not None
                validation = method.clean_validation(validation, 1 - self.rate)
        settings = replace(settings, **problem.changes)
        return TrainingInput(data=problem.train, settings=settings, seed=seed, validation=validation)


# Choosing hyperparameters. The paper's rule: "choose the hyperparameters that result in the best fairness while
# having an accuracy that best aligns with other results". So fairness comes first: of the candidates whose
# accuracy is at most .05 below the best candidate's, the fairest. It is not less than .05, since accuracy on
# labels of which a tenth are wrong may differ by that tenth from the accuracy that is meant: what fits an attack
# best looks most accurate.


def choose(method: Method, given: TrainingInput) -> dict[str, Any]:
    """Choose the hyperparameters to use on some data."""
    options = method.options()
    return options[pick(*fold_scores(method, given, 5, options))] if len(options) > 1 else options[0]


def fold_scores(
    method: Method, given: TrainingInput, folds: int, options: Sequence[Mapping[str, Any]]
) -> Floats:
    """Measure accuracies and disparities of some options on noisy held-out folds: (2, folds, options).

    Methods that have a validation set train once on all of the data, and are measured on that set.
    """
    data = given.data
    if given.validation is not None:
        parts = [(data, given.validation)]
    else:
        fold = shuffled_places(data.cells, given.seed, by_code=True) % folds  # as published choices were made
        parts = [(data.take(np.flatnonzero(fold != k)), data.take(np.flatnonzero(fold == k)))
                 for k in range(folds)]  # fmt: skip
    scores = np.zeros((2, len(parts), len(options)))
    for place, (train, held) in enumerate(parts):
        for i, values in enumerate(options):
            measured = measure(method.fit(replace(given, data=train), values).predict(held), held)
            scores[:, place, i] = measured["accuracy"], measured[given.settings.fairness]
    return scores


def pick(accuracies: Floats, disparities: Floats) -> int:
    """Pick the candidate to use, from scores of (folds, candidates): the fairest of those close to the best accuracy.

    Of equally fair ones the first, which is the default, wins.

    Examples
    --------
    >>> pick(np.array([[0.72, 0.71, 0.60]]), np.array([[0.20, 0.10, 0.01]]))
    1
    """
    means = accuracies.mean(axis=0)
    return int(np.where(means >= means.max() - CLOSE, disparities.mean(axis=0), np.inf).argmin())


def compare(
    comparison: Comparison, methods: Sequence[Method], seeds: Sequence[int], path: Path, *, jobs: int = 1
) -> Iterator[Record]:
    """Make the runs that ``path`` does not hold yet; yield all records, old ones first.

    Runs go through joblib: inside :func:`~fairsieve.benchmark.workers.open_cluster` or
    ``joblib.parallel_config(backend=…)`` they are spread over machines.
    """
    known = {record["run"]: record for record in read_results(path)}
    work = []
    for seed in seeds:
        for method in methods:
            run = fingerprint(comparison.run_settings(method, seed))
            if run in known:
                yield known[run]
            else:
                work.append(partial(run_one, comparison, method, seed))
    for _, record in run_and_record(work, path, jobs=jobs):
        yield record


def run_one(comparison: Comparison, method: Method, seed: int) -> Record:
    """Make one run and return its record; an error of ours becomes part of the record."""
    problem = comparison.problem(seed)
    asked = comparison.run_settings(method, seed)
    record: Record = {"run": fingerprint(asked), "settings": asked, "checksum": problem.checksum}
    record["versions"] = installed_versions(PACKAGES)
    try:
        return record | _train_and_measure(comparison, method, problem, seed)
    except FairsieveError as error:
        return record | {"error": str(error)}


def _train_and_measure(comparison: Comparison, method: Method, problem: NoisyProblem, seed: int) -> Record:
    """Choose hyperparameters, train, and return the part of the record that says what came of it."""
    given = comparison.training_input(method, seed)
    started = time.process_time()
    if comparison.fixed is not None:
        chosen, told = dict(comparison.fixed), {}  # the settings name them
    else:
        chosen = choose(method, given) if comparison.tune else method.options()[0]
        told = {"hyperparameters": chosen, "tuning_seconds": round(time.process_time() - started, 4)}
    lengths = {"game_epochs": comparison.epochs} if comparison.epochs and "fr-train" in method.name else {}
    began, wall = time.process_time(), time.perf_counter()
    trained = method.fit(given, chosen | lengths)
    result: Record = told | {
        "seconds": round(time.perf_counter() - wall, 4),
        "cpu_seconds": round(time.process_time() - began, 4),
        "epochs": trained.epochs,
        "rows": {"train": len(problem.train), "test": len(problem.test)},
    }
    predicted = trained.predict(problem.test)
    result |= _measured(predicted, trained.indices, problem)
    if comparison.table is not None:
        result["clean_ratio"] = problem.changes["clean_ratio"]
        result["predicted"] = predicted.tolist()
    if comparison.history:
        if method.traced is not None:
            trained = replace(method, train=method.traced).fit(given, chosen)
        result["history"] = dict(trained.trace)
    return result


def _measured(predicted: Values, kept: Integers, problem: NoisyProblem) -> Record:
    """Measure on the test samples, count what was dropped, and say whose labels were flipped."""
    measures = measure(predicted, problem.test, problem.weights, problem.fewest)
    cells, dropped = problem.train.cells, np.ones(len(problem.train), dtype=bool)
    dropped[kept] = False
    measures["kept"] = 1 - dropped.mean()
    if problem.flipped.any():
        measures["flips_dropped"] = dropped[problem.flipped].mean()
    flips = np.bincount(cells.group_codes[problem.flipped], minlength=cells.shape[1])
    shares = zip(cells.groups, (flips / np.maximum(cells.counts.sum(axis=0), 1)).round(4), strict=True)
    return {
        "metrics": {name: round(float(value), 6) for name, value in measures.items()},
        "attacked": {str(name): float(share) for name, share in shares if share > 0},
    }
