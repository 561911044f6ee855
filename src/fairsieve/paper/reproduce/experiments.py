"""Experiments (everything that identifies a run except its seed), and how much of the paper is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fairsieve.paper.methods.registry import METHODS, PAPER_METHODS
from fairsieve.paper.reproduce.published import Line, PaperColumn
from fairsieve.paper.run import Comparison, ValidationKind

__all__ = ["FR_TRAIN", "Attack", "Experiment", "Scope", "table_experiment"]

# Seeds of an experiment: draws of the synthetic data, splits of the others. FR-Train takes 20 to 50 times as long as
# the others, so it has fewer, and on the curves of Figs. 3, 5 and 6 fewer still. Verdicts are against the published
# one, so that ours, which stands beside it, may have fewer.
SEEDS = {"synthetic": 30, "compas": 20, "adult": 10}
FR_TRAIN = ("fr-train-published", "fr-train")
FR_TRAIN_SEEDS = {
    "fr-train-published": {"synthetic": 20, "compas": 20, "adult": 5},
    "fr-train": {"synthetic": 20, "compas": 10, "adult": 3},
}
FR_TRAIN_CURVE_SEEDS = 10
TRACED_SEEDS = 5
TRAININGS = 5  # on the authors' arrays, as in the paper
QUICK_EPOCHS = {"synthetic": 300, "compas": 300, "adult": 40}

# Splits and draws to choose hyperparameters on; no result is reported on them.
TUNING_SEEDS = {"synthetic": (1000, 1001), "compas": (1000, 1001)}
TUNING_FOLDS = 3
ABLATIONS = ("fairsieve-no-constraints", "fairsieve-no-weights")

Attack = Literal["without-group", "with-group", "offset"]


@dataclass(frozen=True)
class Experiment:
    """A method on a problem.

    What cannot matter is set to one value, so that equal runs are equal experiments: the notion of
    fairness for methods that know none, the validation set for methods that use none, the attack
    at rate 0.

    Attributes
    ----------
    fixed : tuple of (name, value)
        Hyperparameters that are given; the others are the defaults.
    traced : bool
        Whether what happened in every epoch is recorded too.

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
    traced: bool = False

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
        """Whether what happened in every epoch is recorded too."""
        return self.traced


def table_experiment(line: Line, column: PaperColumn) -> Experiment:
    """Return the experiment behind an entry of a table."""
    return Experiment(line.method, column.data, column.noise, column.fairness, validation=line.validation)


@dataclass(frozen=True)
class Scope:
    """How much is asked for, and on which data.

    Attributes
    ----------
    seeds : int, optional
        Draws and splits; when None, those of ``SEEDS``. FR-Train has no more than its own.
    quick : bool
        One seed, fewer epochs, no choice of hyperparameters: for a look.
    arrays : str, optional
        Folder of the authors' synthetic arrays, in place of draws: five trainings on one draw, as in the paper.
    attack : {"without-group", "with-group", "offset"}
        Whether the attack's regression sees the group. The authors' did not. "offset" also adds what makes their
        general flips come out whole, for checks of parity.

    Examples
    --------
    >>> Scope().seeds_for(Experiment("lr", "compas")), Scope().seeds_for(Experiment("fr-train", "compas"))
    (range(0, 20), range(0, 10))
    >>> Scope(arrays="folder").seeds_for(Experiment("lr", "synthetic"))
    range(0, 5)
    """

    seeds: int | None = None
    quick: bool = False
    arrays: str | None = None
    attack: Attack = "without-group"

    def seeds_for(self, experiment: Experiment) -> range:
        """Return the seeds of an experiment."""
        if self.quick:
            return range(1)
        if self.arrays is not None and experiment.data == "synthetic":
            return range(TRAININGS)
        asked = SEEDS[experiment.data] if self.seeds is None else self.seeds
        if experiment.method in FR_TRAIN:
            on_curve = experiment.data == "synthetic" and (experiment.rate != 0.1 or experiment.fixed)
            most = FR_TRAIN_CURVE_SEEDS if on_curve else FR_TRAIN_SEEDS[experiment.method][experiment.data]
            return range(min(asked, most))
        traced = experiment.traced and experiment.data == "synthetic"
        return range(min(asked, TRACED_SEEDS) if traced else asked)

    def tuned_as(self, experiment: Experiment) -> Experiment | None:
        """Return the experiment whose hyperparameters this one uses; None where the defaults are used.

        The choice is made once, at a rate of 10 %, for each method and column of a table. On the synthetic data ours
        has the authors' own settings, which are the defaults, and its ablations always have what it has. FR-Train
        is too slow to choose for, and so is Adult.
        """
        method = METHODS[experiment.method]
        single = all(len(values) == 1 for values in method.candidates.values())
        ours = experiment.method in ("fairsieve", *ABLATIONS)
        if self.quick or single or experiment.fixed or experiment.method in FR_TRAIN:
            return None
        if experiment.data not in TUNING_SEEDS or experiment.method not in PAPER_METHODS:
            return None
        if ours and experiment.data == "synthetic":
            return None
        noise = "label" if experiment.noise == "none" else experiment.noise
        name = "fairsieve" if ours else experiment.method
        return replace(experiment, method=name, rate=0.1, noise=noise, traced=False)

    def noise(self, experiment: Experiment) -> str:
        """Return the attack of an experiment, by its name in :data:`~fairsieve.paper.attacks.NOISES`."""
        name, colon, group = experiment.noise.partition(":")
        if name == "none" or self.attack == "with-group":
            return experiment.noise
        offset = "-offset" if self.attack == "offset" and name == "label" else ""
        return f"{name}-without-group{offset}{colon}{group}"

    def tuning_settings(self, experiment: Experiment) -> dict[str, Any]:
        """Return what identifies the choice of hyperparameters for an experiment."""
        arrays = self.arrays if experiment.data == "synthetic" else None
        seeds = TUNING_SEEDS[experiment.data][: None if arrays is None else 1]  # the arrays are one draw
        named = {name: value for name, value in asdict(experiment).items() if name != "traced"}
        named["noise"] = self.noise(experiment)
        return {"tuning": named, "seeds": seeds, "folds": TUNING_FOLDS, "arrays": arrays}

    def comparison(self, experiment: Experiment, chosen: dict[str, Any] | None = None) -> Comparison:
        """Return what to run for an experiment, with the hyperparameters chosen for it."""
        method = METHODS[experiment.method]
        fixed = method.defaults | (chosen or {}) | dict(experiment.fixed)
        return Comparison(
            data=experiment.data,
            noise=self.noise(experiment),
            rate=experiment.rate,
            fairness=experiment.fairness,
            validation=experiment.validation,
            tune=False,
            epochs=QUICK_EPOCHS[experiment.data] if self.quick else None,
            arrays=self.arrays if experiment.data == "synthetic" else None,
            fixed=fixed,
            history=experiment.traced,
        )
