"""Methods × seeds on one problem, each run recorded as it finishes."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

import joblib
import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.fr_train import clean_with_itlm
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.problems import Problem, make_problem, paper_settings
from fairsieve.paper.records import append_record, fingerprint, read_results
from fairsieve.paper.tuning import choose, scores_of, train_with
from fairsieve.samples import Samples
from fairsieve.selection.fairness import FairnessName, fairness_name
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = [
    "Comparison",
    "Row",
    "ValidationKind",
    "compare",
    "run_one",
    "settings_of",
    "summarise",
    "validation_of",
    "versions",
]

ValidationKind = Literal["clean", "noisy", "cleaned"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared: everything that decides a run but its method and its seed.

    ``fixed`` are hyperparameters that are given in place of choosing them; ``history`` records the
    cells' losses in every epoch too.
    """

    data: str = "synthetic"
    noise: str = "label"
    rate: float = 0.1
    fairness: str = "equalized_odds"
    validation: ValidationKind = "clean"
    tune: bool = True
    epochs: int | None = None
    arrays: str | None = None
    fixed: Mapping[str, Any] | None = None
    history: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "fairness", fairness_name(self.fairness))

    def run_settings(self, method: Method, seed: int) -> dict[str, Any]:
        """What names a run."""
        asked = asdict(self) | {"method": method.name, "seed": seed}
        if not method.uses_validation:
            del asked["validation"]
        for added in ("fixed", "history"):  # so that runs without them keep the names they had before
            if not asked[added]:
                del asked[added]
        return asked


def compare(
    comparison: Comparison, methods: Sequence[Method], seeds: Sequence[int], path: Path, *, jobs: int = 1
) -> Iterator[dict[str, Any]]:
    """Run what is not recorded in ``path`` yet; yield the records as they come, old ones first.

    Runs go through joblib: inside ``joblib.parallel_config(backend=…)`` its dask, ray or spark
    backends spread them over machines.
    """
    known = {record["run"]: record for record in read_results(path)}
    todo = []
    for seed in seeds:
        for method in methods:
            run = fingerprint(comparison.run_settings(method, seed))
            if run in known:
                yield known[run]
            else:
                todo.append(joblib.delayed(run_one)(comparison, method.name, seed))
    for record in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(todo):
        append_record(path, record)
        yield record


def run_one(comparison: Comparison, name: str, seed: int) -> dict[str, Any]:
    """One run, in a process of its own: draw, attack, choose hyperparameters, train, measure."""
    torch.set_num_threads(1)
    method = METHODS[name]
    asked = comparison.run_settings(method, seed)
    record: dict[str, Any] = {"run": fingerprint(asked), "settings": asked, "versions": versions()}
    problem = _problem_of(comparison.data, comparison.noise, comparison.rate, seed, comparison.arrays)
    record["checksum"] = problem.checksum
    settings = settings_of(comparison)
    validation = validation_of(problem, comparison) if method.uses_validation else None
    try:
        started = time.perf_counter()
        if comparison.fixed is not None:
            chosen = dict(comparison.fixed)
        elif comparison.tune:
            chosen = choose(method, problem.train, settings, seed=seed, validation=validation)
        else:
            chosen = {k: values[0] for k, values in method.candidates.items()}
        tuned = time.perf_counter()
        fitted = train_with(
            method,
            problem.train,
            settings,
            chosen,
            seed=seed,
            validation=validation,
            own=None if comparison.epochs is None else method.while_tuning,  # it counts epochs its own way
        )
    except FairsieveError as error:
        return record | {"error": str(error)}
    record["seconds"] = round(time.perf_counter() - tuned, 4)
    record["tuning_seconds"] = round(tuned - started, 4)
    record["hyperparameters"] = chosen
    record["metrics"] = _metrics_of(fitted, problem)
    if comparison.history:
        record["history"] = _history_of(fitted)
    return record


@lru_cache(maxsize=1)
def _problem_of(data: str, noise: str, rate: float, seed: int, arrays: str | None) -> Problem:
    """A problem, kept for the next method on it: Adult takes seconds to load and attack."""
    return make_problem(data, noise, rate, seed, arrays=arrays)


def settings_of(comparison: Comparison) -> Settings:
    """The paper's settings, with as many epochs as are asked for."""
    settings = paper_settings(comparison.data, comparison.noise, comparison.rate, comparison.fairness)
    if comparison.epochs is None:
        return settings
    warmup = min(settings.warmup_epochs, comparison.epochs // 4)
    return replace(settings, epochs=comparison.epochs, warmup_epochs=warmup)


def validation_of(problem: Problem, comparison: Comparison) -> Samples:
    """The validation set of the asked kind."""
    if comparison.validation == "clean":
        return problem.clean_validation
    if comparison.validation == "noisy":
        return problem.noisy_validation
    return clean_with_itlm(problem.noisy_validation, 1 - comparison.rate)


def _metrics_of(fitted: Fitted, problem: Problem) -> dict[str, float]:
    """Accuracy and disparities on the test samples, and how well the selection found the flips."""
    measured: dict[str, float] = {}
    for fairness in get_args(FairnessName):
        measured["accuracy"], measured[fairness] = scores_of(fitted, problem.test, fairness)
    dropped = np.ones(len(problem.train), dtype=bool)
    dropped[fitted.indices] = False
    measured["kept"] = 1 - float(dropped.mean())
    if problem.flipped.any():
        measured["flips_dropped"] = float(dropped[problem.flipped].mean())
    return {name: round(value, 6) for name, value in measured.items()}


def _history_of(fitted: Fitted) -> dict[str, Any]:
    """The cells' sizes and their mean losses in every epoch, small enough for a record."""
    history = fitted.history
    return {
        "classes": [str(label) for label in history.classes],
        "groups": [str(group) for group in history.groups],
        "counts": history.counts[0].tolist(),
        "epochs": history.epochs.tolist(),
        "cell_losses": history.cell_losses.round(4).tolist(),
    }


def versions() -> dict[str, str]:
    """What the run was made with."""
    packages = ("fairsieve", "numpy", "numba", "scikit-learn", "torch")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}


@dataclass(frozen=True)
class Row:
    """One method over its seeds: means, standard deviations, and what it lacks."""

    method: Method
    seeds: int
    accuracy: tuple[float, float]
    disparity: tuple[float, float]
    seconds: float
    error: str | None


def summarise(records: Sequence[dict[str, Any]], methods: Sequence[Method], fairness: str) -> list[Row]:
    """A row per method, in the order of ``methods``."""
    rows = []
    for method in methods:
        mine = [record for record in records if record["settings"]["method"] == method.name]
        done = [record for record in mine if "metrics" in record]
        errors = [record["error"] for record in mine if "error" in record]

        def of(name: str, runs: list[dict[str, Any]] = done) -> tuple[float, float]:
            values: NDArray[np.float64] = np.array([run["metrics"][name] for run in runs])
            return (float(values.mean()), float(values.std())) if len(values) else (np.nan, np.nan)

        seconds = float(np.mean([record["seconds"] for record in done])) if done else np.nan
        rows.append(
            Row(method, len(done), of("accuracy"), of(fairness), seconds, errors[0] if errors else None)
        )
    return rows
