"""A run as ``metrics.json``: every number of the page, and the settings, for programs."""

from __future__ import annotations

import json
import math
from typing import Any

from fairsieve.tabular.bootstrap import Score
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.report.phrases import group_name, headline, main_gap
from fairsieve.tabular.table_run import TableRun

__all__ = [
    "FORMAT",
    "record_json",
]

FORMAT = "fairsieve-run-1"


def record_json(run: TableRun) -> str:
    """Write the record as JSON, without what JSON cannot express."""
    return json.dumps(_plain(_collect_record(run)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _collect_record(run: TableRun) -> dict[str, Any]:
    """Collect everything that is reported of a run, as plain values."""
    gap = main_gap(run)
    return {
        "format": FORMAT,
        "headline": headline(run),
        "settings": _settings(run),
        "data": {
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
                    "treatment": feature.treatment,
                }
                for feature in run.problem.features
            ],
            "notes": run.notes,
        },
        "clean_ratio": run.clean_ratio,
        "estimate": _estimate(run),
        "collapse": None if run.collapse is None else str(run.collapse),
        "plain": {name: _score(value) for name, value in run.scores[0].items()},
        "fair": {name: _score(value) for name, value in run.scores[-1].items()},
        "change": {name: _score(value) for name, value in run.change.items()},
        "between": [
            {"share": along} | {name: _score(value) for name, value in scores.items()}
            for along, scores in zip(run.along[1:-1], run.scores[1:-1], strict=True)
        ],
        "widest_gap": None
        if gap is None
        else {
            "measure": gap.measure.name,
            "lower_group": run.test_groups[gap.low],
            "higher_group": run.test_groups[gap.high],
            "plain": {"value": gap.plain, "interval": gap.plain_interval},
            "fair": {"value": gap.fair, "interval": gap.fair_interval},
        },
        "rates": [
            {"measure": one.name, "group": group, "plain": _share(before), "fair": _share(after)}
            for one in run.measures
            for group, before, after in zip(run.test_groups, one.plain, one.fair, strict=True)
        ],
        "dropped": [
            {
                "label": cell.label,
                "group": group_name(cell.group),
                "dropped": _share(cell.dropped),
                "suspects": cell.suspects,
                "estimated_noise": cell.noise,
            }
            for cell in run.dropped
        ],
        "suspects": len(run.suspects["row"]),
        "seconds": round(run.seconds, 2),
        "versions": run.versions,
    }


def _settings(run: TableRun) -> dict[str, Any]:
    """Collect what was asked for."""
    asked = run.asked
    return {
        "data": asked.data.name,
        "label": asked.label,
        "sensitive": list(asked.sensitive),
        "positive": asked.positive,
        "fairness": asked.fairness,
        "clean_ratio": asked.clean_ratio,
        "test": None if asked.test_file else asked.test,
        "test_file": asked.test_file.name if asked.test_file else None,
        "bins": {column: list(edges) for column, edges in run.problem.groups.edges.items()},
        "small_groups": asked.small_groups,
        "keep_sensitive": asked.keep_sensitive,
        "drop": list(asked.drop),
        "categories": list(asked.categories),
        "separator": asked.reading.separator,
        "decimal": asked.reading.decimal,
        "missing": list(asked.reading.missing),
        "epochs": asked.epochs,
        "seed": asked.seed,
    }


def _estimate(run: TableRun) -> dict[str, Any] | None:
    """Collect what was found of the labels, where that was asked."""
    if run.estimate is None:
        return None
    return {
        "conclusive": bool(run.estimate.credible),
        "reason": str(run.estimate.credible),
        "clean_ratio": run.estimate.clean_ratio,
        "interval": list(run.estimate.interval),
        "aimed": run.estimate.aimed,
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
