"""Measure models on rows that they did not see: for right labels, beside the labels as they are given.

Accuracy, rates and gaps are those of :mod:`fairsieve.label_noise.judgement`. How well labels are told apart and
whether probabilities mean what they say is measured on the labels as given: accuracy says little where a label is rare,
since to predict it for nobody is right almost always.

Everything is computed once, by :func:`evaluate`, and read by its name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from fairsieve import notions
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.judgement import NOTHING, Judgement, Needed, judge
from fairsieve.metrics import NORMAL, Bounds, Score, average_of_shares, wilson
from fairsieve.notions import find_notion
from fairsieve.selection.cells import Cells, Codes, Flags, Floats, Values
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.roles import Labels
from fairsieve.tabular.settings import TableSettings

# What a rate is called, whose share it is, and the share of what.
TITLES = {
    "accuracy": ("accuracy", "of everyone", "are predicted right"),
    "selection_rate": ("share predicted {label}", "of everyone", "are predicted {label}"),
    "true_positive_rate": ("true-positive rate", "of those {whose} {label}", "are predicted {label}"),
    "false_positive_rate": ("false-positive rate", "of those {whose} {other}", "are predicted {label}"),
    "precision": ("precision", "of those predicted {label}", "are {label}"),
}
EVERYONE = "everyone"
# How well labels are told apart: titles, and what each number means of a label.
QUALITIES = {
    "auc": ("AUC", "how often one labelled {label} scores higher than one who is not"),
    "average_precision": (
        "average precision",
        "the mean share labelled {label} among those who score highest",
    ),
    "precision": ("precision", "of those predicted {label}, labelled {label}"),
    "recall": ("recall", "of those labelled {label}, predicted {label}"),
}
BINS = 10  # of probabilities


class Share(NamedTuple):
    """A proportion: ``hits`` out of ``total``."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The proportion; NaN where ``total`` is 0."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> Bounds:
        """The 95 % interval, by Wilson."""
        return wilson(self.hits, self.total)


class ModelOutput(NamedTuple):
    """What a model says of some rows."""

    chances: Floats  # (n, classes)
    codes: Codes  # the predicted classes


@dataclass(frozen=True)
class Rate:
    """A rate of one model or two, group by group.

    Attributes
    ----------
    name : {"accuracy", "selection_rate", "true_positive_rate", "false_positive_rate", "precision"}
    label : str
        The label that it is about; empty for accuracy.
    code : int
        Its place among the classes; −1 for accuracy.
    title, whose, what : str
        Such as "true-positive rate", "of those labelled yes" and "are predicted yes".
    compared : bool
        Whether the notion of fairness compares it.
    models : list of lists of Score or None
        For each model its rate of each group, for right labels; None where a group has nobody.
    given : list of lists of Score or None
        The same on the labels as given.
    people : list of float
        How many it is of in each group, as far as right labels are known.
    """

    name: str
    label: str
    code: int
    title: str
    whose: str
    what: str
    compared: bool
    models: list[list[Score | None]]
    given: list[list[Score | None]]
    people: list[float]

    @property
    def meaning(self) -> str:
        """What it is the share of."""
        return f"{self.whose}, {self.what.removeprefix('are ')}"


@dataclass(frozen=True)
class Gap:
    """How far the rate of group ``low`` lies below that of group ``high``, under each model.

    Attributes
    ----------
    rate : Rate
    low, high : int
    models : list of Score
        With an interval for this gap alone.
    at_once : list of Score
        With intervals that hold for all gaps together, so that the widest may be picked.
    """

    rate: Rate
    low: int
    high: int
    models: list[Score]
    at_once: list[Score]

    def turned(self) -> Gap:
        """Return the same gap, seen from the other group."""
        scores = [[score.turned() for score in each] for each in (self.models, self.at_once)]
        return Gap(self.rate, self.high, self.low, *scores)


