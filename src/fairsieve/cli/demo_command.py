"""``fairsieve demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairsieve.cli.options import Fairness, among
from fairsieve.cli.terminal import say, stoppable

if TYPE_CHECKING:
    from rich.table import Table

    from fairsieve.paper.demo import Demo

__all__ = ["NOISE_NAMES", "demo_command"]

# The names of fairsieve.paper.attacks.NOISES, without importing it.
NOISE_NAMES = (
    "none",
    "label",
    "influence",
    "group-targeted",
    "group-targeted-influence",
    "label-without-group",
    "group-targeted-without-group",
    "label-without-group-offset",
    "uniform",
    "weak-annotator",
    "boundary",
    "feature",
)


def demo_command(
    fairness: Fairness = "equalized-odds",
    noise: Annotated[
        str, typer.Option(help=", ".join(NOISE_NAMES) + ".", autocompletion=among(*NOISE_NAMES))
    ] = "group-targeted",
    rate: Annotated[float, typer.Option(help="The share of the training labels to flip.")] = 0.1,
    seeds: Annotated[int, typer.Option(help="How many draws and fits to average.")] = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the figure.")] = Path("demo"),
) -> None:
    """Train four methods on data with wrong labels, and compare them.

    Example: fairsieve demo --rate 0.2 -o demo
    """
    from rich.console import Console

    from fairsieve.paper.attacks import NOISES
    from fairsieve.paper.demo_figure import draw_demo
    from fairsieve.paper.folders import make_folder
    from fairsieve.report.style import pyplot
    from fairsieve.selection.fairness import fairness_name
    from fairsieve.validation import check_at_least, check_choice, check_share

    if rate == 0:
        noise = "none"
    check_choice("--noise", noise, NOISES)
    check_share("--rate", rate, most=0.5)
    check_at_least("--seeds", seeds, 1)
    fairness = fairness_name(fairness)
    pyplot()  # report a missing package before the work, not after it
    make_folder(out)
    with stoppable("No figure was drawn."):
        found = _train_methods(fairness, noise, rate, seeds)
        Console().print(_demo_table(found, seeds))
        draw_demo(found, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")


def _train_methods(fairness: str, noise: str, rate: float, seeds: int) -> Demo:
    """Run the demo's trainings under a progress bar."""
    from fairsieve.paper import demo
    from fairsieve.paper.methods.registry import METHODS
    from fairsieve.progress import progress_bar

    with progress_bar("starting", len(demo.DEMO_METHODS) * seeds) as update:
        begun = 0

        def report(method: str, seed: int) -> None:
            nonlocal begun
            update(begun, f"{METHODS[method].title}, seed {seed}")
            begun += 1

        return demo.run_demo(fairness=fairness, noise=noise, rate=rate, seeds=range(seeds), report=report)


def _demo_table(found: Demo, seeds: int) -> Table:
    """Lay out the demo's results for a terminal."""
    from rich.table import Table

    from fairsieve.paper.methods.registry import METHODS

    count = "1 seed" if seeds == 1 else f"{seeds} seeds"
    table = Table(
        title=f"{found.rate:.0%} of the training labels flipped ({found.noise}), clean test data, "
        f"{count}, fairness: {found.fairness.replace('_', ' ')}"
    )
    table.add_column("method")
    for name in ("accuracy ↑", "EO disparity ↓", "DP disparity ↓", "seconds"):
        table.add_column(name, justify="right")
    for row in found.rows:
        values = (row.accuracy, row.equalized_odds, row.demographic_parity)
        shown = [
            f"{mean:.3f}" if seeds == 1 else f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in values
        ]
        style = "bold" if row.title == METHODS["fairsieve"].title else None
        table.add_row(row.title, *shown, f"{row.seconds:.2f}", style=style)
    return table
