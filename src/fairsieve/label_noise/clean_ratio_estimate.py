"""What an estimate of the clean ratio holds: how many labels are right, which, and whether that can be known."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.explanations import Choice
from fairsieve.label_noise.verified import VerifiedRates
from fairsieve.notebook import cells_html
from fairsieve.report.text import upper
from fairsieve.selection.cells import Cells
from fairsieve.validation import check_at_least, check_seed

__all__ = [
    "ALL_WRONG_LABELS",
    "CleanRatioEstimate",
    "Credibility",
    "Unseen",
    "noise_by_cell",
    "warn_if_inconclusive",
]

ALL_WRONG_LABELS = "all wrong labels"
DOUBTED = 0.25  # share of the rows to check next that goes to labels in doubt
SURE = 0.9  # chance to be wrong of a label that is left out as aimed


@dataclass(frozen=True)
class Credibility:
    """Whether the estimate is conclusive, and why; true in conditions where it is.

    Examples
    --------
    >>> bool(Credibility(False, "the labels say nothing")), str(Credibility(False, "the labels say nothing"))
    (False, 'the labels say nothing')
    """

    conclusive: bool
    reason: str

    def __bool__(self) -> bool:
        return self.conclusive

    def __str__(self) -> str:
        return self.reason


class Unseen(NamedTuple):
    """Chances of the true classes by models that did not see the check of the sample.

    Attributes
    ----------
    true_class : array of shape (n, classes)
    weight : array of shape (n,), optional
        The inverse of the chance to be checked; None where rows were checked at random.
    """

    true_class: NDArray[np.float64]
    weight: NDArray[np.float64] | None

    def take(self, rows: NDArray[np.int64]) -> Unseen:
        """Return the chances of some of the samples."""
        return Unseen(self.true_class[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True, eq=False)
class CleanRatioEstimate:
    """What the data say about their labels.

    Attributes
    ----------
    clean_ratio : float
        Share of right labels; one standard error below the likeliest value, since too high is worse
        than too low. Where the estimate is inconclusive, what training assumes.
    interval : (float, float)
        95 % confidence, for what ``covers`` names: without verified labels only labels wrong at random or on
        purpose. Those wrong systematically come on top, so the upper end bounds the share of right labels, and the
        lower end does not.
    noise : array of shape (classes, groups)
        Share of wrong labels among those observed in each cell; NaN where there are none, and where the
        estimate is inconclusive.
    flip_rates : array of shape (classes, groups)
        Chance of a label of that *true* class and group to be flipped.
    aimed : bool
        Whether labels look wrong on purpose: where they are surest, rather than at random.
    credible : Credibility
        Whether the estimate is conclusive, with the reason in words; it can be used as a condition. Where
        it is not, no label is called wrong.
    true_class : array of shape (n, classes)
        Probabilities of each sample's true class, given its features and its label.
    cells : Cells
        The classes and groups of the tables above.
    predictor : Choice, optional
        The model of the labels that the estimate stands on, and by how much it beat the simpler one.
    verified : VerifiedRates, optional
        The flip rates that checked labels show, with intervals.
    verified_codes : integer array, optional
        The checked class of each sample, −1 where nobody checked.
    unseen : Unseen, optional
        What was thought of the checked samples before they were checked, by which models are measured.

    Examples
    --------
    >>> from fairsieve import estimate_clean_ratio
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> samples = make_synthetic(4000, seed=1)
    >>> noisy = flip_uniform(samples, 0.15, seed=0).labels
    >>> found = estimate_clean_ratio(samples.features, noisy, sensitive_features=samples.groups)
    >>> found.noise.shape, len(found.wrong), found.interval[0] < found.clean_ratio < found.interval[1]
    ((2, 2), 4000, True)
    """

    clean_ratio: float
    interval: tuple[float, float]
    noise: NDArray[np.float64]
    flip_rates: NDArray[np.float64]
    aimed: bool
    credible: Credibility
    true_class: NDArray[np.float64]
    cells: Cells
    predictor: Choice | None = None
    verified: VerifiedRates | None = None
    verified_codes: NDArray[np.int64] | None = None
    unseen: Unseen | None = None

    def _repr_html_(self) -> str:
        known = "" if self.credible else "which labels are wrong cannot be known: "
        title = upper(f"{known}{self.credible}")
        return cells_html(title, self.cells, self.noise, ("samples", "wrong labels"))

    @property
    def covers(self) -> str:
        """Which wrong labels ``interval`` and ``clean_ratio`` speak of, in words."""
        if self.verified is not None:
            return ALL_WRONG_LABELS
        return "labels wrong on purpose" if self.aimed else "labels wrong at random"

    @property
    def wrong(self) -> NDArray[np.float64]:
        """How likely each label is wrong."""
        return 1 - self.true_class[np.arange(len(self.cells)), self.cells.label_codes]

    @property
    def checked(self) -> NDArray[np.int64]:
        """Samples whose label somebody checked."""
        return np.flatnonzero(False if self.verified_codes is None else self.verified_codes >= 0)

    @property
    def true_codes(self) -> NDArray[np.int64]:
        """The given class of each sample, and the true one where somebody checked."""
        given = self.cells.label_codes
        return (
            given
            if self.verified_codes is None
            else np.where(self.verified_codes < 0, given, self.verified_codes)
        )

    @property
    def believed(self) -> NDArray[np.int64]:
        """Samples whose label is more likely right than wrong; with aimed flips, not surely wrong."""
        return np.flatnonzero(self.wrong <= (SURE if self.aimed else 0.5))

    @property
    def acts(self) -> bool:
        """Whether training goes by the chances of the true classes, and not by the labels as they are."""
        return self.verified is not None or (
            bool(self.credible) and bool(self.flip_rates.any() or self.aimed)
        )

    @property
    def training(self) -> str:
        """What training does with the estimate, in words."""
        if self.acts:
            return "takes each class as far as it is likely the true one and moves the shares of the groups"
        if self.aimed:
            return f"selects by losses, as if {self.clean_ratio:.0%} of the labels were right"
        return "leaves no sample out and only moves the shares of the groups"

    def take(self, rows: NDArray[np.int64], cells: Cells) -> CleanRatioEstimate:
        """Return the estimate for some of the samples, whose cells are given."""
        codes = None if self.verified_codes is None else self.verified_codes[rows]
        unseen = None if self.unseen is None else self.unseen.take(rows)
        return replace(
            self,
            true_class=self.true_class[rows],
            cells=cells,
            verified_codes=codes,
            unseen=unseen,
        )

    def draw_labels(self, seed: int) -> NDArray[np.int64]:
        """Draw a class for each sample by its chances; checked ones get theirs."""
        turns = np.random.default_rng(seed).random(len(self.cells))
        passed = np.cumsum(self.true_class, axis=1) < turns[:, None]
        return np.asarray(np.minimum(passed.sum(axis=1), self.cells.shape[0] - 1))

    def next_to_verify(self, n: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Choose rows to check next, with weights for ``verified_weight``.

        Three quarters are at random, spread over the cells, so that rates stay unbiased; a quarter is where it is
        least certain whether the label is right, as far as the estimate is conclusive. Rows that were checked
        already are left out.

        Returns
        -------
        rows : integer array of shape (n,)
        weights : array of shape (n,)
            The inverse of each row's chance to be chosen, with mean 1.
        """
        open_ = np.ones(len(self.cells), bool) if self.verified_codes is None else self.verified_codes < 0
        n, left = check_at_least("n", n, 1), int(open_.sum())
        if n > left:
            raise InvalidInputError(f"n must be at most {left}, the rows that nobody checked; got {n}")
        rng = np.random.default_rng(check_seed("seed", seed))
        return _choose_rows(n, open_, self.wrong, self.cells, rng)


