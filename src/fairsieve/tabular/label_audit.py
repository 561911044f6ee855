"""Estimate how far the labels of a table can be trusted, without keeping a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.optional import package
from fairsieve.tabular.preparation import named_estimate, read_whole
from fairsieve.tabular.reading.encoding import encode, fit_preparation
from fairsieve.tabular.reading.features import Feature
from fairsieve.tabular.reading.groups import Groups
from fairsieve.tabular.reading.labels import Labels
from fairsieve.tabular.reading.table import InputTable
from fairsieve.tabular.request import Asked

__all__ = ["Audit", "audit_table"]


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
    """

    asked: Asked
    table: InputTable
    labels: Labels
    groups: Groups
    features: list[Feature]
    estimate: CleanRatioEstimate
    suspects: dict[str, NDArray[Any]]
    notes: list[str]


def audit_table(asked: Asked, report: Callable[[str], None] | None = None) -> Audit:
    """Count the cells of a table, estimate how many of its labels are wrong, and list those."""
    tell = report or (lambda stage: None)
    package("pandas", "reading a table")  # report a missing package before the work
    tell("reading the table")
    part, labels, groups, features, notes, table, _ = read_whole(asked)
    numbers = encode(fit_preparation(part.values), part.values)
    tell("estimating how many labels are wrong")
    found = estimate_clean_ratio(
        numbers, part.label_codes, sensitive_features=part.group_codes, random_state=asked.seed
    )
    estimate = named_estimate(found, part)
    wrong = np.flatnonzero(estimate.wrong > 0.5) if estimate.credible else np.zeros(0, np.int64)
    wrong = wrong[np.argsort(-estimate.wrong[wrong], kind="stable")]
    likeliest = estimate.true_class[wrong].argmax(axis=1)
    classes = part.labels.values
    suspects = {
        "row": part.rows[wrong],
        "label": classes[part.labels.codes[wrong]],
        "suggested": classes[likeliest],
        "probability": estimate.true_class[wrong, likeliest],
        "group": part.groups.take(wrong).objects(),
    }
    return Audit(asked, table, labels, groups, features, estimate, suspects, notes)
