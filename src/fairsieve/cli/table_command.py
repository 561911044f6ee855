"""``fairsieve train``, ``predict`` and ``audit``: from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairsieve.cli.options import (
    Bins,
    Categories,
    Data,
    Dates,
    Decimal,
    Drop,
    FailOn,
    Fairness,
    Force,
    Label,
    Missing,
    Model,
    Positive,
    Seed,
    Sensitive,
    Separator,
    SmallGroups,
    Threshold,
    Tolerance,
    Trees,
    Verified,
)
from fairsieve.cli.terminal import say, stages, stoppable
from fairsieve.errors import InvalidInputError

if TYPE_CHECKING:
    from fairsieve.tabular.decision import Decision, Outcome

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
    dates: Dates = None,
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    verified: Verified = None,
    model: Model = "logistic",
    trees: Trees = 100,
    threshold: Threshold = "0.5",
    tolerance: Tolerance = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Updates of training, by default 40; rounds of trees, by default 6.", show_default=False
        ),
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
    fail_on: FailOn = None,
    force: Force = False,
) -> None:
    """Train a plain and a fair model on a table.

    Say what changed for whom, and which labels look wrong.

    Example: fairsieve train people.csv --label income --sensitive sex -o run
    """
    from fairsieve import tabular
    from fairsieve.cli.table_output import say_run
    from fairsieve.tabular.decision import check_fail_on
    from fairsieve.tabular.report import files as folders
    from fairsieve.tabular.table_run import STAGES
    from fairsieve.validation import check_at_least

    if test is not None and test_file is not None:
        raise InvalidInputError("--test and --test-file must not be given together: a share, or a file")
    check_at_least("--checkpoint-every", 1 if checkpoint_every is None else checkpoint_every, 1)
    worst = check_fail_on(fail_on)
    with (
        stoppable(lambda: _say_left(checkpoint_dir)),
        folders.new_folder(out, force=force) as folder,
        stages(len(STAGES) + 1 + bool(verified)) as tell,
    ):
        result = tabular.train(
            data,
            label=label,
            sensitive=sensitive,
            report=tell,
            checkpoint_dir=checkpoint_dir,
            checkpoint_every=checkpoint_every,
            positive=positive,
            fairness=fairness,
            clean_ratio=clean_ratio,
            test=0.2 if test is None else test,
            test_file=test_file,
            bins=bins or (),
            small_groups=small_groups,
            keep_sensitive=keep_sensitive,
            drop=drop or (),
            categories=categories or (),
            dates=dates or (),
            separator=separator,
            decimal=decimal,
            missing=missing or (),
            verified=verified or (),
            model=model,
            trees=trees,
            threshold=threshold,
            tolerance=tolerance,
            epochs=epochs,
            seed=seed,
        )
        tell("writing the report")
        result.write(folder)
    say_run(result, out)
    _end(result.decision, worst)


def _end(decision: Decision, worst: Outcome | None) -> None:
    """End with status 3 where the decision is as bad as ``--fail-on`` says, or worse."""
    if decision.fails(worst):
        raise typer.Exit(3)


def _say_left(checkpoint_dir: Path | None) -> str:
    """Say what a training that was stopped leaves behind, and how to go on."""
    if checkpoint_dir is None:
        return "Nothing was written; with --checkpoint-dir FOLDER a stopped training can go on."
    if not any(checkpoint_dir.rglob("rounds.npz")):
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
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column with the probability of each label.")
    ] = False,
    force: Force = False,
) -> None:
    """Predict the label of every row of a table.

    The rows are copied byte for byte, with two columns added: the predicted label and its probability; with
    --probabilities, one more for each label.

    Example: fairsieve predict run new-people.csv -o predicted.csv
    """
    from fairsieve import tabular
    from fairsieve.files import check_new
    from fairsieve.tabular.reading.table import Reading

    if out.exists() and data.exists() and out.samefile(data):
        raise InvalidInputError(f"--out must not be the table itself; got {out}: name another file")
    check_new("--out", out, force=force)
    with stoppable("Nothing was written."):
        reading = Reading(separator, decimal, tuple(missing or ()))
        found = tabular.predict(run, data, reading, probabilities=probabilities)
        found.save(out, force=force, escape_formulas=escape_formulas)
    count = "1 row" if len(found.predicted) == 1 else f"{len(found.predicted):,} rows"
    say(*found.notes, *found.renamed, f"{count} predicted, in {out}")


def audit_command(
    data: Data,
    label: Label,
    sensitive: Sensitive,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A CSV file for all suspects; with --prediction, a folder for the report.",
            show_default=False,
        ),
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="A column of predictions to audit, of any system.", show_default=False
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: its probabilities of the positive label.",
            show_default=False,
        ),
    ] = None,
    positive: Positive = None,
    fairness: Fairness = "equalized-odds",
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    drop: Drop = None,
    categories: Categories = None,
    dates: Dates = None,
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    model: Model = "logistic",
    trees: Trees = 100,
    verified: Verified = None,
    seed: Seed = 0,
    fail_on: FailOn = None,
    force: Force = False,
) -> None:
    """Estimate which labels of a table are wrong.

    Count the people of each label and group, estimate how many of their labels are wrong, and list those to
    check. No model is kept.

    With --prediction, measure predictions that the table has already, group by group, and decide about them.

    With --verified, learn from the answers which labels are wrong, and measure predictions on the true ones too.

    Example: fairsieve audit people.csv --label income --sensitive sex -o suspects.csv

    Example: fairsieve audit people.csv --label income --sensitive sex --prediction guess -o audit
    """
    from fairsieve import tabular
    from fairsieve.cli.table_output import say_audit
    from fairsieve.files import check_new
    from fairsieve.tabular.decision import check_fail_on

    worst = check_fail_on(fail_on)
    if out is not None and prediction is None:
        check_new("--out", out, force=force)
    with stoppable("Nothing was written."), stages(2) as tell:
        result = tabular.audit(
            data,
            label=label,
            sensitive=sensitive,
            prediction=prediction,
            score=score,
            report=tell,
            positive=positive,
            fairness=fairness,
            bins=bins or (),
            small_groups=small_groups,
            drop=drop or (),
            categories=categories or (),
            dates=dates or (),
            separator=separator,
            decimal=decimal,
            missing=missing or (),
            model=model,
            trees=trees,
            verified=verified or (),
            seed=seed,
        )
    say_audit(result)
    if out is not None:
        saved = result.save(out, force=force)
        say(f"All of them are in {saved}" if prediction is None else f"Open {saved / 'report.html'}")
    _end(result.decision, worst)
