"""Run experiments: choose hyperparameters once, then run every seed; each is recorded as it finishes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import joblib
import numpy as np

from fairsieve.paper.engine import Work, run_and_record
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.problems import make_problem
from fairsieve.paper.records import Record, fingerprint
from fairsieve.paper.reproduce.experiments import FR_TRAIN, Experiment, Scope
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.run import one_torch_thread, package_versions, run_one
from fairsieve.paper.tuning import candidates, fold_scores, pick

__all__ = ["check_data_sets", "reproduce"]

# Seconds to expect of a run before one like it was measured; FR-Train takes some fifty times as
# long, and a choice of hyperparameters as long as some 25 runs.
EXPECTED = {"synthetic": 0.1, "compas": 0.3, "adult": 9.0}
FR_TRAIN_FACTOR = 50
TUNING_FACTOR = 25


@dataclass(frozen=True)
class _Progress:
    """Where the work stands: runs done and in all, seconds left, and what was done last."""

    done: int
    total: int
    seconds_left: float
    latest: str


@dataclass(frozen=True)
class _Job:
    """One call of a worker: a run, or a choice of hyperparameters (seed None)."""

    experiment: Experiment
    seed: int | None
    work: Work

    @property
    def kind(self) -> tuple[str, str, bool]:
        """Jobs of one kind take about equally long."""
        return self.experiment.data, self.experiment.method, self.seed is None

    def __str__(self) -> str:
        doing = "choosing hyperparameters" if self.seed is None else f"seed {self.seed}"
        return f"{self.experiment.data}, {METHODS[self.experiment.method].short}, {doing}"


class _Clock:
    """How long what is left will take, from what was measured so far."""

    def __init__(self, workers: int) -> None:
        self.workers, self.done = workers, 0
        self.left: Counter[tuple[str, str, bool]] = Counter()
        self.seconds: defaultdict[tuple[str, str, bool], list[float]] = defaultdict(list)

    def expect(self, jobs: Sequence[_Job]) -> None:
        """Set the jobs that are left."""
        self.left = Counter(job.kind for job in jobs)

    def note(self, job: _Job, seconds: float) -> _Progress:
        """Count a job as done, and return the progress."""
        self.done += 1
        self.left[job.kind] -= 1
        self.seconds[job.kind].append(seconds)
        remaining = sum(count * self.expected(kind) for kind, count in self.left.items()) / self.workers
        return _Progress(self.done, self.done + self.left.total(), remaining, str(job))

    def expected(self, kind: tuple[str, str, bool]) -> float:
        """Estimate the seconds of one job: the mean of those measured, or a first guess."""
        if kind in self.seconds:
            return float(np.mean(self.seconds[kind]))
        data, method, tuning = kind
        guess = EXPECTED[data] * (FR_TRAIN_FACTOR if method in FR_TRAIN else 1)
        return guess * (TUNING_FACTOR if tuning else 1)


def check_data_sets(experiments: Sequence[Experiment], scope: Scope) -> None:
    """Raise an error that says which data set is missing, before any work is done."""
    for data in dict.fromkeys(experiment.data for experiment in experiments):
        make_problem(data, "none", 0, 0, arrays=scope.arrays if data == "synthetic" else None)


def reproduce(
    experiments: Sequence[Experiment], results: Results, path: Path, *, jobs: int = 1
) -> Iterator[_Progress]:
    """Make the runs that ``results`` do not hold yet, record them in ``path``, and yield the progress after each.

    Hyperparameters are chosen first, then all runs are made with them. New records are added to ``results``, so that
    nothing is made twice, and a reproduction that was stopped continues.
    """
    clock = _Clock(joblib.effective_n_jobs(jobs))
    for find in (_tuning_jobs, _run_jobs):
        todo = find(experiments, results)
        clock.expect(todo if find is _run_jobs else [*todo, *_run_jobs(experiments, results)])
        for part, together in _parts(todo):
            work = [job.work for job in part]
            for finished in run_and_record(work, path, jobs=jobs, together=together):
                results.add(finished.record)
                yield clock.note(part[finished.place], finished.seconds)


def _parts(jobs: Sequence[_Job]) -> Iterator[tuple[list[_Job], int]]:
    """Split jobs, in their order, by how many in a row one worker makes.

    On Adult all methods of one problem but FR-Train: they share its loading and ITLM's cleaning, which take longer than
    most of the methods.
    """

    def shares(job: _Job) -> bool:
        return (
            job.experiment.data == "adult" and job.seed is not None and job.experiment.method not in FR_TRAIN
        )

    for sharing, found in groupby(jobs, shares):
        part = list(found)
        problems = Counter((job.experiment.noise, job.experiment.rate, job.seed) for job in part)
        yield part, max(problems.values()) if sharing else 1


def _tuning_jobs(experiments: Sequence[Experiment], results: Results) -> list[_Job]:
    """List the choices of hyperparameters that are not recorded yet."""
    wanted = dict.fromkeys(results.scope.tuned_as(experiment) for experiment in experiments)
    todo = [
        experiment for experiment in wanted if experiment is not None and results.chosen(experiment) is None
    ]
    todo.sort(key=lambda experiment: experiment.data == "synthetic")  # slow ones first
    return [_Job(experiment, None, partial(_choose_once, experiment, results.scope)) for experiment in todo]


def _run_jobs(experiments: Sequence[Experiment], results: Results) -> list[_Job]:
    """List the runs that are not recorded yet: small data sets first, runs on one problem together."""
    missing = {
        results.name(experiment, seed): (experiment, seed)
        for experiment in experiments
        for seed in results.scope.seeds_for(experiment)
        if results.run(experiment, seed) is None
    }
    sets = list(EXPECTED)
    todo = sorted(
        missing.values(), key=lambda run: (sets.index(run[0].data), run[0].noise, run[0].rate, run[1])
    )
    todo.sort(key=lambda run: run[0].method in FR_TRAIN)  # what takes long comes last
    return [
        _Job(experiment, seed, partial(run_one, results.comparison(experiment), experiment.method, seed))
        for experiment, seed in todo
    ]


def _choose_once(experiment: Experiment, scope: Scope) -> Record:
    """Choose hyperparameters for an experiment, by cross-validation on draws or splits that are not reported on."""
    started, method = time.perf_counter(), METHODS[experiment.method]
    asked, comparison = scope.tuning_settings(experiment), scope.comparison(experiment)
    settings, scores = comparison.training_settings(), []
    with one_torch_thread():
        for seed in asked["seeds"]:
            problem = make_problem(
                comparison.data, comparison.noise, comparison.rate, seed, arrays=comparison.arrays
            )
            validation = comparison.validation_samples(problem, method)
            scores.append(
                fold_scores(
                    method, problem.train, settings, seed=seed, validation=validation, folds=asked["folds"]
                )
            )
    accuracies, disparities = np.concatenate(scores, axis=1)
    return {
        "run": fingerprint(asked),
        "settings": asked,
        "versions": package_versions(),
        "hyperparameters": candidates(method)[pick(accuracies, disparities)],
        "tuning_seconds": round(time.perf_counter() - started, 4),
        "candidates": [
            values | {"accuracy": round(float(right), 4), "disparity": round(float(apart), 4)}
            for values, right, apart in zip(
                candidates(method), accuracies.mean(axis=0), disparities.mean(axis=0), strict=True
            )
        ],
    }
