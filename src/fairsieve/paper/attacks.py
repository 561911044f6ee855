"""The attacks by their names in commands and tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairsieve.data.corruption.annotators import flip_by_feature, flip_near_boundary, flip_weak_annotator
from fairsieve.data.corruption.flips import NoisyLabels, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.corruption.influence import flip_influence
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

__all__ = ["NOISES", "add_noise"]


def _unflipped(samples: Samples, rate: float, seed: int) -> NoisyLabels:
    return NoisyLabels(samples.labels.copy(), np.zeros(len(samples), dtype=bool))


NOISES: dict[str, Callable[[Samples, float, int], NoisyLabels]] = {
    "none": _unflipped,
    "label": lambda samples, rate, seed: flip_margin(samples, rate),
    "influence": lambda samples, rate, seed: flip_influence(samples, rate),
    "group-targeted": lambda samples, rate, seed: flip_group_targeted(samples, rate),
    "group-targeted-influence": lambda samples, rate, seed: flip_group_targeted(
        samples, rate, attack=flip_influence
    ),
    "uniform": lambda samples, rate, seed: flip_uniform(samples, rate, seed=seed),
    "weak-annotator": lambda samples, rate, seed: flip_weak_annotator(samples, rate, seed=seed),
    "boundary": lambda samples, rate, seed: flip_near_boundary(samples, rate, seed=seed),
    "feature": lambda samples, rate, seed: flip_by_feature(samples, rate, seed=seed),
}


def add_noise(samples: Samples, noise: str, rate: float, *, seed: int) -> NoisyLabels:
    """Flip ``rate`` of the labels by the attack called ``noise``."""
    if noise not in NOISES:
        raise InvalidInputError(f"noise must be one of {', '.join(NOISES)}; got {noise!r}")
    return NOISES[noise](samples, rate, seed)
