"""Train when nobody knows how many labels are wrong: the estimate decides how.

Where it can tell wrong labels from right ones, they are left out once, and the ratios move over what
is kept. (Of random flips the paper's selection by losses would leave out surprising samples, right or
wrong, and turn overlapping classes into separate ones; of aimed ones it leaves out fewer, see
docs/clean-ratio.md.) Where labels look wrong on purpose but it cannot be known which, the paper's selection
is made, at a clean ratio that is a guess. Where nothing can be known, nobody is left out: the ratios
move over everything, which is the gentlest way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.verified import Verification
from fairsieve.samples import Samples
from fairsieve.training.fit import ModelLike, fit
from fairsieve.training.result import Fitted

__all__ = ["train_auto"]

ENOUGH, MOST_COPIES = 10_000, 5  # samples that labels are drawn for, and how often at most


def train_auto(
    model: ModelLike,
    data: Samples,
    estimate: CleanRatioEstimate,
    *,
    seed: int,
    sample_weight: NDArray[np.float64] | None = None,
    signal: str | None = None,
    train: Callable[..., Fitted] = fit,
    **settings: Any,
) -> Fitted:
    """Train on ``data`` as ``estimate`` suggests; otherwise as :func:`~fairsieve.training.fit.fit`.

    ``signal=None`` compares losses where the paper's selection is made, and error rates, which the
    disparity is about, elsewhere. ``train`` is what trains: ``fit``, or a function that takes the same.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> from fairsieve.label_noise.estimate import estimate_clean_ratio
    >>> data = make_synthetic(500, seed=0)
    >>> found = estimate_clean_ratio(data.features, data.labels, sensitive_features=data.groups)
    >>> train_auto(None, data, found, seed=0, epochs=5, warmup_epochs=1).ratios.shape
    (2, 2)
    """
    if estimate.verified is not None:
        return _train_on_chances(
            model,
            data,
            estimate,
            seed=seed,
            sample_weight=sample_weight,
            signal=signal,
            train=train,
            **settings,
        )
    data, estimate = _correct_checked(data, estimate)
    if estimate.aimed and not estimate.credible:
        settings |= {"clean_ratio": estimate.clean_ratio, "signal": signal or "loss"}
        return train(model, data, "fairsieve", seed=seed, sample_weight=sample_weight, **settings)
    rows = estimate.keep(seed)
    weights = None if sample_weight is None else sample_weight[rows]
    settings |= {"clean_ratio": 1.0, "signal": signal or "error"}
    part = data if len(rows) == len(data) else data.take(rows)
    fitted = train(model, part, "fairbatch", seed=seed, sample_weight=weights, **settings)
    return replace(fitted.over(rows, len(data)), method="fairsieve")


def _correct_checked(data: Samples, estimate: CleanRatioEstimate) -> tuple[Samples, CleanRatioEstimate]:
    """Set the labels right that somebody checked, where they are too few to learn from."""
    if estimate.verified_codes is None:
        return data, estimate
    corrected = data.with_labels(Verification(estimate.verified_codes, None).correct(data))
    return corrected, replace(estimate, cells=corrected.cells)


def _train_on_chances(
    model: ModelLike,
    data: Samples,
    estimate: CleanRatioEstimate,
    *,
    seed: int,
    sample_weight: NDArray[np.float64] | None,
    signal: str | None,
    train: Callable[..., Fitted],
    **settings: Any,
) -> Fitted:
    """Train on labels drawn by the chances that checked labels gave; several times over where samples are few."""
    copies = int(np.clip(ENOUGH // max(len(data), 1), 1, MOST_COPIES))
    codes = np.concatenate([estimate.draw_labels(seed + number) for number in range(copies)])
    rows = np.tile(np.arange(len(data)), copies)
    classes = np.asarray(data.cells.classes, dtype=data.labels.dtype)
    drawn = data.take(rows).with_labels(classes[codes])
    weights = None if sample_weight is None else sample_weight[rows]
    settings |= {"clean_ratio": 1.0, "signal": signal or "error"}
    fitted = train(model, drawn, "fairbatch", seed=seed, sample_weight=weights, **settings)
    history = replace(fitted.history, times_selected=fitted.history.times_selected[: len(data)])
    return replace(fitted, indices=np.arange(len(data)), history=history, method="fairsieve")
