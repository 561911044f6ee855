"""``fairsieve compare``, ``demo`` and ``reproduce``: methods side by side, on labels of which some are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from fairsieve.cli.options import (
    CONFIG,
    DATASETS,
    VERBOSE,
    argument,
    names_in,
    option,
    table_settings,
    write_settings,
)
from fairsieve.cli.terminal import printable, say, stages, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from fairsieve.benchmark.methods import Method
    from fairsieve.benchmark.problems import TableSource
    from fairsieve.benchmark.run import Comparison
    from fairsieve.benchmark.summary import Difference
    from fairsieve.benchmark.workers import Record

JOBS = option(None, "How many runs at a time; by default 2, or all workers of a cluster.")
BACKEND = option(
    None, "A cluster to run on: dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT."
)
NOISE = option(
    None,
    "How labels are flipped: none, label, group-targeted, uniform, greedy, label-without-group, "
    "group-targeted-without-group; group-targeted:GROUP names the group.",
    autocompletion=names_in("fairsieve.benchmark.problems:NOISES"),
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
    from fairsieve.benchmark.summary import summarise
    from fairsieve.notions import NOTIONS
    from fairsieve.report.text import load_sentences, number, percent, quantity

    summary, measures = summarise(asked, chosen, records), ["accuracy", NOTIONS[asked.fairness].short]
    name = asked.data if asked.table is None else printable(asked.table.asked.data.name)
    flips = "no flips" if asked.noise == "none" else f"{percent(asked.rate)} flips ({asked.noise})"
    title = f"{name}, {flips}, {quantity(summary.runs, 'seed' if asked.table is None else 'split')}"
    is_right = any(line.given for line in summary.lines)
    is_tuned = any(max(line.seconds[1:], default=0.0) >= 0.005 for line in summary.lines)
    heads = [f"{measure} {arrow}" for measure, arrow in zip(measures, "↑↓", strict=True)]
    heads += ["given ↑", "given ↓"] * is_right + ["seconds"] + ["tuning"] * is_tuned
    means, differences = {}, {}
    for line in summary.lines:
        cells = ["–" if isnan(value) else number(value) for value in (*line.values, *line.given)]
        cells += [f"{seconds:.2f}" for seconds in line.seconds[: 1 + is_tuned]]
        means[line.method.title] = cells or ["–"] * len(heads)
        if line.apart:
            differences[line.method.title] = [*map(_difference, line.apart)]
    # Two narrow tables fit where a wide one would be cut.
    _print_table(title, heads, means, "given: the same on the labels as they are" * is_right)
    if differences:
        _print_table(f"Less {summary.first.title}, with 95 % intervals", measures, differences)
    if asked.table is not None and summary.runs:
        rows = next(record["rows"]["test"] for record in records if "rows" in record)
        ratios = [record["clean_ratio"] for record in records if "clean_ratio" in record]
        meaning = load_sentences("fairsieve.cli", "compare.j2").meaning(asked, summary, rows, ratios)
        say(*str(meaning).splitlines())
    failed = [record for record in reversed(records) if "error" in record]
    errors = {record["settings"]["method"]: record["error"] for record in failed}
    say(*(f"{method}: {error}" for method, error in errors.items()))


def _print_table(
    title: str, heads: Sequence[str], rows: Mapping[str, Sequence[str]], caption: str = ""
) -> None:
    """Print a table with a row for each method."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, caption=caption)
    table.add_column("method", overflow="fold", ratio=1)
    for head in heads:
        table.add_column(head, justify="right")
    for method, cells in rows.items():
        table.add_row(method, *cells)
    Console().print(table)


def _difference(difference: Difference | None) -> str:
    """Write a difference, and its interval where there is one."""
    from fairsieve.report.text import interval, number

    if difference is None:
        return "–"
    value, low, high = difference
    within = "" if isnan(low) else f" ({interval((low, high))})"
    return f"{'+' if value > 0 else ''}{number(value)}{within}"


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
    from fairsieve.files import make_folder
    from fairsieve.report.page import pyplot
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


def reproduce_command(
    context: typer.Context,
    what: str = argument(
        "list, all, or table1 … table7, figure1 … figure6, constraints, convergence, rivals.",
        autocompletion=names_in("fairsieve_reproduction.experiments:ITEMS", "list", "all"),
    ),
    seeds: list[str] | None = option(
        None,
        "Draws and splits, by default 30 draws, 20 splits of COMPAS, 10 of Adult; METHOD=N for one method.",
    ),
    config: Path | None = CONFIG,
    verbose: bool = VERBOSE,
    jobs: int | None = JOBS,
    backend: str | None = BACKEND,
    out: Path | None = option(
        None,
        "The folder of the records, tables, figures and the page; 'reproduced' where it is not named.",
        "--out",
        "-o",
    ),
    arrays: str | None = option(
        None, "The folder of the authors' synthetic arrays: their draw is then shown beside fresh draws."
    ),
    attacked: list[str] | None = option(
        None,
        "The group to attack of a data set, in place of the one by the paper's rule.",
        metavar="DATA=GROUP",
    ),
    selection: Literal["text", "authors"] = option(
        "text", "Select by Algorithm 1 as printed, or as the authors' code does."
    ),
    judge_only: bool = option(
        False,
        "Make tables, verdicts and the page from the records alone: those of --out or, without it, those that are "
        "published with the source.",
        "--judge-only",
    ),
    quick: bool = option(False, "One seed, fewer epochs, no tuning: for a look.", "--quick"),
) -> None:
    """Recompute the paper's tables and figures.

    Put them beside its numbers, with a verdict on every claim.

    Example: fairsieve reproduce table1 --quick -o reproduced
    """
    from fairsieve.benchmark.workers import open_cluster
    from fairsieve.files import make_folder
    from fairsieve.progress import progress_bar
    from fairsieve.report.page import pyplot
    from fairsieve.validation import check_at_least
    from fairsieve_reproduction.experiments import ITEMS
    from fairsieve_reproduction.request import Request, Sitting

    if what == "list":
        for item in ITEMS.values():
            typer.echo(f"{item.name}: {item.title}")
        return
    check_at_least("--jobs", 1 if jobs is None else jobs, 1)
    request = Request.read(
        what,
        seeds=seeds or (),
        attacked=attacked or (),
        selection=selection,
        arrays=arrays,
        judge_only=judge_only,
        quick=quick,
        out=out,
    )
    pyplot()  # report a missing package before the work, not after it
    make_folder("--out", request.out)
    write_settings(context, request.out)
    told, sitting = [], None

    def stopped() -> str:
        took = f"{sitting.end()}. " if sitting else ""
        return f"{took}What is finished is in {request.records}: give the same command again to go on."

    with stoppable(stopped):
        if not judge_only:
            with open_cluster(backend, jobs) as workers, progress_bar("looking for what is left") as update:
                sitting = Sitting(request, workers)
                for step in sitting.run():
                    update(step.done, step.title, total=step.total, left=step.left)
            told, sitting = [sitting.end()], None
        page, verdicts = request.write(*told)
    say(verdicts, *told, f"The page is {page}; tables and figures are beside it")
