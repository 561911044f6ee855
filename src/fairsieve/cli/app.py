"""The command line: parse, call, print. The commands on tables, and the app that all commands are in.

Nothing heavy is imported here: each command imports what it needs when it is called, so that ``fairsieve --version``
and ``--help`` answer at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairsieve import __version__
from fairsieve.cli.data_command import app as data_app
from fairsieve.cli.experiment_commands import compare_command, demo_command, reproduce_command
from fairsieve.cli.options import DATA, FAIL_ON, FORCE, PanelCommand, among, argument, option, table_settings
from fairsieve.cli.terminal import say, say_error, stages, stop_status, stoppable, tolerate_terminals
from fairsieve.errors import FairsieveError, in_command

if TYPE_CHECKING:
    import pandas as pd

    from fairsieve.tabular import AuditResult, TrainResult
    from fairsieve.tabular.audits import Audit, PredictionAudit
    from fairsieve.tabular.preparation import TableProblem


@table_settings("train")
def train_command(
    data: Path = DATA,
    out: Path = option(..., "The folder for the model, the report and the labels to check.", "--out", "-o"),
    fail_on: str | None = FAIL_ON,
    force: bool = FORCE,
    **settings: Any,
) -> None:
    """Train a plain and a fair model on a table.

    Say what changed for whom, and which labels look wrong.

    Example: fairsieve train people.csv --label income --sensitive sex -o run
    """
    from fairsieve.files import keep_inputs
    from fairsieve.tabular.decision import check_fail_on
    from fairsieve.tabular.entry import train
    from fairsieve.tabular.run_folder import FILES, new_folder, write_run
    from fairsieve.tabular.settings import stage_count

    worst = check_fail_on(fail_on)
    inputs = (data, settings.get("test_file"), *settings.get("verified", ()))
    keep_inputs("--out", out, *inputs, names=FILES)
    with (
        stoppable("Nothing was written."),
        new_folder(out, force=force) as folder,
        stages(stage_count(settings)) as next_stage,
    ):
        result = train(data, report=next_stage, **settings)
        next_stage("writing the report")
        write_run(result.run, result.decision, folder)
    _say_run(result, out)
    if result.decision.fails(worst):
        raise typer.Exit(3)


@table_settings("predict")
def predict_command(
    run: Path = argument("A folder that fairsieve train made."),
    data: Path = argument("A table with the same columns: a file, or a folder or glob."),
    out: Path = option(..., "The CSV file to write; of several files, a folder.", "--out", "-o"),
    escape_formulas: bool = option(
        False,
        "Put an apostrophe before cells that a spreadsheet could take for a formula.",
        "--escape-formulas",
    ),
    probabilities: bool = option(
        False, "Add a column with the probability of each label.", "--probabilities"
    ),
    force: bool = FORCE,
    **settings: Any,
) -> None:
    """Predict the label of every row of a table.

    The values stay as they are written, with two columns added: the predicted label and its probability; with
    --probabilities, one more for each label.

    Example: fairsieve predict run new-people.csv -o predicted.csv
    """
    from fairsieve import tabular
    from fairsieve.files import check_new, keep_inputs
    from fairsieve.report.text import quantity

    keep_inputs("--out", out, data, run)
    check_new("--out", out, force=force)
    with stoppable("Nothing was written."):
        # However large the file, no more of it is in memory than this.
        predictions = tabular.predict(run, data, probabilities=probabilities, **{"memory": "1GB"} | settings)
        predictions.save(out, force=force, escape_formulas=escape_formulas)
    say(*predictions.notes, f"{quantity(len(predictions), 'row')} predicted, in {out}")


@table_settings("audit")
def audit_command(
    data: Path = DATA,
    out: Path | None = option(
        None, "A CSV file for all suspects; with --prediction, a folder for the report.", "--out", "-o"
    ),
    prediction: str | None = option(
        None, "A column of predictions to audit, of any system.", metavar="COLUMN"
    ),
    score: str | None = option(
        None, "With --prediction: its probabilities of the positive label.", metavar="COLUMN"
    ),
    format: str | None = option(
        None,
        "ll144: add the selection rates and impact ratios of New York City's Local Law 144.",
        metavar="LAW",
        autocompletion=among("ll144"),
    ),
    fail_on: str | None = FAIL_ON,
    force: bool = FORCE,
    **settings: Any,
) -> None:
    """Estimate which labels of a table are wrong.

    Count the people of each label and group, estimate how many of their labels are wrong, and list those to
    check. No model is kept.

    With --prediction, measure predictions that the table has already, group by group, and decide about them.

    With --verified, learn from the answers which labels are wrong, and measure predictions on the true ones too.

    With --format ll144, rate how often each group is selected; -o then writes these rates instead of the suspects or,
    with --prediction, beside them.

    Example: fairsieve audit people.csv --label income --sensitive sex -o suspects.csv

    Example: fairsieve audit people.csv --label income --sensitive sex --prediction guess -o audit
    """
    from fairsieve.files import check_new, keep_inputs
    from fairsieve.tabular.decision import check_fail_on
    from fairsieve.tabular.entry import audit
    from fairsieve.tabular.run_folder import FILES

    worst = check_fail_on(fail_on)
    if out is not None:
        keep_inputs("--out", out, data, *settings.get("verified", ()), names=FILES)
    if out is not None and prediction is None:
        check_new("--out", out, force=force)
    with stoppable("Nothing was written."), stages(2) as next_stage:
        result = audit(data, prediction=prediction, score=score, format=format, report=next_stage, **settings)
    _say_audit(result)
    if out is not None:
        saved = result.save(out, force=force)
        listed = "The labels to check" if len(result.suspects) else "No label to check is listed"
        listed = "Selection rates and impact ratios" if format is not None else listed
        say(f"{listed}: {saved}" if prediction is None else f"Open {saved / 'report.html'}")
    if result.decision.fails(worst):
        raise typer.Exit(3)


@table_settings("review", optional=True)
def review_command(
    data: Path = DATA,
    out: Path = option("review.html", "The page to write; review.csv is written beside it.", "--out", "-o"),
    run: Path | None = option(
        None,
        "A folder that fairsieve train made: its settings are taken, its predictions shown.",
        metavar="FOLDER",
    ),
    id: str | None = option(None, "A column that identifies rows.", metavar="COLUMN"),
    rows: int = option(50, "How many rows to choose."),
    force: bool = FORCE,
    **settings: Any,
) -> None:
    """Choose labels for a person to check.

    Write a page that works offline, on which each is judged right, wrong or unsure, and a CSV file for spreadsheets.
    fairsieve train takes the answers by --verified.

    Example: fairsieve review people.csv --label income --sensitive sex --id name -o review.html
    """
    from fairsieve import tabular
    from fairsieve.files import keep_inputs
    from fairsieve.report.text import quantity
    from fairsieve.tabular.label_review import REVIEW_STAGES, check_place, training_step

    check_place(out, force=force)
    for path in (out, out.with_suffix(".csv")):
        keep_inputs("--out", path, data, run, *settings.get("verified", ()))
    with stoppable("Nothing was written."), stages(len(REVIEW_STAGES)) as next_stage:
        result = tabular.review(data, rows=rows, id_column=id, run=run, report=next_stage, **settings)
        table = result.save(out, force=force)
    review, rows_to_check = result.review, quantity(len(result.rows), "row")
    say(
        *review.notes,
        f"{rows_to_check} to check: open {out}, answer and save, or fill in the column verified_label of {table}.",
        f"Then: {training_step(review.asked, table)}",
    )


# ---- What is printed


def _say_run(result: TrainResult, out: Path) -> None:
    """Print what was made of the table and warnings, then in at most eight lines what to do and why."""
    from fairsieve.tabular.decision import tell
    from fairsieve.tabular.reading.columns import note_kind

    run, decision = result.run, result.decision
    notes = [note for note in run.problem.notes if note_kind(note) == "remark"]
    warnings = [note for note in run.notes if note_kind(note) == "warning"]
    say(*notes, *_assumed(run.problem))
    say(*(f"Careful: {warning}" for warning in (*warnings, *decision.warnings)))
    say(*tell("terminal", {"run": run, "decision": decision, "folder": f"{out}{os.sep}"}))


def _assumed(problem: TableProblem) -> list[str]:
    """Say which label counts as positive, where nobody has said it."""
    from fairsieve.tabular.decision import tell

    return tell("assumed", {"labels": problem.labels, "asked": problem.asked})


def _say_audit(result: AuditResult) -> None:
    """Print the decision with the numbers behind it: cells and suspects, or rates of predictions."""
    audit, decision = result.audit, result.decision
    # Worded before anything is printed.
    lines = [decision.sentence, *(f"  {line}" for line in decision.lines)]
    notes = [*audit.notes, *_assumed(audit)]
    if audit.impact is not None:
        say("Rates and impact ratios (Local Law 144 sets no threshold):", _impact_text(audit.impact))
    if result.predictions is not None:
        say(*lines, *notes, *_rates_lines(result.predictions))
    else:
        title, table, *suspects = _cells_lines(audit)
        say(*notes, title, table, *lines, *suspects)


def _cells_lines(audit: Audit) -> Iterator[str]:
    """Write how many people there are of each label and group, and the labels to check first."""
    import pandas as pd

    from fairsieve.report.text import percent
    from fairsieve.tabular.decision import group_name

    estimate, cells = audit.estimate, audit.estimate.cells
    people = pd.DataFrame(cells.counts, map(str, cells.classes), map(group_name, cells.groups))
    people = people.rename_axis(f"{audit.labels.column} \\ {audit.groups.title}", axis="columns")
    table = people.map("{:,}".format)
    if estimate.names_cells:
        yield "People, and the estimated share of wrong labels among them:"
        table += "  " + pd.DataFrame(estimate.noise, people.index, people.columns).map(percent)
    else:
        yield "People:"
    yield table.to_string()
    if len(audit.suspects):
        yield "Labels to check first, by the rows of a spreadsheet:"
    for one in audit.suspects.head(10).itertuples():
        suggested = f"rather {one.suggested_label} ({one.probability:.2f})"
        yield f"  {audit.suspects_table.row_name(one.row)}: {one.label}, {suggested}, {group_name(one.group)}"


def _impact_text(impact: pd.DataFrame) -> str:
    """Write selection rates and impact ratios."""
    from fairsieve.report.text import number, percent

    shown = impact[["measure", "by", "category", "people", "selected", "share", "rate", "impact_ratio"]]
    shares = {name: impact[name].map(percent) for name in ("share", "rate")}
    note = impact["note"].str.partition(":")[0]
    shown = shown.assign(**shares, impact_ratio=impact["impact_ratio"].map(number), note=note)
    return str(shown.to_string(index=False))


def _rates_lines(audit: PredictionAudit) -> Iterator[str]:
    """Write the rates of predictions by group."""
    import pandas as pd

    from fairsieve.report.text import number, percent
    from fairsieve.tabular.decision import group_name

    evaluation, count = audit.evaluation, len(audit.suspects)
    rates = {
        rate.title: ["–" if score is None else number(score.value) for score in rate.models[0]]
        for rate in evaluation.rates
    }
    scores = {group.group: percent(group.predicted) for group in audit.calibration}
    if scores:
        rates["mean score"] = [scores.get(group, "–") for group in evaluation.groups]
    yield "Rates by group; the report has their 95 % intervals"
    yield pd.DataFrame(rates, map(group_name, evaluation.groups)).to_string()
    left = f"; {audit.left_out:,} rows have no prediction" if audit.left_out else ""
    looks = "1 label looks" if count == 1 else f"{count:,} labels look"
    yield f"Measured on {len(evaluation.cells):,} rows with a label and a prediction{left}. {looks} wrong."


# ---- All commands

SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
app.command("train", cls=PanelCommand)(train_command)
app.command("predict", cls=PanelCommand)(predict_command)
app.command("audit", cls=PanelCommand)(audit_command)
app.command("review", cls=PanelCommand)(review_command)
app.command("compare", cls=PanelCommand)(compare_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo_command)
app.add_typer(data_app, name="data")


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Train models that are fair to groups and robust to wrong labels, by sample selection.

    Example: fairsieve train people.csv --label income --sensitive sex -o run
    """
    context.with_resource(in_command())
    if version:
        typer.echo(f"fairsieve {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; print errors of ours, of disks and of memory in one line, without a traceback."""
    tolerate_terminals()
    # joblib starts another worker, and goes on
    warnings.filterwarnings("ignore", "A worker stopped while some jobs")
    try:
        sys.exit(app(prog_name="fairsieve", standalone_mode=False) or 0)
    except (FairsieveError, OSError) as error:
        say_error(error)
    except MemoryError as error:
        say_error(f"there is not enough memory ({error}): try fewer rows")
    except (KeyboardInterrupt, typer.Abort):  # typer makes the one of the other
        sys.exit(stop_status())
    except Exception as error:
        # The class of typer's errors is told by what it offers, since it moved in version 0.26.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if context is not None:
            typer.echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.", err=True)
        say_error(error.format_message())
        sys.exit(2)
    sys.exit(1)
