"""What training on a table comes to, whatever the kind of model: a plain model, a fair one, and those between."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from fairsieve.errors import FairnessWarning, FairsieveWarning
from fairsieve.estimators._comparison import PlainComparison
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.verified import UncheckedGroupWarning
from fairsieve.selection.cells import Cells
from fairsieve.tabular.model_files import with_threshold
from fairsieve.tabular.preparation import TablePart
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.trade_off import HeldOutScores
from fairsieve.thresholds import ThresholdRule

__all__ = ["FittedModel", "TableModels", "pipeline_with_threshold", "place_weights", "record_warnings"]


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel:
    """One model on the way from the plain one to the fairest.

    Attributes
    ----------
    title : str
        Such as "plain model" or "25 % of the way to the fair model".
    prepared : Preparation
        What turns columns into the numbers that the classifier takes.
    classifier : classifier
        Of scikit-learn's interface, with labels by their names.
    training_scores : array of shape (n, classes)
        Probabilities for the training rows, on which a threshold is chosen; out of fold for trees.
    held_out : HeldOutScores, optional
        On training rows that the model did not see, where that was asked for.
    """

    title: str
    prepared: Preparation
    classifier: Any
    training_scores: NDArray[np.float64]
    held_out: HeldOutScores | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class TableModels:
    """The models of a table, and what training says of its rows.

    Attributes
    ----------
    models : list of FittedModel
        The plain one first.
    kept : int
        The place of the one that is kept.
    suspects : dict of arrays
        As the estimators list them: rows, labels and groups by their codes.
    selected : integer array
        The rows that were trained on at the end.
    clean_ratio : float
    estimate : CleanRatioEstimate or None
    comparison : PlainComparison or None
        The fair model beside the plain one, on the rows that training judges by.
    notes : list of str
        What training warned of.
    weights : array of shape (classes, groups)
        Effective weight of each cell: its share of the training weight, divided by its share of the rows.
    """

    models: list[FittedModel]
    kept: int
    suspects: dict[str, NDArray[Any]]
    selected: NDArray[np.int64]
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    comparison: PlainComparison | None
    notes: list[str]
    weights: NDArray[np.float64]


def place_weights(model: Any, cells: Cells) -> NDArray[np.float64]:
    """Return the effective weights of an estimator that was fitted to codes, by cell; NaN where it has none."""
    found = np.full(cells.shape, np.nan)
    columns = [-1 if group is None else int(group) for group in model.sensitive_values_]  # no group is last
    found[np.ix_([int(code) for code in model.classes_], columns)] = model.effective_weights_
    return found


def pipeline_with_threshold(
    model: FittedModel, rule: ThresholdRule, positive: str | None, chances: NDArray[np.float64]
) -> tuple[Pipeline, float | None]:
    """Make the pipeline that is kept of a model; return its threshold, too, where the rule chose one.

    Parameters
    ----------
    positive : str, optional
        The label that the threshold is for.
    chances : array of shape (n, classes)
        How likely each class is the true one of each training row.
    """
    classifier, threshold = model.classifier, None
    if not rule.is_default and positive is not None:
        place = classifier.classes_.tolist().index(positive)
        threshold = rule.choose(model.training_scores[:, place], chances[:, place])
        classifier = with_threshold(classifier, threshold, positive)
    return Pipeline([("prepare", model.prepared), ("model", classifier)]), threshold


@contextlib.contextmanager
def record_warnings(part: TablePart) -> Iterator[list[str]]:
    """Collect what learning from ``part`` warns of, in place of printing it; a collapse is told elsewhere."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairsieveWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    for one in caught:
        message = one.message
        if isinstance(message, UncheckedGroupWarning):  # it knows the group by its code
            message = UncheckedGroupWarning(part.group_names([message.group])[0])
        if isinstance(message, FairsieveWarning | ConvergenceWarning) and not isinstance(
            message, FairnessWarning
        ):
            notes.append(str(message))
