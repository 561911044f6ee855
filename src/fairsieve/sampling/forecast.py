"""What weights of groups would cost and bring, as the network itself foretells it.

A network that is trained on weighted groups answers as it would under natural weights, with the logit of each class
higher by the logarithm of how much more it weighs in the group. So the outputs of one network tell what it would
predict under any weights; its probabilities under natural ones tell how often that would be right, and how far the
rates of the groups would be apart. No label is asked, so that wrong ones do not mislead it.

It foretells the price of other shares, which is high where groups go with classes, and neither what is learned from
samples that come more often nor what wrong labels among them do. So the power α of the weights, see
:class:`~fairsieve.selection.ratios.Balance`, stays between 1 and .6. It is the least of those with about the least sum
of the mean gap and ``PRICE`` times the accuracy that is given up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fairsieve.sampling.doubt import LEAST, shares_of_classes
from fairsieve.sampling.losses import is_single
from fairsieve.selection.batches import GOLDEN, cell_quotas
from fairsieve.selection.cells import Floats, Integers
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import balanced_ratios, rounded

POWERS = np.linspace(1, 0.6, 9)  # below it, cells of mostly wrong labels cost more than is foretold
PRICE = 20.0  # of accuracy, in mean gap
ABOUT = 0.002  # of that sum
ENOUGH = 4096  # samples: more would not change the choice, and an adapter runs the model over them
UNIT = 2.0**24  # probabilities are added up as whole numbers of its parts: alike in any order
CHUNK, CACHED = 2**24, 2**20  # numbers held together, and those that stay in a cache


class Forecast:
    """The mean gap and the accuracy given up under each of ``POWERS``, averaged over the epochs.

    Parameters
    ----------
    plan : Plan
    momentum : float
        How much of what was foretold before is kept.
    first : int
        The number of the plan's first sample in the whole.
    """

    def __init__(self, plan: Plan, momentum: float, first: int = 0) -> None:
        self.plan, self.momentum = plan, momentum
        self.averages: Floats | None = None  # (2, powers): gaps and costs
        self.table = np.zeros((2 * len(POWERS) + 1, *plan.cells.shape), np.int64)
        self.samples = some_of(int(plan.cell_counts.sum()), first, len(plan.cells))

    def look(self, outputs: torch.Tensor, batch_shares: Floats) -> None:
        """Add up what the outputs for ``samples`` foretell; the network was trained on such shares of the classes."""
        outputs = outputs.to(
            torch.promote_types(outputs.dtype, torch.float32)
        )  # halves have no room for UNIT
        if is_single(outputs):
            outputs = torch.stack([torch.zeros_like(outputs.reshape(-1)), outputs.reshape(-1)], dim=1)
        codes = self.plan.cells.codes_on(outputs.device)[torch.from_numpy(self.samples).to(outputs.device)]
        classes, groups = self.plan.cells.shape
        lifts = np.log(np.maximum(self._shares() / batch_shares, LEAST))  # powers × classes × groups
        lift = torch.from_numpy(lifts.transpose(2, 0, 1).copy()).to(outputs)
        found = torch.zeros(self.table.size, dtype=torch.int64, device=outputs.device)
        chunk = max(1, CHUNK // (len(POWERS) * classes))
        for some, column in zip(outputs.split(chunk), (codes % groups).long().split(chunk), strict=True):
            foreseen = some[:, None] + lift[column]
            natural = foreseen[:, 0].softmax(dim=1)
            guess = foreseen.argmax(dim=2)
            cell = guess * groups + column[:, None]
            place = cell + torch.arange(len(POWERS), device=cell.device) * (classes * groups)
            right = (natural.gather(1, guess) * UNIT).round().long()
            found.index_add_(0, place.flatten(), right.flatten())
            place += len(POWERS) * classes * groups
            found.index_add_(0, place.flatten(), torch.ones_like(right).flatten())
            place = torch.arange(classes, device=cell.device) * groups + column[:, None]
            place += 2 * len(POWERS) * classes * groups
            found.index_add_(0, place.flatten(), (natural * UNIT).round().long().flatten())
        self.table = found.cpu().numpy().reshape(self.table.shape)

    def _shares(self) -> Floats:
        """Return the share of each class in each group under each power, powers × classes × groups."""
        counts = self.plan.counts.reshape(self.plan.cells.shape)
        compared, tables = self._compared, []
        for power in POWERS:
            ratios = balanced_ratios(counts, np.where(compared, power, 1.0), self.plan.cells.has_ungrouped)
            quotas = cell_quotas(ratios, counts.reshape(-1), int(counts.sum()))
            tables.append(shares_of_classes(quotas.reshape(counts.shape)))
        return np.array(tables)

    @property
    def _compared(self) -> Any:
        assert self.plan.balance is not None
        return self.plan.balance.compared

    def choose(self, table: Integers) -> float | None:
        """Return the best power, from what all workers added up; None where nothing was foretold yet."""
        self.table = np.zeros_like(self.table)
        *by_power, mass = table
        if mass.sum():
            right, guesses = np.array(by_power).reshape(2, len(POWERS), *mass.shape)
            costs = (right[0].sum() - right.sum(axis=(1, 2))) / mass.sum()
            over = guesses[0].sum(axis=0) if self.plan.comparisons.by_group else mass
            found = guesses if self.plan.comparisons.by_group else right
            with np.errstate(divide="ignore", invalid="ignore"):
                rates = (found / over)[:, self._compared]
            rates = rates[..., :-1] if self.plan.cells.has_ungrouped else rates
            highest, lowest = np.fmax.reduce(rates, axis=2), np.fmin.reduce(rates, axis=2)
            latest = np.array([np.nan_to_num(highest - lowest).mean(axis=1), costs])
            before = latest if self.averages is None else self.averages
            self.averages = self.momentum * before + (1 - self.momentum) * latest
        if self.averages is None:
            return None
        gaps, costs = self.averages
        sums = rounded(gaps + PRICE * costs)
        return float(POWERS[sums <= sums.min() + ABOUT].min())


def some_of(total: int, first: int, size: int) -> Integers:
    """Return about ``ENOUGH`` of so many samples, as positions in a shard: the same however they are sharded.

    >>> some_of(10, 6, 4).tolist()
    [0, 1, 2, 3]
    """
    last = np.uint64(min(2.0**64 * ENOUGH / max(1, total), 2.0**64 - 2**11))
    found = []
    for start in range(0, size, CACHED):
        places = np.arange(first + start, first + min(size, start + CACHED)).astype(np.uint64) * GOLDEN
        found.append(start + np.flatnonzero(places <= last))
    return np.concatenate(found) if found else np.zeros(0, np.int64)
