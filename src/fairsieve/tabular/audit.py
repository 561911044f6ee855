"""A table → how far its labels can be trusted, with no model kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.inputs import dense
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
from fairsieve.optional import check_packages
from fairsieve.tabular.preparation import whole_problem
from fairsieve.tabular.reading.features import Feature, preparation
from fairsieve.tabular.reading.groups import Groups
from fairsieve.tabular.reading.labels import Labels
from fairsieve.tabular.request import Asked

__all__ = ["Audit", "audit"]


@dataclass(frozen=True, eq=False)
class Audit:
    """What the data say of themselves.

    Attributes
    ----------
    labels, groups, features : Labels, Groups, list of Feature
    estimate : CleanRatioEstimate
        Its ``cells`` have the counts, its ``noise`` the share of wrong labels in each.
    suspects : dict of arrays
        The rows whose labels are more likely wrong than right, the surest first.
    notes : list of str
    """

    labels: Labels
    groups: Groups
    features: list[Feature]
    estimate: CleanRatioEstimate
    suspects: dict[str, NDArray[Any]]
    notes: list[str]


def audit(asked: Asked, report: Callable[[str], None] | None = None) -> Audit:
    """Count the cells of a table, estimate how many of its labels are wrong, and list those."""
    tell = report or (lambda stage: None)
    check_packages()
    tell("reading the table")
    part, labels, groups, features, notes = whole_problem(asked)
    numbers = dense(preparation(features).fit_transform(part.frame))
    tell("estimating how many labels are wrong")
    estimate = estimate_clean_ratio(
        numbers, part.labels, sensitive_features=part.groups, random_state=asked.seed
    )
    wrong = np.flatnonzero(estimate.wrong > 0.5)
    wrong = wrong[np.argsort(-estimate.wrong[wrong], kind="stable")]
    likeliest = estimate.true_class[wrong].argmax(axis=1)
    suspects = {
        "row": part.rows[wrong],
        "label": part.labels[wrong],
        "suggested": np.asarray(estimate.cells.classes)[likeliest],
        "probability": estimate.true_class[wrong, likeliest],
        "group": part.groups[wrong],
    }
    return Audit(labels, groups, features, estimate, suspects, notes)
