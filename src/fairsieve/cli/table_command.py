"""``fairsieve train``, ``predict`` and ``audit``: from a table."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fairsieve.cli.options import (
    Bins,
    Categories,
    Data,
    Decimal,
    Drop,
    Fairness,
    Force,
    Label,
    Missing,
    Positive,
    Seed,
    Sensitive,
    Separator,
    SmallGroups,
)
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import InvalidInputError

__all__ = ["audit_command", "predict_command", "train_command"]


def train_command(
    data: Data,
    label: Label,
    sensitive: Sensitive,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder for the model, the report and the labels to check."),
    ],
    positive: Positive = None,
    fairness: Fairness = "equalized-odds",
    clean_ratio: Annotated[str, typer.Option(help="The share of labels believed right, or auto.")] = "auto",
    test: Annotated[
        float | None,
        typer.Option(help="The share of the rows to measure on; by default 0.2.", show_default=False),
    ] = None,
    test_file: Annotated[
        Path | None, typer.Option(help="A table to measure on instead.", show_default=False)
    ] = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    keep_sensitive: Annotated[
        bool, typer.Option("--keep-sensitive", help="Learn from the sensitive columns too.")
    ] = False,
    drop: Drop = None,
    categories: Categories = None,
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    epochs: Annotated[
        int | None, typer.Option(help="Updates of training; by default 40.", show_default=False)
    ] = None,
    seed: Seed = 0,
    checkpoint_dir: Annotated[
        Path | None,
        typer.Option(
            help="A folder for checkpoints; a stopped training goes on from the last.", show_default=False
        ),
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(help="Epochs between checkpoints; by default a twentieth of all.", show_default=False),
    ] = None,
    force: Force = False,
) -> None:
    """Train a plain and a fair model on a table.

    Say what changed for whom, and which labels look wrong.

    Example: fairsieve train people.csv --label income --sensitive sex -o run
    """
    from fairsieve.cli.table_output import say_run
    from fairsieve.tabular import table_run as training
    from fairsieve.tabular.reading.table import Reading
    from fairsieve.tabular.report import folder as folders
    from fairsieve.tabular.request import Asked, parse_clean_ratio
    from fairsieve.validation import check_at_least

    if test is not None and test_file is not None:
        raise InvalidInputError("--test and --test-file must not be given together: a share, or a file")
    asked = Asked(
        data,
        label,
        sensitive,
        positive=positive,
        fairness=fairness,
        clean_ratio=parse_clean_ratio(clean_ratio),
        test=0.2 if test is None else test,
        test_file=test_file,
        bins=bins or (),
        small_groups=small_groups,  # type: ignore[arg-type]
        keep_sensitive=keep_sensitive,
        drop=drop or (),
        categories=categories or (),
        reading=Reading(separator, decimal, tuple(missing or ())),
        epochs=epochs,
        seed=seed,
    )
    check_at_least("--checkpoint-every", 1 if checkpoint_every is None else checkpoint_every, 1)
    folders.check_page_packages()
    with (
        stoppable(lambda: _say_left(checkpoint_dir)),
        folders.new_folder(out, force=force) as folder,
        _stages(len(training.STAGES) + 1) as tell,
    ):
        run = training.train_table(
            asked, tell, checkpoint_dir=checkpoint_dir, checkpoint_every=checkpoint_every
        )
        tell("writing the report")
        folders.write_run(run, folder)
    say_run(run, out)


def _say_left(checkpoint_dir: Path | None) -> str:
    """Say what a training that was stopped leaves behind, and how to go on."""
    if checkpoint_dir is None:
        return "Nothing was written; with --checkpoint-dir FOLDER a stopped training can go on."
    if not any(checkpoint_dir.rglob("*.safetensors")):
        return f"Nothing was written, and no checkpoint yet to {checkpoint_dir}."
    return f"Checkpoints are in {checkpoint_dir}: give the same command again to go on from the last."


def predict_command(
    run: Annotated[Path, typer.Argument(help="A folder that fairsieve train made.")],
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file with the same columns.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")],
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put an apostrophe before cells that a spreadsheet could take for a formula.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Predict the label of every row of a table.

    The rows are copied byte for byte, with two columns added: the predicted label and its probability.

    Example: fairsieve predict run new-people.csv -o predicted.csv
    """
    from fairsieve.files import check_new, write_output
    from fairsieve.tabular import table_prediction as predicting
    from fairsieve.tabular.predictions_file import predictions_csv
    from fairsieve.tabular.reading.table import Reading

    if out.exists() and data.exists() and out.samefile(data):
        raise InvalidInputError(f"--out must not be the table itself; got {out}: name another file")
    check_new("--out", out, force=force)
    with stoppable("Nothing was written."):
        table, predicted, probability, notes = predicting.predict_table(
            run, data, Reading(separator, decimal, tuple(missing or ()))
        )
        added: dict[str, list[str]] = {}
        for wanted, values in (
            ("predicted", predicted.tolist()),
            ("probability", [f"{value:.4f}".replace(".", table.reading.decimal) for value in probability]),
        ):
            name = _free_name(wanted, table.columns)
            added[name] = values
            if name != wanted:
                notes.append(f"The table has a column {wanted!r} already; that of the model is {name!r}.")
        write_output(out, predictions_csv(data, table, added, escape_formulas=escape_formulas))
    count = "1 row" if len(predicted) == 1 else f"{len(predicted):,} rows"
    say(*notes, f"{count} predicted, in {out}")


def audit_command(
    data: Data,
    label: Label,
    sensitive: Sensitive,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A CSV file for all suspects.", show_default=False)
    ] = None,
    positive: Positive = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    drop: Drop = None,
    categories: Categories = None,
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Estimate which labels of a table are wrong.

    Count the people of each label and group, estimate how many of their labels are wrong, and list those to
    check. No model is kept.

    Example: fairsieve audit people.csv --label income --sensitive sex -o suspects.csv
    """
    from fairsieve.cli.table_output import say_audit
    from fairsieve.files import check_new, write_output
    from fairsieve.tabular import label_audit as auditing
    from fairsieve.tabular.reading.table import Reading
    from fairsieve.tabular.report.csv_files import suspects_csv
    from fairsieve.tabular.request import Asked

    asked = Asked(
        data,
        label,
        sensitive,
        positive=positive,
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
        found = auditing.audit_table(asked, tell)
    say_audit(found)
    if out is not None:
        write_output(out, suspects_csv(found.suspects).encode())
        say(f"All of them are in {out}")


@contextmanager
def _stages(count: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar of ``count`` stages; yield the function that names the next one."""
    from fairsieve.progress import progress_bar

    with progress_bar("starting", count) as update:
        begun = 0

        def tell(stage: str) -> None:
            nonlocal begun
            update(begun, stage)
            begun += 1

        yield tell


def _free_name(wanted: str, taken: Container[str]) -> str:
    """Find a name that no column has yet."""
    return wanted if wanted not in taken else _free_name(f"{wanted}_", taken)
