"""Measure models of a table on the true labels, by the answers of people who checked some of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.label_noise.true_measures import TrueMeasure, TrueMeasures, measure_true_labels
from fairsieve.report.number_format import number, percent
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.preparation import TablePart, TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.table import as_objects

__all__ = ["TrueLabelMeasures", "measure_by_estimate", "measure_problem", "rate_records", "tell_rates"]

MORE = 10  # checks, by which intervals would narrow


@dataclass(frozen=True, eq=False)
class TrueLabelMeasures:
    """What models are worth on the true labels, as far as checked rows say.

    Attributes
    ----------
    models : dict of TrueMeasures
        By the name of the model.
    rows : int
        Rows that are measured on.
    checked : int
        How many of them somebody checked.
    fairness : str
    """

    models: dict[str, TrueMeasures]
    rows: int
    checked: int
    fairness: str

    @property
    def sentence(self) -> str:
        """The estimates in plain words."""
        title = f"{ABBREVIATIONS[self.fairness]} disparity"
        told = [
            f"{name} accuracy {_told(one.accuracy)}, {title} {_told(one.disparity)}"
            for name, one in self.models.items()
        ]
        return (
            f"Estimated for the true labels of {self.rows:,} rows, {self.checked:,} of which were checked (95 % "
            f"intervals): {'; '.join(told)}."
        )

    @property
    def record(self) -> dict[str, Any]:
        """The estimates as values that JSON can express."""
        models = {
            name: {
                part: {"value": one.value, "interval": [one.low, one.high]}
                for part, one in (("accuracy", found.accuracy), ("disparity", found.disparity))
            }
            for name, found in self.models.items()
        }
        return {"rows": self.rows, "checked": self.checked, **models}


def _told(one: TrueMeasure) -> str:
    return f"{number(one.value)} ({number(one.low)} to {number(one.high)})"


def measure_by_estimate(
    estimate: CleanRatioEstimate,
    rows: NDArray[np.int64],
    predicted: dict[str, Sequence[Any]],
    fairness: str,
    positive: Any,
    seed: int,
) -> TrueLabelMeasures | None:
    """Measure predictions of some rows of an estimate; None where too few were checked to learn from.

    Parameters
    ----------
    predicted : dict of labels
        Of those rows, by the name of the model; as the estimate calls them.
    positive : label or None
    """
    codes = estimate.verified_codes
    if estimate.unseen is None or codes is None or not (codes[rows] >= 0).any():
        return None
    models = {
        name: measure_true_labels(
            np.asarray(labels), estimate, rows=rows, fairness=fairness, pos_label=positive, seed=seed
        )
        for name, labels in predicted.items()
    }
    return TrueLabelMeasures(models, len(rows), int((codes[rows] >= 0).sum()), fairness)


def measure_problem(
    problem: TableProblem, predicted: dict[str, NDArray[np.int64]]
) -> TrueLabelMeasures | None:
    """Measure predictions of the test part; None where nobody checked a row of it.

    The chances of the true labels are learnt from the checked rows of both parts, but a checked row is measured on by
    what was thought of it without its check.

    Parameters
    ----------
    predicted : dict of integer arrays
        Codes of the test part's labels, by the name of the model.
    """
    train, test, asked = problem.train, problem.test, problem.asked
    if test.verified is None or not (test.verified >= 0).any():
        return None
    prepared = Preparation().fit(train.values)
    both = [train, test]
    codes = np.concatenate([_checked_codes(part) for part in both])
    weights = np.concatenate(
        [np.ones(len(part)) if part.verified_weight is None else part.verified_weight for part in both]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)  # training has given the same
        estimate = estimate_clean_ratio(
            np.concatenate([prepared.transform(part.values) for part in both]),
            np.concatenate([train.label_codes, _given_codes(problem)]),
            sensitive_features=np.concatenate([part.group_codes.astype(np.float64) for part in both]),
            verified_labels=as_objects(None if code < 0 else int(code) for code in codes),
            verified_weight=weights,
            random_state=asked.seed,
        )
    rows = np.arange(len(train), len(train) + len(test))
    known = {name: codes.tolist() for name, codes in predicted.items()}
    return measure_by_estimate(estimate, rows, known, asked.fairness, problem.positive_code, asked.seed)


def rate_records(estimate: CleanRatioEstimate) -> list[dict[str, Any]]:
    """Collect the flip rates that checked labels show, with intervals; empty where there are none."""
    rates, cells = estimate.verified, estimate.cells
    if rates is None:
        return []
    narrowing, by_group = rates.narrowing(MORE), rates.checked.sum(axis=0)
    return [
        {
            "label": str(label),
            "group": None if group is None else str(group),
            "checked_in_group": int(by_group[column]),
            "flip_rate": {
                "value": float(rates.flip_rates[row, column]),
                "interval": [float(rates.low[row, column]), float(rates.high[row, column])],
            },
            "narrowed_by_ten_checks": float(narrowing[row, column]),
        }
        for row, label in enumerate(cells.classes)
        for column, group in enumerate(cells.groups)
        if cells.counts[:, column].any()
    ]


def tell_rates(estimate: CleanRatioEstimate) -> list[str]:
    """Say the flip rates that checked labels show, and what more checks would be worth; empty where there are none."""
    found = rate_records(estimate)
    parts = []
    for one in found:
        low, high = one["flip_rate"]["interval"]
        parts.append(
            f"{one['label']}, {one['group'] or 'no group'}: {percent(one['flip_rate']['value'])} ({percent(low)} to "
            f"{percent(high)}, {percent(one['narrowed_by_ten_checks'])} narrower)"
        )
    if not parts:
        return []
    return [
        "Share of wrong labels by true label and group, from the checked rows (95 % interval, and by how much "
        f"{MORE} more checks in the group would narrow it): {'; '.join(parts)}."
    ]


def _checked_codes(part: TablePart) -> NDArray[np.int64]:
    return np.full(len(part), -1, np.int64) if part.verified is None else part.verified


def _given_codes(problem: TableProblem) -> NDArray[np.int64]:
    """Return the labels of the test part as the table has them, before the checked ones were set right."""
    codes, answers = problem.test.label_codes.copy(), problem.answers
    assert answers is not None
    places = dict(zip(answers.rows.tolist(), answers.given.tolist(), strict=True))
    for place in np.flatnonzero(_checked_codes(problem.test) >= 0):
        codes[place] = places[int(problem.test.rows[place])]
    return codes
