"""``fairsieve train``, ``predict`` and ``audit``: from a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairsieve.cli.terminal import printable, say, stoppable
from fairsieve.errors import InvalidInputError
from fairsieve.files import check_new, write_output
from fairsieve.report.number_format import percent
from fairsieve.tabular.audit import Audit, audit
from fairsieve.tabular.predict import predict
from fairsieve.tabular.reading.features import Feature, used
from fairsieve.tabular.reading.read import Reading
from fairsieve.tabular.report.csv_files import columns_csv, suspects_csv
from fairsieve.tabular.report.folder import check_page_packages, new_folder, write_run
from fairsieve.tabular.report.phrases import estimate_sentence, group_name, headline
from fairsieve.tabular.report.verdicts import guess_warning, label_warning, upper, worse_warning
from fairsieve.tabular.request import Asked, parse_clean_ratio
from fairsieve.tabular.train import STAGES, TableRun, train
from fairsieve.validation import check_at_least

__all__ = ["audit_command", "predict_command", "train_command"]

Data = Annotated[Path, typer.Argument(help="A CSV file, names in its first row, or a Parquet file.")]
Label = Annotated[str, typer.Option(help="The column to predict.")]
Sensitive = Annotated[
    list[str], typer.Option(help="A column whose groups are compared; several are crossed.")
]
Positive = Annotated[str | None, typer.Option(help="The label whose rates are told; the last of two.")]
Bins = Annotated[
    list[str] | None,
    typer.Option(help="Groups of a sensitive column of numbers: age=25,45,65, or age=4 for four."),
]
SmallGroups = Annotated[
    str, typer.Option(help="Groups of fewer than 30 people: stop, merge (into one), ignore (not compared).")
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out.")]
Categories = Annotated[list[str] | None, typer.Option(help="A column of categories that looks like numbers.")]
Separator = Annotated[str, typer.Option(help="What stands between fields: , ; | or tab.")]
Decimal = Annotated[str, typer.Option(help="What stands before decimals: . or ,")]
Missing = Annotated[list[str] | None, typer.Option(help="A value that means missing, beside NA, ? and such.")]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


def train_command(
    data: Data,
    label: Label,
    sensitive: Sensitive,
    out: Annotated[Path, typer.Option(help="Folder for the model, the report and the labels to check.")],
    positive: Positive = None,
    fairness: Annotated[
        str, typer.Option(help="equalized-odds, demographic-parity or equal-opportunity.")
    ] = "equalized-odds",
    clean_ratio: Annotated[str, typer.Option(help="Share of labels believed right, or auto.")] = "auto",
    test: Annotated[float | None, typer.Option(help="Share of the rows to measure on; 0.2.")] = None,
    test_file: Annotated[Path | None, typer.Option(help="A table to measure on instead.")] = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    keep_sensitive: Annotated[
        bool, typer.Option("--keep-sensitive", help="Learn from the sensitive columns too.")
    ] = False,
    drop: Drop = None,
    categories: Categories = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    missing: Missing = None,
    epochs: Annotated[int, typer.Option(help="Epochs of training; the first quarter plain.")] = 400,
    seed: Seed = 0,
    checkpoint_dir: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints; a stopped training goes on from the last.")
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Epochs between checkpoints; a twentieth of all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a run that is there.")] = False,
) -> None:
    """Train a plain and a fair model on a table; say what changed and which labels look wrong."""
    if test is not None and test_file is not None:
        raise InvalidInputError("--test and --test-file must not be given together: a share, or a file")
    asked = Asked(
        data,
        label,
        sensitive,
        positive,
        fairness,
        parse_clean_ratio(clean_ratio),
        0.2 if test is None else test,
        test_file,
        bins or (),
        small_groups,  # type: ignore[arg-type]
        keep_sensitive,
        drop or (),
        categories or (),
        Reading(separator, decimal, tuple(missing or ())),
        epochs,
        seed,
    )
    check_at_least("--checkpoint-every", 1 if checkpoint_every is None else checkpoint_every, 1)
    check_page_packages()
    with (
        stoppable(lambda: _left_of(checkpoint_dir)),
        new_folder(out, force=force) as folder,
        _stages(len(STAGES) + 1) as tell,
    ):
        run = train(asked, tell, checkpoint_dir=checkpoint_dir, checkpoint_every=checkpoint_every)
        tell("writing the report")
        write_run(run, folder)
    _say_run(run, out)


def _left_of(checkpoint_dir: Path | None) -> str:
    """What a training that was stopped leaves behind, and how to go on."""
    if checkpoint_dir is None:
        return "Nothing was written; with --checkpoint-dir FOLDER a stopped training can go on."
    if not any(checkpoint_dir.rglob("*.safetensors")):
        return f"Nothing was written, and no checkpoint yet to {checkpoint_dir}."
    return f"Checkpoints are in {checkpoint_dir}: give the same command again to go on from the last."


def predict_command(
    run: Annotated[Path, typer.Argument(help="A folder that fairsieve train made.")],
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file with the same columns.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")],
    separator: Separator = ",",
    decimal: Decimal = ".",
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Predict the label of every row of a table."""
    if out.exists() and data.exists() and out.samefile(data):
        raise InvalidInputError(f"--out must not be the table itself; got {out}: name another file")
    check_new("--out", out, force=force)
    with stoppable("Nothing was written."):
        table, predicted, probability, notes = predict(
            run, data, Reading(separator, decimal, tuple(missing or ()))
        )
        columns = {name: [_plain(value) for value in values] for name, values in table.columns.items()}
        added = {"predicted": predicted.tolist(), "probability": [f"{value:.4f}" for value in probability]}
        for wanted, values in added.items():
            name = _free_name(wanted, columns)
            columns[name] = values
            if name != wanted:
                notes.append(f"The table has a column {wanted!r} already; that of the model is {name!r}.")
        write_output(out, columns_csv(columns).encode())
    count = "1 row" if len(predicted) == 1 else f"{len(predicted):,} rows"
    say(*notes, f"{count} predicted, in {out}")


