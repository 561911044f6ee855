"""``fairsieve demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fairsieve.cli.options import names_in, option
from fairsieve.cli.terminal import say, stages, stoppable

NOISE = option(
    None,
    "How labels are flipped: none, label, group-targeted, uniform, greedy, label-without-group, "
    "group-targeted-without-group; group-targeted:GROUP names the group.",
    autocompletion=names_in("fairsieve.benchmark.problems:NOISES"),
)


def demo_command(
    data: Literal["nhanes", "synthetic"] = option(
        "nhanes", "What people said beside what was measured; or drawn data with flipped labels."
    ),
    seeds: int | None = option(None, "How many splits, or draws, to average [10 splits, 5 draws]."),
    out: Path = option("demo", "The folder for the figure.", "--out", "-o"),
    fairness: str | None = option(
        None, "What groups are compared by; with --data synthetic [equalized-odds]."
    ),
    noise: str | None = NOISE,
    rate: float | None = option(
        None, "The share of the training labels to flip; with --data synthetic [0.1]."
    ),
) -> None:
    """Show what the method does, on labels that people gave.

    Four models learn from labels of which some are wrong, and are judged by right ones.

    Example: fairsieve demo -o demo
    """
    from fairsieve.errors import InvalidInputError
    from fairsieve.files import make_folder
    from fairsieve.report.document import pyplot
    from fairsieve.validation import check_at_least

    chosen = {"--fairness": fairness, "--noise": noise, "--rate": rate}
    given = [name for name, value in chosen.items() if value is not None]
    if data == "nhanes" and given:
        raise InvalidInputError(
            f"{given[0]} must be left out with the labels of NHANES, which are not made wrong; add --data synthetic"
        )
    seeds = check_at_least("--seeds", (10 if data == "nhanes" else 5) if seeds is None else seeds, 1)
    pyplot()  # report a missing package before the work, not after it
    if data == "synthetic":
        _demo_synthetic(fairness or "equalized-odds", noise, 0.1 if rate is None else rate, seeds, out)
        return
    from fairsieve import demo
    from fairsieve.report.text import percent

    make_folder("--out", out)
    with stoppable("No figure was drawn."):
        with stages(len(demo.METHODS) * seeds) as next_stage:
            people, scores = demo.run_demo(seeds, next_stage)
        wrong = (people.labels != people.truth).mean()
        table, meaning = demo.tell_demo(people, scores)
        many = "1 split" if seeds == 1 else f"{seeds} splits, with 95 % intervals"
        say(
            f"{len(people):,} Americans (NHANES 2017-2018); the label: obese, by the height and weight they say; for "
            f"{percent(wrong)} of them it is not what was measured.",
            f"Learnt from what they say, judged by what was measured; {many}:",
            table,
            meaning,
        )
        demo.draw_demo(people, scores, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")


def _demo_synthetic(fairness: str, noise: str | None, rate: float, seeds: int, out: Path) -> None:
    """Flip labels of the paper's synthetic data, and compare the paper's methods."""
    from fairsieve.benchmark.problems import NOISES
    from fairsieve.files import make_folder
    from fairsieve.notions import find_notion
    from fairsieve.report.text import percent, quantity
    from fairsieve.validation import check_choice, check_share
    from fairsieve_reproduction import demo

    noise = "none" if rate == 0 else noise or "group-targeted"
    check_choice("--noise", noise.partition(":")[0], NOISES)
    check_share("--rate", rate, most=0.5)
    notion = find_notion(fairness)
    make_folder("--out", out)
    title = f"{percent(rate)} of the training labels flipped ({noise})"
    with stoppable("No figure was drawn."):
        with stages(len(demo.DEMO_METHODS) * seeds) as next_stage:
            scores, train, flipped, fits = demo.run_demo(notion.name, noise, rate, seeds, next_stage)
        say(f"{title}, clean test data, {quantity(seeds, 'seed')}, fairness: {notion.title}")
        say(demo.format_scores(scores))
        for cell in demo.emptied_cells(fits["sample-selection"]):
            say(
                f"The ratio of {cell} falls to 0: in the end nothing is learnt from them. On data of your own that is "
                "a warning (docs/faq.md)."
            )
        demo.draw_demo(train, flipped, fits, notion.name, title, out / "demo.png")
    say(f"The figure is in {out / 'demo.png'}")
