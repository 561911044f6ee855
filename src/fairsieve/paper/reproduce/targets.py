"""Every table and figure of the paper: what it shows, and the experiments it needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairsieve.errors import InvalidInputError
from fairsieve.paper.reproduce.experiments import FR_TRAIN, Experiment, table_experiment
from fairsieve.paper.reproduce.published import PaperColumn, paper_tables
from fairsieve.validation import closest_hint

__all__ = [
    "CLEAN_RATIOS",
    "ITEMS",
    "RATES",
    "RATE_METHODS",
    "TRADE_OFF",
    "TRADE_OFF_METHODS",
    "WEIGHTS",
    "Item",
    "clean_ratio_experiments",
    "collect_experiments",
    "compas_rate_experiments",
    "find_items",
    "noise_rate_experiments",
    "plain_compas",
    "trade_off_experiments",
]

RATES = (0.1, 0.125, 0.15, 0.175, 0.2)  # Figs. 3 and 6: the paper flips 10 % to 20 %
COMPAS_RATES = (0.0, 0.05, 0.1, 0.15, 0.2)  # Fig. 2
RATE_METHODS = ("lr", "itlm", *FR_TRAIN, "fairsieve")
TRADE_OFF_METHODS = ("lr", "itlm", "fairbatch", "itlm-fairbatch", "itlm-penalty", *FR_TRAIN, "fairsieve")

# Fig. 5: what makes each method fairer. Ours moves its ratios further, FR-Train weighs fairness more.
WEIGHTS: dict[str, tuple[str, tuple[float, ...]]] = {
    "fairsieve": ("step_size", (0.0, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002)),
    "fr-train-published": ("fairness_weight", (0.0, 0.15, 0.3, 0.45, 0.6)),
    "fr-train": ("fairness_weight", (0.0, 0.15, 0.3, 0.45, 0.6)),
}

TRADE_OFF = tuple(column for table in (1, 2, 7) for column in paper_tables()[table].columns)

# The clean ratios at which the ablation without constraints stands beside the full method.
CLEAN_RATIOS = (0.75, 0.78, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9)


@dataclass(frozen=True)
class Item:
    """A table or a figure of the paper, or the trade-off of all methods."""

    name: str
    title: str
    experiments: tuple[Experiment, ...]


def find_items(name: str) -> list[Item]:
    """Find one item by its name, or all items by ``all``.

    Examples
    --------
    >>> [item.title for item in find_items("table4")]
    ['Seconds of ours and FR-Train']
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


def _table_experiments(number: int) -> tuple[Experiment, ...]:
    """List the experiments of a table, line by line."""
    table = paper_tables()[number]
    return tuple(table_experiment(line, column) for line in table.lines for column in table.columns)


def noise_rate_experiments(method: str, fairness: str) -> list[Experiment]:
    """List a method at every noise rate of Figs. 3 and 6."""
    return [Experiment(method, "synthetic", fairness=fairness, rate=rate) for rate in RATES]


def compas_rate_experiments(method: str) -> list[Experiment]:
    """List LR or ITLM at every noise rate of Fig. 2."""
    return [
        Experiment(method, "compas", rate=rate, traced=method == "lr" and rate == 0) for rate in COMPAS_RATES
    ]


def trade_off_experiments(method: str, noise: str) -> list[Experiment]:
    """List a method at every point of its curve in Fig. 5."""
    name, values = WEIGHTS[method]
    return [Experiment(method, "synthetic", noise, fixed=((name, value),)) for value in values]


def plain_compas() -> Experiment:
    """Return logistic regression on COMPAS with its own labels (Fig. 1)."""
    return Experiment("lr", "compas", rate=0, traced=True)


def clean_ratio_experiments(column: PaperColumn) -> list[Experiment]:
    """List the ablation without constraints at every clean ratio, in a column of Table 1."""
    return [
        Experiment(
            "fairsieve-no-constraints",
            column.data,
            column.noise,
            column.fairness,
            fixed=(("clean_ratio", ratio),),
        )
        for ratio in CLEAN_RATIOS
    ]


def _traced_experiments() -> list[Experiment]:
    """List ours on the synthetic data with what it selected in every epoch, a column of Table 1 each."""
    return [
        Experiment("fairsieve", column.data, column.noise, column.fairness, traced=True)
        for column in paper_tables()[1].columns
    ]


def _rate_figure(fairness: str) -> tuple[Experiment, ...]:
    return tuple(
        experiment for method in RATE_METHODS for experiment in noise_rate_experiments(method, fairness)
    )


ITEMS = {
    item.name: item
    for item in (
        Item("table1", "Synthetic data", _table_experiments(1)),
        Item("table2", "COMPAS", _table_experiments(2)),
        Item("table3", "FR-Train's three validation sets on COMPAS", _table_experiments(3)),
        Item("table4", "Seconds of ours and FR-Train", _table_experiments(4)),
        Item("table5", "Ablation on the synthetic data and COMPAS", _table_experiments(5)),
        Item("table6", "The other two-step methods on the synthetic data", _table_experiments(6)),
        Item("table7", "AdultCensus", _table_experiments(7)),
        Item("figure1", "Cell sizes and losses on COMPAS", (plain_compas(),)),
        Item(
            "figure2",
            "LR and ITLM on COMPAS by noise rate",
            tuple(experiment for method in ("lr", "itlm") for experiment in compas_rate_experiments(method)),
        ),
        Item(
            "figure3", "Synthetic data by noise rate, demographic parity", _rate_figure("demographic_parity")
        ),
        Item("figure4", "The synthetic data", ()),
        Item(
            "figure5",
            "Accuracy against EO disparity, ours and FR-Train",
            tuple(
                experiment
                for method in WEIGHTS
                for noise in ("label", "group-targeted")
                for experiment in trade_off_experiments(method, noise)
            ),
        ),
        Item("figure6", "Synthetic data by noise rate, equalized odds", _rate_figure("equalized_odds")),
        Item(
            "constraints",
            "What the fairness constraints do (not in the paper)",
            (
                *_traced_experiments(),
                *(
                    experiment
                    for column in paper_tables()[1].columns
                    for experiment in (
                        Experiment("fairsieve", column.data, column.noise, column.fairness),
                        *clean_ratio_experiments(column),
                    )
                ),
            ),
        ),
        Item(
            "trade-off",
            "Accuracy against disparity (not in the paper)",
            tuple(
                Experiment(method, column.data, column.noise, column.fairness)
                for column in TRADE_OFF
                for method in TRADE_OFF_METHODS
            ),
        ),
    )
}
