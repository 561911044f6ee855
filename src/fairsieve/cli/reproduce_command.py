"""``fairsieve reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from fairsieve.cli.compare_command import BACKEND, JOBS
from fairsieve.cli.options import CONFIG, VERBOSE, argument, names_in, option, write_settings
from fairsieve.cli.terminal import say, stoppable


def reproduce_command(
    context: typer.Context,
    what: str = argument(
        "list, all, or table1 … table7, figure1 … figure6, constraints, convergence, rivals.",
        autocompletion=names_in("fairsieve_reproduction.experiments:ITEMS", "list", "all"),
    ),
    seeds: list[str] | None = option(
        None,
        "Draws and splits, by default 30 draws, 20 splits of COMPAS, 10 of Adult; METHOD=N for one method.",
    ),
    config: Path | None = CONFIG,
    verbose: bool = VERBOSE,
    jobs: int | None = JOBS,
    backend: str | None = BACKEND,
    out: Path | None = option(
        None,
        "The folder of the records, tables, figures and the page; 'reproduced' where it is not named.",
        "--out",
        "-o",
    ),
    arrays: str | None = option(
        None, "The folder of the authors' synthetic arrays: their draw is then shown beside fresh draws."
    ),
    attacked: list[str] | None = option(
        None,
        "The group to attack of a data set, in place of the one by the paper's rule.",
        metavar="DATA=GROUP",
    ),
    selection: Literal["text", "authors"] = option(
        "text", "Select by Algorithm 1 as printed, or as the authors' code does."
    ),
    judge_only: bool = option(
        False,
        "Make tables, verdicts and the page from the records alone: those of --out or, without it, those that are "
        "published with the source.",
        "--judge-only",
    ),
    quick: bool = option(False, "One seed, fewer epochs, no tuning: for a look.", "--quick"),
) -> None:
    """Recompute the paper's tables and figures.

    Put them beside its numbers, with a verdict on every claim.

    Example: fairsieve reproduce table1 --quick -o reproduced
    """
    from fairsieve.benchmark.workers import open_cluster
    from fairsieve.files import make_folder
    from fairsieve.progress import progress_bar
    from fairsieve.report.document import pyplot
    from fairsieve.validation import check_at_least
    from fairsieve_reproduction.experiments import ITEMS
    from fairsieve_reproduction.request import Request, Sitting

    if what == "list":
        for item in ITEMS.values():
            typer.echo(f"{item.name}: {item.title}")
        return
    check_at_least("--jobs", 1 if jobs is None else jobs, 1)
    request = Request.read(
        what,
        seeds=seeds or (),
        attacked=attacked or (),
        selection=selection,
        arrays=arrays,
        judge_only=judge_only,
        quick=quick,
        out=out,
    )
    pyplot()  # report a missing package before the work, not after it
    make_folder("--out", request.out)
    write_settings(context, request.out)
    told, sitting = [], None

    def stopped() -> str:
        took = f"{sitting.end()}. " if sitting else ""
        return f"{took}What is finished is in {request.records}: give the same command again to go on."

    with stoppable(stopped):
        if not judge_only:
            with open_cluster(backend, jobs) as workers, progress_bar("looking for what is left") as update:
                sitting = Sitting(request, workers)
                for done, total, step in sitting.run():
                    update(done, step, total=total)
            told = [sitting.end()]
        page, verdicts = request.write(*told)
    say(verdicts, *told, f"The page is {page}; tables and figures are beside it")
