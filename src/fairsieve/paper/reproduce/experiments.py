"""Experiments (everything that identifies a run except its seed), and how much of the paper is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from fairsieve.paper.methods.registry import METHODS, PAPER_METHODS
from fairsieve.paper.reproduce.published import Line, PaperColumn
from fairsieve.paper.run import Comparison, ValidationKind

__all__ = ["Experiment", "Scope", "table_experiment"]

DRAWS = 10  # of the synthetic data: how often a claim holds can then be counted, draw by draw
QUICK_EPOCHS = {"synthetic": 300, "compas": 300, "adult": 100}

# Splits and draws to choose hyperparameters on; no result is reported on them.
TUNING_SEEDS = {"synthetic": (1000, 1001, 1002), "compas": (1000, 1001)}
TUNING_FOLDS = 3


@dataclass(frozen=True)
class Experiment:
    """A method on a problem.

    What cannot matter is set to one value, so that equal runs are equal experiments: the notion of
    fairness for methods that know none, the validation set for methods that use none, the attack
    at rate 0.

    Attributes
    ----------
    fixed : tuple of (name, value)
        Hyperparameters that are given, not chosen.
    tuned : bool
        Whether the others are chosen, where :class:`Scope` has something to choose on; else the defaults.

    Examples
    --------
    >>> Experiment("lr", "compas", fairness="demographic_parity") == Experiment("lr", "compas")
    True
    """

    method: str
    data: str
    noise: str = "label"
    fairness: str = "equalized_odds"
    rate: float = 0.1
    validation: ValidationKind = "clean"
    fixed: tuple[tuple[str, float], ...] = ()
    tuned: bool = True

    def __post_init__(self) -> None:
        method = METHODS[self.method]
        if method.family in ("plain", "robust"):
            object.__setattr__(self, "fairness", "equalized_odds")
        if not method.uses_validation:
            object.__setattr__(self, "validation", "clean")
        if self.rate == 0:
            object.__setattr__(self, "noise", "none")

    @property
    def history(self) -> bool:
        """Whether what happened in every epoch is recorded too (Fig. 1 wants it)."""
        return self.noise == "none"


def table_experiment(line: Line, column: PaperColumn) -> Experiment:
    """Return the experiment behind an entry of a table."""
    return Experiment(line.method, column.data, column.noise, column.fairness, validation=line.validation)


@dataclass(frozen=True)
class Scope:
    """How much is asked for.

    Attributes
    ----------
    seeds : int
    quick : bool
        One seed, fewer epochs, no choice of hyperparameters: for a look.
    arrays : str, optional
        Folder of the authors' synthetic arrays, in place of draws.

    Examples
    --------
    >>> Scope(seeds=5).seeds_for(Experiment("lr", "compas"))
    range(0, 5)
    >>> Scope(seeds=5).seeds_for(Experiment("lr", "synthetic"))
    range(0, 10)
    """

    seeds: int = 5
    quick: bool = False
    arrays: str | None = None

    def seeds_for(self, experiment: Experiment) -> range:
        """Return the seeds of an experiment; at least ten in the synthetic tables, whose runs are cheap."""
        if self.quick:
            return range(1)
        in_tables = experiment.data == "synthetic" and experiment.rate == 0.1 and not experiment.fixed
        return range(max(self.seeds, DRAWS) if in_tables else self.seeds)

    def tuned_as(self, experiment: Experiment) -> Experiment | None:
        """Return the experiment whose hyperparameters this one uses; None where the defaults are used.

        The choice is made once, at a rate of 10 %, for each method and column of a table.
        """
        single = all(len(values) == 1 for values in METHODS[experiment.method].candidates.values())
        untuned = self.quick or single or not experiment.tuned
        if untuned or experiment.data not in TUNING_SEEDS or experiment.method not in PAPER_METHODS:
            return None
        noise = "label" if experiment.noise == "none" else experiment.noise
        return replace(experiment, rate=0.1, noise=noise, fixed=())

    def tuning_settings(self, experiment: Experiment) -> dict[str, Any]:
        """Return what identifies the choice of hyperparameters for an experiment."""
        arrays = self.arrays if experiment.data == "synthetic" else None
        seeds = TUNING_SEEDS[experiment.data][: None if arrays is None else 1]  # the arrays are one draw
        named = {name: value for name, value in asdict(experiment).items() if name != "tuned"}
        return {"tuning": named, "seeds": seeds, "folds": TUNING_FOLDS, "arrays": arrays}

    def comparison(self, experiment: Experiment, chosen: dict[str, Any] | None = None) -> Comparison:
        """Return what to run for an experiment, with the hyperparameters chosen for it."""
        return Comparison(
            data=experiment.data,
            noise=experiment.noise,
            rate=experiment.rate,
            fairness=experiment.fairness,
            validation=experiment.validation,
            tune=False,
            epochs=QUICK_EPOCHS[experiment.data] if self.quick else None,
            arrays=self.arrays if experiment.data == "synthetic" else None,
            fixed=METHODS[experiment.method].defaults | (chosen or {}) | dict(experiment.fixed),
            history=experiment.history,
        )
