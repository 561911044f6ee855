"""Training when nobody knows how many labels are wrong: what the estimate says decides how.

*Aimed* flips sit where the model is surest, so that low losses tell right labels from wrong ones: the
paper's selection applies, at the estimated clean ratio. *Random* flips do not. There a high loss is
mostly a surprising sample, and leaving those out turns overlapping classes into separate ones. So
samples are kept with the chance that their label is right, once, and the ratios move over what is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.estimators.clean_ratio import CleanRatioEstimate
from fairsieve.samples import Samples
from fairsieve.training.fitted import Fitted
from fairsieve.training.loop import ModelLike, fit

__all__ = ["train_auto"]


def train_auto(
    model: ModelLike,
    data: Samples,
    estimate: CleanRatioEstimate,
    *,
    seed: int,
    sample_weight: NDArray[np.float64] | None = None,
    signal: str | None = None,
    **settings: Any,
) -> Fitted:
    """Train on ``data`` as ``estimate`` suggests; otherwise as :func:`~fairsieve.training.loop.fit`.

    ``signal=None`` compares losses where the paper's selection is made, and error rates, which the
    disparity is about, over labels kept by chance.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> from fairsieve.estimators.clean_ratio import estimate_clean_ratio
    >>> data = make_synthetic(500, seed=0)
    >>> found = estimate_clean_ratio(data.features, data.labels, sensitive_features=data.groups)
    >>> train_auto(None, data, found, seed=0, epochs=5, warmup_epochs=1).ratios.shape
    (2, 2)
    """
    if estimate.aimed:
        settings |= {"clean_ratio": estimate.clean_ratio, "signal": signal or "loss"}
        return fit(model, data, "fairsieve", seed=seed, sample_weight=sample_weight, **settings)
    rows = estimate.keep(seed)
    weights = None if sample_weight is None else sample_weight[rows]
    settings |= {"clean_ratio": 1.0, "signal": signal or "error"}
    fitted = fit(model, data.take(rows), "fairbatch", seed=seed, sample_weight=weights, **settings)
    return replace(fitted.over(rows, len(data)), method="fairsieve")
