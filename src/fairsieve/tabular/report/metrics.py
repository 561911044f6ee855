"""A run as ``metrics.json``: every number of the page, and the settings, for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.tabular.decision import Decision, advise, group_name
from fairsieve.tabular.evaluation import Gap, Score, Share
from fairsieve.tabular.label_review import Audit
from fairsieve.tabular.model_files import ARCHIVE
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.quality import EVERYONE
from fairsieve.tabular.reasons import main_gaps
from fairsieve.tabular.settings import data_name
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.verified_change import VerifiedChange, rate_records

FORMAT = "fairsieve-run-1"
AUDIT_FORMAT = "fairsieve-audit-1"


def record_json(record: dict[str, Any]) -> str:
    """Write a record as JSON."""
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_record(run: TableRun, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of a run, as values that JSON can express."""
    problem, compared, gaps = run.problem, run.comparison, main_gaps(run)
    record = {
        "format": FORMAT,
        **decision.record(),
        "settings": run.asked.record(),
        "data": {
            "train_rows": len(problem.train),
            "test_rows": len(problem.test),
            **_roles(problem.labels, problem.groups),
            "columns": [
                {
                    "name": one.column,
                    "holds": one.kind,
                    "missing": one.missing,
                    "distinct": one.distinct,
                    "treatment": run.treatment(one),
                }
                for one in problem.features
            ],
            "notes": _notes(run.notes, decision),
        },
        "clean_ratio": run.clean_ratio,
        "estimate": None if run.estimate is None else _estimate(run.estimate),
        "comparison": None if compared is None else {**vars(compared), "verdict": compared.verdict},
        "plain": run.scores[0],
        "fair": run.scores[-1],
        "change": run.change,
        "model": _model_record(run),
        "trade_off": [
            {"title": one.title, "kept": one.kept, "threshold": one.threshold, "held_out": one.held_out}
            | one.scores
            for one in run.trade_off
        ],
        "widest_gap": None
        if gaps is None
        else {
            "plain": _gap(gaps[0], run.test_groups, gaps[0].plain),
            "fair": _gap(gaps[1], run.test_groups, gaps[1].fair),
        },
        "rates": [
            {"measure": one.name, "group": group, "plain": before, "fair": after}
            for one in run.measures
            for group, before, after in zip(run.test_groups, one.plain, one.fair, strict=True)
        ],
        "quality": [
            {"measure": one.name, "label": one.label or None, "group": group, "plain": plain, "fair": fair}
            for one in run.quality
            for group, plain, fair in zip([*run.test_groups, EVERYONE], one.plain, one.fair, strict=True)
        ],
        "calibration": [{**vars(one), "label": one.label or None} for one in run.calibration],
        "dropped": [{**vars(cell), "group": group_name(cell.group)} for cell in run.dropped],
        "suspects": len(run.suspects["row"]),
        "verified": None if run.verified is None else _verified(run.verified),
        "seconds": round(run.seconds, 2),
        "versions": run.versions,
    }
    return dict(_plain(record))


def audit_record(audit: Audit, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of an audit, as values that JSON can express."""
    cells, roles = audit.estimate.cells, _roles(audit.labels, audit.groups)
    record = {
        "format": AUDIT_FORMAT,
        **decision.record(),
        "data": {"rows": len(audit.table), **roles, "notes": _notes(audit.notes, decision)},
        "estimate": _estimate(audit.estimate),
        "cells": [
            {
                "label": str(label),
                "group": group_name(group),
                "people": int(cells.counts[row, column]),
                "estimated_noise": float(audit.estimate.noise[row, column]),
            }
            for row, label in enumerate(cells.classes)
            for column, group in enumerate(cells.groups)
        ],
        "suspects": len(audit.suspects["row"]),
        "verified_rates": rate_records(audit.estimate),
    }
    return dict(_plain(record))


def prediction_record(found: PredictionAudit, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of an audit of predictions, as values that JSON can express."""
    groups, asked = found.cells.groups, found.asked
    record = {
        "settings": {
            "data": data_name(asked.data),
            "label": asked.label,
            "sensitive": list(asked.sensitive),
            "prediction": found.prediction,
            "score": found.score,
            "fairness": asked.fairness,
        },
        "rows_measured": len(found.cells),
        "rows_without_prediction": found.left_out,
        "scores": found.scores,
        "true_labels": None if found.true_labels is None else found.true_labels.record,
        "rates": [
            {"measure": measure.name, "group": group_name(group), **_plain(share)}
            for measure in found.measures
            for group, share in zip(groups, measure.plain, strict=True)
        ],
        "gaps": [_gap(gap, groups, gap.plain) for gap in found.gaps()],
        "calibration": [
            {
                "group": group_name(one.group),
                "mean_score": one.predicted,
                "observed": one.observed.value,
                "error": one.error.value,
                "interval": one.error.interval,
                "bins": [
                    {"mean_score": part.predicted, "hits": part.observed.hits, "total": part.observed.total}
                    for part in one.bins
                ],
            }
            for one in found.calibration
        ],
    }
    return audit_record(found.label_audit, decision) | dict(_plain(record))


def _roles(labels: Any, groups: Any) -> dict[str, Any]:
    return {"classes": list(labels.classes), "positive": labels.positive, "groups": list(groups.names)}


def _notes(notes: Sequence[str], decision: Decision) -> list[str]:
    return [advise(note, in_python=decision.in_python) for note in notes]


def _model_record(run: TableRun) -> dict[str, Any]:
    """Collect which kind of model is kept, and how it was chosen."""
    auto = None
    if run.choice is not None:
        difference = Score(run.choice.difference, run.choice.interval)
        auto = {"log_loss": run.choice.losses, "runner_up": run.choice.runner_up, "difference": difference}
    return {
        "name": run.model_name,
        "file": ARCHIVE,
        "holds": "plain model" if run.keeps_plain else "fair model",
        "kept": run.kept.title,
        "threshold": run.kept.threshold,
        "auto": auto,
    }


def _verified(found: VerifiedChange) -> dict[str, Any]:
    """Collect what answers of people changed."""
    names = ("wrong", "by_group", "unsure", "unanswered", "in_test", "share_wrong", "change", "rates")
    return {name: getattr(found, name) for name in names} | {
        "estimate_without": found.estimates[0],
        "estimate_with": found.estimates[1],
        "fair_without": {name: pair[0] for name, pair in found.scores.items()},
        "true_labels": None if found.true_labels is None else found.true_labels.record,
    }


def _gap(gap: Gap, groups: Sequence[Any], score: Score) -> dict[str, Any]:
    """Collect how far one group lies below another."""
    ends = {"lower_group": groups[gap.low], "higher_group": groups[gap.high]}
    return {"measure": gap.measure.name, **ends, **score._asdict()}


def _estimate(estimate: CleanRatioEstimate) -> dict[str, Any]:
    """Collect what was found of the labels."""
    names = ("clean_ratio", "interval", "covers", "aimed")
    told = {"conclusive": bool(estimate.credible), "reason": str(estimate.credible)}
    return told | {name: getattr(estimate, name) for name in names}


def _plain(value: Any) -> Any:
    """Express scores, shares and other small records as JSON does; NaN becomes None."""
    if isinstance(value, Share):
        return _plain({**value._asdict(), "value": value.value, "interval": value.interval})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
