"""Write the folder of a run: whole or not at all."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.files import clear_stale, hold, write_output
from fairsieve.report.page import write_page
from fairsieve.report.text import columns_csv, table_markdown, write_template
from fairsieve.tabular.decision import Decision, group_name
from fairsieve.tabular.model_files import TRUSTED, write_model
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.columns import InputTable
from fairsieve.tabular.reading.encoding import used
from fairsieve.tabular.reading.read import free_name
from fairsieve.tabular.reasons import main_rates
from fairsieve.tabular.report import blocks, pages
from fairsieve.tabular.report.metrics import (
    AUDIT_FORMAT,
    FORMAT,
    prediction_record,
    record_json,
    run_record,
)
from fairsieve.tabular.table_run import TableRun

RECORD = "metrics.json"
TITLES = {"suggested": "suggested_label"}


@contextlib.contextmanager
def new_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Make a folder to write into; give it the name ``out`` when all went well, and remove it otherwise.

    A run that is there already is refused, or with ``force`` replaced at the end; a folder of something
    else is never replaced.
    """
    out = out.absolute()
    _check_place(out, force)
    there = next(folder for folder in out.parents if folder.exists())  # those below it are made at the end
    clear_stale(there, out.name)
    try:
        part = there / f".{out.name}.{secrets.token_hex(6)}.part"
        part.mkdir()  # with the rights that the umask leaves
    except OSError as error:
        raise InvalidInputError(
            f"--out must be a folder that can be written; {out}: {error.strerror}"
        ) from error
    try:
        with hold(part):
            yield part
        out.parent.mkdir(parents=True, exist_ok=True)
        _check_place(out, force)  # another run may have taken it meanwhile
        _take_place(part, out)
    except InvalidInputError as error:
        if str(part) not in str(error):
            raise
        named = str(error).replace(str(part), str(out))  # the files as they would have been called
        raise InvalidInputError(named) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_place(out: Path, force: bool) -> None:
    """Check that a run may take a name."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise InvalidInputError(f"--out must be a folder; {out} is a file: name another")
    if not any(out.iterdir()):
        return
    if not _is_run(out):
        raise InvalidInputError(
            f"--out must be a new folder, or one that fairsieve train made; {out} has other files in it, which are not "
            "touched: name another"
        )
    if not force:
        raise InvalidInputError(f"--out must be a new folder; {out} holds a run: add --force to replace it")


def _is_run(folder: Path) -> bool:
    """Return whether a folder is one of ours."""
    try:
        return bool(
            json.loads((folder / RECORD).read_text(encoding="utf-8"))["format"] in (FORMAT, AUDIT_FORMAT)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _take_place(part: Path, out: Path) -> None:
    """Give a finished folder its name; remove what had it before last."""
    if not out.exists():
        part.rename(out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".old", dir=out.parent)) / "run"
    out.rename(old)
    try:
        part.rename(out)
    except OSError:
        old.rename(out)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


def write_run(run: TableRun, decision: Decision, folder: Path) -> None:
    """Write model, numbers, labels to check, page and card into a folder that is there."""
    write_model(run.model, folder)
    write_output(folder / "suspects.csv", suspects_csv(run.suspects, run.problem.table).encode())
    write_output(folder / "rows.csv", _rows_csv(run.problem).encode())
    write_output(folder / "card.md", model_card(run, decision).encode())
    write_page(pages.run_document(run, decision), folder / "report.html")
    write_output(folder / RECORD, record_json(run_record(run, decision)).encode())


def write_prediction_audit(found: PredictionAudit, decision: Decision, folder: Path) -> None:
    """Write the page, the numbers and the labels to check into a folder that is there."""
    audit = found.label_audit
    write_output(folder / "suspects.csv", suspects_csv(audit.suspects, audit.table).encode())
    write_page(pages.prediction_document(found, decision), folder / "report.html")
    write_output(folder / RECORD, record_json(prediction_record(found, decision)).encode())


def model_card(run: TableRun, decision: Decision) -> str:
    """Write the card in Markdown; names and values of the table are shown as they are."""
    found = main_rates(run)
    measures = [] if found is None else [found[0]]
    groups = blocks.measures_table(
        "groups", f"Rates by {run.problem.groups.title}", measures, run.test_groups
    )
    return write_template(
        "fairsieve.tabular",
        "templates/card.md.j2",
        in_python=decision.in_python,
        run=run,
        decision=decision,
        columns=len(used(run.problem.features)),
        trusted=list(TRUSTED if run.model_name == "hist-gradient-boosting" else TRUSTED[:3]),
        overall=table_markdown(blocks.overall_table(run)),
        groups=table_markdown(groups) if measures else "",
    )


def suspects_csv(suspects: Mapping[str, Any], table: InputTable) -> str:
    """Write the labels to check with the other columns of their rows, the surest first, safe for a spreadsheet.

    The first thing that the file says is that it holds personal data: a column, since a line above the names would
    keep other programs from reading it.
    """
    columns: dict[str, Iterable[Any]] = {"holds_personal_data": ["yes"] * len(suspects["row"])}
    for name, values in suspects.items():
        if name in ("loss", "probability"):
            values = [f"{value:.4f}" for value in values]
        elif name == "group":
            values = [group_name(value) for value in values]
        columns[TITLES.get(name, name)] = values
    rows = table.take(np.searchsorted(table.rows, np.asarray(suspects["row"], dtype=np.int64)))
    for name in rows.columns:
        columns[free_name(name, list(columns))] = [
            "" if value is None else value for value in rows.cells(name)
        ]
    return columns_csv(columns)


def _rows_csv(problem: TableProblem) -> str:
    """Write what became of every row of a table: trained on, measured on or left out."""
    table = problem.table
    use = np.full(len(table), "left out: no label", dtype=object)
    use[np.isin(table.rows, problem.train.rows)] = "trained on"
    if problem.asked.test_file is None:
        use[np.isin(table.rows, problem.test.rows)] = "measured on"
    return columns_csv({"row": table.rows.tolist(), "use": use.tolist()})
