"""The results of experiments, looked up in their records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.records import Record, fingerprint
from fairsieve.paper.reproduce.experiments import Experiment, Scope


class Results:
    """Records, looked up by experiment and seed.

    Records of errors do not count: what failed (for want of an extra, say) is tried again.

    Examples
    --------
    >>> results = Results([], Scope(seeds=2))
    >>> results.values(Experiment("lr", "compas"), "accuracy")
    array([nan, nan])
    """

    def __init__(self, records: Iterable[Record], scope: Scope) -> None:
        self.scope = scope
        self.records: dict[str, Record] = {}
        self.names: dict[tuple[Experiment, int], str] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add a record."""
        if "error" not in record:
            self.records[record["run"]] = record
            if "tuning" in record["settings"]:
                self.names.clear()  # a choice of hyperparameters names runs anew

    def choice(self, experiment: Experiment) -> Record | None:
        """Return the record of the choice of hyperparameters that an experiment uses, if there is one."""
        tuned = self.scope.tuned_as(experiment)
        return None if tuned is None else self.records.get(fingerprint(self.scope.tuning_settings(tuned)))

    def chosen(self, experiment: Experiment) -> dict[str, Any] | None:
        """Return the hyperparameters chosen for an experiment: empty for its defaults, None before the choice."""
        if self.scope.tuned_as(experiment) is None:
            return {}
        record = self.choice(experiment)
        return None if record is None else dict(record["hyperparameters"])

    def name(self, experiment: Experiment, seed: int) -> str:
        """Return the name of a run in records; experiments with the same hyperparameters share it."""
        if (experiment, seed) not in self.names:
            comparison = self.scope.comparison(experiment, self.chosen(experiment))
            asked = comparison.run_settings(METHODS[experiment.method], seed)
            self.names[experiment, seed] = fingerprint(asked)
        return self.names[experiment, seed]

    def run(self, experiment: Experiment, seed: int) -> Record | None:
        """Return the record of a run."""
        return None if self.chosen(experiment) is None else self.records.get(self.name(experiment, seed))

    def runs(self, experiment: Experiment) -> list[Record]:
        """Return the records of an experiment that are there, by seed."""
        found = (self.run(experiment, seed) for seed in self.scope.seeds_for(experiment))
        return [record for record in found if record is not None]

    def collect(self, experiments: Iterable[Experiment]) -> list[Record]:
        """Collect the records behind some experiments, each once: choices and runs."""
        found = (record for each in experiments for record in (self.choice(each), *self.runs(each)))
        return list({record["run"]: record for record in found if record is not None}.values())

    def values(self, experiment: Experiment, measure: str) -> NDArray[np.float64]:
        """Return a measure (or ``cpu_seconds``) of an experiment, one value per seed; NaN where it is missing."""
        found = [self.run(experiment, seed) or {} for seed in self.scope.seeds_for(experiment)]
        if measure != "cpu_seconds":
            found = [record.get("metrics", {}) for record in found]
        return np.array([record.get(measure, np.nan) for record in found])


@dataclass(frozen=True)
class Protocols:
    """The results of both protocols.

    Attributes
    ----------
    fresh : Results
        A draw of the synthetic data for each seed, or a split of the other data sets.
    authors : Results, optional
        Five trainings on the authors' arrays, where those are there.
    """

    fresh: Results
    authors: Results | None = None

    def each(self, data: str) -> list[tuple[str, Results]]:
        """Return the protocols that a data set has, with their names."""
        found = [("fresh" if data == "synthetic" else "splits", self.fresh)]
        if data == "synthetic" and self.authors is not None:
            found.insert(0, ("authors'", self.authors))
        return found
