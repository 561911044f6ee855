"""Estimate a model's accuracy and disparity on the true labels.

The intervals come from drawing rows and checks again (see :mod:`~fairsieve.label_noise.verified`), and widen with
what a group's few checks leave open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.judgement import Basis, judge
from fairsieve.notions import EO, find_notion
from fairsieve.samples import check_weights, read_seed
from fairsieve.selection.cells import Codes, Floats, encode, positive_code
from fairsieve.validation import shown


@dataclass(frozen=True)
class TrueMeasure:
    """An estimate for the true labels.

    Attributes
    ----------
    value : float
    low, high : float
        95 % interval; it includes what few checks leave open.
    checked : int
        Checked rows it stands on.
    """

    value: float
    low: float
    high: float
    checked: int

    def __str__(self) -> str:
        checked = f", {self.checked} checked" if self.checked else ""
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}{checked})"


@dataclass(frozen=True, eq=False)
class TrueMeasures:
    """A model's measures on the true labels.

    Attributes
    ----------
    accuracy, disparity : TrueMeasure
    table : array of shape (classes, groups, classes)
        Estimated number of rows of each true class and group that are predicted to be of each class.
    basis : {"verified labels", "estimate", "bounds", "given labels"}
        What the true labels are known from, see :mod:`~fairsieve.label_noise.judgement`.
    on_given_labels : dict
        ``accuracy`` and ``disparity`` on the labels as they are given.
    """

    accuracy: TrueMeasure
    disparity: TrueMeasure
    table: Floats
    basis: Basis
    on_given_labels: dict[str, float]


def measure_true_labels(
    y_pred: ArrayLike,
    estimate: CleanRatioEstimate,
    *,
    rows: ArrayLike | None = None,
    fairness: str = EO,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> TrueMeasures:
    """Estimate accuracy and disparity of predictions on the true labels.

    They are known from labels that somebody checked, or else from how many labels the estimate says are wrong. Where it
    finds none, or cannot say, the intervals hold what so many wrong labels as are possible would do.

    Parameters
    ----------
    y_pred : n labels
        What a model predicts for rows that it did not see in training.
    estimate : CleanRatioEstimate
        Of :func:`~fairsieve.label_noise.estimate.estimate_clean_ratio` for the same rows, or for more; best with
        ``verified_labels``.
    rows : n integers, optional
        Which rows of the estimate the predictions are for; all of them, in their order, when None.
    fairness : str, default="equalized-odds"
        The notion that the disparity measures, see :mod:`fairsieve.notions`.
    pos_label : label, optional
    sample_weight : n numbers, optional
    random_state : int, RandomState or None, default=0
        Of the draws that the intervals come from.

    Examples
    --------
    >>> from fairsieve import estimate_clean_ratio
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> data = make_synthetic(1000, seed=0)
    >>> noisy = flip_uniform(data, 0.2, seed=0).labels
    >>> verified = [label if row < 100 else None for row, label in enumerate(data.labels)]
    >>> found = estimate_clean_ratio(
    ...     data.features, noisy, sensitive_features=data.groups, verified_labels=verified, random_state=0
    ... )
    >>> measures = measure_true_labels((data.features[:, 0] > 0).astype(int), found)
    >>> measures.accuracy.checked, measures.accuracy.low < measures.accuracy.value < measures.accuracy.high
    (100, True)
    """
    seed = read_seed(random_state)
    if not isinstance(estimate, CleanRatioEstimate):
        raise InvalidInputError(
            f"estimate must be what estimate_clean_ratio returns; got {type(estimate).__name__}: call it "
            "first"
        )
    every = len(estimate.cells)
    chosen = np.arange(every) if rows is None else _check_rows(rows, every)
    predicted, _ = encode("y_pred", y_pred, estimate.cells.classes)
    if len(predicted) != len(chosen):
        raise InvalidInputError(
            f"y_pred must have one label per row of the estimate, {len(chosen)}; got {len(predicted)}: pass rows= to "
            "say which rows they are for"
        )
    weights = np.ones(len(chosen)) if sample_weight is None else check_weights(sample_weight, len(chosen))
    chosen, first, places = np.unique(chosen, return_index=True, return_inverse=True)
    if (predicted != predicted[first][places]).any():
        raise InvalidInputError(
            "rows must not name a row twice with different predictions; leave one of them out"
        )
    part = estimate.take(chosen)
    checked = int((weights[first][part.checked] > 0).sum())
    if estimate.verified is not None and not checked:
        raise InvalidInputError(
            "measure_true_labels needs rows that somebody checked, with a weight above 0; y_pred is for none of them: "
            "check some of these rows, or pass others by rows="
        )
    notion = find_notion(fairness)
    judged = judge(
        part.cells,
        [predicted[first]],
        notion.name,
        positive=positive_code(notion.name, part.cells, pos_label),
        estimate=part,
        sample_weight=weights[first],
        seed=seed,
    )
    [on_right_labels], [given] = judged.models, judged.on_given_labels.models
    accuracy, disparity = (
        TrueMeasure(value, *interval, checked)
        for value, interval in (on_right_labels.accuracy, on_right_labels.disparity)
    )
    on_given = {"accuracy": given.accuracy.value, "disparity": given.disparity.value}
    return TrueMeasures(accuracy, disparity, on_right_labels.table, judged.basis, on_given)


def _check_rows(rows: ArrayLike, every: int) -> Codes:
    """Check which rows of an estimate are meant: numbers from 0 on, or a mask."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (every,):
        chosen = np.flatnonzero(chosen)
    is_list = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if not is_list or chosen.min() < 0 or chosen.max() >= every:
        raise InvalidInputError(
            f"rows must be numbers of rows of the estimate, between 0 and {every - 1}, or a mask of {every} truth "
            f"values, and not empty; got {shown(rows)}"
        )
    return chosen.astype(np.int64)
