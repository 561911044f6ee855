"""One run: draw the data, flip labels, choose hyperparameters, train, and measure on clean test data."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import metadata
from typing import Any, Literal, get_args

import numpy as np

from fairsieve.errors import FairsieveError
from fairsieve.optional import require
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.fr_train import clean_with_itlm
from fairsieve.paper.methods.prefixes import prefix_differences
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.problems import NoisyProblem, make_problem, paper_settings
from fairsieve.paper.records import Record, fingerprint
from fairsieve.paper.table_problems import (
    TableSource,
    make_table_problem,
    measure_tables,
    prediction_tables,
)
from fairsieve.paper.tuning import choose, measure, train_with
from fairsieve.samples import Samples
from fairsieve.selection.fairness import FairnessName, fairness_name
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["Comparison", "ValidationKind", "one_torch_thread", "package_versions", "run_one"]

ValidationKind = Literal["clean", "noisy", "cleaned"]
TABLE_EPOCHS = 400
PACKAGES = ("fairsieve", "numpy", "numba", "scikit-learn", "torch")


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
        Record the cells' losses in every epoch.
    table : TableSource, optional
        Somebody's own table, in place of ``data``.
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
    table: TableSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fairness", fairness_name(self.fairness))

    def run_settings(self, method: Method, seed: int) -> dict[str, Any]:
        """Return what identifies a run in the records."""
        asked = asdict(replace(self, table=None)) | {"method": method.name, "seed": seed}
        if not method.uses_validation:
            del asked["validation"]
        asked["table"] = None if self.table is None else self.table.record()
        for added in ("fixed", "history", "table"):  # runs without them keep the fingerprints they had before
            if not asked[added]:
                del asked[added]
        return asked

    def training_settings(self) -> Settings:
        """Return the paper's settings, with the number of epochs that is asked for."""
        if self.table is not None:
            settings = Settings(fairness=self.fairness, epochs=TABLE_EPOCHS)
        else:
            settings = paper_settings(self.data, self.noise, self.rate, self.fairness)
        if self.epochs is None:
            return settings
        warmup = min(settings.warmup_epochs, self.epochs // 4)
        return replace(settings, epochs=self.epochs, warmup_epochs=warmup)

    def validation_samples(self, problem: NoisyProblem, method: Method) -> Samples | None:
        """Return the validation set that a method is given; None for methods that use none."""
        if not method.uses_validation:
            return None
        if self.validation == "clean":
            return problem.clean_validation
        if self.validation == "noisy":
            return problem.noisy_validation
        return clean_with_itlm(problem.noisy_validation, 1 - self.rate)


def run_one(comparison: Comparison, name: str, seed: int) -> Record:
    """Make one run and return its record; an error of ours becomes part of the record."""
    method = METHODS[name]
    asked = comparison.run_settings(method, seed)
    record: Record = {"run": fingerprint(asked), "settings": asked, "versions": package_versions()}
    problem = _cached_problem(
        comparison.data, comparison.noise, comparison.rate, seed, comparison.arrays, comparison.table
    )
    record["checksum"] = problem.checksum
    try:
        if method.extra == "torch":
            require("torch", extra="torch", purpose=method.title)
        with one_torch_thread():
            return record | _train_and_measure(comparison, method, problem, seed)
    except FairsieveError as error:
        return record | {"error": str(error)}


def _train_and_measure(comparison: Comparison, method: Method, problem: NoisyProblem, seed: int) -> Record:
    """Choose hyperparameters, train, and return the part of the record that says what came of it."""
    settings = replace(comparison.training_settings(), **problem.changes)
    validation = comparison.validation_samples(problem, method)
    started = time.perf_counter()
    if comparison.fixed is not None:
        chosen = dict(comparison.fixed)
    elif comparison.tune:
        chosen = choose(method, problem.train, settings, seed=seed, validation=validation)
    else:
        chosen = method.defaults
    tuned, cpu = time.perf_counter(), time.process_time()
    fitted = train_with(
        method,
        problem.train,
        settings,
        chosen,
        seed=seed,
        validation=validation,
        own=None if comparison.epochs is None else method.while_tuning,  # FR-Train has epochs of its own
    )
    result: Record = {
        "seconds": round(time.perf_counter() - tuned, 4),
        "cpu_seconds": round(time.process_time() - cpu, 4),
        "tuning_seconds": round(tuned - started, 4),
        "hyperparameters": chosen,
        "epochs": int(fitted.history.epochs[-1]) + 1,
        "metrics": _test_metrics(fitted, problem),
    }
    if comparison.table is not None:
        result |= _table_results(fitted, problem)
    if comparison.history:
        result["history"] = _recorded_history(fitted)
        if method.name == "fairsieve":
            known = {name: value for name, value in chosen.items() if name in settings.__dataclass_fields__}
            found = prefix_differences(problem.train, replace(settings, **known), seed=seed)
            result["history"]["prefix_differences"] = found
    return result


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread, since runs go side by side; give its threads back afterwards."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _cached_problem(
    data: str, noise: str, rate: float, seed: int, arrays: str | None, table: TableSource | None = None
) -> NoisyProblem:
    """Make a problem, and keep it for the next method: Adult takes seconds to load and attack."""
    if table is not None:
        return make_table_problem(table, noise, rate, seed)
    return make_problem(data, noise, rate, seed, arrays=arrays)


def _test_metrics(fitted: Fitted, problem: NoisyProblem) -> dict[str, float]:
    """Measure accuracy and disparities on the test samples, and how many of the flips were dropped."""
    measured: dict[str, float] = {}
    for fairness in get_args(FairnessName):
        measured["accuracy"], measured[fairness] = measure(fitted, problem.test, fairness)
    dropped = np.ones(len(problem.train), dtype=bool)
    dropped[fitted.indices] = False
    measured["kept"] = 1 - float(dropped.mean())
    if problem.flipped.any():
        measured["flips_dropped"] = float(dropped[problem.flipped].mean())
    return {name: round(value, 6) for name, value in measured.items()}


def _table_results(fitted: Fitted, problem: NoisyProblem) -> Record:
    """Measure on the test samples as tables are measured: by their weights, and without cells of few people."""
    test = problem.test
    predicted = np.asarray(fitted.predict(test.features, sensitive_features=test.groups)).astype(np.int64)
    weights = np.ones(len(test)) if problem.weights is None else problem.weights
    tables = prediction_tables(test, predicted, weights)
    metrics = _test_metrics(fitted, problem)
    for fairness in get_args(FairnessName):
        found = measure_tables(tables, test, fairness)
        metrics |= {name: round(float(value), 6) for name, value in found.items()}
    result: Record = {
        "metrics": metrics,
        "rows": {"train": len(problem.train), "test": len(test)},
        "clean_ratio": problem.changes["clean_ratio"],
    }
    if problem.weights is not None:
        result["predicted"] = predicted.tolist()
    return result


def _recorded_history(fitted: Fitted) -> dict[str, Any]:
    """Return the cells' sizes and their mean losses in every epoch, rounded to keep the record small."""
    history = fitted.history
    return {
        "classes": [str(label) for label in history.classes],
        "groups": [str(group) for group in history.groups],
        "counts": history.counts[0].tolist(),
        "epochs": history.epochs.tolist(),
        "cell_losses": history.cell_losses.round(4).tolist(),
    }


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a run's numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # torch is optional
            continue
    return found
