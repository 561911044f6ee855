"""Run experiments: choose hyperparameters once, then run every seed; each is recorded as it finishes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairsieve.benchmark.methods import combinations
from fairsieve.benchmark.problems import make_problem
from fairsieve.benchmark.run import PACKAGES, fold_scores, pick, run_one
from fairsieve.benchmark.workers import Record, Work, fingerprint, run_and_record
from fairsieve.errors import installed_versions
from fairsieve_reproduction.experiments import Experiment, Results, Scope
from fairsieve_reproduction.methods.registry import METHODS

# Seconds of a training, roughly, and of one of FR-Train.
EXPECTED = {"adult": (4.0, 16.0), "compas": (0.5, 2.5), "synthetic": (0.25, 2.0)}


@dataclass(frozen=True)
class _Job:
    """One call of a worker: a run, or a choice of hyperparameters (seed None), which takes several trainings."""

    experiment: Experiment
    seed: int | None
    work: Work
    trainings: int = 1

    @property
    def expected(self) -> float:
        """The seconds to expect of it."""
        return EXPECTED[self.experiment.data][self.is_slow] * self.trainings

    @property
    def is_slow(self) -> bool:
        """Whether it trains FR-Train."""
        return self.experiment.method.startswith("fr-train")

    @property
    def order(self) -> tuple[object, ...]:
        """Slow ones first, runs on one problem together; the slowest choices first, which everything waits for."""
        each = self.experiment
        if self.seed is None:
            return -self.expected, each.method
        return (
            list(EXPECTED).index(each.data),
            not self.is_slow,
            each.noise,
            each.rate,
            self.seed,
            each.method,
        )

    def __str__(self) -> str:
        doing = "choosing hyperparameters" if self.seed is None else f"seed {self.seed}"
        return f"{self.experiment.data}, {METHODS[self.experiment.method].short}, {doing}"


class Step(NamedTuple):
    """How many records are made, of how many, about how many seconds that leaves, and what was done last."""

    done: int
    total: int
    left: float
    title: str


def check_data_sets(experiments: Sequence[Experiment], scope: Scope) -> None:
    """Raise an error that says which data set is missing, before any work is done."""
    for data in dict.fromkeys(experiment.data for experiment in experiments):
        make_problem(data, "none", 0, 0, arrays=scope.arrays if data == "synthetic" else None)


def reproduce(
    asked: Sequence[tuple[Sequence[Experiment], Results]], path: Path, *, jobs: int = 1
) -> Iterator[Step]:
    """Make the runs that the results do not hold yet, and record them in ``path``; tell after each how far it is.

    Hyperparameters are chosen first, then all runs are made with them, of all protocols at once: the workers wait for
    the slowest choice only twice. New records are added to the results, so that nothing is made twice, and a
    reproduction that was stopped continues.
    """
    began, made, done = time.perf_counter(), 0.0, 0
    for find in (partial(_tuning_jobs, pace=True), partial(_tuning_jobs, pace=False), _run_jobs):
        todo = sorted((job for each in asked for job in find(*each)), key=lambda job: job.order)
        later = [] if find is _run_jobs else [job for each in asked for job in _run_jobs(*each)]
        left, total = sum(job.expected for job in [*todo, *later]), done + len(todo) + len(later)
        for place, record in run_and_record([job.work for job in todo], path, jobs=jobs):
            for _, results in asked:
                results.add(record)
            job = todo[place]
            done, made, left = done + 1, made + job.expected, left - job.expected
            yield Step(done, total, (time.perf_counter() - began) * left / made, str(job))


def _tuning_jobs(experiments: Sequence[Experiment], results: Results, *, pace: bool) -> list[_Job]:
    """List the choices of the pace, or of the other hyperparameters at that pace, that are not recorded yet."""
    wanted = dict.fromkeys(results.scope.tuned_as(experiment, pace=pace) for experiment in experiments)
    jobs = []
    for each in (each for each in wanted if each is not None):
        chosen = results.choice(each)
        given = None if pace else dict(chosen["hyperparameters"]) if chosen else {}
        asked = results.scope.tuning_settings(each, given)
        if fingerprint(asked) not in results.records:
            # Those on all folds but one see as many rows as one fewer on all rows.
            folds = 1 if METHODS[each.method].uses_validation else asked["folds"] - 1
            trainings = math.prod(map(len, asked["grid"].values())) * len(asked["seeds"]) * folds
            jobs.append(_Job(each, None, partial(_choose_once, each, results.scope, given), trainings))
    return jobs


def _run_jobs(experiments: Sequence[Experiment], results: Results) -> list[_Job]:
    """List the runs that are not recorded yet, each once."""
    scope, todo = results.scope, {}
    for each in experiments:
        comparison, method = scope.comparison(each, results.chosen(each)), METHODS[scope.method(each)]
        for seed in scope.seeds_for(each):
            if results.run(each, seed) is None:
                todo[results.name(each, seed)] = _Job(each, seed, partial(run_one, comparison, method, seed))
    return list(todo.values())


def _choose_once(experiment: Experiment, scope: Scope, pace: dict[str, float] | None) -> Record:
    """Choose hyperparameters for an experiment at a pace, or its pace, on draws or splits that are not reported on."""
    started, method = time.process_time(), METHODS[experiment.method]
    asked, comparison = scope.tuning_settings(experiment, pace), scope.comparison(experiment)
    options = combinations(method.pace if pace is None else method.candidates)
    trials = [method.options()[0] | (pace or {}) | values for values in options]
    given = (comparison.training_input(method, seed) for seed in asked["seeds"])
    scores = [fold_scores(method, each, asked["folds"], trials) for each in given]
    accuracies, disparities = np.concatenate(scores, axis=1)
    # What knows no fairness is chosen by accuracy, and has one choice for all notions.
    knows = method.family not in ("plain", "robust")
    best = pick(accuracies, disparities) if knows else int(accuracies.mean(axis=0).argmax())
    tried = zip(options, accuracies.mean(axis=0), disparities.mean(axis=0), strict=True)
    return {
        "run": fingerprint(asked),
        "settings": asked,
        "versions": installed_versions(PACKAGES),
        "hyperparameters": options[best],
        "tuning_seconds": round(time.process_time() - started, 4),
        "candidates": [
            values | {"accuracy": round(float(right), 4), "disparity": round(float(apart), 4)}
            for values, right, apart in tried
        ],
    }
