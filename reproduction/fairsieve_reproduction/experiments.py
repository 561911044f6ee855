"""Experiments (everything that identifies a run except its seed), what they make up, and their results in records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.benchmark.methods import Method
from fairsieve.benchmark.run import Comparison, ValidationKind
from fairsieve.benchmark.workers import Record, fingerprint
from fairsieve.notions import DP, EO
from fairsieve.validation import check_choice
from fairsieve_reproduction.methods.registry import METHODS
from fairsieve_reproduction.published import PaperColumn, paper_tables

OURS, AUTHORS = "sample-selection", "sample-selection-authors"
ABLATIONS = (OURS, f"{OURS}-no-constraints", f"{OURS}-no-weights", AUTHORS)

# Rows beside the paper's: the published settings of FR-Train, the authors' selection, and the group that they attacked,
# where the rule leaves another on some draws.
EXTRA_LINES = {
    "table1": ("fr-train-published", AUTHORS, f"{OURS} z=1"),
    "table2": ("fr-train-published", AUTHORS),
    "table3": ("fr-train-published", "fr-train-published cleaned", "fr-train-published noisy"),
    "table7": ("fr-train-published",),
    "table7-women": ("fr-train-published",),
}

# Methods that the paper does not compare with.
RIVALS = ("surrogate-loss", "group-peer-loss", "learning-to-reweight", "fairsieve", "reweighing")

# Seeds of an experiment: draws of the synthetic data, splits of the others. FR-Train takes 50 times as long as
# the others, so it has fewer, and on the curves of Figs. 3, 5 and 6 fewer still.
SEEDS = {"synthetic": 30, "compas": 20, "adult": 10}
FEWER_SEEDS = {
    "fr-train": {"synthetic": 20, "compas": 20, "adult": 5},
    "fr-train-published": {"synthetic": 10, "compas": 10, "adult": 3},
    **{method: {"synthetic": 10, "compas": 10, "adult": 0} for method in RIVALS},
}
CURVE_SEEDS = 10
TRACED_SEEDS = 5
TRAININGS = 5  # on the authors' arrays, as in the paper
QUICK_EPOCHS = {"synthetic": 300, "compas": 300, "adult": 40}

# Draws and splits to choose hyperparameters on, and folds; no result is reported on them.
TUNING = {"synthetic": ((1000, 1001), 3), "compas": ((1000, 1001), 3), "adult": ((1000,), 2)}

RATES = (0.1, 0.125, 0.15, 0.175, 0.2)  # Figs. 3 and 6: the paper flips 10 % to 20 %
COMPAS_RATES = (0.0, 0.1, 0.125, 0.15, 0.175, 0.2)  # Figs. 1 and 2: no flips at all, and the paper's rates
LONGER_EPOCHS = 900
CLEAN_RATIOS = (0.75, 0.78, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9)
# Fig. 5: what makes each method fairer. Ours moves its ratios further, FR-Train weighs fairness more.
CURVES: dict[str, tuple[str, tuple[float, ...]]] = {
    OURS: ("step_size", (0.0, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002)),
    "fr-train": ("fairness_weight", (0.0, 0.15, 0.3, 0.45, 0.59)),
    "fr-train-published": ("fairness_weight", (0.0, 0.15, 0.3, 0.45, 0.59)),
}
CURVE_FLIPS = ("label", "group-targeted")
RATE_METHODS = ("lr", "itlm", "fr-train", "fr-train-published", OURS)


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
    >>> Experiment("lr", "compas", fairness="equal_opportunity") == Experiment("lr", "compas")
    True
    """

    method: str
    data: str
    noise: str = "label"
    fairness: str = EO
    rate: float = 0.1
    validation: ValidationKind = "clean"
    fixed: tuple[tuple[str, float], ...] = ()
    traced: bool = False

    def __post_init__(self) -> None:
        method = METHODS[self.method]
        object.__setattr__(self, "rate", float(self.rate))  # 0 and 0.0 would be two names in records
        if method.family in ("plain", "robust") or self.method == "reweighing":
            object.__setattr__(self, "fairness", EO)
        if not method.uses_validation:
            object.__setattr__(self, "validation", "clean")
        if self.rate == 0:
            object.__setattr__(self, "noise", "none")


