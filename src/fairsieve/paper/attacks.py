"""The attacks by their names in commands and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.corruption.annotators import flip_by_feature, flip_near_boundary, flip_weak_annotator
from fairsieve.data.corruption.flips import NoisyLabels, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.corruption.influence import flip_influence
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import decode_classes
from fairsieve.samples import Samples
from fairsieve.validation import closest_hint

__all__ = ["NOISES", "add_noise"]


def _unflipped(samples: Samples, rate: float, seed: int) -> NoisyLabels:
    return NoisyLabels(samples.labels.copy(), np.zeros(len(samples), dtype=bool))


# Added to the score where z = 0, this makes the general flips of the authors' arrays come out whole. Nothing in the
# paper explains it, so it is for checks of parity only.
OFFSET = 0.2

NOISES: dict[str, Callable[[Samples, float, int], NoisyLabels]] = {
    "none": _unflipped,
    "label": lambda samples, rate, seed: flip_margin(samples, rate),
    "influence": lambda samples, rate, seed: flip_influence(samples, rate),
    "group-targeted": lambda samples, rate, seed: flip_group_targeted(samples, rate),
    "group-targeted-influence": lambda samples, rate, seed: flip_group_targeted(
        samples, rate, attack=flip_influence
    ),
    "label-without-group": lambda samples, rate, seed: _flip_without_group(samples, None, rate),
    "group-targeted-without-group": lambda samples, rate, seed: _flip_without_group(
        samples, None, rate, targeted=True
    ),
    "label-without-group-offset": lambda samples, rate, seed: _flip_without_group(
        samples, None, rate, offset=OFFSET
    ),
    "uniform": lambda samples, rate, seed: flip_uniform(samples, rate, seed=seed),
    "weak-annotator": lambda samples, rate, seed: flip_weak_annotator(samples, rate, seed=seed),
    "boundary": lambda samples, rate, seed: flip_near_boundary(samples, rate, seed=seed),
    "feature": lambda samples, rate, seed: flip_by_feature(samples, rate, seed=seed),
}


def add_noise(
    samples: Samples, noise: str, rate: float, *, seed: int, validation: Samples | None = None
) -> NoisyLabels:
    """Flip ``rate`` of the labels by the attack called ``noise``.

    The attacks whose names hold ``without-group`` are those of the paper's authors: their regression does not see
    the group, and is fitted on ``validation`` too. ``group-targeted:women`` attacks the group called ``women``; without
    a name, the group whose attack lowers accuracy most is attacked.
    """
    name, _, group = noise.partition(":")
    if name not in NOISES or (group and not name.startswith("group-targeted")):
        raise InvalidInputError(
            f"noise must be one of {', '.join(NOISES)}; got {noise!r}{closest_hint(noise, NOISES)}"
        )
    attacked = _find_group(samples, group) if group else None
    if "without-group" in name:
        offset = OFFSET if name.endswith("offset") else 0.0
        targeted = name.startswith("group-targeted")
        return _flip_without_group(
            samples, validation, rate, targeted=targeted, group=attacked, offset=offset
        )
    if group:
        attack = flip_influence if name.endswith("influence") else None
        return flip_group_targeted(samples, rate, group=attacked, attack=attack)
    return NOISES[name](samples, rate, seed)


def _find_group(samples: Samples, name: str) -> Any:
    """Find a group by the text of its value."""
    found = [group for group in samples.cells.groups if str(group) == name]
    if not found:
        raise InvalidInputError(
            f"noise must attack one of the groups {', '.join(map(str, samples.cells.groups))}; got {name!r}"
        )
    return found[0]


def _flip_without_group(
    samples: Samples,
    validation: Samples | None,
    rate: float,
    *,
    targeted: bool = False,
    group: Any | None = None,
    offset: float = 0.0,
) -> NoisyLabels:
    """Flip the largest margins of a regression that does not see the group, fitted on the validation set too.

    ``offset`` is added to the regression's score of the samples in the first group.
    """
    parts = [samples] if validation is None else [samples, validation]
    features = np.concatenate([part.features.reshape(len(part), -1) for part in parts])
    groups = np.concatenate([part.cells.group_codes for part in parts])
    joined = Samples(
        features[:, ~_group_columns(features, groups)],
        np.concatenate([part.cells.label_codes for part in parts]),
        groups,
        classes=list(range(samples.cells.shape[0])),
        group_values=list(range(samples.cells.shape[1])),
    )
    attacked = np.arange(len(joined)) < len(samples)
    share = rate * len(samples) / len(joined)
    if targeted:
        found = flip_group_targeted(
            joined,
            share,
            group=None if group is None else samples.cells.groups.index(group),
            attack=lambda all_, rate, among: flip_margin(all_, rate, among=among & attacked),
        )
    else:
        found = flip_margin(joined, share, among=attacked, score_offset=np.where(groups == 0, offset, 0.0))
    return NoisyLabels(decode_classes(found.labels[attacked], samples.cells.classes), found.flipped[attacked])


def _group_columns(features: NDArray[Any], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Find the columns that hold one value in each group, and not the same in all."""
    constant = np.ones(features.shape[1], dtype=bool)
    for group in np.unique(groups):
        constant &= np.ptp(features[groups == group], axis=0) == 0
    return np.asarray(constant & (np.ptp(features, axis=0) > 0))
