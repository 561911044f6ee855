"""How many rows, or checked labels, would tell what cannot be told yet.

The reach of an interval, half its width, has parts of its own: chance, which narrows with the root of the rows, and
what is not known of the labels, which narrows with the checks. Both are seen by imagining right labels that are as
likely as the estimate has it: of all rows, or of some that are checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairsieve.intervals import NORMAL, Score
from fairsieve.label_noise.survey import MOST as MOST_SURVEYED
from fairsieve.selection.cells import Codes, Floats

if TYPE_CHECKING:
    from fairsieve.label_noise.judgement import Basis, Judgement

FEWEST_CHECKS, MOST_CHECKS = 50, 10_000  # that are imagined
MOST_TIMES = 1000  # rows beyond so many times those there are, are no answer
LIKELY = 0.8  # chance that it is told by then
TRIES = 4  # draws of right labels


class Needed(NamedTuple):
    """What would tell.

    Attributes
    ----------
    rows, checks : int or None
        How many in all; where both are named, it takes both, and where none is, no number of them would do.
    """

    rows: int | None = None
    checks: int | None = None


NOTHING = Needed()


def find_needed(judged: Judgement, small: float = 0.0, first: int = 0, second: int = -1) -> Needed:
    """Find what would tell whether groups are more alike, or that the change is within ``small``.

    What is told by then is not known yet: the change may come out anywhere that today's interval leaves open, sooner
    where it is small. Enough is what tells most of these outcomes. Rows alone are no answer where labels are in doubt.
    """
    (low, high), count = judged.change(first, second)["disparity"].interval, len(judged.judged.weights)
    reach, usual = (high - low) / 2, judged.models[first].disparity.value
    needed = telling_reach((low + high) / 2, reach, small, max(usual, small))
    if judged.estimate is None:  # the labels are believed
        return Needed(_times(count, reach / needed))
    imagined = _Imagined(judged, first, second)
    right = min(imagined.right, reach)
    if right <= needed:
        checks = imagined.checks(needed**2 - right**2)
        return Needed(None, checks) if checks and checks <= count else NOTHING
    # Not even if all labels were known to be right: half of what is open is left to the rows, and half to the checks.
    rows, checks = _times(count, math.sqrt(2) * right / needed), imagined.checks(needed**2 / 2)
    if rows is None or checks is None or checks > min(rows, MOST_CHECKS):
        return NOTHING
    return Needed(rows, checks)


def telling_reach(centre: float, reach: float, small: float, usual: float) -> float:
    """Find how far an interval may reach so that it is likely to tell.

    It tells where it lies on one side of 0, or within ``small`` of it. What it is then around is not known: today's
    interval around ``centre`` says it, and that a change is seldom larger than is ``usual``.

    >>> [round(telling_reach(centre, 0.1, 0.02, 0.1), 3) for centre in (0.0, 0.05, 0.09)]
    [0.016, 0.018, 0.039]
    """
    low, high, error, normal = 0.0, reach, reach / NORMAL, NormalDist()
    weight = usual**2 / (usual**2 + error**2)
    for _ in range(40):
        middle = (low + high) / 2
        known = min((middle / reach) ** 2, 1 - 1e-9)  # the part of what will be known that is known today
        mean = centre * (known + weight * (1 - known))
        spread = (1 - known) * math.sqrt(weight * error**2 + (middle / NORMAL) ** 2 / (1 - known))
        beyond = 1 - normal.cdf((middle - mean) / spread) + normal.cdf((-middle - mean) / spread)
        inner = max(small - middle, 0.0)
        within = normal.cdf((inner - mean) / spread) - normal.cdf((-inner - mean) / spread)
        low, high = (middle, high) if beyond + within >= LIKELY else (low, middle)
    return max(low, 1e-9)


def _times(count: int, times: float | None) -> int | None:
    """Return how many rows there are in all, where their root has to grow so many times."""
    return None if times is None or times**2 > MOST_TIMES else max(math.ceil(count * times**2), count + 1)


@dataclass(frozen=True, eq=False)
class _Imagined:
    """Right labels that are as likely as the estimate has it."""

    judged: Judgement
    first: int
    second: int

    @cached_property
    def chances(self) -> Floats:
        """How likely each class is the true one, so that the models differ as far as is judged today.

        What a model of the labels finds likely would not do: by it, groups seem more alike than they are judged, and
        a gap that turns round tells less than one that stays. Where rates have only an upper end, half of it counts.
        """
        estimate, cells = self.judged.estimate, self.judged.judged.cells
        assert estimate is not None
        if estimate.likely_rates:
            return self.judged.chances_at(
                estimate.likely_rates[0].spread(np.arange(cells.shape[1])).likeliest
            )
        if estimate.acts:
            return estimate.true_class
        return self.judged.chances_at(np.full(cells.shape, (1 - estimate.interval[0]) / 2))

    def labels(self, draw: int = 0) -> Codes:
        """Draw labels by these chances."""
        turns = np.random.default_rng([self.judged.judged.seed, draw]).random(len(self.chances))
        return np.asarray((np.cumsum(self.chances, axis=1)[:, :-1] < turns[:, None]).sum(axis=1))

    def reach(self, checks: int | None = None, draw: int = 0) -> float:
        """Compute how far the interval of the change reaches where so many of them are checked; all when None."""
        rows = None
        if checks is not None:
            rows = np.random.default_rng(self.judged.judged.seed + 1).permutation(len(self.chances))[:checks]
        judged = self.judged.knowing(self.labels(draw), self.chances, rows)
        low, high = judged.change(self.first, self.second)["disparity"].interval
        return (high - low) / 2

    @cached_property
    def right(self) -> float:
        """How far it may reach where all are checked: by chance a gap turns round, and then it reaches further."""
        return max(self.reach(draw=draw) for draw in range(TRIES))

    def checks(self, room: float) -> int | None:
        """Find how many checks leave no more than ``room`` of the reach's square, beyond that of right labels."""
        checks, most, right = FEWEST_CHECKS, min(len(self.chances), MOST_CHECKS), self.reach()
        while checks <= most:
            left = self.reach(checks) ** 2 - right**2
            if left <= room:
                return checks
            checks *= 2
        if room <= 0:
            return None
        return math.ceil(checks / 2 * left / room) if checks > FEWEST_CHECKS else None


def rows_needed(found: Score, boundary: float, by_chance: Score, rows: int, basis: Basis) -> int | None:
    """Compute with how many rows an interval would end before a boundary; None where rows alone will not do it.

    Chance narrows with the root of the rows. What is left, by which the interval is wider than it is ``by_chance``,
    is not known of the labels and stays; but for an estimate, which narrows too as long as it looks at all rows.
    """
    room, half = abs(found.value - boundary), _reach(found, boundary)
    chance = min(_reach(by_chance, by_chance.value + boundary - found.value), half)
    left = room - (half - chance)
    if left > chance / math.sqrt(MOST_TIMES):
        return max(math.ceil(rows * (chance / left) ** 2), rows + 1)
    with_estimate = rows * (half / max(room, 1e-12)) ** 2
    return math.ceil(with_estimate) if basis == "estimate" and with_estimate <= MOST_SURVEYED else None


def _reach(found: Score, boundary: float) -> float:
    """Return how far an interval reaches from its value towards a boundary."""
    low, high = found.interval
    return high - found.value if found.value < boundary else found.value - low
