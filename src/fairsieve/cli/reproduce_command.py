"""``fairsieve reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairsieve.cli.options import among
from fairsieve.cli.terminal import say, stoppable

if TYPE_CHECKING:
    from rich.table import Table

    from fairsieve.paper.reproduce.results import Results
    from fairsieve.paper.reproduce.targets import Item

__all__ = ["ITEM_NAMES", "reproduce_command"]

# The names of fairsieve.paper.reproduce.targets.ITEMS, without importing it.
ITEM_NAMES = (
    *(f"table{number}" for number in range(1, 8)),
    *(f"figure{number}" for number in range(1, 7)),
    "trade-off",
    "defaults",
)


def reproduce_command(
    what: Annotated[
        str,
        typer.Argument(
            help="list, all, or table1 … table7, figure1 … figure6, trade-off, defaults.",
            autocompletion=among("list", "all", *ITEM_NAMES),
        ),
    ],
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, …; the synthetic tables take ten or more.")] = 5,
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
    synthetic_arrays: Annotated[
        str | None,
        typer.Option(
            help="The folder of the authors' synthetic arrays, in place of draws.", show_default=False
        ),
    ] = None,
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
    from fairsieve.paper.reproduce.results import Results
    from fairsieve.paper.reproduce.runner import check_data_sets
    from fairsieve.paper.reproduce.targets import collect_experiments, find_items
    from fairsieve.validation import check_at_least

    if what == "list":
        Console().print(_items_table())
        return
    for option, value in (("--seeds", seeds), ("--jobs", 1 if jobs is None else jobs)):
        check_at_least(option, value, 1)
    items, scope = find_items(what), Scope(seeds, quick, synthetic_arrays)
    check_extras()
    check_data_sets(collect_experiments(items), scope)
    make_folder(out)
    path = out / "records.jsonl"
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        results = Results.read(path, scope)
        with open_cluster(backend):
            _run_all(items, results, path, jobs or (2 if backend is None else -1))
        page = write_reproduction(results, items, out)
    say(_verdict_line(results), f"The page is {page}; tables and figures are beside it")


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
        for step in runner.reproduce(collect_experiments(items), results, path, jobs=jobs):
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


def _verdict_line(results: Results) -> str:
    """Say how many claims hold, in one line."""
    from fairsieve.paper.claims.claims import verdicts

    found = [verdict.holds for verdict in verdicts(results)]
    return (
        f"{found.count(True)} claims hold, {found.count(False)} do not, {found.count(None)} are inconclusive"
    )
