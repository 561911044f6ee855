"""``fairsieve compare``: methods side by side, on a data set or on somebody's own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from fairsieve.cli.demo_command import NOISE
from fairsieve.cli.options import DATASETS, names_in, option, table_settings, write_settings
from fairsieve.cli.terminal import printable, say, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from fairsieve.benchmark.methods import Method
    from fairsieve.benchmark.problems import TableSource
    from fairsieve.benchmark.records import Record
    from fairsieve.benchmark.run import Comparison
    from fairsieve.benchmark.summary import Difference, Summary

JOBS = option(None, "How many runs at a time; by default 2, or all workers of a cluster.")
BACKEND = option(
    None, "A cluster to run on: dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT."
)


@table_settings("compare", optional=True)
def compare_command(
    context: typer.Context,
    data: str | None = option(
        None,
        "A public data set, such as compas (see fairsieve data list); by default synthetic.",
        autocompletion=names_in(DATASETS, fits=lambda entry: entry.batch_size),
    ),
    table: Path | None = option(
        None,
        "Your own table in place of --data: a CSV or Parquet file; needs --label and --sensitive.",
        metavar="FILE",
    ),
    noise: str | None = NOISE,
    rate: float = option(0.1, "The share of the training labels to flip."),
    methods: str = option(
        "default",
        "default, paper, all, or names with commas between them; list prints the names.",
        autocompletion=names_in("fairsieve_reproduction.methods.registry:METHODS", "default", "paper", "all"),
    ),
    seeds: int = option(5, "Seeds 0, 1, … to run and average."),
    jobs: int | None = JOBS,
    backend: str | None = BACKEND,
    out: Path = option(
        "runs", "The folder of the records; runs that are there are not repeated.", "--out", "-o"
    ),
    validation: Literal["clean", "noisy", "cleaned"] = option(
        "clean", "The validation set of the methods that use one."
    ),
    tune: bool = option(True, "Choose hyperparameters by cross-validation, or do not.", "--tune/--no-tune"),
    epochs: int | None = option(None, "Epochs of the paper's methods; by default the paper's."),
    **settings: Any,
) -> None:
    """Compare methods on public data, or on your own table.

    Train each on noisy data and measure it on clean data, seed by seed. With --table, train on repeated splits and
    judge for right labels: by an estimate of which are wrong, or on those that somebody verified.

    Example: fairsieve compare --data compas --noise label --methods plain,fairsieve --seeds 3 -o runs

    Example: fairsieve compare --table people.csv --label income --sensitive sex -o runs
    """
    from fairsieve.benchmark import run
    from fairsieve.benchmark.problems import NOISES, make_problem, paper_settings
    from fairsieve.benchmark.workers import open_cluster
    from fairsieve.files import make_folder
    from fairsieve.progress import progress_bar
    from fairsieve.report.text import quantity
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
    source_table = _read_table(table, settings)
    data = data or "synthetic"
    noise = noise or ("none" if source_table is not None else "label")
    check_choice("--noise", noise.partition(":")[0], NOISES)
    check_share("--rate", rate, most=0.5)
    for name, value in (("--seeds", seeds), ("--jobs", jobs), ("--epochs", epochs)):
        check_at_least(name, 1 if value is None else value, 1)
    chosen = find_methods(methods)
    asked = run.Comparison(
        data="table" if source_table is not None else data,
        noise=noise if rate > 0 else "none",
        rate=0.0 if source_table is not None and noise == "none" else rate,
        fairness=settings.get("fairness", "equalized-odds"),
        validation=validation,
        tune=tune,
        epochs=epochs,
        table=source_table,
    )
    if source_table is None:  # report a wrong name or a missing file at once
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
    say(f"{quantity(len(records), 'record')} in {path}")


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
    from fairsieve.benchmark.problems import table_source
    from fairsieve.tabular.settings import TableSettings

    source, whole = table_source(TableSettings(table, **settings))
    say(*map(str, whole.notes))
    return source


def _print_results(asked: Comparison, chosen: Sequence[Method], records: Sequence[Record]) -> None:
    """Print every method's means, the differences from the first that has results, and what they stand on."""
    from rich.console import Console

    from fairsieve.benchmark.summary import summarise
    from fairsieve.notions import NOTIONS
    from fairsieve.report.text import load_sentences

    summary, measures = summarise(asked, chosen, records), ["accuracy", NOTIONS[asked.fairness].short]
    # Two narrow tables fit where a wide one would be cut.
    Console().print(_table_of_means(asked, summary, measures))
    if any(line.apart for line in summary.lines):
        Console().print(_table_of_differences(summary, measures))
    if asked.table is not None and summary.runs:
        rows = next(record["rows"]["test"] for record in records if "rows" in record)
        ratios = [record["clean_ratio"] for record in records if "clean_ratio" in record]
        meaning = load_sentences("fairsieve.cli", "compare.j2").meaning(asked, summary, rows, ratios)
        say(*str(meaning).splitlines())
    errors = {
        record["settings"]["method"]: record["error"] for record in reversed(records) if "error" in record
    }
    say(*(f"{method}: {error}" for method, error in errors.items()))


def _table_of_means(asked: Comparison, summary: Summary, measures: Sequence[str]) -> Table:
    """Make a table with a row for each method: its means, and how long it took."""
    from fairsieve.report.text import number, percent, quantity

    name = asked.data if asked.table is None else printable(asked.table.asked.data.name)
    flips = "no flips" if asked.noise == "none" else f"{percent(asked.rate)} flips ({asked.noise})"
    title = f"{name}, {flips}, {quantity(summary.runs, 'seed' if asked.table is None else 'split')}"
    is_right = any(line.given for line in summary.lines)
    is_tuned = any(max(line.seconds[1:], default=0.0) >= 0.005 for line in summary.lines)
    heads = [f"{measure} {arrow}" for measure, arrow in zip(measures, "↑↓", strict=True)]
    heads += ["given ↑", "given ↓"] * is_right + ["seconds"] + ["tuning"] * is_tuned
    table = _table_of_methods(title, heads, "given: the same on the labels as they are" * is_right)
    for line in summary.lines:
        cells = ["–" if isnan(value) else number(value) for value in (*line.values, *line.given)]
        cells += [f"{seconds:.2f}" for seconds in line.seconds[: 1 + is_tuned]]
        table.add_row(line.method.title, *(cells or ["–"] * len(heads)))
    return table


def _table_of_differences(summary: Summary, measures: Sequence[str]) -> Table:
    """Make a table with a row for each method but the first: how far its means lie from those of that one."""
    table = _table_of_methods(f"Less {summary.first.title}, with 95 % intervals", measures)
    for line in summary.lines:
        if line.apart:
            table.add_row(line.method.title, *map(_difference, line.apart))
    return table


def _table_of_methods(title: str, heads: Sequence[str], caption: str = "") -> Table:
    """Make an empty table with a column of methods, and one for each head."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, caption=caption)
    table.add_column("method", overflow="fold", ratio=1)
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _difference(difference: Difference | None) -> str:
    """Write a difference, and its interval where there is one."""
    from fairsieve.report.text import interval, number

    if difference is None:
        return "–"
    value, low, high = difference
    within = "" if isnan(low) else f" ({interval((low, high))})"
    return f"{'+' if value > 0 else ''}{number(value)}{within}"
