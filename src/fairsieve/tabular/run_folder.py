"""Write the folder of a run, whole or not at all: its files, and every number of it for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import clear_stale, hold, make_folder, move_together, output_errors, write_output
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.judgement import ModelJudgement
from fairsieve.metrics import Score
from fairsieve.report.page import table_markdown, write_page
from fairsieve.report.text import columns_csv, load_sentences, writable
from fairsieve.tabular import pages
from fairsieve.tabular.answers import rate_records
from fairsieve.tabular.audits import Audit, PredictionAudit, impact_csv
from fairsieve.tabular.decision import Decision, group_name
from fairsieve.tabular.evaluation import EVERYONE, Calibration, Evaluation, Gap, Share
from fairsieve.tabular.model_files import ARCHIVE, trusted_types, write_model
from fairsieve.tabular.reading.columns import InputTable
from fairsieve.tabular.reading.encoding import used
from fairsieve.tabular.reading.read import free_name
from fairsieve.tabular.settings import write_config
from fairsieve.tabular.table_run import TableRun

Record = dict[str, Any]
RECORD = "metrics.json"
# All that a run or an audit writes. The record comes last: it makes a folder a run's.
IMPACT = "ll144.csv"
FILES = (ARCHIVE, "suspects.csv", "rows.csv", "card.md", IMPACT, "settings.toml", "report.html", RECORD)
FORMAT, AUDIT_FORMAT = "fairsieve-run-2", "fairsieve-audit-2"


@contextlib.contextmanager
def new_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Make a folder to write into; put its files into ``out`` when all went well, and remove it otherwise.

    A run that is there already is refused. With ``force`` its files are replaced at the end, and nothing else in its
    folder is touched. A folder of something else is refused. A link stays, and what it leads to is written.
    """
    asked, out = out, Path(os.path.realpath(out))
    _check_place(asked, force)
    there = next(folder for folder in out.parents if folder.exists())  # those below it are made at the end
    clear_stale(there, out.name)
    part = there / f".{out.name}.{secrets.token_hex(6)}.part"
    try:
        with contextlib.ExitStack() as held:
            while not part.exists():  # another run takes it for stale in the moment before it is held
                make_folder("--out", part)  # with the rights that the umask leaves
                with contextlib.suppress(FileNotFoundError):
                    held.enter_context(hold(part, wait=True))
            yield part
        with output_errors(asked):
            out.parent.mkdir(parents=True, exist_ok=True)
            _check_place(asked, force)  # another run may have taken it meanwhile
            _take_place(part, out)
    except InvalidInputError as error:
        # The files as they would have been called.
        raise InvalidInputError(str(error).replace(str(part), str(asked))) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_place(out: Path, force: bool) -> None:
    """Check that a run may take a name."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InvalidInputError(f"{spell('--out')} must be a folder; {out} is a file: name another")
    if not any(out.iterdir()):
        return
    if not _is_run(out):
        raise InvalidInputError(
            f"{spell('--out')} must be a new folder, or one that fairsieve train made; {out} has other files in it, "
            "which are not touched: name another"
        )
    if not force:
        raise InvalidInputError(
            f"{spell('--out')} must be a new folder; {out} holds a run: add {spell('--force', True)} to replace it"
        )


def _is_run(folder: Path) -> bool:
    """Return whether a folder is one of ours."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))["format"] in (FORMAT, AUDIT_FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _take_place(part: Path, out: Path) -> None:
    """Give a finished folder its name or, where a run has that, put its files in the place of that run's."""
    if not out.exists() or not any(out.iterdir()):
        part.replace(out)
        return
    with hold(out, wait=True):  # two runs with --force
        move_together(part, [out / name for name in FILES])


def write_run(run: TableRun, decision: Decision, folder: Path) -> None:
    """Write model, numbers, labels to check, page and card into a folder that is there."""
    write_model(run.model, folder)
    write_output(folder / "suspects.csv", suspects_csv(run.suspects, run.suspects_table).encode())
    write_output(folder / "rows.csv", _rows_csv(run).encode())
    record = record_json(run_record(run, decision))
    write_output(folder / "card.md", model_card(run, decision, json.loads(record)).encode())
    write_output(folder / "settings.toml", write_config(run.asked).encode())
    write_page(pages.run_document(run, decision), folder / "report.html")
    write_output(folder / RECORD, record.encode())


def write_prediction_audit(audit: PredictionAudit, decision: Decision, folder: Path) -> None:
    """Write the page, the numbers and the labels to check into a folder that is there."""
    if audit.impact is not None:
        write_output(folder / IMPACT, impact_csv(audit.impact).encode())
    write_output(folder / "suspects.csv", suspects_csv(audit.suspects, audit.suspects_table).encode())
    law = None if audit.impact is None else "ll144"
    config = write_config(audit.asked, "audit", prediction=audit.prediction, score=audit.score, format=law)
    write_output(folder / "settings.toml", config.encode())
    write_page(pages.prediction_document(audit, decision), folder / "report.html")
    write_output(folder / RECORD, record_json(audit_record(audit, decision)).encode())