def audit_command(
    data: Data,
    label: Label,
    sensitive: Sensitive,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A CSV file for all suspects.")] = None,
    positive: Positive = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    drop: Drop = None,
    categories: Categories = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    missing: Missing = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Look at the data only: cells, estimated wrong labels in each, labels to check. No model is kept."""
    asked = Asked(
        data,
        label,
        sensitive,
        positive,
        bins=bins or (),
        small_groups=small_groups,  # type: ignore[arg-type]
        drop=drop or (),
        categories=categories or (),
        reading=Reading(separator, decimal, tuple(missing or ())),
        seed=seed,
    )
    if out is not None:
        check_new("--out", out, force=force)
    with stoppable("Nothing was written."), _stages(2) as tell:
        found = audit(asked, tell)
    _say_audit(found)
    if out is not None:
        write_output(out, suspects_csv(found.suspects).encode())
        say(f"All of them are in {out}")


@contextmanager
def _stages(count: int) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, and since when."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=count)
        begun = 0

        def tell(stage: str) -> None:
            nonlocal begun
            bar.update(task, description=stage, completed=begun)
            begun += 1

        yield tell


def _say_run(run: TableRun, out: Path) -> None:
    """What changed, what was done to the table, and where everything is."""
    say(f"{upper(headline(run))}.")
    if run.collapse is not None:
        say(f"Careful: {run.collapse}. The plain model is kept; try a lower --clean-ratio.")
    warnings = (worse_warning(run), guess_warning(run), label_warning(run.dropped))
    say(*filter(None, warnings), *_columns_lines(run.problem.features), *run.notes)
    positive = run.problem.labels.positive
    named = "" if positive is None else f", {positive!r} being the positive label"
    say(
        f"Measured on {len(run.problem.test):,} rows{named}; open {out / 'report.html'}, then {out / 'suspects.csv'}"
    )


def _columns_lines(features: Sequence[Feature]) -> list[str]:
    """Types and missing values, as they were handled."""
    learnt = used(features)
    numbers = sum(feature.kind == "numbers" for feature in learnt)
    count = f"{len(learnt)} column{'' if len(learnt) == 1 else 's'}"
    lines = [f"Learnt from {count}: {numbers} of numbers, {len(learnt) - numbers} of categories."]
    gaps = [f"{feature.column} {feature.missing:,}" for feature in learnt if feature.missing]
    if gaps:
        lines.append(
            f"Missing values (numbers take the median, categories have one for it): {', '.join(gaps)}."
        )
    left_out = [f"{feature.column} ({feature.left_out})" for feature in features if feature.left_out]
    return [*lines, f"Left out: {', '.join(left_out)}."] if left_out else lines


def _say_audit(found: Audit) -> None:
    """Cells, estimated noise, and the first suspects."""
    estimate, cells = found.estimate, found.estimate.cells
    say(*_columns_lines(found.features), *found.notes)
    say("People, and the estimated share of wrong labels among them:")
    table = Table()
    table.add_column(Text(printable(f"{found.labels.column} \\ {found.groups.title}")))
    for group in cells.groups:
        table.add_column(Text(printable(group_name(group))), justify="right")
    for i, label in enumerate(cells.classes):
        entries = [
            f"{cells.counts[i, j]:,}  {percent(float(estimate.noise[i, j]))}"
            for j in range(len(cells.groups))
        ]
        table.add_row(Text(printable(str(label))), *entries)
    Console().print(table)
    count = len(found.suspects["row"])
    rather = f"{'1 label is' if count == 1 else f'{count:,} labels are'} more likely wrong than right"
    say(upper(estimate_sentence(estimate)), rather + (": the surest first" if count else "."))
    for i in range(min(len(found.suspects["row"]), 10)):
        row, label, suggested, probability, group = (column[i] for column in found.suspects.values())
        say(f"  row {row}: {label}, rather {suggested} ({probability:.2f}), {group_name(group)}")


def _plain(value: object) -> object:
    """A value as its file had it: whole numbers without a point, nothing for missing."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.15g}"
    return value


def _free_name(wanted: str, taken: dict[str, list[object]]) -> str:
    """A name that no column has yet."""
    return wanted if wanted not in taken else _free_name(f"{wanted}_", taken)
