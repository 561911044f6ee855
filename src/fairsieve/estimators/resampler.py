"""Resample data to a clean and fair selection, in the convention of imbalanced-learn."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.utils import InputTags, Tags, _safe_indexing, get_tags
from sklearn.utils.validation import has_fit_parameter

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._learner import check_targets
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.samples import check_groups, read_seed
from fairsieve.selection.batches import Draw, batch_offsets, batch_shares, draw_batches, share_edges
from fairsieve.selection.cells import Cells, Integers, Values
from fairsieve.training.compromises import TOLERANCE
from fairsieve.validation import shown


class FairRobustResampler(OneToOneFeatureMixin, BaseEstimator):  # type: ignore[misc]
    """Resample data to the samples that a fair and robust classifier last trained on.

    Samples that look wrongly labelled are left out. The others are drawn so that every group has the ratio
    of each class that the classifier arrived at. As many rows come back as the classifier selected; rows of
    a cell whose ratio grew appear more than once. It passes the checks of imbalanced-learn for samplers.

    Parameters
    ----------
    estimator : estimator, optional
        Selects the samples: fitted with ``sensitive_features``, it has ``sample_indices_`` and ``ratios_``.
        :class:`~fairsieve.estimators.classifier.FairRobustClassifier` when None.
    random_state : int, RandomState or None
        Determines which rows are drawn (and the classifier, when ``estimator`` is None).

    Attributes
    ----------
    sample_indices_ : integer array
        The rows that came back, ascending, some more than once.
    sensitive_features_ : as given
        The groups of those rows; None, where none were given.
    sampling_strategy_ : dict
        How many rows of each class came back.
    estimator_ : estimator
        The fitted one.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(2000, seed=0)
    >>> selector = FairRobustClassifier(clean_ratio=0.9, tolerance=0.05)
    >>> resampler = FairRobustResampler(selector, random_state=0)
    >>> X, y = resampler.fit_resample(data.features, data.labels, sensitive_features=data.groups)
    >>> len(X) == len(y) == len(resampler.sensitive_features_) <= 1800
    True
    """

    def __init__(self, estimator: Any = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: Any = None,
        verified_labels: Any = None,
        verified_weight: ArrayLike | None = None,
    ) -> FairRobustResampler:
        """Select and draw the rows, which are then in ``sample_indices_``; see :meth:`fit_resample`."""
        seed = read_seed(self.random_state)
        checked = {"verified_labels": verified_labels, "verified_weight": verified_weight}
        options = {name: value for name, value in checked.items() if value is not None}
        options["sensitive_features"] = sensitive_features
        selector: Any = self.estimator
        if selector is None:
            selector = FairRobustClassifier(tolerance=TOLERANCE, random_state=seed)
        for name in options:
            if not has_fit_parameter(selector, name):
                raise InvalidInputError(
                    f"estimator must take {name} in fit, as FairRobustClassifier does; got {shown(selector)}: pass "
                    "None for that one"
                )
        X, labels = check_targets(type(self).__name__, X, _decode_indicators(y))
        self.estimator_ = clone(selector).fit(X, labels, **options)
        selected, self._label_rows = self.estimator_.sample_indices_, np.arange(len(labels))
        if verified_labels is not None:
            estimate: Any = self.estimator_.estimate_
            labels, self._label_rows = _draw_labels(estimate, self.estimator_.classes_, labels, seed)
            selected = selected if estimate.verified is None else np.arange(len(labels))
        self.sample_indices_ = _draw_rows(self.estimator_, labels, sensitive_features, seed, selected)
        rows, groups = self.sample_indices_, sensitive_features
        self.sensitive_features_ = None if groups is None else _safe_indexing(groups, rows)
        values, counts = np.unique(labels[rows], return_counts=True)
        self.sampling_strategy_ = dict(zip(values.tolist(), counts.tolist(), strict=True))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def fit_resample(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        verified_labels: Any = None,
        verified_weight: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Select, draw, and return the rows of X and y in the containers that they came in.

        Two values, so that it fits into the pipelines of imbalanced-learn. The groups of the rows are in
        ``sensitive_features_``; use ``sample_indices_`` to align any other column. In such a pipeline
        ``set_fit_resample_request(sensitive_features=True)`` asks for the groups, if imblearn, which adds
        that method, was imported first.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of shape (n, d)
        y : n labels, or n indicators of three or more classes, as ``label_binarize`` makes them
        sensitive_features : n values, or several columns of them, optional
        verified_labels : n labels, optional
            The checked label where somebody checked; None, NaN or masked elsewhere. Nobody is left out then:
            the checked rows come back with their checked labels, and every other row with a label that is drawn
            by the chances learnt from them. With fewer than ten checked rows those alone are corrected.
        verified_weight : n numbers, optional
            For rows that were not checked at random: the inverse of the chance to be checked.
        """
        self.fit(X, y, sensitive_features, verified_labels, verified_weight)
        rows = self.sample_indices_
        labels = _safe_indexing(y, self._label_rows[rows])
        if hasattr(y, "iloc"):  # the index of a row stays beside it, whatever its label
            labels = labels.set_axis(y.index[rows])
        return _safe_indexing(X, rows), labels

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags and those that imbalanced-learn adds, which needs not be installed."""
        tags = super().__sklearn_tags__()
        inside = get_tags(FairRobustClassifier() if self.estimator is None else self.estimator).input_tags
        fields_of_tags = {name: getattr(tags, name) for name in Tags.__dataclass_fields__}
        fields_of_tags |= {"estimator_type": "sampler", "input_tags": _TableTags(**asdict(inside))}
        fields_of_tags["target_tags"].required = True
        return _ResamplerTags(**fields_of_tags)


@dataclass(slots=True)
class _TableTags(InputTags):  # type: ignore[misc]
    """What a resampler takes."""

    dataframe: bool = True


@dataclass(slots=True)
class _IndexTags:
    """What a resampler stores."""

    sample_indices: bool = True


@dataclass(slots=True)
class _ResamplerTags(Tags):  # type: ignore[misc]
    """The tags of a resampler."""

    sampler_tags: _IndexTags = field(default_factory=_IndexTags)


def _decode_indicators(y: Any) -> Any:
    """Turn indicators of classes, one column each, into the numbers of the classes; flatten a single column.

    >>> _decode_indicators([[0, 1, 0], [0, 0, 1]]).tolist()
    [1, 2]
    """
    if np.ndim(y) != 2:
        return y
    indicators = np.asarray(y)
    if indicators.shape[1] == 1:
        return indicators[:, 0]
    if not np.isin(indicators, (0, 1)).all() or (indicators.sum(axis=1) != 1).any():
        raise InvalidInputError(
            "y must have one label per sample, or one column per class with a single 1 in each row; got the "
            f"shape {indicators.shape}. Multilabel and multioutput targets are not supported: resample for one "
            "of the targets"
        )
    return indicators.argmax(axis=1)


def _draw_labels(
    found: CleanRatioEstimate, classes: Values, labels: Values, seed: int
) -> tuple[Values, Integers]:
    """Draw a label for each row by the chances that checked labels gave.

    Returns the labels, and for each a row that was given that label: so they can be taken from any container.
    """
    codes = found.draw_labels(seed) if found.verified is not None else found.true_codes
    given = np.searchsorted(classes, labels)
    _, first = np.unique(given, return_index=True)
    return classes[codes], np.where(codes == given, np.arange(len(labels)), first[codes])


def _draw_rows(selector: Any, y: ArrayLike, groups: Any, seed: int, selected: Integers) -> Integers:
    """Draw as many rows as were selected, those of each cell in proportion to its ratio."""
    samples = np.shape(y)[0]
    known: Any = {"classes": list(selector.classes_), "group_values": selector.sensitive_values_}
    cells = Cells.of(y, check_groups(groups, samples), missing="own", **known)
    selected = np.asarray(selected, dtype=np.int64)
    counts = np.bincount(cells.codes[selected], minlength=cells.counts.size)
    shares = batch_shares(selector.ratios_, counts, len(selected))
    draw = Draw(share_edges(shares), batch_offsets(1, seed, 0), seed, 0)
    return np.sort(draw_batches(selected, cells.codes, counts, draw)[0])