def model_card(run: TableRun, decision: Decision, record: Mapping[str, Any]) -> str:
    """Write the card in Markdown; names and values of the table are shown as they are.

    It begins with a head for the Hugging Face Hub, which is made of the ``record`` of the run.
    """
    title, evaluation = f"Rates by {run.problem.groups.title}", run.evaluation
    rates = [gap.rate for gap in evaluation.widest[:1]]
    groups = pages.rates_table("groups", title, rates, evaluation)
    macros = load_sentences("fairsieve.tabular", "sentences.j2")
    card = macros.card(
        run,
        decision,
        record,
        column_count=len(used(run.problem.features)),
        trusted=trusted_types(run.model),
        needs=run.model.reading_["needs"],
        overall=table_markdown(pages.overall_table(run)),
        groups=table_markdown(groups) if rates else "",
    )
    return writable(str(card))


def suspects_csv(suspects: pd.DataFrame, table: InputTable) -> str:
    """Write the labels to check with the other columns of their rows, the surest first, safe for a spreadsheet.

    The first thing that the file says is that it holds personal data: a column, since a line above the names would
    keep other programs from reading it.
    """
    told = suspects.assign(group=suspects["group"].map(group_name))
    numbers = told.columns.intersection(["loss", "probability"])
    told[numbers] = told[numbers].map("{:.4f}".format)
    rows = table.take(np.searchsorted(table.rows, told["row"]))
    if table.where is not None:
        where = table.where.loc[rows.rows]
        told = told.assign(row=where["row"].to_numpy())
        told.insert(0, "file", where["file"].to_numpy())
    columns: dict[str, Iterable[Any]] = {"holds_personal_data": ["yes"] * len(told), **told}
    taken = [*columns, *rows.columns]
    for name in rows.columns:
        columns[free_name(f"{name}_", taken) if name in columns else name] = rows.cells(name)
    return columns_csv(columns)


def _rows_csv(run: TableRun) -> str:
    """Write what became of every row of a table, its fold, and what models that did not see it predict."""
    problem, measured = run.problem, run.measured
    table, rows = problem.table, problem.table.rows
    use = np.full(len(table), "left out: no label", dtype=object)
    use[np.isin(rows, problem.train.rows)] = "trained on"
    fold, *predicted = np.full((3, len(table)), "", dtype=object)
    if problem.asked.test_file is None:
        inside = np.isin(rows, measured.part.rows)
        use[inside] = "trained and measured on" if len(measured.folds) else "measured on"
        for column, output in zip(predicted, measured.outputs, strict=False):
            column[inside] = np.asarray(problem.labels.classes, object)[output.codes]
    if len(measured.folds):
        numbers = [str(number + 1) if number >= 0 else "" for number in measured.folds]
        fold[np.isin(rows, problem.train.rows)] = numbers
    names = ("row", "use", "fold", "plain_prediction", "fair_prediction")
    columns = (column.tolist() for column in (rows, use, fold, *predicted))
    return columns_csv(dict(zip(names, columns, strict=True)))


# ---- metrics.json: every number of the page, and the settings, for programs


