"""``fairsieve reproduce``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairsieve.cli.terminal import say, stoppable
from fairsieve.paper.claims.claims import verdicts
from fairsieve.paper.folders import make_folder
from fairsieve.paper.reproduce.page import check_extras, write_reproduction
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.runner import check_data_sets, reproduce
from fairsieve.paper.reproduce.targets import ITEMS, Item, find_items, trials_of
from fairsieve.paper.reproduce.trials import Scope
from fairsieve.validation import check_at_least

__all__ = ["reproduce_command"]


def reproduce_command(
    what: Annotated[str, typer.Argument(help="list, all, or table1 … table7, figure1 … figure6, trade-off.")],
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, …; the synthetic tables take ten or more.")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the records, tables, figures and the page.")] = Path(
        "reproduction"
    ),
    synthetic_arrays: Annotated[
        str | None, typer.Option(help="Folder of the authors' synthetic arrays, in place of draws.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="One seed, fewer epochs, no tuning: for a look.")] = False,
) -> None:
    """Recompute the paper's tables and figures, beside its numbers and with a verdict on every claim."""
    if what == "list":
        Console().print(_items_table())
        return
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        check_at_least(option, value, 1)
    items, scope = find_items(what), Scope(seeds, quick, synthetic_arrays)
    check_extras()
    check_data_sets(trials_of(items), scope)
    make_folder(out)
    path = out / "records.jsonl"
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        _run_all(items, scope, path, jobs)
        results = Results.read(path, scope)
        page = write_reproduction(results, items, out)
    say(_verdict_line(results), f"The page is {page}; tables and figures are beside it")


def _items_table() -> Table:
    """What can be reproduced."""
    table = Table("name", "what it shows")
    for item in ITEMS.values():
        table.add_row(item.name, item.title)
    return table


def _run_all(items: Sequence[Item], scope: Scope, path: Path, jobs: int) -> None:
    """Run what is missing, with a line that tells what is left; in a log, a line every minute."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, said = bar.add_task("looking for what is left", total=None), time.monotonic()
        for step in reproduce(trials_of(items), scope, path, jobs=jobs):
            left = f"about {_minutes(step.seconds_left)} left; {step.latest}"
            bar.update(task, completed=step.done, total=step.total, description=left)
            if not bar.console.is_terminal and time.monotonic() - said > 60:
                bar.console.print(f"{step.done} of {step.total} runs, {left}", highlight=False)
                said = time.monotonic()


def _minutes(seconds: float) -> str:
    """A rough time in words.

    Examples
    --------
    >>> _minutes(40), _minutes(1800)
    ('40 s', '30 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _verdict_line(results: Results) -> str:
    """How the claims fared, in one line."""
    found = [verdict.holds for verdict in verdicts(results)]
    return (
        f"{found.count(True)} claims hold, {found.count(False)} do not, {found.count(None)} cannot be told from these "
        "runs"
    )
