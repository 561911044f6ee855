"""Experiments (everything that identifies a run except its seed), how many are asked for, and what they make up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.published import PaperColumn, paper_tables
from fairsieve.paper.run import Comparison, ValidationKind
from fairsieve.validation import closest_hint

OURS, AUTHORS = "sample-selection", "sample-selection-authors"
ABLATIONS = (OURS, f"{OURS}-no-constraints", f"{OURS}-no-weights", AUTHORS)

# Rows beside the paper's: the published settings of FR-Train, the authors' selection, and the group that they attacked,
# where the rule leaves another on some draws.
EXTRA_LINES = {
    1: ("fr-train-published", AUTHORS, f"{OURS} z=1"),
    2: ("fr-train-published", AUTHORS),
}

# Methods that the paper does not compare with.
RIVALS = ("surrogate-loss", "group-peer-loss", "learning-to-reweight", "fairsieve", "reweighing")

# Seeds of an experiment: draws of the synthetic data, splits of the others. FR-Train takes 50 times as long as
# the others, so it has fewer, and on the curves of Figs. 3, 5 and 6 fewer still.
SEEDS = {"synthetic": 30, "compas": 20, "adult": 10}
FEWER_SEEDS = {
    "fr-train": {"synthetic": 20, "compas": 20, "adult": 5},
    "fr-train-published": {"synthetic": 10, "compas": 10, "adult": 0},
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
}
RATE_FIGURES = {"figure3": "demographic_parity", "figure6": "equalized_odds"}
RATE_METHODS = ("lr", "itlm", "fr-train", OURS)


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
        object.__setattr__(self, "rate", float(self.rate))  # 0 and 0.0 would be two names in records
        if method.family in ("plain", "robust") or self.method == "reweighing":
            object.__setattr__(self, "fairness", "equalized_odds")
        if not method.uses_validation:
            object.__setattr__(self, "validation", "clean")
        if self.rate == 0:
            object.__setattr__(self, "noise", "none")


def column_experiment(method: str, column: PaperColumn, **changes: Any) -> Experiment:
    """Return the experiment of a method in a column of a table."""
    return Experiment(method, column.data, column.noise, column.fairness, **changes)


def variant_experiment(name: str, column: PaperColumn) -> Experiment:
    """Return the experiment of a method in a column, by a name that may say more: "fr-train noisy".

    After the method's name may stand its validation set, ``longer`` (trained about twice as long, Sec. A.3),
    ``traced``, or ``z=1``, the group that is attacked in place of the one by the paper's rule.
    """
    method, _, variant = name.partition(" ")
    if variant == "z=1":
        attacked = "group-targeted:1" if column.noise == "group-targeted" else column.noise
        return column_experiment(method, replace(column, noise=attacked))
    variants: dict[str, dict[str, Any]] = {
        "longer": {"fixed": (("epochs", LONGER_EPOCHS),)},
        "traced": {"traced": True},
    }
    return column_experiment(method, column, **variants.get(variant, {"validation": variant or "clean"}))


@dataclass(frozen=True)
class Scope:
    """How much is asked for, and on which data.

    Attributes
    ----------
    seeds : int, optional
        Draws and splits; when None, those of ``SEEDS``.
    method_seeds : mapping
        The same for single methods.
    quick : bool
        One seed, fewer epochs, no choice of hyperparameters: for a look.
    arrays : str, optional
        Folder of the authors' synthetic arrays, in place of draws: five trainings on one draw, as in the paper.
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
        asked = SEEDS[experiment.data] if self.seeds is None else self.seeds
        asked = min(asked, FEWER_SEEDS.get(experiment.method, SEEDS)[experiment.data])
        on_curve = experiment.rate != 0.1 or experiment.fixed
        if experiment.method == "fr-train" and synthetic and on_curve:
            asked = min(asked, CURVE_SEEDS)
        return range(min(asked, TRACED_SEEDS) if experiment.traced and synthetic else asked)

    def tuned_as(self, experiment: Experiment) -> Experiment | None:
        """Return the experiment whose hyperparameters this one uses; None where the defaults are used.

        The choice is made once, at a rate of 10 %, for each method and column of a table. On the synthetic data ours
        has the authors' own settings, which are the defaults, and its ablations always have what it has.
        """
        method = METHODS[experiment.method]
        single = all(len(values) == 1 for values in method.candidates.values())
        ours = experiment.method in ABLATIONS
        if self.quick or single or experiment.fixed or (ours and experiment.data == "synthetic"):
            return None
        noise = "label" if experiment.noise == "none" else experiment.noise
        name = OURS if ours else experiment.method
        return replace(experiment, method=name, rate=0.1, noise=noise, traced=False)

    def noise(self, experiment: Experiment) -> str:
        """Return the attack of an experiment, whose regression does not see the group, as the authors' did not."""
        name, colon, group = experiment.noise.partition(":")
        if name == "group-targeted" and not group and experiment.data in self.attacked:
            colon, group = ":", self.attacked[experiment.data]
        return name if name == "none" else f"{name}-without-group{colon}{group}"

    def tuning_settings(self, experiment: Experiment) -> dict[str, Any]:
        """Return what identifies the choice of hyperparameters for an experiment."""
        seeds, folds = TUNING[experiment.data]
        arrays = self.arrays is not None and experiment.data == "synthetic"
        named = {name: value for name, value in asdict(experiment).items() if name not in ("traced", "fixed")}
        named["noise"] = self.noise(experiment)
        candidates = {name: list(values) for name, values in METHODS[experiment.method].candidates.items()}
        seeds = seeds[: 1 if arrays else None]  # the arrays are one draw
        return {"tuning": named, "seeds": list(seeds), "folds": folds, "arrays": arrays, "grid": candidates}

    def comparison(self, experiment: Experiment, chosen: dict[str, Any] | None = None) -> Comparison:
        """Return what to run for an experiment, with the hyperparameters chosen for it."""
        fixed = METHODS[experiment.method].defaults | (chosen or {}) | dict(experiment.fixed)
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

    def method(self, name: str) -> str:
        """Return the method that is run under a name: the authors' variant in place of ours, where it is asked for."""
        return AUTHORS if name == OURS and self.as_authors else name