def record_json(record: Record) -> str:
    """Write a record as JSON."""
    return writable(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def run_record(run: TableRun, decision: Decision) -> Record:
    """Collect everything that is reported of a run, as values that JSON can express."""
    problem, evaluation, choice = run.problem, run.evaluation, run.choice
    judged, given = evaluation.judged, evaluation.judged.on_given_labels
    tried = run.with_sensitive
    record = {
        "format": FORMAT,
        **decision.record(),
        "settings": run.asked.record(),
        "data": {
            "train_rows": problem.learnt,
            "measured_rows": len(run.measured.part),
            "folds": int(run.measured.folds.max(initial=-1)) + 1,
            **_roles(problem.labels, problem.groups),
            "columns": [
                {
                    "name": one.column,
                    "holds": one.kind,
                    "missing": one.missing,
                    "distinct": one.distinct,
                    "treatment": one.treatment(run.trained.kind),
                }
                for one in problem.features
            ],
            "notes": run.notes,
        },
        "clean_ratio": run.trained.estimator.clean_ratio_,
        "estimate": None if run.estimate is None else _estimate_record(run.estimate),
        "labels_judged_by": judged.basis,
        "plain": _scores(judged.models[0], given.models[0]),
        "fair": _scores(judged.models[1], given.models[1]),
        "change": {**choice.change, "on_given_labels": given.change()},
        "would_tell": {"rows": choice.needed.rows, "checked_labels": choice.needed.checks},
        "model": {
            "name": run.trained.kind,
            "file": ARCHIVE,
            "holds": f"{choice.stored} model",
            "threshold": run.stored.threshold,
            "auto": {"log_loss": run.trained.losses} if run.trained.losses else None,
        },
        "trade_off": [point._asdict() for point in run.trade_off],
        "with_sensitive": tried
        and {"rows": tried.rows, "fair": _pair(*tried.fair), "with_sensitive": _pair(*tried.both)},
        "widest_gap": {
            name: _gap(gap, evaluation.groups, gap.at_once[place])
            for place, (name, gap) in enumerate(zip(evaluation.names, evaluation.widest, strict=False))
        }
        or None,
        "rates": _rates_record(evaluation),
        "quality": [
            {
                "measure": one.name,
                "label": one.label or None,
                "group": group,
                **dict(zip(evaluation.names, (values[place] for values in one.models), strict=True)),
            }
            for one in evaluation.quality
            for place, group in enumerate([*evaluation.groups, EVERYONE])
        ],
        "calibration": evaluation.calibration,
        "dropped": [{**vars(cell), "group": group_name(cell.group)} for cell in run.dropped],
        "suspects": len(run.suspects),
        "verified": run.verified,
        "seconds": round(run.seconds, 2),
        "versions": run.versions,
    }
    return dict(_plain(record))


def _scores(judged: ModelJudgement, given: ModelJudgement) -> Record:
    """Collect accuracy and disparity for right labels, and beside them those on the labels as given."""
    on_given_labels = _pair(given.accuracy, given.disparity)
    return {**_pair(judged.accuracy, judged.disparity), "on_given_labels": on_given_labels}


def _pair(accuracy: Score, disparity: Score) -> Record:
    return {"accuracy": accuracy, "disparity": disparity}


def _rates_record(evaluation: Evaluation) -> list[Record]:
    """Collect every rate of every group, of each model."""

    def told(right: Score | None, given: Score | None) -> Record | None:
        return None if right is None else {**right._asdict(), "on_given_labels": given}

    return [
        {"measure": rate.name, "label": rate.label or None, "group": group_name(group)}
        | {"people": rate.people[place]}
        | {
            name: told(right[place], given[place])
            for name, right, given in zip(evaluation.names, rate.models, rate.given, strict=True)
        }
        for rate in evaluation.rates
        for place, group in enumerate(evaluation.groups)
    ]


def audit_record(audit: Audit, decision: Decision) -> Record:
    """Collect everything that is reported of an audit, as values that JSON can express."""
    cells, roles = audit.estimate.cells, _roles(audit.labels, audit.groups)
    record = {
        "format": AUDIT_FORMAT,
        **decision.record(),
        "data": {"rows": len(audit.table), **roles, "notes": audit.notes},
        "estimate": _estimate_record(audit.estimate),
        "cells": [
            {
                "label": str(label),
                "group": group_name(group),
                "people": int(cells.counts[row, column]),
                "estimated_noise": float(audit.estimate.told_noise[row, column]),
            }
            for row, label in enumerate(cells.classes)
            for column, group in enumerate(cells.groups)
        ],
        "suspects": len(audit.suspects),
        "verified_rates": rate_records(audit.estimate),
        **(_prediction_record(audit) if isinstance(audit, PredictionAudit) else {}),
    }
    return dict(_plain(record))


def _prediction_record(audit: PredictionAudit) -> Record:
    """Collect what is reported of predictions."""
    evaluation = audit.evaluation
    judged = evaluation.judged
    return {
        "settings": {**audit.asked.record(), "prediction": audit.prediction, "score": audit.score},
        "rows_measured": len(evaluation.cells),
        "rows_without_prediction": audit.left_out,
        "labels_judged_by": judged.basis,
        "scores": _scores(judged.models[0], judged.on_given_labels.models[0]),
        "rates": _rates_record(evaluation),
        "gaps": [_gap(gap, evaluation.groups, gap.models[0]) for gap in evaluation.gaps],
        "calibration": audit.calibration,
    }


def _estimate_record(estimate: CleanRatioEstimate) -> Record:
    """Collect what was found of the labels."""
    names = ("clean_ratio", "interval", "covers", "aimed")
    told: Record = {"conclusive": bool(estimate.credible), "reason": str(estimate.credible)}
    told["share_wrong"] = estimate.share_wrong if estimate.credible else None
    return told | {name: getattr(estimate, name) for name in names}


def _roles(labels: Any, groups: Any) -> Record:
    return {"classes": list(labels.classes), "positive": labels.positive, "groups": list(groups.names)}


def _gap(gap: Gap, groups: Sequence[Any], score: Score) -> Record:
    """Collect how far one group lies below another."""
    ends = {"lower_group": groups[gap.low], "higher_group": groups[gap.high]}
    return {"measure": gap.rate.name, "label": gap.rate.label, **ends, **score._asdict()}


def _plain(value: Any) -> Any:
    """Express scores, shares and other small records as JSON does; NaN becomes None."""
    if isinstance(value, Share):
        return _plain({**value._asdict(), "value": value.value, "interval": value.interval})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Calibration):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
