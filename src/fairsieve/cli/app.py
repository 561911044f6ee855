"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairsieve import __version__
from fairsieve.cli.compare_command import compare_command
from fairsieve.cli.data_command import app as data_app
from fairsieve.cli.reproduce_command import reproduce_command
from fairsieve.cli.table_command import audit_command, predict_command, train_command
from fairsieve.cli.terminal import say, say_error, stoppable
from fairsieve.errors import FairsieveError
from fairsieve.paper.attacks import NOISES
from fairsieve.paper.demo import DEMO_METHODS, Demo, run_demo
from fairsieve.paper.demo_figure import draw_demo
from fairsieve.paper.folders import make_folder
from fairsieve.paper.methods.registry import METHODS
from fairsieve.report.style import pyplot
from fairsieve.selection.fairness import fairness_name
from fairsieve.validation import check_at_least, check_choice, check_share

__all__ = ["app", "main"]

app = typer.Typer(
    help="Fair and robust training by sample selection.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(data_app, name="data", help="Fetch, list and describe data sets.")
app.command("train")(train_command)
app.command("predict")(predict_command)
app.command("audit")(audit_command)
app.command("compare")(compare_command)
app.command("reproduce")(reproduce_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairsieve {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fair and robust training by sample selection."""


@app.command("demo")
def _demo_command(
    fairness: Annotated[
        str, typer.Option(help="equalized-odds, demographic-parity or equal-opportunity.")
    ] = "equalized-odds",
    noise: Annotated[str, typer.Option(help=", ".join(NOISES) + ".")] = "group-targeted",
    rate: Annotated[float, typer.Option(help="Share of the training labels to flip.")] = 0.1,
    seeds: Annotated[int, typer.Option(help="How many draws and runs to average.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("demo"),
) -> None:
    """Train four methods on data with wrong labels; show what each makes of it."""
    if rate == 0:
        noise = "none"
    check_choice("--noise", noise, NOISES)
    check_share("--rate", rate, most=0.5)
    check_at_least("--seeds", seeds, 1)
    fairness = fairness_name(fairness)
    pyplot()  # a missing extra is told before the work, not after it
    make_folder(out)
    with stoppable("No figure was drawn."):
        found = _run_with_bar(fairness, noise, rate, seeds)
        Console().print(_demo_table(found, seeds))
        draw_demo(found, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")


def _run_with_bar(fairness: str, noise: str, rate: float, seeds: int) -> Demo:
    """The demo's trainings, with a line that tells how far they are."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling (once)", total=len(DEMO_METHODS) * seeds)
        runs = 0

        def report(method: str, seed: int) -> None:
            nonlocal runs
            bar.update(task, description=f"{METHODS[method].title}, seed {seed}", completed=runs)
            runs += 1

        return run_demo(fairness=fairness, noise=noise, rate=rate, seeds=range(seeds), report=report)


def _demo_table(found: Demo, seeds: int) -> Table:
    """The demo's results, for a terminal."""
    table = Table(
        title=f"{found.rate:.0%} of the training labels flipped ({found.noise}), clean test data, "
        f"{seeds} seeds, fairness: {found.fairness.replace('_', ' ')}"
    )
    table.add_column("method")
    for name in ("accuracy ↑", "EO disparity ↓", "DP disparity ↓", "seconds"):
        table.add_column(name, justify="right")
    for row in found.rows:
        values = (row.accuracy, row.equalized_odds, row.demographic_parity)
        shown = [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in values]
        style = "bold" if row.title == METHODS["fairsieve"].title else None
        table.add_row(row.title, *shown, f"{row.seconds:.2f}", style=style)
    return table


def main() -> None:
    """Run the command line; errors of ours, of disks and of memory are one line, without a traceback."""
    try:
        app(prog_name="fairsieve")
    except (FairsieveError, OSError) as error:
        say_error(error)
    except MemoryError as error:
        say_error(MemoryError(f"there is not enough memory ({error}): try fewer rows"))
    sys.exit(1)
