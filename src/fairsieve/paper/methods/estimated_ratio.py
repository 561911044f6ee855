"""fairsieve with the clean ratio unknown: what ``FairRobustClassifier(clean_ratio="auto")`` does."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fairsieve.inputs import Checked
from fairsieve.label_noise.correction import train_auto
from fairsieve.label_noise.estimate import estimate_of
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.training.result import Fitted

__all__ = ["train_fairsieve_auto"]


def train_fairsieve_auto(given: TrainingInput, **hyperparameters: Any) -> Fitted:
    """Estimate which labels are wrong, then train by it; the settings' clean ratio is not looked at."""
    started = time.perf_counter()
    data = given.data
    found = estimate_of(Checked(data, None, None, len(data)), given.seed)
    chosen = replace(given.settings, penalty_weight=0.0, **hyperparameters)
    named = {name: getattr(chosen, name) for name in chosen.__dataclass_fields__}
    fitted = train_auto(
        given.model,
        data,
        found,
        seed=given.seed,
        evaluation=given.evaluation,
        progress=given.progress,
        compiled=given.compiles(chosen),
        **named | {"signal": None},
    )
    return replace(fitted, seconds=time.perf_counter() - started)
