"""``fairsieve compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError
from fairsieve.paper.attacks import NOISES
from fairsieve.paper.compare import Comparison, Row, compare, summarise
from fairsieve.paper.folders import make_folder
from fairsieve.paper.methods.registry import find_methods
from fairsieve.paper.problems import make_problem, paper_settings
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.selection.select import budget_of
from fairsieve.validation import check_at_least, check_choice, check_share

__all__ = [
    "compare_command",
]


def compare_command(
    data: Annotated[str, typer.Option(help="synthetic, compas, adult or german.")] = "synthetic",
    noise: Annotated[str, typer.Option(help=", ".join(NOISES) + ".")] = "label",
    rate: Annotated[float, typer.Option(help="Share of the training labels to flip.")] = 0.1,
    fairness: Annotated[
        str, typer.Option(help="equalized-odds, demographic-parity or equal-opportunity.")
    ] = "equalized-odds",
    methods: Annotated[str, typer.Option(help="Names with commas between them, or all, or paper.")] = "paper",
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, … to run and average.")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the records; runs that are there are kept.")] = Path(
        "runs"
    ),
    validation: Annotated[
        str, typer.Option(help="Validation set of the methods that use one: clean, noisy or cleaned.")
    ] = "clean",
    tune: Annotated[bool, typer.Option(help="Choose hyperparameters by cross-validation.")] = True,
    epochs: Annotated[int | None, typer.Option(help="Epochs; the paper's when not given.")] = None,
    arrays: Annotated[str | None, typer.Option(help="Folder of the authors' synthetic arrays.")] = None,
) -> None:
    """Train methods on noisy data, and measure them on clean data, seed by seed."""
    check_choice("--noise", noise, NOISES)
    check_choice("--validation", validation, ("clean", "noisy", "cleaned"))
    check_share("--rate", rate, most=0.5)
    for option, value in (
        ("--seeds", seeds),
        ("--jobs", jobs),
        ("--epochs", 1 if epochs is None else epochs),
    ):
        check_at_least(option, value, 1)
    if arrays is not None and data != "synthetic":
        raise InvalidInputError(f"--arrays must go with --data synthetic; got --data {data}: leave one out")
    chosen = find_methods(methods)
    asked = Comparison(
        data=data,
        noise=noise if rate > 0 else "none",
        rate=rate,
        fairness=fairness,
        validation=validation,  # type: ignore[arg-type]
        tune=tune,
        epochs=epochs,
        arrays=arrays,
    )
    paper_settings(data, noise, rate, asked.fairness)  # a wrong name or a missing file is told at once
    make_problem(data, "none", 0, 0, arrays=arrays)
    budget_of(1 - rate, 1)
    make_folder(out)
    path = out / "records.jsonl"
    records: list[dict[str, Any]] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = f"What is finished is in {path}: give the same command again to go on."
    with stoppable(left), Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{data}, {asked.noise}", total=len(chosen) * seeds)
        for record in compare(asked, chosen, range(seeds), path, jobs=jobs):
            records.append(record)
            done = record["settings"]
            bar.update(task, advance=1, description=f"{done['method']}, seed {done['seed']}")
    rows = summarise(records, chosen, asked.fairness)
    Console().print(_comparison_table(asked, rows, seeds))
    say(*(f"{row.method.name}: {row.error}" for row in rows if row.error is not None))
    say(f"{len(records)} records in {path}")


def _comparison_table(asked: Comparison, rows: list[Row], seeds: int) -> Table:
    """Best and second best marked, among the fair and robust methods, as in the paper."""
    table = Table(
        title=f"{asked.data}, {asked.rate:.0%} flips ({asked.noise}), clean test data, {seeds} seeds",
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
            _marked(f"{mean:.3f} ± {deviation:.3f}", row, order)
            for (mean, deviation), order in ((row.accuracy, by_accuracy), (row.disparity, by_disparity))
        ]
        seconds = "–" if np.isnan(row.seconds) else f"{row.seconds:.2f}"
        table.add_row(row.method.title, *(cells if row.seeds else ["–", "–"]), seconds)
    return table


def _marked(text: str, row: Row, order: list[Row]) -> str:
    """Text with the mark of its rank."""
    for rank, (style, mark) in enumerate((("bold", "¹"), ("underline", "²"))):
        if len(order) > rank and order[rank] is row:
            return f"[{style}]{text}[/{style}] {mark}"
    return f"{text}  "