def warn_if_inconclusive(estimate: CleanRatioEstimate) -> None:
    """Warn that it cannot be known which labels are wrong, and say what training does instead."""
    if not estimate.credible:
        warnings.warn(
            f"which labels are wrong cannot be known: {estimate.credible} No label is called wrong; training "
            f"{estimate.training}. Pass clean_ratio= if you know it",
            FairsieveWarning,
            stacklevel=4,
        )


def noise_by_cell(true_class: NDArray[np.float64], cells: Cells) -> NDArray[np.float64]:
    """Compute the share of wrong labels in every cell; NaN where it is empty."""
    wrong = 1 - true_class[np.arange(len(cells)), cells.label_codes]
    sums = np.bincount(cells.codes, weights=wrong, minlength=cells.counts.size).reshape(cells.shape)
    empty = np.full(cells.shape, np.nan)
    return np.asarray(np.divide(sums, cells.counts, out=empty, where=cells.counts > 0))


def _choose_rows(
    n: int,
    open_: NDArray[np.bool_],
    wrong: NDArray[np.float64],
    cells: Cells,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose ``n`` of the rows that are open, each at a known chance; return the inverse of their chances, with mean 1.

    (Choosing half of the rows by how much their check would tell about the others trained no better models.)
    """
    share = open_ / open_.sum()
    doubt = open_ * wrong * (1 - wrong)
    if doubt.sum() > 0:
        share = (1 - DOUBTED) * share + DOUBTED * doubt / doubt.sum()
    chance = _inclusion(share, n)
    order = np.lexsort((rng.random(len(open_)), wrong, cells.codes))
    turns = np.cumsum(chance[order])
    ticks = (np.arange(n) + rng.random()) * turns[-1] / n
    rows = order[np.minimum(np.searchsorted(turns, ticks), len(order) - 1)]
    weights = 1.0 / chance[rows]
    return rows, weights / weights.mean()


def _inclusion(share: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return chances to be chosen that follow the shares, none above 1, with the sum ``n``.

    >>> _inclusion(np.array([0.5, 0.25, 0.25, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    >>> _inclusion(np.array([0.8, 0.1, 0.1, 0.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    chance, sure = n * share, np.zeros(len(share), bool)
    while (chance > 1 + 1e-12).any():
        sure |= chance >= 1
        rest = np.where(sure, 0.0, share)
        chance = np.where(sure, 1.0, rest * (n - sure.sum()) / max(rest.sum(), 1e-300))
    return np.asarray(chance)
