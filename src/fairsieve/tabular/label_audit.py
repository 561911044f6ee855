"""Estimate how far the labels of a table can be trusted, without keeping a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.optional import package
from fairsieve.tabular.model_choice import choose_model
from fairsieve.tabular.models import record_warnings, weigh_by_trees
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, read_whole
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.features import Feature
from fairsieve.tabular.reading.roles import Groups, Labels
from fairsieve.tabular.reading.table import InputTable, as_objects
from fairsieve.tabular.request import Asked
from fairsieve.tabular.verified_change import tell_rates

__all__ = ["Audit", "audit_table", "estimate_part"]


@dataclass(frozen=True, eq=False)
class Audit:
    """What the data say of themselves.

    Attributes
    ----------
    asked : Asked
    table : InputTable
        The table as it was read.
    labels, groups, features : Labels, Groups, list of Feature
    estimate : CleanRatioEstimate
        Its ``cells`` have the counts, its ``noise`` the share of wrong labels in each.
    suspects : dict of arrays
        The rows whose labels are more likely wrong than right, the surest first.
    notes : list of str
    model_name : str
        The kind of model that says which labels are wrong.
    """

    asked: Asked
    table: InputTable
    labels: Labels
    groups: Groups
    features: list[Feature]
    estimate: CleanRatioEstimate
    suspects: dict[str, NDArray[Any]]
    notes: list[str]
    model_name: str = "logistic"


def audit_table(asked: Asked, report: Callable[[str], None] | None = None) -> Audit:
    """Count the cells of a table, estimate how many of its labels are wrong, and list those."""
    tell = report or (lambda stage: None)
    package("pandas", "reading a table")  # report a missing package before the work
    tell("reading the table")
    part, labels, groups, features, notes, table, _ = read_whole(asked)
    tell("estimating how many labels are wrong")
    problem = TableProblem(asked, labels, groups, features, part, part.take(np.zeros(0, np.int64)), [], table)
    choice = choose_model(problem) if asked.model == "auto" else None
    name = asked.model if choice is None else choice.name
    notes = notes if choice is None else [*notes, choice.note]
    if name == "logistic":
        estimate, suspects, more = _estimate_labels(part, asked.seed)
        notes = [*notes, *more]
    else:
        estimate, suspects = _weigh_labels(problem, name)
    notes = [*tell_rates(estimate), *notes]
    return Audit(asked, table, labels, groups, features, estimate, suspects, notes, name)


def estimate_part(
    part: TablePart, numbers: NDArray[np.float32], seed: int
) -> tuple[CleanRatioEstimate, list[str]]:
    """Estimate how many labels of some rows are wrong; return it with classes and groups by name, and warnings."""
    with record_warnings(part) as notes:
        found = estimate_clean_ratio(
            numbers,
            part.label_codes,
            sensitive_features=part.group_codes,
            verified_labels=part.verified_labels,
            verified_weight=None if part.verified_labels is None else part.verified_weight,
            random_state=seed,
        )
    return named_estimate(found, part), notes


def _estimate_labels(
    part: TablePart, seed: int
) -> tuple[CleanRatioEstimate, dict[str, NDArray[Any]], list[str]]:
    """Estimate which labels are wrong by the models that the estimate itself compares."""
    estimate, notes = estimate_part(part, Preparation().fit(part.values).transform(part.values), seed)
    wrong = np.flatnonzero(estimate.wrong > 0.5) if estimate.credible else np.zeros(0, np.int64)
    wrong = wrong[np.argsort(-estimate.wrong[wrong], kind="stable")]
    likeliest = estimate.true_class[wrong].argmax(axis=1)
    return estimate, _name_rows(part, wrong, likeliest, estimate.true_class[wrong, likeliest]), notes


def _weigh_labels(problem: TableProblem, name: str) -> tuple[CleanRatioEstimate, dict[str, NDArray[Any]]]:
    """Estimate how many labels are wrong, and let boosted trees say out of fold which ones."""
    part = problem.train
    sieve = weigh_by_trees(problem, name)
    assert sieve.estimate_ is not None  # the flips are always estimated
    estimate = named_estimate(sieve.estimate_, part)
    found = sieve.suspects()
    wrong = (found["label"] != found["suggested"]) & bool(estimate.credible)
    rows = found["row"][wrong]
    return estimate, _name_rows(part, rows, found["suggested"][wrong], found["probability"][wrong])


def _name_rows(
    part: TablePart, rows: NDArray[np.int64], suggested: NDArray[np.int64], probability: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Make the table of suspects, with labels and groups by their names."""
    return {
        "row": part.rows[rows],
        "label": as_objects(part.class_names(part.labels.codes[rows])),
        "suggested": as_objects(part.class_names(suggested)),
        "probability": probability,
        "group": as_objects(part.group_names(part.groups.codes[rows])),
    }
