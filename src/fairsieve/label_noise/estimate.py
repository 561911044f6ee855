"""How many labels are right, and which ones: found from the data alone, as far as the data can say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.label_noise.explanations import (
    Choice,
    FlipRates,
    RandomFlips,
    explain_at_random,
    explain_by_aim,
    try_predictors,
)
from fairsieve.label_noise.flip_model import FlipModel, Observed
from fairsieve.label_noise.survey import Survey, stack, with_groups
from fairsieve.label_noise.verified import (
    MOST_FEATURES,
    Verification,
    VerifiedRates,
    check_verification,
    choose_rows,
    flip_rates_of,
    learn_true_class,
)
from fairsieve.notebook import cells_html
from fairsieve.report.text import load_sentences, percent, upper
from fairsieve.samples import Checked, Samples, check_samples, read_seed
from fairsieve.selection.cells import Cells, Codes, Floats, divide
from fairsieve.training.rows import one_thread
from fairsieve.validation import check_at_least, check_seed

Rule = Callable[[Floats, Codes, Codes], Floats]

ALL_WRONG_LABELS = "all wrong labels"
MOST_GROUPS = 24
SURE = 0.9  # chance to be wrong of a label that is left out as aimed
CREDIBLE = 0.2  # share of aimed flips beyond which they are taken for the truth, see docs/clean-ratio.md
CREDIBLE_OF_LABEL = 0.3  # the same of one label
GUESSED_NOISE = 0.1  # what is assumed then
NONE_OF_MANY = 3.0  # the rule of three: none among n is, with 95 % confidence, at most 3/n
WIDE = 0.4  # an interval that is wider says nothing
FEW_WRONG = 0.05  # of the labels: where more can be wrong, that none were found is no all-clear
UNSEEN = 0.2  # as does one in which so many labels may be wrong although none were found


@dataclass(frozen=True)
class Credibility:
    """Whether the estimate is conclusive, and why; true in conditions where it is.

    Attributes
    ----------
    conclusive : bool
    kind : str
        Such as "at_random"; a macro of ``sentences.j2`` words it.
    facts : dict
        What its sentence holds.

    Examples
    --------
    >>> found = Credibility(True, "learnt", {"checks": 100})
    >>> bool(found), str(found)
    (True, 'learnt from 100 checked labels.')
    """

    conclusive: bool
    kind: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why, as a sentence."""
        return str(getattr(load_sentences("fairsieve.label_noise", "sentences.j2"), self.kind)(**self.facts))

    def __bool__(self) -> bool:
        return self.conclusive

    def __str__(self) -> str:
        return self.reason


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
    verified_weight : array, optional
        The inverse of each sample's chance to be checked; None where that was at random.
    unseen : array of shape (n, classes), optional
        Probabilities of the true classes by models that did not see the check of the sample.
    highest_rates : array of shape (classes, groups), optional
        The highest flip rates, at 95 % confidence, of labels wrong at random; None where that was not asked.
    likely_rates : tuple of FlipRates
        What the flip rates of labels wrong at random may be, and how sure that is: one rate or one for each group, as
        ``flip_rates`` has them, and one for each class; empty where none were found.

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
    noise: Floats
    flip_rates: Floats
    aimed: bool
    credible: Credibility
    true_class: Floats
    cells: Cells
    predictor: Choice | None = None
    verified: VerifiedRates | None = None
    verified_codes: Codes | None = None
    verified_weight: Floats | None = None
    unseen: Floats | None = None
    highest_rates: Floats | None = None
    likely_rates: tuple[FlipRates, ...] = ()

    def _repr_html_(self) -> str:
        known = "" if self.credible else "which labels are wrong cannot be known: "
        title = upper(f"{known}{self.credible}")
        return cells_html(title, self.cells, self.told_noise, ("samples", "wrong labels"))

    @property
    def covers(self) -> str:
        """Which wrong labels ``interval`` and ``clean_ratio`` speak of, in words."""
        if self.verified is not None:
            return ALL_WRONG_LABELS
        return "labels wrong on purpose" if self.aimed else "labels wrong at random"

    @property
    def wrong(self) -> Floats:
        """How likely each label is wrong."""
        return _wrong(self.true_class, self.cells)

    @property
    def share_wrong(self) -> float:
        """The likeliest share of wrong labels, within what ``interval`` leaves open."""
        return float(np.clip(self.wrong.mean(), 1 - self.interval[1], 1 - self.interval[0]))

    @property
    def checked(self) -> Codes:
        """Samples whose label somebody checked."""
        return np.flatnonzero(False if self.verified_codes is None else self.verified_codes >= 0)

    @property
    def true_codes(self) -> Codes:
        """The given class of each sample, and the true one where somebody checked."""
        given, checked = self.cells.label_codes, self.verified_codes
        return given if checked is None else np.where(checked >= 0, checked, given)

    @property
    def believed(self) -> Codes:
        """Samples whose label is more likely right than wrong; with aimed flips, not surely wrong."""
        return np.flatnonzero(self.wrong <= (SURE if self.aimed else 0.5))

    @property
    def acts(self) -> bool:
        """Whether training goes by the chances of the true classes, and not by the labels as they are."""
        return self.verified is not None or bool(self.credible and (self.flip_rates.any() or self.aimed))

    @property
    def all_clear(self) -> bool:
        """Whether no more labels can be wrong at random than :data:`FEW_WRONG` of all, at 95 % confidence."""
        return bool(self.credible) and 1 - self.interval[0] <= FEW_WRONG

    @property
    def names_cells(self) -> bool:
        """Whether it is known which class of which group has more wrong labels than others.

        Only checked labels say so: without them, labels of one group or class that are wrong more often look like a
        real difference between groups, and those who were wronged would be pointed at.
        """
        return self.verified is not None

    @property
    def told_noise(self) -> Floats:
        """``noise``, where it is known of cells; NaN elsewhere: there it is what training goes by, not a finding."""
        return self.noise if self.names_cells else np.full_like(self.noise, np.nan)

    @property
    def training(self) -> str:
        """What training does with the estimate, in words."""
        if self.acts:
            return "takes each class as far as it is likely the true one and moves the shares of the groups"
        if self.aimed:
            return f"selects by losses, as if {percent(self.clean_ratio)} of the labels were right"
        return "leaves labels out only where that predicts others better, and moves the shares of the groups"

    def take(self, rows: Codes) -> CleanRatioEstimate:
        """Return what is known of some of the samples; what holds for all of them stays."""
        cells = self.cells
        some: dict[str, Any] = {"cells": Cells(cells.host_codes[rows], cells.classes, cells.groups)}
        for name in ("true_class", "verified_codes", "verified_weight", "unseen"):
            values = getattr(self, name)
            some[name] = None if values is None else values[rows]
        likely = [replace(each, influence=each.influence[rows]) for each in self.likely_rates]
        return replace(self, likely_rates=tuple(likely), **some)

    def draw_labels(self, seed: int) -> Codes:
        """Draw a class for each sample by its chances; checked ones get theirs."""
        turns = np.random.default_rng(seed).random(len(self.cells))
        passed = np.cumsum(self.true_class, axis=1) < turns[:, None]
        return np.asarray(np.minimum(passed.sum(axis=1), self.cells.shape[0] - 1))

    def next_to_verify(self, n: int, seed: int = 0) -> tuple[Codes, Floats]:
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
        open_ = np.ones(len(self.cells), bool)
        open_[self.checked] = False
        n, left = check_at_least("n", n, 1), int(open_.sum())
        if n > left:
            raise InvalidInputError(f"n must be at most {left}, the rows that nobody checked; got {n}")
        return choose_rows(n, open_, self.wrong, self.cells, np.random.default_rng(check_seed("seed", seed)))


