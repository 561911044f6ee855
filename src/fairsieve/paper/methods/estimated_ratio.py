"""fairsieve with the clean ratio unknown: what ``FairRobustClassifier(clean_ratio="auto")`` does."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fairsieve.inputs import Checked
from fairsieve.label_noise.correction import train_auto
from fairsieve.label_noise.estimate import estimate_of
from fairsieve.paper.methods.planned import as_options
from fairsieve.samples import Samples
from fairsieve.training.fit import ModelLike
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["train_fairsieve_auto"]


def train_fairsieve_auto(
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    model: ModelLike = None,
    validation: Samples | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    **hyperparameters: Any,
) -> Fitted:
    """Estimate which labels are wrong, then train by it; the settings' clean ratio is not looked at."""
    started = time.perf_counter()
    found = estimate_of(Checked(data, None, None, len(data)), seed)
    chosen = as_options(replace(settings, penalty_weight=0.0, **hyperparameters)) | {"signal": None}
    fitted = train_auto(
        model, data, found, seed=seed, evaluation=evaluation, progress=progress, watched=progress, **chosen
    )
    return replace(fitted, seconds=time.perf_counter() - started)
