"""Every table and figure of the paper: what it shows, and the trials it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.published import Column, paper_tables
from fairsieve.paper.reproduce.trials import Trial, trial_of

__all__ = [
    "DEFAULTS_OF",
    "ITEMS",
    "RATES",
    "RATE_METHODS",
    "TRADE_OFF",
    "WEIGHTS",
    "Item",
    "compas_rate_trials",
    "find_items",
    "noise_rate_trials",
    "plain_compas",
    "trade_off_methods",
    "trade_off_trials",
    "trials_of",
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
    Column(data, noise, fairness)
    for data in ("synthetic", "compas", "adult")
    for noise in ("label", "group-targeted")
    for fairness in ("equalized_odds", "demographic_parity")
)


@dataclass(frozen=True)
class Item:
    """A table or a figure of the paper, or the trade-off of all methods."""

    name: str
    title: str
    trials: tuple[Trial, ...]


def find_items(name: str) -> list[Item]:
    """One item by its name, or ``all``.

    Examples
    --------
    >>> [item.title for item in find_items("table4")]
    ['Seconds of ours and FR-Train']
    """
    if name == "all":
        return list(ITEMS.values())
    if name not in ITEMS:
        raise InvalidInputError(f"what must be list, all, or one of {', '.join(ITEMS)}; got {name!r}")
    return [ITEMS[name]]


def trials_of(items: Iterable[Item]) -> list[Trial]:
    """The trials of some items, each once."""
    return list(dict.fromkeys(trial for item in items for trial in item.trials))


def _table_trials(number: int) -> tuple[Trial, ...]:
    """The trials of a table, line by line."""
    table = paper_tables()[number]
    return tuple(trial_of(line, column) for line in table.lines for column in table.columns)


def noise_rate_trials(method: str, fairness: str) -> list[Trial]:
    """A method at every noise rate of Figs. 3 and 6."""
    return [Trial(method, "synthetic", fairness=fairness, rate=rate) for rate in RATES]


def compas_rate_trials(method: str) -> list[Trial]:
    """LR or ITLM at every noise rate of Fig. 2; with the defaults, since no one rate is there to choose on."""
    return [Trial(method, "compas", rate=rate, tuned=False) for rate in COMPAS_RATES]


def trade_off_trials(method: str, noise: str) -> list[Trial]:
    """A method at every point of its curve in Fig. 5."""
    name, values = WEIGHTS[method]
    return [Trial(method, "synthetic", noise, fixed=((name, value),)) for value in values]


def plain_compas() -> Trial:
    """Logistic regression on COMPAS as it is (Fig. 1)."""
    return Trial("lr", "compas", rate=0, tuned=False)


def trade_off_methods(data: str) -> Sequence[str]:
    """The methods of the trade-off plots: all, but on Adult those of Table 7, which are slow enough."""
    if data == "adult":
        return [line.method for line in paper_tables()[7].lines]
    return list(METHODS)


def _rate_figure(fairness: str) -> tuple[Trial, ...]:
    return tuple(trial for method in RATE_METHODS for trial in noise_rate_trials(method, fairness))


ITEMS = {
    item.name: item
    for item in (
        Item("table1", "Synthetic data", _table_trials(1)),
        Item("table2", "COMPAS", _table_trials(2)),
        Item("table3", "FR-Train's three validation sets on COMPAS", _table_trials(3)),
        Item("table4", "Seconds of ours and FR-Train", _table_trials(4)),
        Item("table5", "Ablation on the synthetic data and COMPAS", _table_trials(5)),
        Item("table6", "The other two-step methods on the synthetic data", _table_trials(6)),
        Item("table7", "AdultCensus", _table_trials(7)),
        Item("figure1", "Cell sizes and losses on COMPAS", (plain_compas(),)),
        Item(
            "figure2",
            "LR and ITLM on COMPAS by noise rate",
            tuple(trial for method in ("lr", "itlm") for trial in compas_rate_trials(method)),
        ),
        Item(
            "figure3", "Synthetic data by noise rate, demographic parity", _rate_figure("demographic_parity")
        ),
        Item("figure4", "The synthetic data", ()),
        Item(
            "figure5",
            "Accuracy against EO disparity, ours and FR-Train",
            tuple(
                trial
                for method in WEIGHTS
                for noise in ("label", "group-targeted")
                for trial in trade_off_trials(method, noise)
            ),
        ),
        Item("figure6", "Synthetic data by noise rate, equalized odds", _rate_figure("equalized_odds")),
        Item(
            "defaults",
            "Tables 1, 2, 5 and 6 with the default hyperparameters (not in the paper)",
            tuple(replace(trial, tuned=False) for number in DEFAULTS_OF for trial in _table_trials(number)),
        ),
        Item(
            "trade-off",
            "All methods, accuracy against disparity (not in the paper)",
            tuple(
                Trial(method, column.data, column.noise, column.fairness)
                for column in TRADE_OFF
                for method in trade_off_methods(column.data)
            ),
        ),
    )
}
