"""What records say of trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.records import Record, fingerprint, read_results
from fairsieve.paper.reproduce.trials import Scope, Trial
from fairsieve.paper.run import Comparison

__all__ = ["Results"]


class Results:
    """Records, looked up by trial and seed.

    Records of errors do not count: what failed (for want of an extra, say) is tried again.

    Examples
    --------
    >>> results = Results([], Scope(seeds=2))
    >>> results.values(Trial("lr", "compas"), "accuracy")
    array([nan, nan])
    """

    def __init__(self, records: Iterable[Record], scope: Scope) -> None:
        self.scope = scope
        self.records: dict[str, Record] = {}
        self.names: dict[tuple[Trial, int], str] = {}
        for record in records:
            self.add(record)

    @classmethod
    def read(cls, path: Path, scope: Scope) -> Results:
        """The results in a file of records."""
        return cls(read_results(path), scope)

    def with_defaults(self) -> Results:
        """The same records, looked up as if no hyperparameters had been chosen."""
        return _Untuned(self.records.values(), self.scope)

    def add(self, record: Record) -> None:
        """Take in a record."""
        if "error" not in record:
            self.records[record["run"]] = record
            if "tuning" in record["settings"]:
                self.names.clear()  # a choice of hyperparameters names runs anew

    def chosen(self, trial: Trial) -> dict[str, Any] | None:
        """The hyperparameters chosen for a trial (empty: its defaults), None before the choice is made."""
        if self.scope.tuned_as(trial) is None:
            return {}
        record = self.choice(trial)
        return None if record is None else dict(record["hyperparameters"])

    def comparison(self, trial: Trial) -> Comparison:
        """What to run for a trial."""
        return self.scope.comparison(trial, self.chosen(trial))

    def run(self, trial: Trial, seed: int) -> Record | None:
        """The record of a run."""
        return None if self.chosen(trial) is None else self.records.get(self.name(trial, seed))

    def name(self, trial: Trial, seed: int) -> str:
        """The name of a run in records; trials that come to the same hyperparameters share it."""
        if (trial, seed) not in self.names:
            settings = self.comparison(trial).run_settings(METHODS[trial.method], seed)
            self.names[trial, seed] = fingerprint(settings)
        return self.names[trial, seed]

    def runs(self, trial: Trial) -> list[Record]:
        """The records of a trial, by seed; those that are there."""
        found = (self.run(trial, seed) for seed in self.scope.seeds_of(trial))
        return [record for record in found if record is not None]

    def choice(self, trial: Trial) -> Record | None:
        """The record of the choice of hyperparameters that a trial uses, where there is one."""
        tuned = self.scope.tuned_as(trial)
        return None if tuned is None else self.records.get(fingerprint(self.scope.tuning_settings(tuned)))

    def all_of(self, trials: Iterable[Trial]) -> list[Record]:
        """The records behind some trials, each once: choices and runs."""
        found = [record for trial in trials for record in (self.choice(trial), *self.runs(trial))]
        return list({record["run"]: record for record in found if record is not None}.values())

    def has(self, trial: Trial) -> bool:
        """Whether every seed of a trial is there."""
        return len(self.runs(trial)) == len(self.scope.seeds_of(trial))

    def values(self, trial: Trial, measure: str) -> NDArray[np.float64]:
        """A measure (or ``seconds``) of a trial, one value per seed; NaN where a run is missing."""
        found = []
        for seed in self.scope.seeds_of(trial):
            record = self.run(trial, seed)
            if record is None:
                found.append(np.nan)
            else:
                found.append(record["seconds"] if measure == "seconds" else record["metrics"][measure])
        return np.array(found)


class _Untuned(Results):
    """Results with the default hyperparameters in place of the chosen ones."""

    def name(self, trial: Trial, seed: int) -> str:
        return super().name(replace(trial, tuned=False), seed)

    def choice(self, trial: Trial) -> Record | None:
        return None

    def chosen(self, trial: Trial) -> dict[str, Any] | None:
        return {}
