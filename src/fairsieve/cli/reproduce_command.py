"""``fairsieve reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairsieve.cli.compare_command import Backend, Jobs
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError


def _complete_items(incomplete: str) -> list[str]:
    from fairsieve.paper.reproduce.experiments import ITEMS

    return [name for name in ("list", "all", *ITEMS) if name.startswith(incomplete)]


def reproduce_command(
    what: Annotated[
        str,
        typer.Argument(
            help="list, all, or table1 … table7, figure1 … figure6, constraints, convergence, rivals.",
            autocompletion=_complete_items,
        ),
    ],
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Draws and splits at most; by default 30 draws, 20 splits of COMPAS, 10 of Adult.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = None,
    backend: Backend = None,
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
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="Make tables, verdicts and the page from the records alone.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, fewer epochs, no tuning: for a look.")
    ] = False,
) -> None:
    """Recompute the paper's tables and figures.

    Put them beside its numbers, with a verdict on every claim.

    Example: fairsieve reproduce table1 --quick -o reproduction
    """
    from fairsieve.files import make_folder
    from fairsieve.paper.records import read_results
    from fairsieve.paper.reproduce import experiments as sets
    from fairsieve.paper.reproduce.page import write_reproduction
    from fairsieve.paper.reproduce.runner import check_data_sets, reproduce
    from fairsieve.paper.workers import open_cluster
    from fairsieve.progress import progress_bar
    from fairsieve.report.looks import pyplot
    from fairsieve.validation import check_at_least

    if what == "list":
        for item in sets.ITEMS.values():
            typer.echo(f"{item.name}: {item.title}")
        return
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        check_at_least(option, 1 if value is None else value, 1)
    items = sets.find_items(what)
    experiments = sets.collect_experiments(items)
    synthetic = [
        each for each in experiments if each.data == "synthetic"
    ]  # what the authors' draw stands for
    scopes = {sets.Scope(seeds, quick): experiments}
    if arrays is not None or judge_only:
        scopes[sets.Scope(seeds, quick, arrays or "recorded")] = synthetic
    pyplot()  # report a missing package before the work, not after it
    path = out / "records.jsonl"
    if not judge_only:
        for scope, wanted in scopes.items():
            check_data_sets(wanted, scope)
    elif not path.is_file():
        raise InvalidInputError(
            f"--judge-only needs records; {path} is not there: name their folder by --out"
        )
    make_folder("--out", out)
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        found = {scope: sets.Results(read_results(path), scope) for scope in scopes}
        if not judge_only:
            with open_cluster(backend, jobs) as workers, progress_bar("looking for what is left") as update:
                for scope, wanted in reversed(scopes.items()):  # the authors' draw first
                    for done, total, step in reproduce(wanted, found[scope], path, jobs=workers):
                        update(done, step, total=total)
        page, verdicts = write_reproduction(sets.Protocols(*found.values()), items, out)
    say(verdicts, f"The page is {page}; tables and figures are beside it")
