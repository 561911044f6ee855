"""``fairsieve reproduce``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from fairsieve.cli.compare_command import Backend, Jobs
from fairsieve.cli.options import Config, Verbose, names_in, write_settings
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError


def reproduce_command(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            help="list, all, or table1 … table7, figure1 … figure6, constraints, convergence, rivals.",
            autocompletion=names_in("fairsieve_reproduction.experiments:ITEMS", "list", "all"),
        ),
    ],
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            help="Draws and splits, by default 30 draws, 20 splits of COMPAS, 10 of Adult; METHOD=N for one method.",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    verbose: Verbose = False,
    jobs: Jobs = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The folder of the records, tables, figures and the page; 'reproduced' where it is not named.",
            show_default=False,
        ),
    ] = None,
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
        ),
    ] = None,
    selection: Annotated[
        Literal["text", "authors"],
        typer.Option(help="Select by Algorithm 1 as printed, or as the authors' code does."),
    ] = "text",
    judge_only: Annotated[
        bool,
        typer.Option(
            "--judge-only",
            help="Make tables, verdicts and the page from the records alone: those of --out or, without it, those that "
            "are published with the source.",
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, fewer epochs, no tuning: for a look.")
    ] = False,
) -> None:
    """Recompute the paper's tables and figures.

    Put them beside its numbers, with a verdict on every claim.

    Example: fairsieve reproduce table1 --quick -o reproduced
    """
    from fairsieve.benchmark.records import read_results
    from fairsieve.benchmark.workers import open_cluster
    from fairsieve.files import make_folder
    from fairsieve.progress import progress_bar
    from fairsieve.report.looks import pyplot
    from fairsieve.validation import check_at_least
    from fairsieve_reproduction import experiments as sets
    from fairsieve_reproduction.page import write_reproduction
    from fairsieve_reproduction.runner import check_data_sets, reproduce

    if what == "list":
        for item in sets.ITEMS.values():
            typer.echo(f"{item.name}: {item.title}")
        return
    check_at_least("--jobs", 1 if jobs is None else jobs, 1)
    counts, groups = _parse_seeds(seeds or []), dict(map(_parse_group, attacked or []))
    scope = sets.Scope(
        counts.pop("", None),
        quick,
        method_seeds=counts,
        attacked=groups,
        as_authors=selection == "authors",
    )
    items = sets.find_items(what)
    experiments = sets.collect_experiments(items)
    scopes = {scope: experiments}
    if arrays is not None or judge_only:
        synthetic = [each for each in experiments if each.data == "synthetic"]
        scopes[replace(scope, arrays=arrays or "recorded")] = synthetic
    pyplot()  # report a missing package before the work, not after it
    path = _published_records() if judge_only and out is None else None
    out = Path("reproduced") if out is None else out
    path = path or out / "records.jsonl"
    if not judge_only:
        for scope, wanted in scopes.items():
            check_data_sets(wanted, scope)
    elif not path.is_file():
        raise InvalidInputError(
            f"--judge-only needs records; {path} is not there: name their folder by --out"
        )
    make_folder("--out", out)
    write_settings(context, out)
    with stoppable(f"What is finished is in {path}: give the same command again to go on."):
        results = {scope: sets.Results(read_results(path), scope) for scope in scopes}
        if not judge_only:
            with open_cluster(backend, jobs) as workers, progress_bar("looking for what is left") as update:
                for scope, wanted in reversed(scopes.items()):  # the authors' draw first
                    for done, total, step in reproduce(wanted, results[scope], path, jobs=workers):
                        update(done, step, total=total)
        page, verdicts = write_reproduction(sets.Protocols(*results.values()), items, out)
    say(verdicts, f"The page is {page}; tables and figures are beside it")


def _published_records() -> Path | None:
    """Find the records that are published with the source, from there or from where the command is called."""
    folders = (Path(), Path(__file__).parents[3])
    paths = (folder / "docs" / "reproduction" / "records.jsonl" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _parse_seeds(texts: list[str]) -> dict[str, int]:
    """Read ``--seeds``: METHOD=N for one method, or a number for all, under no name."""
    from fairsieve_reproduction.methods.registry import find_methods

    counts = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not count.isdecimal() or int(count) < 1:
            raise InvalidInputError(f"--seeds must be a number of at least 1, or METHOD=N; got {text!r}")
        counts[find_methods(name)[0].name if name else ""] = int(count)
    return counts


def _parse_group(text: str) -> tuple[str, str]:
    data, _, group = text.partition("=")
    if data not in ("synthetic", "compas") or not group:  # of Adult, both groups are shown
        raise InvalidInputError(
            f"--attacked must be synthetic=GROUP or compas=GROUP, such as compas=Male; got {text!r}"
        )
    return data, group
