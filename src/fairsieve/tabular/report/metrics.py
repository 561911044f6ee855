"""A run as ``metrics.json``: every number of the page, and the settings, for programs."""

from __future__ import annotations

import json
import math
from typing import Any

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.tabular.bootstrap import Score
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.label_audit import Audit
from fairsieve.tabular.prediction_audit import PredictionAudit
from fairsieve.tabular.quality import EVERYONE
from fairsieve.tabular.reasons import keeps_plain, main_gaps
from fairsieve.tabular.report.pages import kept_point, model_file
from fairsieve.tabular.report.tables import column_treatment
from fairsieve.tabular.request import data_name
from fairsieve.tabular.table_run import TableRun
from fairsieve.tabular.verified_change import VerifiedChange, rate_records
from fairsieve.tabular.words import group_name

__all__ = ["AUDIT_FORMAT", "FORMAT", "audit_record", "prediction_record", "record_json", "run_record"]

FORMAT = "fairsieve-run-1"
AUDIT_FORMAT = "fairsieve-audit-1"


def record_json(record: dict[str, Any]) -> str:
    """Write a record as JSON."""
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_record(run: TableRun, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of a run, as values that JSON can express."""
    return dict(_plain(_collect_run(run, decision)))


def audit_record(audit: Audit, decision: Decision) -> dict[str, Any]:
    """Collect everything that is reported of an audit, as values that JSON can express."""
    cells = audit.estimate.cells
    record = {
        "format": AUDIT_FORMAT,
        **decision.record(),
        "data": {
            "rows": len(audit.table),
            "classes": list(audit.labels.classes),
            "positive": audit.labels.positive,
            "groups": list(audit.groups.names),
            "notes": audit.notes,
        },
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
    groups = found.cells.groups
    record = {
        "settings": {
            "data": data_name(found.asked.data),
            "label": found.asked.label,
            "sensitive": list(found.asked.sensitive),
            "prediction": found.prediction,
            "score": found.score,
            "fairness": found.asked.fairness,
        },
        "rows_measured": len(found.cells),
        "rows_without_prediction": found.left_out,
        "scores": {name: _score(one) for name, one in found.scores.items()},
        "true_labels": None if found.true_labels is None else found.true_labels.record,
        "rates": [
            {"measure": measure.name, "group": group_name(group), **_share(share)}
            for measure in found.measures
            for group, share in zip(groups, measure.plain, strict=True)
        ],
        "gaps": [
            {
                "measure": gap.measure.name,
                "lower_group": groups[gap.low],
                "higher_group": groups[gap.high],
                "value": gap.plain,
                "interval": list(gap.plain_interval),
            }
            for gap in found.gaps()
        ],
        "calibration": [
            {
                "group": group_name(one.group),
                "mean_score": one.predicted,
                "observed": one.observed.value,
                "error": one.error.value,
                "interval": list(one.error.interval),
                "bins": [
                    {"mean_score": part.predicted, "hits": part.observed.hits, "total": part.observed.total}
                    for part in one.bins
                ],
            }
            for one in found.calibration
        ],
    }
    return audit_record(found.label_audit, decision) | dict(_plain(record))


def _collect_run(run: TableRun, decision: Decision) -> dict[str, Any]:
    return {
        "format": FORMAT,
        **decision.record(),
        "settings": run.asked.record(),
        "data": _data_record(run),
        "clean_ratio": run.clean_ratio,
        "estimate": None if run.estimate is None else _estimate(run.estimate),
        "collapse": None if run.collapse is None else str(run.collapse),
        "plain": {name: _score(value) for name, value in run.scores[0].items()},
        "fair": {name: _score(value) for name, value in run.scores[-1].items()},
        "change": {name: _score(value) for name, value in run.change.items()},
        "model": _model_record(run),
        "trade_off": _trade_off_records(run),
        "widest_gap": _gaps(run),
        "rates": [
            {"measure": one.name, "group": group, "plain": _share(before), "fair": _share(after)}
            for one in run.measures
            for group, before, after in zip(run.test_groups, one.plain, one.fair, strict=True)
        ],
        "quality": _quality_records(run),
        "calibration": _calibration_records(run),
        "dropped": [
            {
                "label": cell.label,
                "group": group_name(cell.group),
                "dropped": _share(cell.dropped),
                "suspects": cell.suspects,
                "estimated_noise": cell.noise,
                "effective_weight": cell.weight,
            }
            for cell in run.dropped
        ],
        "suspects": len(run.suspects["row"]),
        "verified": _verified(run.verified),
        "seconds": round(run.seconds, 2),
        "versions": run.versions,
    }


def _data_record(run: TableRun) -> dict[str, Any]:
    """Collect what the table held."""
    return {
        "train_rows": len(run.problem.train),
        "test_rows": len(run.problem.test),
        "classes": list(run.problem.labels.classes),
        "positive": run.problem.labels.positive,
        "groups": list(run.problem.groups.names),
        "columns": [
            {
                "name": feature.column,
                "holds": feature.kind,
                "missing": feature.missing,
                "distinct": feature.distinct,
                "treatment": column_treatment(run, feature),
            }
            for feature in run.problem.features
        ],
        "notes": run.notes,
    }


def _trade_off_records(run: TableRun) -> list[dict[str, Any]]:
    """Collect the models between the plain and the fair one."""
    return [
        {
            "title": point.title,
            "kept": point.kept,
            "threshold": point.threshold,
            "held_out": None if point.held_out is None else point.held_out._asdict(),
        }
        | {name: _score(value) for name, value in point.scores.items()}
        for point in run.trade_off
    ]


def _quality_records(run: TableRun) -> list[dict[str, Any]]:
    """Collect the measures of quality, by group and for everyone."""
    return [
        {
            "measure": one.name,
            "label": one.label or None,
            "group": group,
            "plain": None if plain is None else _score(plain),
            "fair": None if fair is None else _score(fair),
        }
        for one in run.quality
        for group, plain, fair in zip([*run.test_groups, EVERYONE], one.plain, one.fair, strict=True)
    ]


def _calibration_records(run: TableRun) -> list[dict[str, Any]]:
    """Collect predicted chances beside what was observed."""
    return [
        {
            "model": one.model,
            "group": one.group,
            "label": one.label or None,
            "predicted": one.predicted,
            "observed": _share(one.observed),
            "bins": [{"predicted": bin_.predicted, "observed": _share(bin_.observed)} for bin_ in one.bins],
        }
        for one in run.calibration
    ]


def _model_record(run: TableRun) -> dict[str, Any]:
    """Collect which kind of model is kept, and how it was chosen."""
    kept = kept_point(run)
    choice = run.choice
    return {
        "name": run.model_name,
        "file": model_file(run),
        "holds": "plain model" if keeps_plain(run) else "fair model",
        "kept": kept.title,
        "threshold": kept.threshold,
        "auto": None
        if choice is None
        else {
            "log_loss": choice.losses,
            "runner_up": choice.runner_up,
            "difference": {"value": choice.difference, "interval": list(choice.interval)},
        },
    }


def _verified(found: VerifiedChange | None) -> dict[str, Any] | None:
    """Collect what answers of people changed, where there are any."""
    if found is None:
        return None
    return {
        "wrong": _share(found.wrong),
        "by_group": {name: _share(share) for name, share in found.by_group.items()},
        "unsure": found.unsure,
        "unanswered": found.unanswered,
        "in_test": found.in_test,
        "share_wrong": _score(found.share_wrong),
        "estimate_without": found.estimates[0],
        "estimate_with": found.estimates[1],
        "fair_without": {name: _score(pair[0]) for name, pair in found.scores.items()},
        "change": {name: _score(value) for name, value in found.change.items()},
        "true_labels": None if found.true_labels is None else found.true_labels.record,
        "rates": found.rates,
    }


def _gaps(run: TableRun) -> dict[str, Any] | None:
    """Collect the widest gap of each model; None where all groups are too small."""
    gaps = main_gaps(run)
    if gaps is None:
        return None
    found = {}
    for model, gap in zip(("plain", "fair"), gaps, strict=True):
        found[model] = {
            "measure": gap.measure.name,
            "lower_group": run.test_groups[gap.low],
            "higher_group": run.test_groups[gap.high],
            "value": getattr(gap, model),
            "interval": list(getattr(gap, f"{model}_interval")),
        }
    return found


def _estimate(estimate: CleanRatioEstimate) -> dict[str, Any]:
    """Collect what was found of the labels."""
    return {
        "conclusive": bool(estimate.credible),
        "reason": str(estimate.credible),
        "clean_ratio": estimate.clean_ratio,
        "interval": list(estimate.interval),
        "covers": estimate.covers,
        "aimed": estimate.aimed,
    }


def _score(one: Score) -> dict[str, Any]:
    return {"value": one.value, "interval": list(one.interval)}


def _share(one: Share) -> dict[str, Any]:
    return {"hits": one.hits, "total": one.total, "value": one.value, "interval": list(one.interval)}


def _plain(value: Any) -> Any:
    """Replace NaN by None."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
