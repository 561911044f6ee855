"""``fairsieve compare``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairsieve.cli.demo_command import NOISE_NAMES
from fairsieve.cli.options import (
    Bins,
    Categories,
    Drop,
    Fairness,
    Missing,
    Positive,
    SmallGroups,
    Verified,
    among,
)
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from fairsieve.paper.compare import Comparison, Row
    from fairsieve.paper.methods.contract import Method
    from fairsieve.paper.records import Record

__all__ = ["METHOD_NAMES", "compare_command"]

# The names of fairsieve.paper.methods.registry.METHODS, without importing it.
METHOD_NAMES = (
    "lr",
    "itlm",
    "fairbatch",
    "penalty",
    "itlm-fairbatch",
    "itlm-penalty",
    "itlm+penalty-fairbatch",
    "itlm+penalty-penalty",
    "fairsieve",
    "fairsieve-no-constraints",
    "fairsieve-no-weights",
    "fr-train-published",
    "fr-train",
    "fairsieve-auto",
    "exponentiated-gradient",
    "threshold-optimizer",
    "reweighing",
    "group-confident-learning",
    "fair-label-correction",
)


def compare_command(
    data: Annotated[
        str | None,
        typer.Option(
            help="synthetic, compas, adult or german; by default synthetic.",
            autocompletion=among("synthetic", "compas", "adult", "german"),
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
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --table: the column to predict.", show_default=False),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="With --table: a column whose groups are compared; give it again to cross several.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help=", ".join(NOISE_NAMES) + "; by default label, and none with --table.",
            autocompletion=among(*NOISE_NAMES),
            show_default=False,
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="The share of the training labels to flip.")] = 0.1,
    fairness: Fairness = "equalized-odds",
    methods: Annotated[
        str,
        typer.Option(
            help=f"all, paper, or names with commas between them: {', '.join(METHOD_NAMES)}.",
            autocompletion=among("all", "paper", *METHOD_NAMES),
        ),
    ] = "paper",
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, … to run and average.")] = 5,
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
        Path,
        typer.Option("--out", "-o", help="The folder of the records; runs that are there are not repeated."),
    ] = Path("runs"),
    validation: Annotated[
        str,
        typer.Option(
            help="The validation set of the methods that use one: clean, noisy or cleaned.",
            autocompletion=among("clean", "noisy", "cleaned"),
        ),
    ] = "clean",
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Choose hyperparameters by cross-validation, or do not.")
    ] = True,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs; by default the paper's.", show_default=False)
    ] = None,
    arrays: Annotated[
        str | None, typer.Option(help="The folder of the authors' synthetic arrays.", show_default=False)
    ] = None,
    verified: Verified = None,
    clean_ratio: Annotated[
        str,
        typer.Option(
            help="With --table: the share of labels believed right, for methods that need it, or auto."
        ),
    ] = "auto",
    positive: Positive = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    drop: Drop = None,
    categories: Categories = None,
    missing: Missing = None,
) -> None:
    """Compare methods on data with wrong labels, or on your own table.

    Train each on noisy data and measure it on clean data, seed by seed. With --table, train on repeated splits and
    measure on the table's own labels, or on those that somebody verified.

    Example: fairsieve compare --data compas --noise label --methods lr,fairsieve --seeds 3 -o runs

    Example: fairsieve compare --table people.csv --label income --sensitive sex --methods all -o runs
    """
    from rich.console import Console

    from fairsieve.cli.compare_table import ask_table, say_table
    from fairsieve.paper import compare as comparing
    from fairsieve.paper.attacks import NOISES
    from fairsieve.paper.folders import make_folder
    from fairsieve.paper.methods.registry import find_methods
    from fairsieve.paper.problems import make_problem, paper_settings
    from fairsieve.selection.select import count_budget
    from fairsieve.validation import check_choice, check_share

    if table is not None and data is not None:
        raise InvalidInputError(
            f"--table and --data must not be given together; got {table} and {data}: leave one out"
        )
    settings = {
        "positive": positive,
        "fairness": fairness,
        "clean_ratio": clean_ratio,
        "bins": bins or (),
        "small_groups": small_groups,
        "drop": drop or (),
        "categories": categories or (),
        "missing": tuple(missing or ()),
        "verified": tuple(verified or ()),
    }
    own = ask_table(table, label, sensitive, settings)
    data = data or "synthetic"
    noise = noise or ("none" if own is not None else "label")
    check_choice("--noise", noise, NOISES)
    check_choice("--validation", validation, ("clean", "noisy", "cleaned"))
    check_share("--rate", rate, most=0.5)
    _check_counts({"--seeds": seeds, "--jobs": jobs, "--epochs": epochs})
    if arrays is not None and data != "synthetic":
        raise InvalidInputError(f"--arrays must go with --data synthetic; got --data {data}: leave one out")
    chosen = find_methods(methods)
    asked = comparing.Comparison(
        data="table" if own is not None else data,
        noise=noise if rate > 0 else "none",
        rate=0.0 if own is not None and noise == "none" else rate,
        fairness=fairness,
        validation=validation,  # type: ignore[arg-type]
        tune=tune,
        epochs=epochs,
        arrays=arrays,
        table=own,
    )
    if own is None:  # report a wrong name or a missing file at once
        paper_settings(data, noise, rate, asked.fairness)
        make_problem(data, "none", 0, 0, arrays=arrays)
    count_budget(1 - rate, 1)
    make_folder(out)
    path = out / "records.jsonl"
    records = _make_records(asked, chosen, seeds, path, jobs=jobs, backend=backend)
    rows = comparing.summarise(records, chosen, asked.fairness)
    if own is not None:
        say_table(asked, records, rows)
    else:
        Console().print(_comparison_table(asked, rows, seeds))
    say(*(f"{row.method.name}: {row.error}" for row in rows if row.error is not None))
    say(f"{'1 record' if len(records) == 1 else f'{len(records)} records'} in {path}")


def _check_counts(options: dict[str, int | None]) -> None:
    """Check that what is given is 1 or more."""
    from fairsieve.validation import check_at_least

    for option, value in options.items():
        if value is not None:
            check_at_least(option, value, 1)


def _make_records(
    asked: Comparison, chosen: list[Method], seeds: int, path: Path, *, jobs: int | None, backend: str | None
) -> list[Record]:
    """Make the runs that are not recorded yet, here or on a cluster, and show how far they are."""
    from fairsieve.paper.cluster import open_cluster
    from fairsieve.paper.compare import compare
    from fairsieve.progress import progress_bar

    records: list[Record] = []
    workers = jobs or (2 if backend is None else -1)
    with (
        stoppable(f"What is finished is in {path}: give the same command again to go on."),
        open_cluster(backend),
        progress_bar(f"{asked.data}, {asked.noise}", len(chosen) * seeds) as update,
    ):
        for record in compare(asked, chosen, range(seeds), path, jobs=workers):
            records.append(record)
            done = record["settings"]
            update(len(records), f"{done['method']}, seed {done['seed']}")
    return records


def _comparison_table(asked: Comparison, rows: list[Row], seeds: int) -> Table:
    """Lay out the results, with the best and second best of the fair and robust methods marked, as in the paper."""
    from rich.table import Table

    from fairsieve.selection.fairness import ABBREVIATIONS

    count = "1 seed" if seeds == 1 else f"{seeds} seeds"
    table = Table(
        title=f"{asked.data}, {asked.rate:.0%} flips ({asked.noise}), clean test data, {count}",
        caption="¹ best, ² second best of the fair and robust methods",
    )
    table.add_column("method")
    for name in ("accuracy ↑", f"{ABBREVIATIONS[asked.fairness]} disparity ↓", "seconds"):
        table.add_column(name, justify="right")
    both = [row for row in rows if row.method.family == "fair and robust" and row.seeds]
    by_accuracy = sorted(both, key=lambda row: -row.accuracy[0])
    by_disparity = sorted(both, key=lambda row: row.disparity[0])
    family = None
    for row in rows:
        if family not in (None, row.method.family):
            table.add_section()
        family = row.method.family
        cells = [
            _marked(f"{mean:.3f}" if seeds == 1 else f"{mean:.3f} ± {deviation:.3f}", row, order)
            for (mean, deviation), order in ((row.accuracy, by_accuracy), (row.disparity, by_disparity))
        ]
        seconds = "–" if math.isnan(row.seconds) else f"{row.seconds:.2f}"
        table.add_row(row.method.title, *(cells if row.seeds else ["–", "–"]), seconds)
    return table


def _marked(text: str, row: Row, order: list[Row]) -> str:
    """Mark a text with the rank of its row."""
    for rank, (style, mark) in enumerate((("bold", "¹"), ("underline", "²"))):
        if len(order) > rank and order[rank] is row:
            return f"[{style}]{text}[/{style}] {mark}"
    return f"{text}  "
