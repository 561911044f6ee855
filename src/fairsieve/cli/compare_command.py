"""``fairsieve compare``: methods side by side, on a data set or on somebody's own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fairsieve.cli.demo_command import Noise, Rate
from fairsieve.cli.options import among, datasets, table_settings, write_settings
from fairsieve.cli.terminal import printable, say, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from fairsieve.benchmark.contract import Method
    from fairsieve.benchmark.records import Record
    from fairsieve.benchmark.run import Comparison
    from fairsieve.benchmark.table_problems import TableSource

Jobs = Annotated[
    int | None,
    typer.Option(
        help="How many runs at a time; by default 2, or all workers of a cluster.", show_default=False
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        help="A cluster to run on: dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT.",
        show_default=False,
    ),
]


def _complete_methods(incomplete: str) -> list[str]:
    from fairsieve_reproduction.methods.registry import METHODS

    return among("default", "paper", "all", *METHODS)(incomplete)


@table_settings("compare", optional=True)
def compare_command(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Option(
            help="A public data set, such as compas (see fairsieve data list); by default synthetic.",
            autocompletion=datasets(lambda entry: entry.batch_size),
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your own table in place of --data: a CSV or Parquet file; needs --label and --sensitive.",
            show_default=False,
        ),
    ] = None,
    noise: Noise = None,
    rate: Rate = 0.1,
    methods: Annotated[
        str,
        typer.Option(
            help="default, paper, all, or names with commas between them; list prints the names.",
            autocompletion=_complete_methods,
        ),
    ] = "default",
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, … to run and average.")] = 5,
    jobs: Jobs = None,
    backend: Backend = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder of the records; runs that are there are not repeated."),
    ] = Path("runs"),
    validation: Annotated[
        Literal["clean", "noisy", "cleaned"],
        typer.Option(help="The validation set of the methods that use one."),
    ] = "clean",
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Choose hyperparameters by cross-validation, or do not.")
    ] = True,
    epochs: Annotated[
        int | None,
        typer.Option(help="Epochs of the paper's methods; by default the paper's.", show_default=False),
    ] = None,
    **settings: Any,
) -> None:
    """Compare methods on data with wrong labels, or on your own table.

    Train each on noisy data and measure it on clean data, seed by seed. With --table, train on repeated splits and
    measure on the table's own labels, or on those that somebody verified.

    Example: fairsieve compare --data compas --noise label --methods plain,fairsieve --seeds 3 -o runs

    Example: fairsieve compare --table people.csv --label income --sensitive sex -o runs
    """
    from fairsieve.benchmark import run
    from fairsieve.benchmark.problems import NOISES, make_problem, paper_settings
    from fairsieve.benchmark.workers import open_cluster
    from fairsieve.files import make_folder
    from fairsieve.progress import progress_bar
    from fairsieve.validation import check_at_least, check_choice, check_share
    from fairsieve_reproduction.methods.registry import METHODS, find_methods

    if methods == "list":
        for name, method in METHODS.items():
            typer.echo(f"{name}: {method.title} ({method.family})")
        return
    if table is not None and data is not None:
        raise InvalidInputError(
            f"--table and --data must not be given together; got {table} and {data}: leave one out"
        )
    own = _read_table(table, settings)
    data = data or "synthetic"
    noise = noise or ("none" if own is not None else "label")
    check_choice("--noise", noise.partition(":")[0], NOISES)
    check_share("--rate", rate, most=0.5)
    for option, value in (("--seeds", seeds), ("--jobs", jobs), ("--epochs", epochs)):
        check_at_least(option, 1 if value is None else value, 1)
    chosen = find_methods(methods)
    asked = run.Comparison(
        data="table" if own is not None else data,
        noise=noise if rate > 0 else "none",
        rate=0.0 if own is not None and noise == "none" else rate,
        fairness=settings.get("fairness", "equalized-odds"),
        validation=validation,
        tune=tune,
        epochs=epochs,
        table=own,
    )
    if own is None:  # report a wrong name or a missing file at once
        paper_settings(data, noise, rate, asked.fairness)
        make_problem(data, "none", 0, 0)
    make_folder("--out", out)
    write_settings(context, out)
    path = out / "records.jsonl"
    records: list[Record] = []
    with (
        stoppable(f"What is finished is in {path}: give the same command again to go on."),
        open_cluster(backend, jobs) as workers,
        progress_bar(f"{asked.data}, {asked.noise}", len(chosen) * seeds) as update,
    ):
        for record in run.compare(asked, chosen, range(seeds), path, jobs=workers):
            records.append(record)
            update(len(records), f"{record['settings']['method']}, seed {record['settings']['seed']}")
    _print_results(asked, chosen, records)
    say(f"{'1 record' if len(records) == 1 else f'{len(records)} records'} in {path}")


def _read_table(table: Path | None, settings: Mapping[str, Any]) -> TableSource | None:
    """Read the table that is asked about, and print what was done to it; None without one."""
    if table is None:
        of_table = [name.replace("_", "-") for name in settings if name != "fairness"]
        if of_table:
            raise InvalidInputError(f"--{of_table[0]} must go with --table; got no table: add --table FILE")
        return None
    for name in ("label", "sensitive"):
        if name not in settings:
            raise InvalidInputError(f"--{name} must name a column with --table; got none: add it")
    from fairsieve.benchmark.table_problems import table_source
    from fairsieve.tabular.settings import TableSettings

    source, whole = table_source(TableSettings(table, **settings))
    say(*map(str, whole.notes))
    return source


def _print_results(asked: Comparison, chosen: Sequence[Method], records: Sequence[Record]) -> None:
    """Print every method beside the first that has results, with the difference from it."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from fairsieve.notions import NOTIONS
    from fairsieve.report.text import number

    done = {method.name: [one for one in records if one["settings"]["method"] == method.name and "metrics" in one]
            for method in chosen}  # fmt: skip
    count = max(map(len, done.values()))
    first = next((method for method in chosen if done[method.name]), chosen[0])
    name = asked.data if asked.table is None else printable(asked.table.asked.data.name)
    flips = "no flips" if asked.noise == "none" else f"{asked.rate:.0%} flips ({asked.noise})"
    what = "seed" if asked.table is None else "split"
    table = Table("method", title=f"{name}, {flips}, {count} {what}{'' if count == 1 else 's'}")
    if len(chosen) > 1:
        table.caption = f"In brackets: 95 % interval of the difference from {first.title}"
    heads = []
    for head in ("accuracy ↑", f"{NOTIONS[asked.fairness].short} disparity ↓"):
        heads += [head, f"less {first.title}"] if len(chosen) > 1 else [head]
    for head in (*heads, "seconds", "tuning"):
        table.add_column(head, justify="right")
    for method in chosen:
        mine, cells = done[method.name], []
        for measure in ("accuracy", asked.fairness) if mine else ():
            cells.append(number(float(np.mean([one["metrics"][measure] for one in mine]))))
            if len(chosen) > 1:
                both = (method.name, first.name)
                cells.append("" if method is first else _difference(asked, records, both, measure))
        cells += [
            f"{np.mean([one[key] for one in mine]):.2f}" for key in ("seconds", "tuning_seconds") if mine
        ]
        table.add_row(method.title, *(cells or ["–"] * (len(table.columns) - 1)))
    Console().print(table)
    if asked.table is not None and count:
        say(*_meaning(asked, records))
    errors = {one["settings"]["method"]: one["error"] for one in reversed(records) if "error" in one}
    say(*(f"{method}: {error}" for method, error in errors.items()))


