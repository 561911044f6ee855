"""Weigh the explanations of the labels: none is wrong, wrong at random, wrong on purpose, or it cannot be known.

The predictors' logits stand for the features here, so each fit has a handful of columns. Flips at random show in
two ways, and both must agree: probabilities level off below 1 along the logits, and even where a predictor is
surest of a class some labels say another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.flip_bounds import BOUND, highest_share, is_steady
from fairsieve.label_noise.flip_model import FlipModel, Observed, fit_fixed, fit_flips, fit_plain, log_chances
from fairsieve.label_noise.predictors import Predictor, Survey, linear_predictor, with_groups
from fairsieve.label_noise.true_counts import surest_share

__all__ = ["Choice", "RandomFlips", "choose", "choose_base", "explain_at_random", "explain_by_aim", "stack"]

Floats = NDArray[np.float64]
Ties = NDArray[np.int64]

FOUND = 1.0  # gain in log-likelihood that one rate needs, out of fold and in the whole design
FOUND_BY_COLUMN = 36.0  # and more, where there are many columns for the samples: logits are too sure then
NEAR = 1.2  # where the surest samples show a rate this close above the model's, the mean of both is taken
MOST_RATES = 24
MARGIN = 2.58  # standard errors: more than 1.96, since the model of the truth is only nearly right
SIMILAR = 0.01  # log loss by which a boosted model may be worse and still say where the boundary bends
CLEARLY = 15.0  # gain in log-likelihood that aimed flips need over random ones
WORTH_TRYING = 0.03  # gain of the boosted over the linear model, per sample, that an attack would cause
MOST_OF_IT = 0.8  # share of the boosted model's gain that aimed flips must explain
MOST_AIMED, FEWER_AIMED = 4_000, 2_500
MANY_COLUMNS = 30  # of a design, from which on fewer samples are fitted
SURELY = 0.9
AIMED_STEPS = 40


@dataclass(frozen=True)
class Choice:
    """Which predictor the estimate stands on.

    Attributes
    ----------
    name : {"linear", "curved", "boosted"}
    losses : dict
        The cross-validated log loss of each predictor that was tried.
    gain, error : float
        By how much its log loss is lower than the next simpler one's, per sample, and the standard error.
    """

    name: str
    losses: dict[str, float]
    gain: float
    error: float

    def __str__(self) -> str:
        if len(self.losses) == 1:
            return f"the {self.name} model"
        others = ", ".join(f"{name} {loss:.3f}" for name, loss in self.losses.items() if name != self.name)
        return f"the {self.name} model (cross-validated log loss {self.losses[self.name]:.3f}; {others})"


@dataclass(frozen=True, eq=False)
class RandomFlips:
    """What speaks for labels wrong at random.

    Attributes
    ----------
    rates : array of shape (groups, classes)
        The chance of each true class and group to be flipped; zeros where no flips were found.
    share, error : float
        The likeliest share of wrong labels and its standard error, if the model of the truth is right.
    most : float
        The highest share of labels wrong at random that the labels are compatible with, whatever the truth.
    steady : bool
        Whether the labels that look flipped are spread as evenly as flips at random are.
    model : FlipModel, optional
        The flips fitted with the whole design of the base.
    """

    rates: Floats
    share: float
    error: float
    most: float
    steady: bool = True
    model: FlipModel | None = None

    @property
    def found(self) -> bool:
        """Whether any were found."""
        return bool(self.rates.any())

    @property
    def least(self) -> float:
        """The lowest share of wrong labels, if the model of the truth is nearly right."""
        return max(self.share - MARGIN * self.error, 0.0)


def choose_base(survey: Survey) -> tuple[list[Predictor], Predictor, Floats]:
    """Try the linear and the curved predictors and choose one, by cross-validated log loss.

    Groups may differ in what the columns mean for them, or in how many labels are wrong. Both make the labels of
    one group harder to predict, so products with the groups must beat rates by group by a standard error.

    Returns
    -------
    tried : list of Predictor
    base : Predictor
    levelled : array
        The losses of the base if its probabilities may level off below 1.
    """
    linear = linear_predictor(survey, curved=False)
    tried = [linear, linear_predictor(survey, curved=True, start=linear)]
    base = min(tried, key=lambda each: float(np.average(each.losses, weights=survey.weights)))
    levelled = _levelled_losses(base, survey)
    if survey.group_count > 1:
        other = linear_predictor(survey, curved=base is tried[1], by_group=True, start=base)
        tried.append(other)
        losses = _levelled_losses(other, survey)
        difference = levelled - losses
        if np.average(difference, weights=survey.weights) > difference.std() / np.sqrt(len(survey)):
            base, levelled = other, losses
    return tried, base, levelled


def choose(
    tried: list[Predictor], base: Predictor, levelled: Floats, survey: Survey
) -> tuple[Choice, Predictor]:
    """Choose the predictor that the estimate stands on: the boosted one if it is better by two standard errors.

    A boosted model sees where probabilities level off, so the base, linear or curved, may do so too:
    ``levelled`` are its losses then.
    """
    losses = {each.name: float(np.average(each.losses, weights=survey.weights)) for each in tried}
    losses[base.name] = min(losses[base.name], float(np.average(levelled, weights=survey.weights)))
    best, against = base, tried[0].losses
    for other in tried:
        if other.name == "boosted":
            difference = levelled - other.losses
            gain = float(np.average(difference, weights=survey.weights))
            if gain > 2 * difference.std() / np.sqrt(len(survey)):
                best, against = other, levelled
    difference = against - best.losses
    gain = float(np.average(difference, weights=survey.weights))
    return Choice(best.name, losses, gain, float(difference.std() / np.sqrt(len(survey)))), best


def stack(scores: list[Floats], survey_groups: NDArray[np.int64], group_count: int) -> Floats:
    """Build a design of logits, groups and a constant."""
    design = with_groups(np.column_stack(scores), survey_groups, group_count)
    return np.column_stack([design, np.ones(len(design))])


def explain_at_random(
    survey: Survey, base: Predictor, levelled: Floats, boosted: Predictor | None
) -> RandomFlips:
    """Find the flips at random that the labels bear out.

    ``base`` is the linear or the curved predictor. Whether there are flips is decided with the boosted one
    beside it, since a bent boundary looks like flips to a straight line. How many there are is read from
    the base, whose logits do not level off by themselves, and from the surest samples, which bound it.
    """
    alone = survey.observe(stack([base.scores], survey.groups, survey.group_count))
    both = alone
    if boosted is not None and boosted.losses.mean() < levelled.mean() + SIMILAR:
        both = survey.observe(stack([base.scores, boosted.scores], survey.groups, survey.group_count))
    plain = fit_plain(both)
    found_at = FOUND + FOUND_BY_COLUMN * len(survey.columns) / len(survey)
    ties = _bear_out(both, plain, found_at)
    if not survey.numeric:
        ties = None  # any table of probabilities by yes-or-no columns and group is a possible truth
    chances = np.exp(log_chances(both.design @ plain.weights))
    most = highest_share(survey, chances)
    found = None if ties is None else _fit_whole(survey, base, alone, ties)
    if found is None or ties is None or found[2] < found_at:
        return RandomFlips(np.zeros((survey.group_count, survey.classes)), 0.0, 0.0, most)
    model, whole, _, error = found
    rates = model.flip_rates.copy()
    for number in np.unique(ties):
        share, error = surest_share((ties == number).T, chances, survey.labels, survey.groups)
        rate = float(rates[ties == number][0])
        near = rate < share <= NEAR * rate + 0.01
        rates[ties == number] = (rate + share) / 2 if near else min(rate, share + BOUND * error)
    steady = is_steady(survey, both, fit_fixed(both, plain, rates))
    return RandomFlips(rates, model.noise(whole), error, most, steady, model)


def _fit_whole(
    survey: Survey, base: Predictor, alone: Observed, ties: Ties
) -> tuple[FlipModel, Observed, float, float]:
    """Fit the flips with the whole design of the base, starting at the fit to its logits.

    The logits of a plain model are not those of the true classes: flips pull them together. Returns also the gain
    in log-likelihood and the standard error of the share of wrong labels: that of the fit to the logits out of fold,
    where it is larger, since many columns make the whole design too sure.
    """
    narrow = fit_plain(alone)
    short = fit_flips(alone, narrow, ties=ties)
    if base.fitted is None:
        gain = short.log_likelihood - narrow.log_likelihood
        return short, alone, gain, short.noise_error(alone)
    observed, plain = base.fitted
    factors = np.diagonal(short.weights[: survey.classes - 1, 1:])
    weights = plain.weights - plain.weights[:, :1]
    weights[:, 1:] *= np.clip(factors, 0.5, 5.0)
    found = fit_flips(observed, replace(short, weights=weights), ties=ties)
    error = max(found.noise_error(observed), short.noise_error(alone))
    return found, observed, found.log_likelihood - plain.log_likelihood, error


def _bear_out(observed: Observed, plain: FlipModel, found_at: float) -> Ties | None:
    """Choose the rates that the labels bear out: none, one, one for each group, or one for each cell.

    The first rate needs a gain of ``found_at`` in log-likelihood, and every further rate what the Bayesian criterion
    asks for, since rates that differ by class could also be a shifted boundary.
    """
    groups, classes = observed.group_count, observed.classes
    candidates = [np.zeros((groups, classes), np.int64)]
    if 1 < groups <= MOST_RATES:
        candidates.append(np.repeat(np.arange(groups), classes).reshape(groups, classes))
    if groups * classes <= MOST_RATES:
        candidates.append(np.arange(groups * classes).reshape(groups, classes))
    further = np.log(max(len(observed), 2)) / 2
    best, score, start = None, 0.0, plain
    for ties in candidates:
        found = fit_flips(observed, start, ties=ties)
        gained = found.log_likelihood - plain.log_likelihood - found_at - (found.rates - 1) * further
        if gained > score:
            best, score, start = ties, gained, found
    return best


def explain_by_aim(
    survey: Survey, linear: Predictor, best: float, boosted: Predictor | None
) -> tuple[FlipModel | None, bool]:
    """Find flips aimed at the samples whose class is surest; say also whether the explanations disagree.

    Parameters
    ----------
    linear : Predictor
    best : float
        The lowest log loss of the other explanations without the boosted model, per sample.
    """
    lowest = np.inf if boosted is None else float(np.average(boosted.losses, weights=survey.weights))
    if boosted is not None and best - lowest < WORTH_TRYING:
        return None, False
    if linear.fitted is None:
        return None, False
    observed, plain = linear.fitted
    many = observed.design.shape[1] > MANY_COLUMNS
    part = observed.take(np.arange(min(FEWER_AIMED if many else MOST_AIMED, len(observed))))
    size = float(part.weights.sum())
    random = fit_flips(part, plain, steps=10)
    models = [fit_flips(part, start, aimed=True, steps=AIMED_STEPS) for start in (plain, random)]
    model = max(models, key=lambda found: found.log_likelihood)
    loss = -model.log_likelihood + model.rates + part.design.shape[1]  # as Akaike's criterion has it
    if loss > min(best * size, -random.log_likelihood) - CLEARLY:
        return None, False
    possible = best - lowest
    if np.isfinite(lowest) and best - loss / size < MOST_OF_IT * possible:
        return None, True
    if many and _overlap(models, part) < MOST_OF_IT:  # the search ends here or there, by where it starts
        return None, True
    # with yes-or-no columns alone, any table is a possible truth
    return (model, False) if survey.numeric else (None, True)


def _overlap(models: list[FlipModel], observed: Observed) -> float:
    """Compute how many of the labels that any of the models calls surely wrong are called so by all."""
    rows = np.arange(len(observed))
    wrong = np.array([model.true_class(observed)[rows, observed.labels] < 1 - SURELY for model in models])
    return float(wrong.all(axis=0).sum() / max(int(wrong.any(axis=0).sum()), 1))


def _levelled_losses(predictor: Predictor, survey: Survey) -> Floats:
    """Compute the losses of a predictor whose probabilities may level off below 1, in each group by itself."""
    observed = survey.observe(stack([predictor.scores], survey.groups, survey.group_count))
    groups = survey.group_count
    ties = np.repeat(
        np.arange(groups) if groups <= MOST_RATES else np.zeros(groups, np.int64), survey.classes
    )
    return fit_flips(observed, fit_plain(observed), ties=ties.reshape(groups, -1)).losses(observed)
