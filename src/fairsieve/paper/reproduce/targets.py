"""Every table and figure of the paper: what it shows, and the experiments it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment, table_experiment
from fairsieve.paper.reproduce.published import PaperColumn, paper_tables
from fairsieve.validation import closest_hint

__all__ = [
    "DEFAULTS_OF",
    "ITEMS",
    "RATES",
    "RATE_METHODS",
    "TRADE_OFF",
    "WEIGHTS",
    "Item",
    "collect_experiments",
    "compas_rate_experiments",
    "find_items",
    "noise_rate_experiments",
    "plain_compas",
    "trade_off_experiments",
    "trade_off_methods",
]

RATES = (0.1, 0.125, 0.15, 0.175, 0.2)  # Figs. 3 and 6: the paper flips 10 % to 20 %
COMPAS_RATES = (0.0, 0.05, 0.1, 0.15, 0.2)  # Fig. 2
RATE_METHODS = ("lr", "itlm", "fr-train", "fairsieve")

# Fig. 5: what makes each method fairer. Ours moves its ratios further, FR-Train weighs fairness more.
WEIGHTS: dict[str, tuple[str, tuple[float, ...]]] = {
    "fairsieve": ("step_size", (0.0, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002)),
    "fr-train": ("fairness_weight", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
}

DEFAULTS_OF = (1, 2, 5, 6)  # tables that are shown with the default hyperparameters too

TRADE_OFF = tuple(
    PaperColumn(data, noise, fairness)
    for data in ("synthetic", "compas", "adult")
    for noise in ("label", "group-targeted")
    for fairness in ("equalized_odds", "demographic_parity")
)


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
    """List LR or ITLM at every noise rate of Fig. 2, with the defaults: there is no single rate to choose on."""
    return [Experiment(method, "compas", rate=rate, tuned=False) for rate in COMPAS_RATES]


def trade_off_experiments(method: str, noise: str) -> list[Experiment]:
    """List a method at every point of its curve in Fig. 5."""
    name, values = WEIGHTS[method]
    return [Experiment(method, "synthetic", noise, fixed=((name, value),)) for value in values]


def plain_compas() -> Experiment:
    """Return logistic regression on COMPAS with its own labels (Fig. 1)."""
    return Experiment("lr", "compas", rate=0, tuned=False)


def trade_off_methods(data: str) -> Sequence[str]:
    """List the methods of the trade-off plots: all, but on Adult those of Table 7, since runs there are slow."""
    if data == "adult":
        return [line.method for line in paper_tables()[7].lines]
    return list(METHODS)


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
            "defaults",
            "Tables 1, 2, 5 and 6 with the default hyperparameters (not in the paper)",
            tuple(
                replace(experiment, tuned=False)
                for number in DEFAULTS_OF
                for experiment in _table_experiments(number)
            ),
        ),
        Item(
            "trade-off",
            "All methods, accuracy against disparity (not in the paper)",
            tuple(
                Experiment(method, column.data, column.noise, column.fairness)
                for column in TRADE_OFF
                for method in trade_off_methods(column.data)
            ),
        ),
    )
}
