"""``fairsieve reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fairsieve.cli.compare_command import Backend, Jobs
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from fairsieve.paper.reproduce.experiments import Item
    from fairsieve.paper.reproduce.results import Results


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
        list[str] | None,
        typer.Option(
            help="Draws and splits, by default 30 draws, 20 splits of COMPAS, 10 of Adult; METHOD=N for one method.",
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
    attacked: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATA=GROUP",
            help="The group to attack of a data set, in place of the one by the paper's rule.",
            show_default=False,
        ),
    ] = None,
    selection: Annotated[
        Literal["text", "authors"],
        typer.Option(help="Select by Algorithm 1 as printed, or as the authors' code does."),
    ] = "text",
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
    from fairsieve.paper.reproduce.claims import judgements
    from fairsieve.paper.reproduce.experiments import ITEMS, Scope, collect_experiments, find_items
    from fairsieve.paper.reproduce.page import count_verdicts, write_reproduction
    from fairsieve.paper.reproduce.results import Protocols, Results
    from fairsieve.paper.reproduce.runner import check_data_sets
    from fairsieve.paper.workers import open_cluster
    from fairsieve.report.looks import pyplot
    from fairsieve.validation import check_at_least

    if what == "list":
        for item in ITEMS.values():
            typer.echo(f"{item.name}: {item.title}")
        return
    check_at_least("--jobs", 1 if jobs is None else jobs, 1)
    by_method = _parse_seeds(seeds or [])
    scope = Scope(
        by_method.pop("", None),
        quick,
        method_seeds=by_method,
        attacked=dict(map(_parse_group, attacked or [])),
        as_authors=selection == "authors",
    )
    items = find_items(what)
    scopes = [scope]
    if arrays is not None or judge_only:
        scopes.append(replace(scope, arrays=arrays or "recorded"))
    pyplot()  # report a missing package before the work, not after it
    path = out / "records.jsonl"
    if not judge_only:
        for each in scopes:
            check_data_sets(collect_experiments(items), each)
    elif not path.is_file():
        raise InvalidInputError(
            f"--judge-only needs records; {path} is not there: name their folder by --out"
        )
    make_folder("--out", out)
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        protocols = Protocols(*(Results.read(path, each) for each in scopes))
        if not judge_only:
            with open_cluster(backend, jobs) as workers:
                for results in filter(None, (protocols.authors, protocols.fresh)):
                    _run_all(items, results, path, workers)
        page = write_reproduction(protocols, items, out)
    say(count_verdicts(judgements(protocols)), f"The page is {page}; tables and figures are beside it")


def _parse_seeds(texts: Sequence[str]) -> dict[str, int]:
    """Read ``--seeds``: METHOD=N for one method, or a number for all, under no name."""
    from fairsieve.paper.methods.registry import find_methods

    found = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not count.isdecimal() or int(count) < 1:
            raise InvalidInputError(f"--seeds must be a number of at least 1, or METHOD=N; got {text!r}")
        found[find_methods(name)[0].name if name else ""] = int(count)
    return found


def _parse_group(text: str) -> tuple[str, str]:
    data, _, group = text.partition("=")
    if not (data and group):
        raise InvalidInputError(f"--attacked must be DATA=GROUP, such as adult=Female; got {text!r}")
    return data, group


def _run_all(items: Sequence[Item], results: Results, path: Path, jobs: int) -> None:
    """Run what is missing, with a line that says what is left."""
    from fairsieve.paper.reproduce import runner
    from fairsieve.paper.reproduce.experiments import collect_experiments
    from fairsieve.progress import progress_bar

    with progress_bar("looking for what is left") as update:
        experiments = collect_experiments(items)
        if results.scope.arrays is not None:
            experiments = [experiment for experiment in experiments if experiment.data == "synthetic"]
        for step in runner.reproduce(experiments, results, path, jobs=jobs):
            seconds = step.seconds_left
            time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
            update(step.done, f"about {time} left; {step.latest}", total=step.total)
