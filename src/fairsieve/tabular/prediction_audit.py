"""Audit predictions that a table has already: rates by group, gaps, calibration, and labels to check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairsieve.errors import InvalidInputError, spell
from fairsieve.selection.cells import Cells, Floats
from fairsieve.tabular.evaluation import (
    Calibration,
    Evaluation,
    ModelOutput,
    calibrate_scores,
    evaluate,
)
from fairsieve.tabular.label_review import Audit, audit_table
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import open_table
from fairsieve.tabular.reading.columns import InputTable, count_rows, find_column, name_rows, parse_numbers
from fairsieve.tabular.reading.roles import Labels
from fairsieve.tabular.settings import TableSettings


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionAudit(Audit):
    """What predictions of any system are worth, group by group, beside what the data say about the labels.

    Attributes
    ----------
    prediction, score : str
        The columns of the predictions and of the positive label's probability; the latter may be None.
    evaluation : Evaluation
        Of one model, "predictions".
    calibration : list of Calibration
        Empty without a column of scores.
    left_out : int
        Rows without a prediction.
    """

    prediction: str
    score: str | None
    evaluation: Evaluation
    calibration: list[Calibration]
    left_out: int


def audit_predictions(
    asked: TableSettings, prediction: str, score: str | None, report: Callable[[str], None]
) -> PredictionAudit:
    """Rate the predictions in a column of a table against its labels; nothing is trained to predict.

    Parameters
    ----------
    asked : TableSettings
    prediction : str
        A column of predicted labels.
    score : str or None
        A column of probabilities of the positive label.
    report : callable
        Called with what begins.
    """
    apart = [prediction, *([] if score is None else [score])]
    table, parts = open_table(asked)
    if parts is not None:
        table = parts.only_sample()
    for option, column in zip(("--prediction", "--score"), apart, strict=False):
        find_column(table, column, option)
        if column in (asked.label, *asked.sensitive):
            raise InvalidInputError(
                f"{spell(option)} must be a column of its own; got {column!r}, which is the label or a sensitive one: "
                "name another"
            )
    audited = audit_table(replace(asked, data=table, drop=(*asked.drop, *apart)), report)
    labels, notes, part = audited.labels, audited.notes, audited.whole
    inside = np.searchsorted(table.rows, part.rows)  # the rows with a label, which the estimate is of
    guessed = labels.read(table, prediction).codes[inside]
    places = np.flatnonzero(guessed >= 0)
    if not len(places):
        raise InvalidInputError(
            f"{spell('--prediction')} must have values in rows with a label; {prediction!r} has none"
        )
    measured, codes = part.take(places), guessed[places].astype(np.int64)
    cells, copies = measured.cells, part.find_copies()
    evaluation = evaluate(
        cells,
        {"predictions": ModelOutput(np.zeros((0, len(labels.classes))), codes)},
        labels,
        asked.fairness,
        estimate=audited.estimate.take(places),
        copies=None if copies is None else copies[places],
        seed=asked.seed,
    )
    calibration: list[Calibration] = []
    if score is not None:
        given_scores = _read_scores(table, labels, score)[inside][places]
        unscored = measured.rows[np.isnan(given_scores)]
        if len(unscored):
            told = f"Rows without a score in {score!r}, which do not count for what scores mean: "
            notes = [*notes, f"{told}{count_rows(table.name, unscored)}."]
        calibration = _calibrate(cells, given_scores, labels)
    return PredictionAudit(
        **vars(replace(audited, asked=asked, notes=notes)),
        prediction=prediction,
        score=score,
        evaluation=evaluation,
        calibration=calibration,
        left_out=len(part) - len(places),
    )


def _read_scores(table: InputTable, labels: Labels, column: str) -> Floats:
    """Read probabilities of the positive label."""
    if labels.positive is None:
        raise InvalidInputError(
            f"{spell('--score')} must be the probability of one label; {labels.column!r} has {len(labels.classes)}: "
            f"name it by {spell('--positive')}"
        )
    parsed = parse_numbers(find_column(table, column, "--score"), table.reading.decimal)
    if table.frame[column].isna().all():
        raise InvalidInputError(
            f"{spell('--score')} must hold probabilities; no row has a value in {column!r}: name another column, or "
            f"leave it out"
        )
    wrong = parsed.odd | (parsed.numbers < 0) | (parsed.numbers > 1)
    if wrong.any():
        row = int(table.rows[np.flatnonzero(wrong)[0]])
        raise InvalidInputError(
            f"{spell('--score')} must hold probabilities, numbers from 0 to 1, of {labels.positive!r}; {column!r} "
            f"has something else in {int(wrong.sum()):,} rows (the first: {name_rows(table.name, [row])}): give such "
            "a column, or leave it out"
        )
    return parsed.numbers


def _calibrate(cells: Cells, scores: Floats, labels: Labels) -> list[Calibration]:
    """Compare scores with what is found, in every group with enough people who have one."""
    known = ~np.isnan(scores)
    if not known.any() or labels.positive is None:
        return []
    cells, scores = Cells(cells.codes[known], cells.classes, cells.groups), scores[known]
    hits = cells.label_codes == labels.classes.index(labels.positive)
    calibration = calibrate_scores("given", cells, scores, hits, labels.positive)
    return [one for one in calibration if one.group is not None and one.observed.total >= POLICY.fewest]