def estimate_clean_ratio(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    verified_labels: Any = None,
    verified_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> CleanRatioEstimate:
    """Estimate how many labels are right, from features, labels and groups alone.

    The labels are predicted by a linear, a curved and a boosted model that all see the group; then three
    explanations are weighed: that no label is wrong, that labels are wrong at random, at one rate or at one for each
    group, and that they were aimed at the samples whose class is surest (see
    :mod:`~fairsieve.label_noise.explanations`). Where the data cannot say, the estimate is inconclusive and no
    label is called wrong. Labels that are wrong systematically, by a feature or for one class, cannot be told from a
    real difference without labels that somebody checked: what is found is a lower bound of the wrong labels.
    Samples without a group are a group of their own here. The same data give the same estimate, in any order.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
    y : n labels
    sensitive_features : n values, or several columns of them, optional
    sample_weight : n numbers, optional
    verified_labels : n labels, optional
        The checked label where somebody checked; None, NaN or masked elsewhere. ``y`` keeps the given labels.
    verified_weight : n numbers, optional
        For rows that were not checked at random: the inverse of the chance to be checked.
    random_state : int, RandomState or None
        Of the draws that the intervals of checked labels come from; it decides nothing else.

    Examples
    --------
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> data = make_synthetic(4000, seed=1)
    >>> noisy = flip_uniform(data, 0.2, seed=0).labels
    >>> found = estimate_clean_ratio(data.features, noisy, sensitive_features=data.groups)
    >>> 0.7 < found.clean_ratio < 0.85, found.aimed
    (True, False)
    """
    checked = check_samples(BaseEstimator(), X, y, sensitive_features, sample_weight)
    verified = check_verification(checked, verified_labels, verified_weight)
    return estimate_of(checked, read_seed(random_state), verified)


def estimate_of(checked: Checked, seed: int, verified: Verification | None) -> CleanRatioEstimate:
    """Estimate from samples that have been checked, and labels that somebody verified, if any."""
    return estimate_with_rule(checked, seed, verified)[0]


@one_thread("blas")
def estimate_with_rule(
    checked: Checked, seed: int, verified: Verification | None
) -> tuple[CleanRatioEstimate, Rule | None]:
    """Estimate, and say how other rows are judged by it. Where groups are many, the smaller ones are one group.

    Returns
    -------
    estimate : CleanRatioEstimate
    rule : callable or None
        How likely each class is the true one, for rows that were not looked at: of features, and codes of labels and
        groups. None where labels are taken as they are.
    """
    cells = checked.data.cells
    if cells.shape[1] <= MOST_GROUPS:
        made = _Estimation(checked)
        return made.weigh(verified, seed), made.rule
    pool = np.zeros(cells.shape[1], np.int64)
    pool[np.argsort(-cells.counts.sum(axis=0), kind="stable")[: MOST_GROUPS - 1]] = np.arange(1, MOST_GROUPS)
    data = Samples(checked.data.features, checked.data.labels, pool[cells.group_codes], classes=cells.classes)
    made = _Estimation(checked._replace(data=data))
    found, pooled = made.weigh(verified, seed), made.rule
    some: dict[str, Any] = {"likely_rates": tuple(each.spread(pool) for each in found.likely_rates)}
    for name in ("noise", "flip_rates", "highest_rates"):
        table = getattr(found, name)
        some[name] = None if table is None else table[:, pool]
    rates: Any = found.verified  # tables of one shape
    if rates is not None:
        some["verified"] = VerifiedRates(*(table[:, pool] for table in rates))
    found = replace(found, cells=cells, **some)
    return found, pooled and (lambda features, labels, groups: pooled(features, labels, pool[groups]))


class _Estimation:
    """An estimate in the making: the samples, those of them that are looked at, and the predictors of their labels."""

    def __init__(self, checked: Checked) -> None:
        self.data, self.cells = checked.data, checked.data.cells
        self.weights = checked.counts
        self.survey = Survey.draw(self.data, self.weights)
        self.tried = try_predictors(self.survey)
        self.rule: Rule | None = None

    def weigh(self, verified: Verification | None, seed: int) -> CleanRatioEstimate:
        """Learn from verified labels where they are enough, starting from what the labels alone say."""
        alone = self.by_labels_alone()
        if verified is None:
            return alone
        if verified.enough:
            return self.learnt(verified, seed, alone.true_class if alone.acts else None)
        rows = np.flatnonzero(verified.codes >= 0)  # too few to learn from, but known
        alone.true_class[rows] = np.eye(self.cells.shape[0])[verified.codes[rows]]
        return replace(alone, verified_codes=verified.codes)

    def by_labels_alone(self) -> CleanRatioEstimate:
        """Weigh the explanations of the labels."""
        aimed, disagree = explain_by_aim(self.survey, self.tried)
        if aimed is not None:
            estimate = self.aimed(aimed)
        else:
            random = explain_at_random(self.survey, self.tried)
            verdict = _judge(random, disagree)
            if verdict and random.model is not None:
                estimate = self.at_random(random, random.model, verdict)
            else:
                most = max(random.most, random.share, NONE_OF_MANY / self.survey.size)
                estimate = self.without_suspects(verdict, 1.0 if disagree else most, aimed=disagree)
            highest = np.ones(self.cells.shape) if disagree else random.highest
            estimate = replace(estimate, highest_rates=highest)
        return estimate

    def build(
        self,
        clean_ratio: float,
        interval: tuple[float, float],
        verdict: Credibility,
        true_class: Floats,
        flip_rates: Floats,
        *,
        aimed: bool = False,
        **more: Any,
    ) -> CleanRatioEstimate:
        """Build the estimate from the chances of the true classes."""
        noise = np.full(self.cells.shape, np.nan)
        if verdict:
            noise = divide(by_cell(_wrong(true_class, self.cells), self.cells), self.cells.counts, np.nan)
        found = clean_ratio, interval, noise, flip_rates, aimed, verdict, true_class
        return CleanRatioEstimate(*found, self.cells, self.tried.choice, **more)

    def without_suspects(self, verdict: Credibility, most: float, *, aimed: bool) -> CleanRatioEstimate:
        """Call no label wrong: none were found, or it cannot be known."""
        ratio, interval = 1 - GUESSED_NOISE if aimed else 1.0, (max(1 - most, 0.0), 1.0)
        true_class, rates = np.eye(self.cells.shape[0])[self.cells.label_codes], np.zeros(self.cells.shape)
        return self.build(ratio, interval, verdict, true_class, rates, aimed=aimed)

    def at_random(self, random: RandomFlips, model: FlipModel, verdict: Credibility) -> CleanRatioEstimate:
        """Follow flips at random: how likely each label is wrong follows from the rates."""
        scores, count = [each.all_scores(self.survey, self.data) for each in random.used], self.cells.shape[1]
        low, high = max(1 - max(random.most, random.share), 0.0), 1 - random.least
        ratio = float(np.clip(1 - random.share - random.error, low, high))
        true_class = model.true_class(self.observe(stack(scores, self.cells.group_codes, count)))

        def design(features: Floats, groups: Codes) -> Floats:
            return stack([each.predict(features) for each in random.used], groups, count)

        self.rule, rates = self._rule(model, design), model.flip_rates.T.copy()
        looked_at = self.survey.members, self.survey.places, len(self.cells)
        likely = tuple(each.over(*looked_at) for each in random.rates)
        return self.build(ratio, (low, high), verdict, true_class, rates, likely_rates=likely)

    def aimed(self, model: FlipModel) -> CleanRatioEstimate:
        """Follow aimed flips: the labels that are surely wrong, where that is credible."""
        expand, parts = self.tried.linear.design, self.survey.parts_of(self.data)
        chances = [model.true_class(self.observe(expand(features), part)) for part, features in parts]
        true_class = np.concatenate(chances)
        wrong, limits = _wrong(true_class, self.cells), (0.5, SURE, 0.99)
        likely, sure, surest = (float(np.average(wrong > limit, weights=self.weights)) for limit in limits)
        # Of a rare label, the others may as well be the flipped ones.
        counts, doubted = (
            np.bincount(self.cells.label_codes, each)
            for each in (self.weights, self.weights * (wrong > SURE))
        )
        of_label = doubted / np.maximum(counts, 1e-12)
        most = int(of_label.argmax())
        if sure > CREDIBLE or of_label[most] > CREDIBLE_OF_LABEL:
            facts = (
                {"share": sure}
                if sure > CREDIBLE
                else {"share": of_label[most], "label": self.cells.classes[most]}
            )
            return self.without_suspects(Credibility(False, "aimed_at_many", facts), 1.0, aimed=True)
        self.rule = self._rule(model, lambda features, _: expand(features))
        rates, verdict = flip_rates_of(true_class, self.cells, self.weights), Credibility(True, "aimed")
        return self.build(1 - sure, (1 - likely, 1 - surest), verdict, true_class, rates, aimed=True)

    def learnt(self, verified: Verification, seed: int, alone: Floats | None) -> CleanRatioEstimate:
        """Learn from labels that somebody checked."""
        columns = self.survey.telling(MOST_FEATURES)
        features = np.concatenate([part[:, columns] for _, part in self.survey.parts_of(self.data)])
        scores = self.tried.best.all_scores(self.survey, self.data)
        facts = scores, features, self.cells, verified, self.weights
        true_class, unseen, rates, interval, model = learn_true_class(*facts, seed, alone)
        plain, names = self.tried.best.predict, (self.cells.classes, self.cells.groups)
        by_labels = None if alone is None else self.rule
        known, count = self.survey.columns, self.survey.group_count

        def rule(features: Floats, labels: Codes, groups: Codes) -> Floats:
            cells = Cells(labels * len(names[1]) + groups, *names)
            told = None if by_labels is None else by_labels(features, labels, groups)
            made = with_groups(features[:, known], groups, count)
            return model.chances_of(plain(made), made[:, columns], cells, told)

        self.rule = rule
        right = 1 - np.average(_wrong(true_class, self.cells), weights=self.weights)
        verdict = Credibility(True, "learnt", {"checks": int((verified.codes >= 0).sum())})
        found = float(np.clip(right, *interval)), interval, verdict, true_class, rates.flip_rates
        checks: Any = {"verified_codes": verified.codes, "verified_weight": verified.weight}
        return self.build(*found, verified=rates, unseen=unseen, **checks)

    def _rule(self, model: FlipModel, design: Callable[[Floats, Codes], Floats]) -> Rule:
        """Return what tells the chances of the true classes of any rows."""
        columns, count, shape = self.survey.columns, self.survey.group_count, self.cells.shape

        def rule(features: Floats, labels: Codes, groups: Codes) -> Floats:
            made = design(with_groups(features[:, columns], groups, count), groups)
            return model.true_class(Observed(made, labels, groups, *shape, np.ones(len(labels))))

        return rule

    def observe(self, design: Floats, part: slice = slice(None)) -> Observed:
        """Return samples in the form the model of flips takes."""
        labels, groups = self.cells.label_codes[part], self.cells.group_codes[part]
        return Observed(design, labels, groups, *self.cells.shape, np.ones(len(labels)))


def _judge(random: RandomFlips, disagree: bool) -> Credibility:
    """Say whether the explanations are conclusive, and why."""
    least, most = random.least, max(random.most, random.share)
    if disagree:
        kind = "disagreeing"
    elif random.model is None:
        kind = "too_little_said" if most > UNSEEN else "none_found"
    elif random.unsure:
        kind = "nobody_sure"
    elif most - least > WIDE:
        kind = "too_wide"
    else:
        kind = "mostly_wrong" if random.model.flip_rates.max() >= 0.5 else "at_random"
    facts = {"share": random.share, "least": least, "most": most}
    return Credibility(kind in ("none_found", "at_random"), kind, facts)


def warn_if_inconclusive(estimate: CleanRatioEstimate) -> None:
    """Warn that it cannot be known which labels are wrong, and say what training does instead."""
    if not estimate.credible:
        warnings.warn(
            f"which labels are wrong cannot be known: {estimate.credible} No label is called wrong; training "
            f"{estimate.training}. Pass clean_ratio= if you know it",
            FairsieveWarning,
            stacklevel=4,
        )


def by_cell(values: Floats, cells: Cells) -> Floats:
    """Sum ``values`` in each cell, (classes, groups)."""
    sums = np.bincount(cells.codes, weights=values, minlength=cells.counts.size)
    return sums.astype(np.float64).reshape(cells.shape)


def _wrong(true_class: Floats, cells: Cells) -> Floats:
    """Return how likely each label is wrong."""
    return 1 - true_class[np.arange(len(cells)), cells.label_codes]
