"""Ways to check a claim against records; :mod:`~fairsieve.paper.claims.claims` has the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fairsieve.paper.claims.pairwise import (
    LEVEL,
    Gain,
    Outcome,
    Pairing,
    Word,
    holm,
    judge,
    most_speak_for,
    none_speaks_against,
    pool,
    read_gain,
)
from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.published import PaperColumn
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import (
    WEIGHTS,
    compas_rate_experiments,
    noise_rate_experiments,
    plain_compas,
    trade_off_experiments,
)
from fairsieve.paper.reproduce.titles import FLIPS, column_title, number, signed

__all__ = [
    "FAIR_AND_ROBUST",
    "OURS",
    "PUBLISHED",
    "SIMILAR",
    "Answer",
    "Claim",
    "claim_by_pairings",
    "fairer_at_equal_accuracy",
    "growing_gain",
    "highest_loss",
    "ranks_claim",
    "rate_pairings",
    "reversed_pairings",
    "smallest_set",
    "wider_spread",
]

SIMILAR = 0.025  # the paper calls accuracies of .761 and .782 similar (Adult)
CLOSE = 0.01  # how much less accurate a point of a curve may be, and still be compared
PUBLISHED, OURS = "fr-train-published", "fr-train"
FAIR_AND_ROBUST = ("itlm-fairbatch", "itlm-penalty", PUBLISHED)


@dataclass(frozen=True)
class Answer:
    """What the records say of a claim.

    Attributes
    ----------
    holds : bool or None
    summary : str
        What was found, in a sentence or two.
    gains : sequence of Gain
        The comparisons behind it.
    words : sequence of str
        What each of them says.
    """

    holds: Outcome
    summary: str
    gains: Sequence[Gain] = ()
    words: Sequence[Word] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, its source, the experiments it needs, and the function that checks it.

    ``other`` is the same claim about our FR-Train, where this one is about the published FR-Train.
    """

    text: str
    source: str
    experiments: tuple[Experiment, ...]
    check: Callable[[Results], Answer]
    other: Claim | None = field(default=None)

    def can_be_checked(self, results: Results) -> bool:
        """Return whether there are enough runs of every experiment to compare; a part of them is enough."""
        return all(
            len(results.runs(experiment)) >= min(2, len(results.scope.seeds_for(experiment)))
            for experiment in self.experiments
        )

    @property
    def is_synthetic(self) -> bool:
        """Whether the claim is about the synthetic data alone, and so can be checked on the authors' arrays."""
        return all(experiment.data == "synthetic" for experiment in self.experiments)


def claim_by_pairings(
    text: str,
    source: str,
    *rounds: Sequence[Pairing],
    rule: Callable[[Sequence[Word], Sequence[Word]], Outcome] = none_speaks_against,
) -> Claim:
    """Make a claim that one method does better than others."""
    pairings = [pairing for each in rounds for pairing in each]
    experiments = tuple(dict.fromkeys(each for pairing in pairings for each in pairing.experiments))

    def check(results: Results) -> Answer:
        gains = [read_gain(pairing, results) for pairing in pairings]
        words = judge(gains)
        parts = [
            [gain for gain in gains if (gain.pairing.measure == "accuracy") == is_accuracy]
            for is_accuracy in (True, False)
        ]
        pooled = [pool(part, results) for part in parts if part]
        holds = rule(words, judge(pooled))
        told = f"{_count_words(gains, words, pooled, holds)}; {_tell_pairs(gains, results)}"
        return Answer(holds, told, gains, words)

    other = None
    if any(experiment.method == PUBLISHED for experiment in experiments):
        changed = [pairing.with_methods({PUBLISHED: OURS}) for pairing in pairings]
        other = claim_by_pairings(text, source, changed, rule=rule)
    return Claim(text, source, experiments, check, other)


