"""A trial: everything that names a run but its seed; and how much of the paper is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from fairsieve.paper.methods.registry import METHODS, PAPER_METHODS
from fairsieve.paper.reproduce.published import Column, Line
from fairsieve.paper.run import Comparison, ValidationKind

__all__ = ["Scope", "Trial", "trial_of"]

DRAWS = 10  # of the synthetic data: how often a claim holds can then be counted, draw by draw
QUICK_EPOCHS = {"synthetic": 300, "compas": 300, "adult": 100}

# Splits and draws to choose hyperparameters on; no result is reported on them.
TUNING_SEEDS = {"synthetic": (1000, 1001, 1002), "compas": (1000, 1001)}
TUNING_FOLDS = 3


@dataclass(frozen=True)
class Trial:
    """A method on a problem.

    What cannot matter is set to one value, so that equal runs are equal trials: the notion of
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
    >>> Trial("lr", "compas", fairness="demographic_parity") == Trial("lr", "compas")
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


def trial_of(line: Line, column: Column) -> Trial:
    """The trial behind an entry of a table."""
    return Trial(line.method, column.data, column.noise, column.fairness, validation=line.validation)


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
    >>> Scope(seeds=5).seeds_of(Trial("lr", "compas"))
    range(0, 5)
    >>> Scope(seeds=5).seeds_of(Trial("lr", "synthetic"))
    range(0, 10)
    """

    seeds: int = 5
    quick: bool = False
    arrays: str | None = None

    def seeds_of(self, trial: Trial) -> range:
        """The seeds of a trial; at least ten for those of the synthetic tables, which are cheap."""
        if self.quick:
            return range(1)
        in_tables = trial.data == "synthetic" and trial.rate == 0.1 and not trial.fixed
        return range(max(self.seeds, DRAWS) if in_tables else self.seeds)

    def tuned_as(self, trial: Trial) -> Trial | None:
        """The trial whose choice of hyperparameters this one uses; None where the defaults are used.

        The choice is made once, at a rate of 10 %, for each method and column of a table.
        """
        single = all(len(values) == 1 for values in METHODS[trial.method].candidates.values())
        untuned = self.quick or single or not trial.tuned
        if untuned or trial.data not in TUNING_SEEDS or trial.method not in PAPER_METHODS:
            return None
        noise = "label" if trial.noise == "none" else trial.noise
        return replace(trial, rate=0.1, noise=noise, fixed=())

    def tuning_settings(self, trial: Trial) -> dict[str, Any]:
        """What names the choice of hyperparameters for a trial."""
        arrays = self.arrays if trial.data == "synthetic" else None
        seeds = TUNING_SEEDS[trial.data][: None if arrays is None else 1]  # the arrays are one draw
        named = {name: value for name, value in asdict(trial).items() if name != "tuned"}
        return {"tuning": named, "seeds": seeds, "folds": TUNING_FOLDS, "arrays": arrays}

    def comparison(self, trial: Trial, chosen: dict[str, Any] | None = None) -> Comparison:
        """What to run for a trial, with hyperparameters chosen for it."""
        return Comparison(
            data=trial.data,
            noise=trial.noise,
            rate=trial.rate,
            fairness=trial.fairness,
            validation=trial.validation,
            tune=False,
            epochs=QUICK_EPOCHS[trial.data] if self.quick else None,
            arrays=self.arrays if trial.data == "synthetic" else None,
            fixed=METHODS[trial.method].defaults | (chosen or {}) | dict(trial.fixed),
            history=trial.history,
        )