@dataclass(frozen=True)
class Quality:
    """How well models tell a label from the others, on the labels as given.

    Attributes
    ----------
    name, title, meaning : str
    label : str
        Empty for a number of all labels together.
    models : list of lists of Score or None
        For each model one number of each group, and a last one of everyone.
    """

    name: str
    title: str
    meaning: str
    label: str
    models: list[list[Score | None]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What one or two models are worth on rows that they did not see.

    Attributes
    ----------
    names : tuple of str
        Of the models: "plain" and "fair", or "predictions" for those of another system.
    cells : Cells
        Given labels and groups of the rows.
    labels : Labels
    judged : Judgement
        Its ``models`` are in the order of the names.
    predicted : list of dict
        How often each model predicts each label.
    rates : list of Rate
    gaps : list of Gap
        Each pair of groups in each rate that fairness compares, the widest under the first model first.
    widest : list of Gap
        That of each model; empty where no two groups have enough people.
    quality : list of Quality
    calibration : list of Calibration
    likeliest : bool
        Whether the likeliest label is predicted, and not one from another threshold on.
    """

    names: tuple[str, ...]
    cells: Cells
    labels: Labels
    judged: Judgement
    predicted: list[dict[str, int]]
    rates: list[Rate]
    gaps: list[Gap]
    widest: list[Gap]
    quality: list[Quality]
    calibration: list[Calibration]
    likeliest: bool = True

    @property
    def groups(self) -> list[str | None]:
        """The groups that rates are of; a last None, people without a group."""
        return list(self.cells.groups)

    def of_everyone(self, name: str, model: int) -> Score | None:
        """Return a number of how well labels are told apart, over everyone; of the first label that has it."""
        return next((one.models[model][-1] for one in self.quality if one.name == name), None)


def evaluate(
    cells: Cells,
    outputs: dict[str, ModelOutput],
    labels: Labels,
    fairness: str,
    *,
    estimate: CleanRatioEstimate | None,
    copies: Codes | None,
    seed: int,
    about: str | None = None,
    likeliest: bool = True,
) -> Evaluation:
    """Measure one or two models.

    Parameters
    ----------
    cells : Cells
        Given labels and groups of the rows.
    outputs : dict of ModelOutput
        By the name of the model; a system whose probabilities are not known has none.
    estimate : CleanRatioEstimate or None
        What is known of the labels of these rows; None believes them.
    copies : integer array or None
        Equal rows have one number.
    about : str, optional
        The one label of many whose gaps are to be looked at.
    likeliest : bool
        Whether the likeliest label is predicted.
    """
    codes = [output.codes for output in outputs.values()]
    positive = labels.positive_code
    judged = judge(cells, codes, fairness, positive=positive, estimate=estimate, clusters=copies, seed=seed)
    rates = _list_rates(judged, labels, fairness)
    shown = [rate for rate in rates if rate.compared and about in (None, rate.label)]
    gaps = _list_gaps(judged, shown, cells.named_groups)
    told = [output for output in outputs.values() if len(output.chances)]
    return Evaluation(
        names=tuple(outputs),
        cells=cells,
        labels=labels,
        judged=judged,
        predicted=[count_predicted(one, labels) for one in codes],
        rates=rates,
        gaps=gaps,
        widest=[_widest(gaps, place) for place in range(len(codes)) if gaps],
        quality=_measure_quality(cells, told, labels) if told else [],
        calibration=_calibrate_models(cells, outputs, labels),
        likeliest=likeliest,
    )


def _widest(gaps: Sequence[Gap], model: int) -> Gap:
    """Find the widest gap of a model, seen from the group that has the lower rate under it."""
    widest = max(gaps, key=lambda gap: abs(gap.models[model].value))
    return widest if widest.models[model].value >= 0 else widest.turned()


def count_predicted(codes: Codes, labels: Labels) -> dict[str, int]:
    """Count how often each label is predicted; those that never are, are left out."""
    counts = np.bincount(codes, minlength=len(labels.classes)).tolist()
    return {label: count for label, count in zip(labels.classes, counts, strict=True) if count}


def _list_rates(judged: Judgement, labels: Labels, fairness: str) -> list[Rate]:
    """Name the rates of all models, for right labels and on those given."""
    rates, notion = [], find_notion(fairness)
    sources = (judged, judged.on_given_labels)
    told, given = (zip(*(model.rates for model in source.models), strict=True) for source in sources)
    whose = "labelled" if judged.basis == "given labels" else "whose right label is"
    for one, beside in zip(told, given, strict=True):
        name, code = one[0].name, one[0].label
        label = "" if code < 0 else labels.classes[code]
        other = " or ".join(each for each in labels.classes if each != label)
        words = {"label": label, "whose": whose, "other": other}
        title, who, what = (text.format(**words) for text in TITLES[name])
        if len(labels.classes) > 2 and label and label not in title:
            title = f"{title} of {label}"
        compared = notion.compares(_rate_of(name, code), len(labels.classes), labels.positive_code)
        compared &= name != "false_positive_rate" or len(labels.classes) == 2
        values, others = [model.groups for model in one], [model.groups for model in beside]
        rates.append(Rate(name, label, code, title, who, what, compared, values, others, one[0].people))
    return rates


def _rate_of(name: str, code: int) -> notions.Rate:
    """Return a rate as notions of fairness have it; a false-positive rate is that of the other one of two classes."""
    return {
        "accuracy": notions.Rate(notions.ANY, notions.RIGHT),
        "selection_rate": notions.Rate(notions.ANY, code),
        "precision": notions.Rate(code, code, of_predicted=code),
        "true_positive_rate": notions.Rate(code, code, of_true=code),
        "false_positive_rate": notions.Rate(1 - code, code, of_true=1 - code),
    }[name]


def _list_gaps(judged: Judgement, rates: Sequence[Rate], groups: int) -> list[Gap]:
    """List how far groups lie apart in the rates of enough people, each pair once, the widest first."""
    pairs = []
    for rate in rates:
        enough = [group for group in range(groups) if rate.people[group] >= POLICY.fewest]
        value = [score.value if score else math.nan for score in rate.models[0]]
        for pair in combinations(enough, 2):
            low, high = sorted(pair, key=value.__getitem__)
            pairs.append((rate, low, high))
    asked = [(rate.name, rate.code, low, high) for rate, low, high in pairs]
    alone, at_once = (
        zip(*(judged.gaps(model, asked, count) for model in range(len(judged.models))), strict=True)
        for count in (1, len(pairs))
    )
    gaps = [Gap(*pair, list(one), list(all_)) for pair, one, all_ in zip(pairs, alone, at_once, strict=True)]
    return sorted(gaps, key=lambda gap: -gap.models[0].value)


# ---- Whether a model is of any use


class Useless(NamedTuple):
    """Why a model may be of no use.

    Attributes
    ----------
    kind : {"one_label", "one_label_of_few", "useless", "use_unknown"}
    label : str
        The rarest label, or the only one that is predicted.
    found, people : int
        Those of that label, as given, who are predicted it, and how many there are.
    common : str
        The commonest label.
    share : float
        Its share: how often predicting it for everyone is right.
    accuracy : Score
    balanced, auc : Score or None
        On the labels as given. A guess has ``guess`` and .5.
    guess : float
    """

    kind: str
    label: str
    found: int
    people: int
    common: str
    share: float
    accuracy: Score
    balanced: Score | None
    auc: Score | None
    guess: float

    @property
    def surely(self) -> bool:
        """Whether the model is surely of no use."""
        return self.kind in ("one_label", "useless")


def label_shares(found: Evaluation, model: int) -> dict[str, float]:
    """Compute what share of the rows has each label, as far as right labels are known."""
    people = found.judged.models[model].table.sum(axis=(1, 2))
    return dict(zip(found.labels.classes, (people / people.sum()).tolist(), strict=True))


def uselessness(found: Evaluation, model: int) -> Useless | None:
    """Compare a model with predicting the commonest label for everyone, and with chance; None where it is of use.

    Where all rows that were measured on have one label, they tell no more than whether both are predicted.
    """
    there = found.cells.counts.sum(axis=1) > 0
    every, predicted, count = label_shares(found, model), found.predicted[model], len(found.cells)
    shares = {label: share for (label, share), known in zip(every.items(), there, strict=True) if known}
    common, rarest = max(shares, key=lambda one: shares[one]), min(shares, key=lambda one: shares[one])
    accuracy, guess = found.judged.models[model].accuracy, 1 / len(shares)
    balanced = found.of_everyone("balanced_accuracy", model)
    counts = found.judged.on_given_labels.models[model].table[found.labels.classes.index(rarest)].sum(axis=0)

    label, kind = rarest, "use_unknown"
    if len(predicted) == 1:
        few = wilson(0, count)[1] > POLICY.rare_label
        label, kind = next(iter(predicted)), "one_label_of_few" if few else "one_label"
    elif len(shares) < 2:
        return None
    elif balanced is not None and balanced.interval[1] < guess + POLICY.near_chance:
        kind = "useless"
    elif balanced is None or balanced.interval[0] > guess:
        if not found.likeliest or accuracy.interval[0] > shares[common]:
            return None
        # It is right no more often than the commonest label is: then it should at least find some of the rarest.
        hardly = wilson(predicted.get(rarest, 0), count)[1] < shares[rarest] / 2
        kind = "useless" if hardly or accuracy.interval[1] < shares[common] else kind
    hits, auc = counts[found.labels.classes.index(rarest)], found.of_everyone("auc", model)
    numbers = round(float(hits)), round(float(counts.sum())), common, shares[common], accuracy, balanced, auc
    return Useless(kind, label, *numbers, guess)


def is_useless(found: Evaluation, model: int) -> bool:
    """Return whether a model is surely of no use."""
    useless = uselessness(found, model)
    return useless is not None and useless.surely


# ---- How well labels are told apart


def _measure_quality(cells: Cells, outputs: Sequence[ModelOutput], labels: Labels) -> list[Quality]:
    """Measure models in every group of ``cells``, and over everyone, with 95 % intervals."""
    parts = [*(cells.group_codes == group for group in range(cells.shape[1])), np.ones(len(cells), bool)]
    measures = []
    for code, label in enumerate(labels.classes):
        two = len(labels.classes) == 2
        if two and label != labels.positive:  # what is told of the positive one tells this one too
            continue
        positive = cells.label_codes == code
        told = [
            [_tell(positive[part], one.codes[part] == code, one.chances[part, code]) for part in parts]
            for one in outputs
        ]
        for name, (title, meaning) in QUALITIES.items():
            values = [[numbers[name] for numbers in model] for model in told]
            title = title if two else f"{title} of {label}"
            measures.append(Quality(name, title, meaning.format(label=label), label, values))
    balanced = [[_balance(cells.label_codes[part], one.codes[part]) for part in parts] for one in outputs]
    meaning = "the mean, over the labels, of the share of those so labelled that are predicted so"
    return [*measures, Quality("balanced_accuracy", "balanced accuracy", meaning, "", balanced)]


def _tell(positive: Flags, predicted: Flags, scores: Floats) -> dict[str, Score | None]:
    """Measure how well a label is told from the others among some rows."""
    hits, count = int((positive & predicted).sum()), int(positive.sum())
    found: dict[str, Score | None] = dict.fromkeys(QUALITIES)
    for name, total in (("precision", int(predicted.sum())), ("recall", count)):
        found[name] = Score(hits / total, wilson(hits, total)) if total else None
    if 0 < count < len(positive):
        fewest = min(count, len(positive) - count)
        found["auc"] = _logit_score(*_auc(positive, scores), fewest)
        # Shares that are 1 together may add up to a little more, or less.
        precision = round(float(average_precision_score(positive, scores)), 12)
        # As of a share of those with the label (Boyd, Eng and Page 2013).
        deviation = math.sqrt(precision * (1 - precision) / count)
        found["average_precision"] = _logit_score(precision, deviation, fewest)
    return found


def _auc(positive: Flags, scores: Floats) -> Bounds:
    """Compute the AUC and its standard deviation (DeLong, by ranks as Sun and Xu 2014)."""
    ranks = rankdata(scores)
    counts = [int((~positive).sum()), int(positive.sum())]
    # How many of the other label each sample stands above, as a share.
    above = [
        (ranks[positive == one] - rankdata(scores[positive == one])) / counts[not one]
        for one in (False, True)
    ]
    spread = [side.var(ddof=1) / len(side) if len(side) > 1 else math.inf for side in above]
    return float(above[1].mean()), math.sqrt(sum(spread))


def _logit_score(value: float, deviation: float, fewest: int) -> Score:
    """Give a value in [0, 1] an interval on the scale of logits.

    At 0 and 1 the deviation says nothing; then the interval is that of a share of the rarer label.
    """
    if not 0 < value < 1:
        return Score(value, wilson(round(value * fewest), fewest))
    middle, half = math.log(value / (1 - value)), NORMAL * deviation / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-np.clip(middle + side * half, -50, 50))) for side in (-1, 1))
    return Score(value, (low, high))


def _balance(codes: Codes, predicted: Codes) -> Score | None:
    """Average the recalls of the labels that there are."""
    right = predicted == codes
    shares = [(float(right[codes == one].sum()), float((codes == one).sum())) for one in set(codes)]
    if len(shares) < 2:
        return None
    return Score(sum(hits / total for hits, total in shares) / len(shares), average_of_shares(shares))


# ---- Probabilities


class _CalibrationBin(NamedTuple):
    """People with about the same probability: its mean, and the share of them that has the label."""

    predicted: float
    observed: Share


@dataclass(frozen=True)
class Calibration:
    """The probabilities of one model in one group.

    Attributes
    ----------
    model : {"plain", "fair"}
    group : str or None
    label : str or None
        What the probabilities are of; None for the predicted label, where no label of many is named.
    bins : list of _CalibrationBin
        From low to high probabilities; those of fewer than ten people of the group are left out.
    predicted : float
        The mean probability.
    observed : Share
        Those of the group that have the label.
    """

    model: str
    group: str | None
    label: str | None
    bins: list[_CalibrationBin]
    predicted: float
    observed: Share

    @property
    def error(self) -> Score:
        """How far the share that has the label lies above the mean probability, with its 95 % interval."""
        return Score(self.observed.value, self.observed.interval).less(self.predicted)


def _calibrate_models(cells: Cells, outputs: dict[str, ModelOutput], labels: Labels) -> list[Calibration]:
    """Compare the probabilities of each model with what was found, in every group of ``cells``."""
    calibrations = []
    for name, model in outputs.items():
        if not len(model.chances):
            continue
        if labels.positive is None:  # many labels, and none of them named
            scores, hits = model.chances.max(axis=1), model.chances.argmax(axis=1) == cells.label_codes
        else:
            place = labels.positive_code
            scores, hits = model.chances[:, place], cells.label_codes == place
        calibrations += calibrate_scores(name, cells, scores, hits, labels.positive)
    return calibrations


def calibrate_scores(
    model: str, cells: Cells, scores: Floats, hits: Flags, label: str | None
) -> list[Calibration]:
    """Compare the scores of one model with what was found (``hits``), in every group of ``cells``.

    Everybody's scores are cut into ten parts of equally many people, the same for all groups; into fewer where a group
    is small.
    """
    people = np.bincount(cells.group_codes, minlength=cells.shape[1])[: cells.named_groups]
    parts = int(np.clip(people.min(initial=len(cells)) // (2 * POLICY.fewest), 2, BINS))
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    places = np.searchsorted(edges, scores, side="right")

    def describe(rows: Values) -> _CalibrationBin:
        return _CalibrationBin(float(scores[rows].mean()), Share(int(hits[rows].sum()), len(rows)))

    groups_calibrated = []
    for code, group in enumerate(cells.groups):
        inside = np.flatnonzero(cells.group_codes == code)
        if len(inside):
            bins = [inside[places[inside] == place] for place in np.unique(places[inside])]
            told = [describe(rows) for rows in bins if len(rows) >= POLICY.fewest]
            groups_calibrated.append(Calibration(model, group, label, told, *describe(inside)))
    return groups_calibrated


# ---- Which of two models to use

Chosen = Literal["use-fair", "keep-plain", "your-call", "cannot-tell"]
Why = Literal[
    "fairer",  # and as accurate, within the price
    "more accurate",  # and no less fair
    "no harm",  # it may be much fairer, is surely not noticeably less fair, and is as accurate
    "trade",  # fairer, and it may cost more than the price
    "other trade",  # more accurate, and perhaps less fair
    "useless",  # it tells nobody apart
    "neither",  # does the plain one
    "worse",  # less accurate or less fair, and better in nothing
    "alike",  # no difference that matters
    "fair enough",  # the plain model has hardly a gap to narrow
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which of two models to use, and why.

    Attributes
    ----------
    outcome : {"use-fair", "keep-plain", "your-call", "cannot-tell"}
    why : str
    stored : {"plain", "fair"}
        The model that is stored: the plain one, unless the fair one is to be used, or a named tolerance made the call.
    change : dict of Score
        Accuracy and disparity of the fair model less those of the plain one.
    price : float
        The accuracy that fairness may cost.
    needed : Needed
        How many rows, or checked labels, in all would tell; of neither where they would not, or where it is told.
    """

    outcome: Chosen
    why: Why
    stored: str
    change: dict[str, Score]
    price: float
    needed: Needed = NOTHING


def choose_model(evaluation: Evaluation, asked: TableSettings) -> Choice:
    """Choose between the models of a run; the stored model follows from it."""
    change = evaluation.judged.change()
    price = max(POLICY.accuracy_price, asked.max_accuracy_loss or 0.0)
    outcome, why = _decide(evaluation, change, price)
    named = asked.tolerance is not None or asked.max_accuracy_loss is not None
    if named and why in ("alike", "fair enough"):  # either will do, and the user has said which
        outcome = "your-call"
    follows = outcome == "your-call" or (outcome == "cannot-tell" and not _loses(change))
    stored = "fair" if outcome == "use-fair" or (named and follows) else "plain"
    choice = Choice(outcome=outcome, why=why, stored=stored, change=change, price=price)
    if outcome != "cannot-tell" or not evaluation.gaps:
        return choice
    needed, estimate = evaluation.judged.to_tell(_small(evaluation)), evaluation.judged.estimate
    if needed.rows is not None and needed.rows > POLICY.most_rows:
        needed = NOTHING
    if needed.checks is not None and estimate is not None and needed.checks <= len(estimate.checked):
        needed = needed._replace(checks=None)  # there are as many already, and they did not tell
    return replace(choice, needed=needed)


def _decide(evaluation: Evaluation, change: dict[str, Score], price: float) -> tuple[Chosen, Why]:
    """Say which model is better, where the intervals do."""
    accuracy, disparity = change["accuracy"].interval, change["disparity"].interval
    fairer = evaluation.judged.more_alike()
    small = _small(evaluation)
    if is_useless(evaluation, 1):
        return "keep-plain", "neither" if is_useless(evaluation, 0) else "useless"
    if not evaluation.gaps:  # no two groups have enough people to be compared
        return "cannot-tell", "unknown"
    if evaluation.judged.are_same(0, 1):  # so they are, whosever label is wrong
        return "keep-plain", "alike"
    if fairer == "holds":
        kept = evaluation.judged.keeps_accuracy(price)
        return ("use-fair", "fairer") if kept == "holds" else ("your-call", "trade")
    if accuracy[0] > 0:
        if disparity[1] <= small:
            return "use-fair", "more accurate"
        if disparity[0] > 0 or accuracy[0] > price:  # perhaps less fair, and surely worth more than the price
            return "your-call", "other trade"
        return "cannot-tell", "unknown"
    if disparity[0] > 0 or (accuracy[1] < 0 and disparity[0] > -small):
        return "keep-plain", "worse"
    if -small <= disparity[0] and disparity[1] <= small:
        return "keep-plain", "alike"
    if evaluation.judged.models[0].disparity.interval[1] < POLICY.acceptable_gap:
        return "keep-plain", "fair enough"
    if change["disparity"].value < 0 and disparity[1] <= POLICY.harmless and accuracy[0] >= -price:
        return "use-fair", "no harm"
    return "cannot-tell", "unknown"


def _small(evaluation: Evaluation) -> float:
    """Return the change of the disparity that few would act on."""
    return max(POLICY.small_change, evaluation.judged.models[0].disparity.value / 5)


def _loses(change: dict[str, Score]) -> bool:
    """Return whether a fair model is measured to gain nothing and to lose something: never kept, whatever is named."""
    accuracy, disparity = change["accuracy"].value, change["disparity"].value
    return accuracy <= 0 <= disparity and accuracy != disparity