def _count_words(gains: Sequence[Gain], words: Sequence[Word], pooled: Sequence[Gain], holds: Outcome) -> str:
    """Say what is found on the whole, how many comparisons speak for it, and what would decide an open claim."""
    slack = any(gain.pairing.slack for gain in gains)
    counts = [_tell_pooled(gain) for gain in pooled]
    counts.append(f"{words.count('better')} of {len(words)} comparisons speak for it")
    if words.count("worse"):
        counts.append(f"{words.count('worse')} against it")
    if words.count("alike"):
        counts.append(f"in {words.count('alike')} the gain is below .01")
    if words.count("open"):
        counts.append(f"{words.count('open')} open")
    told = ", ".join(counts)
    low = [
        gain
        for gain, word in zip(gains, words, strict=True)
        if gain.pairing.measure == "accuracy"
        and word in ("better", "worse")
        and max(gain.one, gain.other) < 0.5
    ]
    if low and not slack:
        told += f"; in {len(low)} of them both are below .5, worse than a coin"
    if holds is None:
        needed = [gain.needed(LEVEL / len(pooled)) for gain in pooled if gain.p >= LEVEL / len(pooled)]
        known = [count for count in needed if count is not None]
        if known:
            told += f"; about {max(known):,} draws or splits would decide, were the differences these"
    return told


def _tell_pairs(gains: Sequence[Gain], results: Results) -> str:
    """Tell how many draws, splits or trainings the comparisons have: with FR-Train, which is slow, there are fewer."""
    counts = sorted({gain.n for gain in gains if gain.n})
    if not counts:
        return "no pairs"
    drawn = [gain.pairing.one.data == "synthetic" for gain in gains]
    noun = "draw" if all(drawn) else "draw or split" if any(drawn) else "split"
    noun = noun if results.scope.arrays is None else "training"
    many = noun.replace(" or ", "s or ") + "s"
    if counts == [1]:
        return f"1 {noun}"
    return f"{counts[0]} {many}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} {many}"


def _tell_pooled(gain: Gain) -> str:
    """Tell the mean gain of all comparisons by one measure, with its interval."""
    what = {"accuracy": "accuracy", "cpu_seconds": "seconds"}.get(gain.pairing.measure, "disparity")
    if gain.n < 2:
        return f"{what}: {signed(gain.mean)} better on the whole, from one run"
    return f"{what}: {signed(gain.mean)} better on the whole [{signed(gain.low)}, {signed(gain.high)}]"


