"""``fairsieve demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairsieve.cli.options import Fairness
from fairsieve.cli.terminal import say, stages, stoppable


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
    from fairsieve.files import make_folder
    from fairsieve.paper import demo
    from fairsieve.paper.problems import NOISES
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
    title = f"{rate:.0%} of the training labels flipped ({noise})"
    with stoppable("No figure was drawn."):
        with stages(len(demo.DEMO_METHODS) * seeds) as tell:
            scores, train, flipped, fits = demo.run_demo(notion, noise, rate, seeds, tell)
        titles = {
            "accuracy": "accuracy ↑",
            "equalized_odds": "EO disparity ↓",
            "demographic_parity": "DP disparity ↓",
            "seconds": "seconds",
        }
        grouped = scores.groupby("method", sort=False)[[*titles]]
        shown = grouped.mean().map("{:.3f}".format)
        if seeds > 1:
            shown += grouped.std(ddof=0).map(" ± {:.3f}".format)
        many = "1 seed" if seeds == 1 else f"{seeds} seeds"
        say(f"{title}, clean test data, {many}, fairness: {notion.replace('_', ' ')}")
        say(shown.rename(columns=titles).to_string())
        demo.draw_demo(train, flipped, fits, notion, title, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")