def _difference(asked: Comparison, records: Sequence[Record], methods: tuple[str, str], measure: str) -> str:
    """Write how far two methods differ, split by split or on the same verified rows, and the interval."""
    from fairsieve.benchmark.measures import compare_pairs, compare_verified
    from fairsieve.report.text import interval, number

    if asked.table is not None and asked.table.asked.verified:
        found = compare_verified(records, *methods, measure, asked.problem(0))
    else:
        found = compare_pairs(records, *methods, measure)
    if found is None:
        return "–"
    value, low, high = found
    within = "" if isnan(low) else f" ({interval((low, high))})"
    return f"{'+' if value > 0 else ''}{number(value)}{within}"


def _meaning(asked: Comparison, records: Sequence[Record]) -> list[str]:
    """Say what the labels are that everything was measured on, and what the methods were told."""
    from fairsieve.report.text import interval, number

    assert asked.table is not None
    sizes = next(record["rows"] for record in records if "rows" in record)
    ratios = [record["clean_ratio"] for record in records if "clean_ratio" in record]
    if asked.table.asked.verified:
        lines = [
            f"Measured on {sizes['test']:,} verified labels, which no method trained on, weighted by the rows' chances "
            "to be chosen; intervals are the bootstrap's over these rows."
        ]
    else:
        lines = [
            "Measured on the table's own labels of rows set aside. Where these are wrong, a method that learnt the "
            "truth is marked down and one that learnt the errors is not: differences say who predicts the labels as "
            "they are. To measure on right ones, check some by fairsieve review and add --verified.",
            "Splits share training rows; the intervals allow for that (Nadeau and Bengio 2003).",
        ]
    if asked.noise != "none":
        lines.append(
            f"{asked.rate:.0%} of the training labels were flipped ({asked.noise}), beside those that are wrong "
            "already; labels that are measured on were not."
        )
    told = interval((min(ratios), max(ratios))) if max(ratios) > min(ratios) else number(ratios[0])
    how = "estimated from each training part" if asked.table.asked.clean_ratio == "auto" else "given"
    lines.append(f"Methods that need the share of right labels were told {told} ({how}).")
    return lines
