"""The attacks by their names in commands and tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairsieve.data.flips import NoisyLabels, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import closest_hint

__all__ = ["NOISES", "add_noise"]

# Added to the score where z = 0, this makes the general flips of the authors' arrays come out whole. Nothing in the
# paper explains it, so it is for checks of parity only.
OFFSET = 0.2

# Attacks that take samples, a rate and a seed; the others flip by margin.
NOISES: dict[str, Callable[[Samples, float, int], NoisyLabels] | None] = {
    "none": lambda samples, rate, seed: NoisyLabels(
        samples.labels.copy(), np.zeros(len(samples), dtype=bool)
    ),
    "label": None,
    "group-targeted": None,
    "label-without-group": None,
    "group-targeted-without-group": None,
    "label-without-group-offset": None,
    "uniform": lambda samples, rate, seed: flip_uniform(samples, rate, seed=seed),
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
    targeted = name.startswith("group-targeted")
    if name not in NOISES or (group and not targeted):
        raise InvalidInputError(
            f"noise must be one of {', '.join(NOISES)}; got {noise!r}{closest_hint(noise, NOISES)}"
        )
    attack = NOISES[name]
    if attack is not None:
        return attack(samples, rate, seed)
    theirs = "without-group" in name
    fitted_on = validation if theirs else None
    if not targeted:
        offset = np.where(samples.cells.group_codes == 0, OFFSET if name.endswith("offset") else 0.0, 0.0)
        return flip_margin(samples, rate, validation=fitted_on, sees_group=not theirs, score_offset=offset)
    values = {str(value): value for value in samples.cells.groups}
    if group and group not in values:
        raise InvalidInputError(f"noise must attack one of the groups {', '.join(values)}; got {group!r}")
    return flip_group_targeted(
        samples, rate, group=values[group] if group else None, validation=fitted_on, sees_group=not theirs
    )