@dataclass(frozen=True)
class Item:
    """A table or a figure: of the paper, or one that it has not."""

    name: str
    title: str
    experiments: tuple[Experiment, ...]


def find_items(name: str) -> list[Item]:
    """Find one item by its name, or all items by ``all``.

    Examples
    --------
    >>> [item.title for item in find_items("table4")]
    ['Seconds of the method and FR-Train']
    """
    if name == "all":
        return list(ITEMS.values())
    if name not in ITEMS:
        raise InvalidInputError(
            f"what must be list, all, or one of {', '.join(ITEMS)}; got {name!r}"
            f"{closest_hint(name, ['list', 'all', *ITEMS])}"
        )
    return [ITEMS[name]]


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


PLAIN_COMPAS = Experiment("lr", "compas", rate=0, traced=True)  # Fig. 1
TABLE1, TABLE2 = (paper_tables()[number].columns for number in (1, 2))
TITLES = {
    "table1": "Synthetic data",
    "table2": "COMPAS",
    "table3": "FR-Train's three validation sets on COMPAS",
    "table4": "Seconds of the method and FR-Train",
    "table5": "Ablation on the synthetic data and COMPAS",
    "table6": "The other two-step methods on the synthetic data",
    "table7": "AdultCensus",
    "figure1": "Cell sizes and losses on COMPAS",
    "figure2": "LR and ITLM on COMPAS by noise rate",
    "figure3": "Synthetic data by noise rate, demographic parity",
    "figure4": "The synthetic data",
    "figure5": "Accuracy against EO disparity, the method and FR-Train",
    "figure6": "Synthetic data by noise rate, equalized odds",
    "constraints": "What the fairness constraints do (not in the paper)",
    "convergence": "Training about twice as long (not in the paper)",
    "rivals": "Methods since 2018 (not in the paper)",
}


def _experiments(item: str) -> Iterator[Experiment]:
    """Yield the experiments of a table or figure."""

    def in_columns(names: Iterable[str], columns: Iterable[PaperColumn]) -> Iterator[Experiment]:
        return (variant_experiment(name, column) for name in names for column in columns)

    if item.startswith("table"):
        table = paper_tables()[int(item.removeprefix("table"))]
        yield from in_columns([*table.lines, *EXTRA_LINES.get(table.number, ())], table.columns)
    elif item == "figure1":
        yield PLAIN_COMPAS
    elif item == "figure2":
        yield from (each for method in ("lr", "itlm") for each in compas_rate_experiments(method))
    elif item in RATE_FIGURES:
        for method in RATE_METHODS:
            yield from rate_experiments(method, RATE_FIGURES[item])
    elif item == "figure5":
        for method in CURVES:
            yield from (
                each for noise in ("label", "group-targeted") for each in curve_experiments(method, noise)
            )
    elif item == "constraints":
        yield from in_columns((OURS, f"{OURS} traced", f"{AUTHORS} traced"), TABLE1)
        yield from (each for column in TABLE1 for each in clean_ratio_experiments(column))
    elif item == "convergence":
        yield from in_columns((OURS, f"{OURS} longer"), TABLE1)
    elif item == "rivals":
        yield from in_columns((OURS, "lr", *RIVALS), (*TABLE1, *TABLE2))


ITEMS = {name: Item(name, title, tuple(_experiments(name))) for name, title in TITLES.items()}
