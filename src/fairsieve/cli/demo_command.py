"""``fairsieve demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairsieve.cli.options import Fairness
from fairsieve.cli.terminal import say, stoppable


def _complete_noise(incomplete: str) -> list[str]:
    from fairsieve.paper.problems import NOISES

    return [name for name in NOISES if name.startswith(incomplete)]


Noise = Annotated[
    str | None,
    typer.Option(
        help="How labels are flipped: none, label, group-targeted, uniform, label-without-group, "
        "group-targeted-without-group; group-targeted:GROUP names the group.",
        autocompletion=_complete_noise,
        show_default=False,
    ),
]
Rate = Annotated[float, typer.Option(help="The share of the training labels to flip.")]


def demo_command(
    fairness: Fairness = "equalized-odds",
    noise: Noise = None,
    rate: Rate = 0.1,
    seeds: Annotated[int, typer.Option(help="How many draws and fits to average.")] = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the figure.")] = Path("demo"),
) -> None:
    """Train four methods on data with wrong labels, and compare them.

    Example: fairsieve demo --rate 0.2 -o demo
    """
    from rich.console import Console
    from rich.table import Table

    from fairsieve.files import make_folder
    from fairsieve.paper import demo
    from fairsieve.paper.problems import NOISES
    from fairsieve.progress import progress_bar
    from fairsieve.report.looks import pyplot
    from fairsieve.selection.fairness import fairness_name
    from fairsieve.validation import check_at_least, check_choice, check_share

    noise = "none" if rate == 0 else noise or "group-targeted"
    check_choice("--noise", noise.partition(":")[0], NOISES)
    check_share("--rate", rate, most=0.5)
    check_at_least("--seeds", seeds, 1)
    notion = fairness_name(fairness)
    pyplot()  # report a missing package before the work, not after it
    make_folder("--out", out)
    with stoppable("No figure was drawn."):
        with progress_bar("starting", len(demo.DEMO_METHODS) * seeds) as update:
            begun = iter(range(len(demo.DEMO_METHODS) * seeds))
            found = demo.run_demo(
                fairness=notion,
                noise=noise,
                rate=rate,
                seeds=range(seeds),
                report=lambda method, seed: update(next(begun), f"{method}, seed {seed}"),
            )
        table = Table(
            title=f"{rate:.0%} of the training labels flipped ({noise}), clean test data, "
            f"{'1 seed' if seeds == 1 else f'{seeds} seeds'}, fairness: {notion.replace('_', ' ')}"
        )
        table.add_column("method")
        for name in ("accuracy ↑", "EO disparity ↓", "DP disparity ↓", "seconds"):
            table.add_column(name, justify="right")
        for title, scores in found.scores.items():
            pairs = list(zip(scores.mean(axis=0), scores.std(axis=0), strict=True))
            shown = [f"{mean:.3f}" + (f" ± {spread:.3f}" if seeds > 1 else "") for mean, spread in pairs[:3]]
            table.add_row(title, *shown, f"{pairs[3][0]:.2f}")
        Console().print(table)
        demo.draw_demo(found, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")
