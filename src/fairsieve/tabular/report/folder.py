"""Write the folder of a run: whole or not at all."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairsieve.errors import InvalidInputError
from fairsieve.files import clear_stale, hold, write_output
from fairsieve.optional import package
from fairsieve.report.page import write_page
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.model_files import write_model
from fairsieve.tabular.report.card import model_card
from fairsieve.tabular.report.csv_files import rows_csv, suspects_csv
from fairsieve.tabular.report.metrics_file import AUDIT_FORMAT, FORMAT, record_json, run_record
from fairsieve.tabular.report.story import run_document
from fairsieve.tabular.table_run import TableRun

__all__ = ["check_page_packages", "new_folder", "write_run"]

RECORD = "metrics.json"


def check_page_packages() -> None:
    """Report what is not installed before the work, not after it."""
    for name in ("jinja2", "plotly"):
        package(name, "writing the report")


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
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".part", dir=there))
    except OSError as error:
        raise InvalidInputError(
            f"--out must be a folder that can be written; {out}: {error.strerror}"
        ) from error
    try:
        with hold(part):
            yield part
        part.chmod(0o755)
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
    write_output(folder / "rows.csv", rows_csv(run.problem).encode())
    write_output(folder / "card.md", model_card(run, decision).encode())
    write_page(run_document(run, decision), folder / "report.html")
    write_output(folder / RECORD, record_json(run_record(run, decision)).encode())