def ranks_claim(text: str, source: str, columns: Sequence[PaperColumn], rival: str = PUBLISHED) -> Claim:
    """Make a claim that ours is best or second best of the fair and robust methods, in most columns.

    In a column that is so where at most one of the three others is better (tests corrected for their number); it is not
    where two are; where ours is third by its mean but the tests cannot tell, it is open.
    """
    rivals = tuple(rival if name == PUBLISHED else name for name in FAIR_AND_ROBUST)
    pairings = [
        pairing
        for column in columns
        for measure in ("accuracy", "disparity")
        for pairing in (make for make in _column_pairings(rivals, column, measure))
    ]
    experiments = tuple(dict.fromkeys(each for pairing in pairings for each in pairing.experiments))

    def check(results: Results) -> Answer:
        gains = [read_gain(pairing, results) for pairing in pairings]
        words, places, told = judge(gains), [], []
        for first in range(0, len(gains), len(rivals)):
            mine, said = gains[first : first + len(rivals)], words[first : first + len(rivals)]
            ahead = sum(gain.mean < 0 for gain in mine)
            single = any(gain.n < 2 for gain in mine)
            lost = said.count("worse") > 1
            places.append("open" if single else "worse" if lost else "better" if ahead <= 1 else "open")
            column = columns[first // (2 * len(rivals))]
            what = "disparity" if first // len(rivals) % 2 else "accuracy"
            told.append(f"{column_title(column)}, {what}: {ahead + 1}")
        holds = most_speak_for(places)  # type: ignore[arg-type]
        summary = (
            f"best or second best in {places.count('better')} of {len(places)}, not in {places.count('worse')}; its "
            f"places of four by the means: {'; '.join(told)}"
        )
        return Answer(holds, summary, gains, words)

    other = ranks_claim(text, source, columns, OURS) if rival == PUBLISHED else None
    return Claim(text, source, experiments, check, other)


def _column_pairings(rivals: Sequence[str], column: PaperColumn, measure: str) -> list[Pairing]:
    named = column.fairness if measure == "disparity" else measure
    return [
        Pairing(
            Experiment("fairsieve", column.data, column.noise, column.fairness),
            Experiment(rival, column.data, column.noise, column.fairness),
            named,
        )
        for rival in rivals
    ]


def smallest_set(results: Results) -> Answer:
    """Check which set is the smallest (Fig. 1a)."""
    history = results.runs(plain_compas())[0]["history"]
    counts = np.array(history["counts"])
    label, group = np.unravel_index(counts.argmin(), counts.shape)
    name = f"y = {history['classes'][label]}, {history['groups'][group]}"
    summary = f"the smallest set is ({name}) with {int(counts.min())} of {int(counts.sum())} training samples"
    return Answer((history["classes"][label], history["groups"][group]) == ("1", "Female"), summary)


def highest_loss(results: Results) -> Answer:
    """Check which set has the highest loss in every epoch (Fig. 1b)."""
    records = results.runs(plain_compas())
    history = records[0]["history"]
    row, column = history["classes"].index("1"), history["groups"].index("Female")
    epochs = min(len(record["history"]["cell_losses"]) for record in records)
    losses = np.stack(
        [record["history"]["cell_losses"][:epochs] for record in records]
    )  # (splits, epochs, 2, 2)
    highest = losses[:, :, row, column] >= losses.max(axis=(2, 3))
    always = highest.all(axis=0)
    since = len(always) - int(np.argmin(always[::-1])) if not always.all() else 0  # from then on, everywhere
    summary = (
        f"highest in {highest.mean():.1%} of all epochs, and in every split from epoch {since} of {len(always)} on; "
        "random first weights decide the first epochs"
    )
    return Answer(bool(highest.all()), summary)


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def growing_gain(results: Results) -> Answer:
    """Check whether ITLM's gain in accuracy over LR grows with the noise rate (Fig. 2a).

    It does where the slope over rates is above 0 and no rate has a gain below that of the rate before; tests over
    splits, corrected for their number.
    """
    plain, cleaned = compas_rate_experiments("lr"), compas_rate_experiments("itlm")
    gains = np.stack(
        [
            results.values(itlm, "accuracy") - results.values(lr, "accuracy")
            for lr, itlm in zip(plain, cleaned, strict=True)
        ]
    )
    gains = gains[:, ~np.isnan(gains).any(axis=0)]
    rates = np.array([experiment.rate for experiment in plain])
    splits = gains.shape[1]
    told = ", ".join(
        f"{rate:.0%}: {number(float(row.mean()))} ± {number(_standard_error(row))}"
        for rate, row in zip(rates, gains, strict=True)
    )
    summary = f"ITLM's accuracy less LR's, by noise rate (± standard error): {told}"
    if splits < 2:
        return Answer(None, summary)
    slopes = ((rates - rates.mean()) @ gains) / ((rates - rates.mean()) ** 2).sum()
    tests = [slopes, *(after - before for before, after in pairwise(gains))]
    corrected = holm([float(stats.ttest_1samp(each, 0).pvalue) for each in tests])
    falls = [p < LEVEL and each.mean() < 0 for each, p in zip(tests, corrected, strict=True)]
    summary += f"; slope {slopes.mean():+.2f} per unit of the rate, p = {corrected[0]:.2g}"
    if any(falls):
        where = [f"{rates[k - 1]:.0%} to {rates[k]:.0%}" for k in range(1, len(tests)) if falls[k]]
        summary += f"; it falls from {', from '.join(where)}" if where else ""
        return Answer(False, summary)
    return Answer(True if corrected[0] < LEVEL else None, summary)


def fairer_at_equal_accuracy(rival: str) -> Callable[[Results], Answer]:
    """Make the check whether ours is fairer at each point of FR-Train's curve, at about its accuracy (Fig. 5).

    A point counts for it where a point of ours is at most .01 less accurate and fairer (tests corrected for their
    number), against it where none of those points is fairer even by its mean.
    """

    def check(results: Results) -> Answer:
        gains, found, told = [], [], []
        for noise in ("label", "group-targeted"):
            mine = trade_off_experiments("fairsieve", noise)
            for theirs in trade_off_experiments(rival, noise):
                close = [
                    one for one in mine if read_gain(Pairing(one, theirs, "accuracy"), results).mean >= -CLOSE
                ]
                gains.append([read_gain(Pairing(one, theirs, "equalized_odds"), results) for one in close])
        flat = [gain for row in gains for gain in row]
        words, place = judge(flat) if flat else [], 0
        for row in gains:
            said = words[place : place + len(row)]
            place += len(row)
            ahead = any(gain.mean > 0 for gain in row)
            found.append("better" if "better" in said else "open" if ahead else "worse")
        half = len(found) // 2
        for noise, part in (("label", found[:half]), ("group-targeted", found[half:])):
            told.append(f"{FLIPS[noise]} {part.count('better')} of {len(part)}")
        summary = (
            f"points of FR-Train's curve for which ours has a fairer one, at most {number(CLOSE)} less accurate: "
            f"{'; '.join(told)} ({found.count('open')} open)"
        )
        if most_speak_for(found) is None:  # type: ignore[arg-type]
            summary += "; more draws along FR-Train's curve would decide"
        single = any(gain.n < 2 for gain in flat) or not flat
        return Answer(None if single else most_speak_for(found), summary)  # type: ignore[arg-type]

    return check


def wider_spread(rival: str) -> Callable[[Results], Answer]:
    """Make the check whether FR-Train's disparity varies more from run to run (Fig. 5).

    By the test of Brown and Forsythe: the distances from a point's median, of all points together.
    """

    def check(results: Results) -> Answer:
        spread = {}
        for method in ("fairsieve", rival):
            rows = [
                results.values(experiment, "equalized_odds")
                for noise in ("label", "group-targeted")
                for experiment in trade_off_experiments(method, noise)
            ]
            spread[method] = np.concatenate([np.abs(row - np.nanmedian(row)) for row in rows])
        wider, ours = spread[rival], spread["fairsieve"]
        wider, ours = wider[~np.isnan(wider)], ours[~np.isnan(ours)]
        summary = (
            f"mean distance of EO disparity from a point's median: FR-Train {number(float(wider.mean()))}, ours "
            f"{number(float(ours.mean()))}"
        )
        if results.scope.quick or len(wider) < 2 * len(WEIGHTS[rival][1]) + 1:
            return Answer(None, summary)
        p = float(stats.ttest_ind(wider, ours, equal_var=False).pvalue)
        holds = None if not p < LEVEL else bool(wider.mean() > ours.mean())
        return Answer(holds, f"{summary}; p = {p:.2g}")

    return check


def rate_pairings(rivals: Sequence[str], fairness: str, measure: str) -> list[Pairing]:
    """Pair ours with others at every noise rate of Figs. 3 and 6."""
    ours = noise_rate_experiments("fairsieve", fairness)
    return [
        Pairing(one, other, measure)
        for rival in rivals
        for one, other in zip(ours, noise_rate_experiments(rival, fairness), strict=True)
    ]


def reversed_pairings(pairings: Sequence[Pairing]) -> list[Pairing]:
    """Turn the pairings around: the other method is claimed to do better."""
    return [replace(pairing, one=pairing.other, other=pairing.one) for pairing in pairings]