def column_experiment(name: str, column: PaperColumn, **changes: Any) -> Experiment:
    """Return the experiment of a method in a column of a table, by a name that may say more: "fr-train noisy".

    After the method's name may stand its validation set, ``longer`` (trained about twice as long, Sec. A.3),
    ``traced``, or ``z=1``, the group that is attacked in place of the one by the paper's rule.
    """
    method, _, variant = name.partition(" ")
    variants: dict[str, dict[str, Any]] = {
        "": {},
        "longer": {"fixed": (("epochs", LONGER_EPOCHS),)},
        "traced": {"traced": True},
        "z=1": {"noise": column.noise.replace("group-targeted", "group-targeted:1")},
    }
    return Experiment(method, **(vars(column) | variants.get(variant, {"validation": variant}) | changes))


@dataclass(frozen=True, eq=False)
class Scope:
    """How much is asked for, and on which data.

    Attributes
    ----------
    seeds : int, optional
        Draws and splits at most; when None, those of ``SEEDS``.
    quick : bool
        One seed, fewer epochs, no choice of hyperparameters: for a look.
    arrays : str, optional
        Folder of the authors' synthetic arrays, in place of draws: five trainings on one draw, as in the paper.
    method_seeds : mapping
        Draws and splits of single methods.
    attacked : mapping
        The group to attack of a data set, in place of the one by the paper's rule.
    as_authors : bool
        Whether the method selects as in the authors' code, and not as in the paper's text.

    Examples
    --------
    >>> Scope().seeds_for(Experiment("lr", "compas")), Scope().seeds_for(Experiment("fr-train", "adult"))
    (range(0, 20), range(0, 5))
    >>> Scope(arrays="folder").seeds_for(Experiment("lr", "synthetic"))
    range(0, 5)
    """

    seeds: int | None = None
    quick: bool = False
    arrays: str | None = None
    method_seeds: Mapping[str, int] = field(default_factory=dict)
    attacked: Mapping[str, str] = field(default_factory=dict)
    as_authors: bool = False

    def seeds_for(self, experiment: Experiment) -> range:
        """Return the seeds of an experiment."""
        if self.quick:
            return range(1)
        if experiment.method in self.method_seeds:
            return range(self.method_seeds[experiment.method])
        synthetic = experiment.data == "synthetic"
        if self.arrays is not None and synthetic:
            return range(TRAININGS)
        most = FEWER_SEEDS.get(experiment.method, SEEDS)[experiment.data]
        asked = most if self.seeds is None else min(most, self.seeds)
        on_curve = experiment.rate != 0.1 or experiment.fixed
        if experiment.method.startswith("fr-train") and synthetic and on_curve:
            asked = min(asked, CURVE_SEEDS)
        return range(min(asked, TRACED_SEEDS) if experiment.traced and synthetic else asked)

    def tuned_as(self, experiment: Experiment, *, pace: bool = False) -> Experiment | None:
        """Return the experiment whose hyperparameters, or whose pace, this one uses; None where the defaults are used.

        The choice is made once, at a rate of 10 %, for each method and column of a table. On the synthetic data ours
        has the authors' own settings, which are the defaults, and its ablations always have what it has.
        """
        method = METHODS[experiment.method]
        single = not (method.pace if pace else method.candidates)
        ours = experiment.method in ABLATIONS
        if self.quick or single or experiment.fixed or (ours and experiment.data == "synthetic"):
            return None
        noise = "label" if experiment.noise == "none" else experiment.noise
        name = OURS if ours else experiment.method
        return replace(experiment, method=name, rate=0.1, noise=noise, traced=False)

    def method(self, experiment: Experiment) -> str:
        """Return the method that is run: the authors' variant in place of ours, where it is asked for."""
        return AUTHORS if self.as_authors and experiment.method == OURS else experiment.method

    def noise(self, experiment: Experiment) -> str:
        """Return the attack of an experiment, whose regression does not see the group, as the authors' did not."""
        name, colon, group = experiment.noise.partition(":")
        if name == "group-targeted" and not group and experiment.data in self.attacked:
            colon, group = ":", self.attacked[experiment.data]
        return name if name == "none" else f"{name}-without-group{colon}{group}"

    def tuning_settings(
        self, experiment: Experiment, pace: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return what identifies a choice of hyperparameters, at a pace; of the pace itself, where that is None."""
        seeds, folds = TUNING[experiment.data]
        arrays = self.arrays is not None and experiment.data == "synthetic"
        named = {name: value for name, value in asdict(experiment).items() if name not in ("traced", "fixed")}
        named["noise"] = self.noise(experiment)
        method = METHODS[experiment.method]
        grid = method.pace if pace is None else method.candidates
        seeds = seeds[: 1 if arrays else None]  # the arrays are one draw
        asked = {"tuning": named, "seeds": list(seeds), "folds": folds, "arrays": arrays}
        asked["grid"] = {name: list(values) for name, values in grid.items()}
        changed = _other_than_default(method, pace or {})
        return asked | ({"pace": changed} if changed else {})

    def comparison(self, experiment: Experiment, chosen: dict[str, Any] | None = None) -> Comparison:
        """Return what to run for an experiment, with the pace and the hyperparameters chosen for it."""
        method = METHODS[experiment.method]
        fixed = method.options()[0] | _other_than_default(method, chosen or {}) | dict(experiment.fixed)
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


def _other_than_default(method: Method, values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out a pace that is the method's default: it names no run."""
    return {name: value for name, value in values.items() if value != (method.pace.get(name) or (None,))[0]}


@dataclass(frozen=True)
class Item:
    """A table or a figure: of the paper, or one that it has not."""

    name: str
    title: str
    experiments: Sequence[Experiment]


def find_items(name: str) -> list[Item]:
    """Find one item by its name, or all items by ``all``.

    Examples
    --------
    >>> [item.title for item in find_items("table4")]
    ['Seconds of the method and FR-Train']
    """
    check_choice("what", name, ["list", "all", *ITEMS])
    return list(ITEMS.values()) if name == "all" else [ITEMS[name]]


def collect_experiments(items: Iterable[Item]) -> list[Experiment]:
    """Collect the experiments of some items, each once."""
    return list(dict.fromkeys(experiment for item in items for experiment in item.experiments))


def rate_experiments(method: str, fairness: str) -> list[Experiment]:
    """List a method at every noise rate of Figs. 3 and 6."""
    return [Experiment(method, "synthetic", fairness=fairness, rate=rate) for rate in RATES]


def compas_rate_experiments(method: str) -> list[Experiment]:
    """List LR or ITLM at the noise rates of Fig. 2, after one without flips."""
    return [
        Experiment(method, "compas", rate=rate, traced=method == "lr" and rate == 0) for rate in COMPAS_RATES
    ]


def curve_experiments(method: str, noise: str) -> list[Experiment]:
    """List a method at every point of its curve in Fig. 5."""
    name, values = CURVES[method]
    return [Experiment(method, "synthetic", noise, fixed=((name, value),)) for value in values]


def clean_ratio_experiments(column: PaperColumn) -> list[Experiment]:
    """List the ablation without constraints at every clean ratio, in a column of Table 1."""
    return [
        column_experiment(f"{OURS}-no-constraints", column, fixed=(("clean_ratio", ratio),))
        for ratio in CLEAN_RATIOS
    ]


def _in_columns(names: Iterable[str], columns: Sequence[PaperColumn]) -> list[Experiment]:
    return [column_experiment(name, column) for name in names for column in columns]


def _catalogue() -> Iterator[Item]:
    """Yield all tables and figures."""
    for name in (f"table{number}" for number in range(1, 8)):
        tables = [table for table in paper_tables().values() if table.name.startswith(name)]  # Adult has two
        experiments = (
            _in_columns([*each.lines, *EXTRA_LINES.get(each.name, ())], each.columns) for each in tables
        )
        yield Item(name, tables[0].title, list(chain.from_iterable(experiments)))
    yield Item("figure1", "Cell sizes and losses on COMPAS", [PLAIN_COMPAS])
    rates = [*compas_rate_experiments("lr"), *compas_rate_experiments("itlm")]
    yield Item("figure2", "LR and ITLM on COMPAS by noise rate", rates)
    rates = [each for method in RATE_METHODS for each in rate_experiments(method, DP)]
    yield Item("figure3", "Synthetic data by noise rate, demographic parity", rates)
    yield Item("figure4", "The synthetic data", [])
    points = [each for name in CURVES for noise in CURVE_FLIPS for each in curve_experiments(name, noise)]
    yield Item("figure5", "Accuracy against EO disparity, the method and FR-Train", points)
    rates = [each for method in RATE_METHODS for each in rate_experiments(method, EO)]
    yield Item("figure6", "Synthetic data by noise rate, equalized odds", rates)
    full = _in_columns((OURS, f"{OURS} traced", f"{AUTHORS} traced"), TABLE1)
    told = [each for column in TABLE1 for each in clean_ratio_experiments(column)]
    yield Item("constraints", "What the fairness constraints do (not in the paper)", full + told)
    longer = _in_columns((OURS, f"{OURS} longer"), TABLE1)
    yield Item("convergence", "Training about twice as long (not in the paper)", longer)
    others = _in_columns((OURS, "lr", *RIVALS), (*TABLE1, *TABLE2))
    yield Item("rivals", "Methods since 2018 (not in the paper)", others)


PLAIN_COMPAS = Experiment("lr", "compas", rate=0, traced=True)  # Fig. 1
TABLE1, TABLE2 = (paper_tables()[name].columns for name in ("table1", "table2"))
ITEMS = {item.name: item for item in _catalogue()}


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

    def choice(self, experiment: Experiment, pace: Mapping[str, Any] | None = None) -> Record | None:
        """Return the record of the hyperparameters chosen at a pace, or of the pace, where that is None."""
        tuned = self.scope.tuned_as(experiment, pace=pace is None)
        return (
            None if tuned is None else self.records.get(fingerprint(self.scope.tuning_settings(tuned, pace)))
        )

    def choices(self, experiment: Experiment) -> list[Record]:
        """Return the records of the choices that an experiment uses: of its pace, then of its hyperparameters."""
        pace = self.choice(experiment)
        other = self.choice(experiment, pace["hyperparameters"] if pace else {})
        return [record for record in (pace, other) if record is not None]

    def chosen(self, experiment: Experiment) -> dict[str, Any] | None:
        """Return the pace and the hyperparameters of an experiment; None before hyperparameters are chosen.

        Where no pace is chosen yet, it is the default.
        """
        chosen = [record["hyperparameters"] for record in self.choices(experiment)]
        tuned = self.scope.tuned_as(experiment)
        if tuned is not None and not any(set(METHODS[tuned.method].candidates) <= set(one) for one in chosen):
            return None
        return {name: value for one in chosen for name, value in one.items()}

    def name(self, experiment: Experiment, seed: int) -> str:
        """Return the name of a run in records; experiments with the same hyperparameters share it."""
        if (experiment, seed) not in self.names:
            comparison = self.scope.comparison(experiment, self.chosen(experiment))
            asked = comparison.run_settings(METHODS[self.scope.method(experiment)], seed)
            self.names[experiment, seed] = fingerprint(asked)
        return self.names[experiment, seed]

    def run(self, experiment: Experiment, seed: int) -> Record | None:
        """Return the record of a run."""
        return None if self.chosen(experiment) is None else self.records.get(self.name(experiment, seed))

    def runs(self, experiment: Experiment) -> list[Record]:
        """Return the records of an experiment that are there, by seed."""
        records = (self.run(experiment, seed) for seed in self.scope.seeds_for(experiment))
        return [record for record in records if record is not None]

    def collect(self, experiments: Iterable[Experiment]) -> list[Record]:
        """Collect the records behind some experiments, each once: choices and runs."""
        records = (record for each in experiments for record in (*self.choices(each), *self.runs(each)))
        return list({record["run"]: record for record in records}.values())

    def values(self, experiment: Experiment, measure: str) -> NDArray[np.float64]:
        """Return a measure (or ``cpu_seconds``) of an experiment, one value per seed; NaN where it is missing."""
        records = [self.run(experiment, seed) or {} for seed in self.scope.seeds_for(experiment)]
        if measure != "cpu_seconds":
            records = [record.get("metrics", {}) for record in records]
        return np.array([record.get(measure, np.nan) for record in records])


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
        protocols = [("fresh" if data == "synthetic" else "splits", self.fresh)]
        if data == "synthetic" and self.authors is not None:
            protocols.insert(0, ("authors'", self.authors))
        return protocols
