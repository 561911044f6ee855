"""``fairsieve reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairsieve.cli.options import among
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from fairsieve.paper.reproduce.experiments import Attack
    from fairsieve.paper.reproduce.results import Protocols, Results
    from fairsieve.paper.reproduce.targets import Item

__all__ = ["ITEM_NAMES", "reproduce_command"]

# The names of fairsieve.paper.reproduce.targets.ITEMS, without importing it.
ITEM_NAMES = (
    *(f"table{number}" for number in range(1, 8)),
    *(f"figure{number}" for number in range(1, 7)),
    "constraints",
    "trade-off",
)


def reproduce_command(
    what: Annotated[
        str,
        typer.Argument(
            help="list, all, or table1 … table7, figure1 … figure6, constraints, trade-off.",
            autocompletion=among("list", "all", *ITEM_NAMES),
        ),
    ],
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Draws and splits; by default 30 draws, 20 splits of COMPAS, 10 of Adult. FR-Train, which is slow, "
            "has at most 20, 20 and 5.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="How many runs at a time; by default 2, or all workers of a cluster.", show_default=False
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="A cluster to run on: dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the records, tables, figures and the page.")
    ] = Path("reproduction"),
    arrays: Annotated[
        str | None,
        typer.Option(
            help="The folder of the authors' synthetic arrays: their draw is then shown beside fresh draws.",
            show_default=False,
        ),
    ] = None,
    attack_sees_group: Annotated[
        bool,
        typer.Option(
            "--attack-sees-group", help="Flip by a regression that sees the group; the authors' did not."
        ),
    ] = False,
    attack_offset: Annotated[
        bool,
        typer.Option(
            "--attack-offset",
            help="Add .2 to the attack's score where z = 0, with which the authors' general flips come out whole. For "
            "checks of parity only.",
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, fewer epochs, no tuning: for a look.")
    ] = False,
) -> None:
    """Recompute the paper's tables and figures.

    Put them beside its numbers, with a verdict on every claim.

    Example: fairsieve reproduce table1 --quick -o reproduction
    """
    from rich.console import Console

    from fairsieve.paper.cluster import open_cluster
    from fairsieve.paper.folders import make_folder
    from fairsieve.paper.reproduce.experiments import Scope
    from fairsieve.paper.reproduce.page import check_extras, write_reproduction
    from fairsieve.paper.reproduce.results import Protocols, Results
    from fairsieve.paper.reproduce.runner import check_data_sets
    from fairsieve.paper.reproduce.targets import collect_experiments, find_items
    from fairsieve.validation import check_at_least

    if what == "list":
        Console().print(_items_table())
        return
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        check_at_least(option, 1 if value is None else value, 1)
    if attack_sees_group and attack_offset:
        raise InvalidInputError(
            "--attack-offset is for the attack that does not see the group; leave out --attack-sees-group"
        )
    attack: Attack = "with-group" if attack_sees_group else "offset" if attack_offset else "without-group"
    items, scope = find_items(what), Scope(seeds, quick, attack=attack)
    scopes = [scope] if arrays is None else [replace(scope, arrays=arrays), scope]
    check_extras()
    for each in scopes:
        check_data_sets(collect_experiments(items), each)
    make_folder(out)
    path = out / "records.jsonl"
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        found = [Results.read(path, each) for each in scopes]
        with open_cluster(backend):
            for results in found:
                _run_all(items, results, path, jobs or (2 if backend is None else -1))
        protocols = Protocols(found[-1], found[0] if arrays is not None else None)
        page = write_reproduction(protocols, items, out)
    say(_verdict_line(protocols), f"The page is {page}; tables and figures are beside it")


def _items_table() -> Table:
    """List what can be reproduced."""
    from rich.table import Table

    from fairsieve.paper.reproduce.targets import ITEMS

    table = Table("name", "what it shows")
    for item in ITEMS.values():
        table.add_row(item.name, item.title)
    return table


def _run_all(items: Sequence[Item], results: Results, path: Path, jobs: int) -> None:
    """Run what is missing, with a line that says what is left."""
    from fairsieve.paper.reproduce import runner
    from fairsieve.paper.reproduce.targets import collect_experiments
    from fairsieve.progress import progress_bar

    with progress_bar("looking for what is left") as update:
        experiments = collect_experiments(items)
        if results.scope.arrays is not None:
            experiments = [experiment for experiment in experiments if experiment.data == "synthetic"]
        for step in runner.reproduce(experiments, results, path, jobs=jobs):
            left = f"about {_minutes(step.seconds_left)} left; {step.latest}"
            update(step.done, left, total=step.total)


def _minutes(seconds: float) -> str:
    """Write a rough time in words.

    Examples
    --------
    >>> _minutes(40), _minutes(1800)
    ('40 s', '30 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _verdict_line(protocols: Protocols) -> str:
    """Say how many claims hold, in one line."""
    from fairsieve.paper.claims.claims import verdicts

    found = [verdict.holds for verdict in verdicts(protocols.fresh, protocols.authors)]
    return (
        f"Of {len(found)} claims {found.count(True)} hold, {found.count(False)} do not, and {found.count(None)} "
        "are inconclusive"
    )
