"""Which labels a network doubts, freed of what the group gives away.

A network that has seen few samples of a class in a group answers with the group's usual class. Whoever takes that for
doubt drops the rare cells. So what the group gives away is taken out of the outputs first: from the logits the
logarithm of each class's *lift*, its share in the sample's group as a multiple of that among all. They are the shares
in the batches that the network was trained on: where a cell weighs more, or loses labels, the network answers
accordingly, and would believe whatever is raised. How common a class is among all stays in: without it, samples that
are merely likelier than others to be of a rare class would all be doubted, and a class of 5 % would be predicted three
times too often. What is left is compared with what is *typical* for the cell, the mean over its samples. A label is
doubted where

1. the network believes it less than a third as much as is typical for this label in this group, and
2. it believes the likeliest other label about as much as is typical for that one in this group, or more,

both averaged over the epochs. "Less than a blind guess" would be easier to say, but means, of two classes, "drop every
error".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from fairsieve.sampling.losses import is_single
from fairsieve.selection.cells import Floats
from fairsieve.selection.epoch import Plan

LITTLE = 3.0  # times less than typical
ABOUT = 0.98  # of what is typical: beliefs that are all near 1 differ by their last digits
FEW = 10.0  # samples by which a cell's mean is drawn to that of its class, and shares to those of all
CHUNK = 2**18  # outputs looked at together, so that little is held besides the answer
LEAST = 1e-30  # of a belief, so that its logarithm is finite


class Doubt:
    """How much each label is doubted, for the cells of a plan; above 0 where it is.

    A sample has two numbers, averaged over epochs by the sampler: its *belief*, the freed probability of its label, and
    its *rival*, the largest freed probability of another label, as a multiple of what was typical for that one before.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.typical = np.ones(plan.cell_counts.shape)  # beliefs, classes × groups

    @property
    def shares(self) -> Floats:
        """The share of each class in each group, in the batches of the present plan."""
        return shares_of_classes(self._counts)

    @property
    def _counts(self) -> Floats:
        """Samples of each cell, if all had the shares of the present plan's batches."""
        quotas = self.plan.quotas.reshape(self.typical.shape)
        return np.asarray(quotas * (self.plan.cell_counts.sum() / max(quotas.sum(), LEAST)))

    @property
    def is_new(self) -> bool:
        """Whether nothing is known to be typical yet."""
        return bool((self.typical == 1).all())

    def rows(self, outputs: torch.Tensor, where: Any = slice(None)) -> torch.Tensor:
        """Return beliefs and rivals, (2, samples), from logits."""
        codes = self.plan.cells.codes_on(outputs.device)[where].int()
        if is_single(outputs):
            logits = outputs.reshape(-1)
            return self._beside_one(torch.where(codes < self.typical.shape[1], -logits, logits), codes)
        # On a host the parts stay in the cache; on a device each would cost its pace.
        chunk = CHUNK if outputs.device.type == "cpu" else max(1, len(codes))
        parts = zip(outputs.split(chunk), codes.split(chunk), strict=True)
        return torch.cat([self._beside_all(*part) for part in parts], dim=1)

    def rows_of_losses(self, losses: torch.Tensor, where: Any = slice(None)) -> torch.Tensor:
        """Return beliefs and rivals from losses: exp(−loss) is the label's probability, and one other has the rest."""
        losses = losses.detach().clamp(min=0.0)
        odds = -losses - (-torch.expm1(-losses)).log()
        return self._beside_one(odds, self.plan.cells.codes_on(losses.device)[where].int())

    def _beside_all(self, outputs: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Return beliefs and rivals from a logit for each class."""
        groups = self.typical.shape[1]
        label, group = torch.div(codes, groups, rounding_mode="floor").long()[:, None], codes % groups
        lifts, typical = (
            torch.from_numpy(table.T.copy()).to(outputs).index_select(0, group)
            for table in (np.log(self.shares / shares_of_all(self._counts)), self.typical)
        )
        freed = (outputs - lifts).softmax(dim=1)
        others = freed.scatter(1, label, -1.0)
        is_most = others == others.amax(dim=1, keepdim=True)  # of equal ones, all: no device has a first one
        rival = (others / typical).masked_fill(~is_most, 0.0).amax(dim=1).clamp_min(0.0)
        return torch.stack([freed.gather(1, label)[:, 0], rival])

    def _beside_one(self, odds: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Return beliefs and rivals from the log odds of each label, where one other class has the rest."""
        shares, of_all = self.shares, shares_of_all(self._counts)
        with np.errstate(divide="ignore", invalid="ignore"):  # where there is one class alone
            lifts = np.nan_to_num(np.log(shares / (1 - shares)) - np.log(of_all / (1 - of_all)))
        lift = torch.from_numpy(lifts.reshape(-1)).to(odds)
        belief = (odds - lift.index_select(0, codes)).sigmoid()
        return torch.stack([belief, (1 - belief) / self.easiest(odds, codes)])

    def easiest(self, values: torch.Tensor, codes: torch.Tensor | None = None) -> torch.Tensor:
        """Return the least that is typical of another class, for samples of so many values: of all, or of ``codes``."""
        codes = self.plan.cells.codes_on(values.device).int() if codes is None else codes
        others = np.repeat(self.typical[None], len(self.typical), axis=0)
        others[np.arange(len(others)), np.arange(len(others))] = np.inf
        return torch.from_numpy(others.min(axis=1).reshape(-1)).to(values).index_select(0, codes)

    def learn_typical(self, beliefs: Any) -> None:
        """Find what is typical, from the beliefs of all samples."""
        counts = self.plan.cell_counts
        means = self.plan.cell_means(beliefs)
        of_class = (means * counts).sum(axis=1, keepdims=True) / np.maximum(
            counts.sum(axis=1, keepdims=True), 1
        )
        self.typical = np.maximum((means * counts + FEW * of_class) / (counts + FEW), LEAST)

    def scores(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the doubt of all samples, from averaged beliefs and rivals."""
        codes = self.plan.cells.codes_on(rows.device).int()
        little = torch.from_numpy(np.log(self.typical.reshape(-1) / LITTLE)).to(rows).index_select(0, codes)
        belief, rival = rows.clamp_min(LEAST).log()
        return torch.minimum(little - belief, rival - math.log(ABOUT))


def shares_of_classes(counts: Floats) -> Floats:
    """Return the share of each class in each group, classes × groups; few samples are taken for those of all."""
    return np.asarray((counts + FEW * shares_of_all(counts)) / (counts.sum(axis=0) + FEW))


def shares_of_all(counts: Floats) -> Floats:
    """Return the share of each class among all, classes × 1."""
    return np.asarray((counts.sum(axis=1, keepdims=True) + 1) / (counts.sum() + len(counts)))


def costs_accuracy(
    outputs: torch.Tensor, labels: torch.Tensor, weights: Floats, groups: torch.Tensor
) -> bool:
    """Return whether held-out samples are predicted worse than by natural weights, beyond a standard error.

    ``weights`` say how much more often than naturally each class and group is trained on. A network that was trained so
    gives logits that are higher by their logarithm; without it, they are what natural weights would have given.
    """
    if is_single(outputs):
        outputs = torch.stack([torch.zeros_like(outputs.reshape(-1)), outputs.reshape(-1)], dim=1)
    shift = torch.from_numpy(np.log(np.maximum(weights, LEAST)).T.copy()).to(outputs).index_select(0, groups)
    right, natural = (each.argmax(dim=1) == labels for each in (outputs, outputs - shift))
    change = right.double() - natural.double()
    error = float(change.std()) / math.sqrt(len(change)) if len(change) > 1 else 0.0
    return float(change.mean()) < -error
