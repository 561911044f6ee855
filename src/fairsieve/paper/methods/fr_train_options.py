"""FR-Train's options, as both of its engines read them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FRTrainOptions"]


class FRTrainOptions(NamedTuple):
    """The weights of the classifier's objective, the learning rates, and the order of updates."""

    fairness_weight: float
    robustness_weight: float
    classifier_rate: float
    discriminator_rate: float
    discriminator_updates: int  # for one of the classifier
    pretrain_epochs: int
