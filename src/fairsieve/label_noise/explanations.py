"""Weigh the explanations of the labels: none is wrong, wrong at random, wrong on purpose, or it cannot be known.

The predictors' logits stand for the features here, so each fit has a handful of columns. Flips at random make the
probabilities level off below 1, in every class alike, even where a predictor is surest. A truth that nobody can be
sure of does so too, but hardly ever at the same height for all classes: where the heights differ it cannot be known.
From below there is no other bound: any table of probabilities could be the truth. And labels that are wrong
systematically, by a feature or for one group, do not show.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from fairsieve.label_noise.flip_model import (
    FlipModel,
    Observed,
    fit_flips,
    fit_plain,
    probabilities,
    transitions,
    true_sums,
)
from fairsieve.label_noise.survey import (
    Predictor,
    Survey,
    boosted_predictor,
    crossed_predictor,
    linear_predictors,
)
from fairsieve.selection.cells import Codes, Floats
from fairsieve.training.rows import map_in_threads

MARGIN = 2.33  # standard errors: more than 1.96, since the model of the truth is only nearly right
APART = 3.0  # gain in log-likelihood by a rate of its own for each class that speaks against flips at random
SUREST = 0.02  # part of the samples in which a class must be likely, to see whether it levels off
LIKELY = 0.6  # so likely
# Parts of a group, those that a class is surest for, whose other labels bound its rate.
SUREST_PARTS = (0.1, 0.2, 0.4)
BOUND = 2.5  # standard errors: the lowest of several shares is too low
SIMILAR = 0.01  # log loss by which a boosted model may be worse and still say where the boundary bends
MISFIT = 0.05  # error of a rate's logit, since the model of the truth is only nearly right
LEAST_LEVEL = -8.0  # of the logit of a rate
CLEARLY = 15.0  # gain in log-likelihood that aimed flips need over random ones
WORTH_TRYING = 0.03  # gain of the boosted over the linear model, per sample, that an attack would cause
MOST_OF_IT = (
    0.8  # share of the boosted model's gain that aimed flips must explain, and an interplay of columns not
)
MOST_AIMED = 4_000  # samples that aimed flips are fitted to
MANY_COLUMNS = 40  # of a design
AIMED_STEPS = 40


@dataclass(frozen=True)
class Choice:
    """Which predictor the estimate stands on.

    Attributes
    ----------
    name : {"linear", "curved", "boosted"}
    losses : dict
        The cross-validated log loss of each predictor that was tried.
    """

    name: str
    losses: dict[str, float]


@dataclass(frozen=True, eq=False)
class FlipRates:
    """Rates of labels wrong at random, and how sure they are.

    Attributes
    ----------
    levels : array of shape (rates,)
        The logits of the free rates.
    covariance : array of shape (rates, rates)
    ties : integer array of shape (classes, groups)
        Which free rate each cell has.
    highest : array of shape (classes, groups)
        What no rate exceeds, see :func:`explain_at_random`.
    influence : array of shape (n, rates)
        By how much each sample moved the levels, for each unit of its weight; 0 where it was not looked at.
    """

    levels: Floats
    covariance: Floats
    ties: Codes
    highest: Floats
    influence: Floats

    @property
    def likeliest(self) -> Floats:
        """The rates by class and group."""
        return self._of(self.levels)

    def draw(self, rng: np.random.Generator, moved: Floats) -> Floats:
        """Draw rates again as they come out where the rows are drawn again; first are the likeliest ones.

        The same rows tell the rates and are counted: where by chance many of a kind have the wrong label, the rates
        come out too high as well, and what is counted is corrected by more. What the kinds of rows leave open of the
        rates is drawn apart.

        Parameters
        ----------
        moved : array of shape (draws, rates)
            By how much the rows of each draw move the levels, as their ``influence`` says.

        Returns
        -------
        array of shape (1 + draws, classes, groups)
        """
        values, vectors = np.linalg.eigh(self.covariance - np.atleast_2d(np.cov(moved, rowvar=False)))
        rest = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = self.levels + moved + rng.standard_normal(moved.shape) @ rest.T
        return self._of(np.vstack([self.levels, drawn]))

    def over(self, members: Codes, places: Codes, size: int) -> FlipRates:
        """Return the rates with the influence of ``size`` samples, of which ``members`` equal one at ``places``."""
        influence = np.zeros((size, len(self.levels)))
        influence[members] = self.influence[places]
        return replace(self, influence=influence)

    def spread(self, pool: Codes) -> FlipRates:
        """Return the rates of groups, each of which was looked at as one of ``pool``."""
        return replace(self, ties=self.ties[:, pool], highest=self.highest[:, pool])

    def _of(self, levels: Floats) -> Floats:
        least = np.full(len(self.levels), np.inf)
        np.minimum.at(least, self.ties.ravel(), self.highest.ravel())
        return np.asarray(np.minimum(expit(levels), least)[..., self.ties])


@dataclass(frozen=True, eq=False)
class RandomFlips:
    """What speaks for labels wrong at random.

    Attributes
    ----------
    highest : array of shape (classes, groups)
        The highest chance of a label of that true class and group to be wrong, at 95 % confidence, whatever the truth.
    most : float
        The highest share of labels wrong at random that follows.
    model : FlipModel, optional
        The flips that the labels bear out, by the logits of ``used``; None where no flips were found.
    used : list of Predictor
    share, error : float
        The likeliest share of wrong labels and its standard error, if the model of the truth is right.
    unsure : bool
        Whether the truth itself may be what nobody can be sure of.
    rates : tuple of FlipRates
        What the rates may be: one, or one for each group, as the model has them; and one for each class.
    """

    highest: Floats
    most: float
    model: FlipModel | None = None
    used: tuple[Predictor, ...] = ()
    share: float = 0.0
    error: float = 0.0
    unsure: bool = False
    rates: tuple[FlipRates, ...] = ()

    @property
    def least(self) -> float:
        """The lowest share of wrong labels, if the model of the truth is nearly right."""
        return max(self.share - MARGIN * self.error, 0.0)


@dataclass(frozen=True, eq=False)
class Tried:
    """The predictors that were tried on the labels.

    Attributes
    ----------
    linear : Predictor
    base : Predictor
        The linear or the curved one, whichever is better.
    boosted : Predictor or None
    best : Predictor
        The boosted one if it is better than the base by two standard errors.
    lowest : float
        The log loss of the base if its probabilities may level off below 1, which those of a boosted one do anyhow.
    choice : Choice
    """

    linear: Predictor
    base: Predictor
    boosted: Predictor | None
    best: Predictor
    lowest: float
    choice: Choice


def try_predictors(survey: Survey) -> Tried:
    """Fit the predictors and choose between them, by cross-validated log loss."""
    makers: list[Any] = [linear_predictors, boosted_predictor]
    (linear, curved), boosted = map_in_threads(lambda make: make(survey), makers, min(os.cpu_count() or 1, 2))
    base = best = min((linear, curved), key=lambda each: survey.mean(each.losses)[0])
    tried = [linear, curved, boosted] if boosted is not None else [linear, curved]
    losses = {each.name: survey.mean(each.losses)[0] for each in tried}
    observed = survey.observe_scores(base.scores)
    levelled = fit_flips(observed, fit_plain(observed), _by_group(survey)).losses(observed)
    lowest = survey.mean(levelled)[0]
    losses[base.name] = min(losses[base.name], lowest)
    if boosted is not None:
        gain, error = survey.mean(levelled - boosted.losses)
        best = boosted if gain > 2 * error else base
    return Tried(linear, base, boosted, best, lowest, Choice(best.name, losses))


def explain_at_random(survey: Survey, tried: Tried) -> RandomFlips:
    """Find the flips at random that the labels bear out.

    Whether there are flips is decided with the boosted predictor beside the linear or curved one, since a bent
    boundary looks like flips to a straight line.
    """
    used: tuple[Predictor, ...] = (tried.base,)
    if tried.boosted is not None and survey.mean(tried.boosted.losses)[0] < tried.lowest + SIMILAR:
        used += (tried.boosted,)
    observed = survey.observe_scores(*(each.scores for each in used))
    plain = fit_plain(observed)
    highest = _highest_rates(survey, probabilities(observed.design @ plain.weights))
    most = _share_wrong(survey, highest)
    if survey.is_table:
        return RandomFlips(highest, most)
    model = _bear_out(survey, observed, plain)
    share, error = model.noise(observed)
    gain = model.log_likelihood - plain.log_likelihood
    error = max(error, share / max(2 * gain, 1e-9) ** 0.5)  # near a rate of 0 the gain says how sure it is
    if share <= MARGIN * error:
        return RandomFlips(highest, most)
    unsure = _is_unsure(survey, observed, plain, model)
    rates = _find_rates(survey, tried.base, model, highest)
    level = np.maximum(logit(rates[0].likeliest.T), LEAST_LEVEL)
    model = fit_flips(observed, replace(model, level=level), model.ties, known=True)
    share, _ = model.noise(observed)
    if share <= MARGIN * error:
        return RandomFlips(highest, most)
    return RandomFlips(highest, most, model, used, share, error, unsure, rates)


def _find_rates(survey: Survey, base: Predictor, model: FlipModel, highest: Floats) -> tuple[FlipRates, ...]:
    """Find the rates by the linear or curved predictor alone, as the model ties them and for each class.

    A boosted predictor's logits level off by themselves, so that beside them the rates come out too low. And where the
    logits are bent at the boundary, each class may become sure at its own pace, so that a truth that is no logistic
    curve does not pass for a rate. How far the bend moves a rate is part of its error.
    """
    designs = [survey.observe_scores(scores) for scores in (base.scores, _bend(base.scores))]
    plain, rates_found = fit_plain(designs[0]), []
    for ties in (model.ties, _by_class(model.ties)):
        straight = fit_flips(designs[0], plain, ties)
        columns = base.scores.shape[1]  # the bend begins without weight
        start = np.insert(straight.weights, [columns] * columns, 0.0, axis=0)
        bent = fit_flips(designs[1], replace(straight, weights=start), ties)
        counts = np.bincount(ties.ravel())
        levels, others = (np.bincount(ties.ravel(), each.level.ravel()) / counts for each in (bent, straight))
        apart = (levels - others) / 2  # the deviation of two values from their mean
        covariance = bent.covariance(designs[1]) + np.diag(apart**2 + MISFIT**2)
        rates_found.append(FlipRates(levels, covariance, ties.T.copy(), highest, bent.influence(designs[1])))
    return tuple(rates_found)


def _bend(scores: Floats) -> Floats:
    """Add columns that let each logit rise at another pace below the boundary, where its class is least certain."""
    chances = probabilities(scores)[:, 1:]
    middle = np.average(scores, axis=0, weights=np.maximum(chances * (1 - chances), 1e-12))
    return np.column_stack([scores, np.minimum(scores - middle, 0.0)])


def _by_class(ties: Codes) -> Codes:
    """Return the number of each rate: as others are tied, but one for each class."""
    classes = ties.shape[1]
    return np.unique(ties * classes + np.arange(classes), return_inverse=True)[1].reshape(ties.shape)


def _by_group(survey: Survey) -> Codes:
    """Return the number of each rate: one for each group."""
    return np.repeat(np.arange(survey.group_count), survey.classes).reshape(-1, survey.classes)


def _bear_out(survey: Survey, observed: Observed, plain: FlipModel) -> FlipModel:
    """Choose between one rate for all and one for each group, by the Bayesian criterion."""
    model = fit_flips(observed, plain, np.zeros((survey.group_count, survey.classes), np.int64))
    if survey.group_count > 1:
        by_group = fit_flips(observed, model, _by_group(survey))
        further = np.log(max(survey.size, 2.0)) / 2 * (survey.group_count - 1)
        if by_group.log_likelihood - model.log_likelihood > further:
            return by_group
    return model


def _is_unsure(survey: Survey, observed: Observed, plain: FlipModel, model: FlipModel) -> bool:
    """Say whether the truth itself may be what nobody can be sure of.

    That is so where the classes level off at different heights, and where a class has no sure samples at all, so that
    nothing shows whether it levels off.
    """
    apart = fit_flips(observed, plain, _by_class(model.ties))
    rates = int(model.ties.max()) + 1
    if apart.log_likelihood - model.log_likelihood > APART * rates * (survey.classes - 1):
        return True
    surest = np.quantile(probabilities(observed.design @ model.weights), 1 - SUREST, axis=0)
    return bool(surest.min() < LIKELY)


def explain_by_aim(survey: Survey, tried: Tried) -> tuple[FlipModel | None, bool]:
    """Find flips aimed at the samples whose class is surest; say also whether the explanations disagree."""
    linear, lowest, boosted = tried.linear, tried.lowest, tried.boosted
    possible = np.inf if boosted is None else lowest - survey.mean(boosted.losses)[0]
    if possible < WORTH_TRYING:
        return None, False
    observed, plain = linear.fitted
    part = observed.take(slice(MOST_AIMED))
    size, ties = float(part.weights.sum()), np.arange(plain.level.size).reshape(plain.level.shape)
    random = fit_flips(part, plain, ties, steps=10)
    models = [fit_flips(part, start, ties, aimed=True, steps=AIMED_STEPS) for start in (plain, random)]
    model = max(models, key=lambda found: found.log_likelihood)
    loss = -model.log_likelihood + 2 * ties.size + plain.weights.size  # as Akaike's criterion has it
    if loss > min(lowest * size, -random.log_likelihood) - CLEARLY:
        return None, False
    # Of few different samples there are no trees to compare with.
    explained = np.isfinite(possible) and lowest - loss / size >= MOST_OF_IT * possible
    # Where columns are many, something can be turned around anywhere.
    if not explained or survey.is_table or observed.design.shape[1] > MANY_COLUMNS:
        return None, True
    # An interplay of columns turns labels around too: of a head of a household who is married, and of one who is not.
    crossed = survey.mean(crossed_predictor(survey).losses)[0]
    return (None, True) if lowest - crossed >= MOST_OF_IT * possible else (model, False)


def _highest_rates(survey: Survey, chances: Floats) -> Floats:
    """Find the highest rate of labels wrong at random of each class and group, at 95 % confidence.

    Where a class is surest, no fewer labels say another class than are flipped. So the surest samples of each class
    and group bound its rate from above, with no model of the truth.
    """
    shape = survey.classes, survey.group_count
    rates = np.ones(shape)
    for label, group in np.ndindex(shape):
        members = np.flatnonzero(survey.groups == group)
        if not len(members):
            continue
        surest = -np.round(chances[members, label], 9)
        order = np.argsort(surest, kind="stable")
        surest, order = surest[order], members[order]
        counts = np.cumsum(survey.weights[order])
        ends = np.searchsorted(counts, np.array(SUREST_PARTS) * counts[-1] * (1 - 1e-12))
        # Equal samples are taken whatever their labels.
        ends = np.searchsorted(surest, surest[ends], side="right") - 1
        sizes = counts[ends]
        shares = np.cumsum(survey.weights[order] * (survey.labels[order] != label))[ends] / sizes
        errors = np.sqrt((shares * (1 - shares) + 1 / sizes) / sizes)
        lowest = (shares + errors).argmin()
        rates[label, group] = min(shares[lowest] + BOUND * errors[lowest], 1.0)
    return rates


def _share_wrong(survey: Survey, rates: Floats) -> float:
    """Compute the share of labels wrong at rates by true class and group."""
    table = transitions(rates)
    kept = np.diagonal(table, axis1=1, axis2=2).T
    seen = np.zeros(rates.shape)
    np.add.at(seen, (survey.labels, survey.groups), survey.weights)
    true = true_sums(seen, table)
    true *= seen.sum(axis=0) / np.maximum(true.sum(axis=0), 1e-12)
    return float(((1 - kept) * true).sum() / seen.sum())
