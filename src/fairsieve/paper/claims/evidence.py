"""Ways to check a claim against records; :mod:`~fairsieve.paper.claims.claims` has the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairsieve.paper.claims.pairwise import Duel, Outcome, all_of, most_of, tell
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.published import Column
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import (
    WEIGHTS,
    compas_rate_trials,
    noise_rate_trials,
    plain_compas,
    trade_off_trials,
)
from fairsieve.paper.reproduce.trials import Trial
from fairsieve.paper.reproduce.wording import FLIPS, column_title, number
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = [
    "FAIR_AND_ROBUST",
    "SIMILAR",
    "Claim",
    "by_duels",
    "fairer_at_equal_accuracy",
    "growing_gain",
    "highest_loss",
    "ranks_claim",
    "rate_duels",
    "reversed_duels",
    "smallest_set",
    "tell_rates",
    "wider_spread",
]

SIMILAR = 0.025  # the paper calls accuracies of .761 and .782 similar (Adult)
CLOSE = 0.01  # how much less accurate a point of a curve may be, and still be compared
FAIR_AND_ROBUST = ("itlm-fairbatch", "itlm-penalty", "fr-train")

Answer = tuple[Outcome, str]


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, the trials that tell, and how."""

    text: str
    source: str
    trials: tuple[Trial, ...]
    check: Callable[[Results], Answer]

    def is_told_by(self, results: Results) -> bool:
        """Whether all runs are there."""
        return all(results.has(trial) for trial in self.trials)


def by_duels(
    text: str,
    source: str,
    *rounds: Sequence[Duel],
    rule: Callable[[Sequence[Outcome]], Outcome] = all_of,
    telling: Callable[[Results, Sequence[Duel]], str] = tell,
) -> Claim:
    """A claim that one method does better than others."""
    duels = [duel for each in rounds for duel in each]
    trials = dict.fromkeys(trial for duel in duels for trial in (duel.one, duel.other))

    def check(results: Results) -> Answer:
        outcomes = [duel.outcome(results) for duel in duels]
        counts = (
            f"Of {len(outcomes)} comparisons {outcomes.count(True)} speak for it, {outcomes.count(False)} against it, "
            f"and {outcomes.count(None)} cannot tell"
        )
        return rule(outcomes), f"{counts}. {telling(results, duels)}"

    return Claim(text, source, tuple(trials), check)


def ranks_claim(text: str, source: str, columns: Sequence[Column]) -> Claim:
    """Ours is best or second best of the fair and robust methods, in most columns."""
    methods = ("fairsieve", *FAIR_AND_ROBUST)
    trials = [Trial(m, column.data, column.noise, column.fairness) for column in columns for m in methods]

    def check(results: Results) -> Answer:
        outcomes, told = [], []
        for column in columns:
            for measure in ("accuracy", column.fairness):
                means = {
                    m: results.values(Trial(m, column.data, column.noise, column.fairness), measure).mean()
                    for m in methods
                }
                order = sorted(means, key=means.__getitem__, reverse=measure == "accuracy")
                place = order.index("fairsieve") + 1
                outcomes.append(place <= 2)
                told.append(
                    f"{column_title(column)}, {'accuracy' if measure == 'accuracy' else 'disparity'}: {place}"
                )
        evidence = f"Best or second best in {sum(outcomes)} of {len(outcomes)}. Its places of four: {'; '.join(told)}."
        single = len(results.scope.seeds_of(trials[0])) < 2
        return None if single else most_of(outcomes), evidence

    return Claim(text, source, tuple(trials), check)


def smallest_set(results: Results) -> Answer:
    """Fig. 1a."""
    records = results.runs(plain_compas())
    history = records[0]["history"]
    counts = np.array(history["counts"])
    label, group = np.unravel_index(counts.argmin(), counts.shape)
    name = f"y = {history['classes'][label]}, {history['groups'][group]}"
    evidence = (
        f"The smallest set is ({name}) with {int(counts.min())} of {int(counts.sum())} training samples."
    )
    return (history["classes"][label], history["groups"][group]) == ("1", "Female"), evidence


def highest_loss(results: Results) -> Answer:
    """Fig. 1b."""
    records = results.runs(plain_compas())
    history = records[0]["history"]
    row, column = history["classes"].index("1"), history["groups"].index("Female")
    losses = np.stack([record["history"]["cell_losses"] for record in records])  # (splits, epochs, 2, 2)
    highest = losses[:, :, row, column] >= losses.max(axis=(2, 3))
    always = highest.all(axis=0)
    since = len(always) - int(np.argmin(always[::-1])) if not always.all() else 0  # from then on, everywhere
    last = losses[:, -1].mean(axis=0)
    told = ", ".join(
        f"(y = {label}, {group}) {number(last[i, j])}"
        for i, label in enumerate(history["classes"])
        for j, group in enumerate(history["groups"])
    )
    evidence = (
        f"Highest in {highest.mean():.1%} of all epochs, and in every split from epoch {since} of {len(always)} on. "
        f"Random first weights decide the first epochs. At the end: {told}."
    )
    return bool(highest.all()), evidence


def growing_gain(results: Results) -> Answer:
    """Fig. 2a: ITLM's gain in accuracy over LR grows with the noise rate."""
    plain, cleaned = compas_rate_trials("lr"), compas_rate_trials("itlm")
    gains = [
        results.values(itlm, "accuracy") - results.values(lr, "accuracy")
        for lr, itlm in zip(plain, cleaned, strict=True)
    ]
    rates = [trial.rate for trial in plain]
    means = [float(gain.mean()) for gain in gains]
    told = ", ".join(f"{rate:.0%}: {number(mean)}" for rate, mean in zip(rates, means, strict=True))
    rising = all(b >= a for a, b in pairwise(means))
    holds: Outcome = rising and means[-1] > 0
    return (None if len(gains[0]) < 2 else holds), f"ITLM's accuracy less LR's, by noise rate: {told}."


def fairer_at_equal_accuracy(results: Results) -> Answer:
    """Fig. 5: wherever FR-Train stands, ours reaches at least its accuracy with less disparity."""
    outcomes: list[Outcome] = []
    told = []
    for noise in ("label", "group-targeted"):
        scores = {
            method: [
                (results.values(t, "equalized_odds").mean(), results.values(t, "accuracy").mean())
                for t in trade_off_trials(method, noise)
            ]
            for method in WEIGHTS
        }
        beaten = [
            any(x < apart and y >= right - CLOSE for x, y in scores["fairsieve"])
            for apart, right in scores["fr-train"]
        ]
        outcomes += beaten
        told.append(f"{FLIPS[noise]}: {sum(beaten)} of {len(beaten)}")
    evidence = (
        f"Points of FR-Train's curve for which ours has a fairer one whose accuracy is at most {number(CLOSE)} "
        f"lower: {'; '.join(told)}."
    )
    return (None if results.scope.quick else most_of(outcomes)), evidence


def wider_spread(results: Results) -> Answer:
    """Fig. 5: FR-Train's disparity varies more from draw to draw, and along its curve."""
    spread = {
        method: float(
            np.mean(
                [
                    results.values(trial, "equalized_odds").std()
                    for noise in ("label", "group-targeted")
                    for trial in trade_off_trials(method, noise)
                ]
            )
        )
        for method in WEIGHTS
    }
    told = ", ".join(f"{METHODS[m].short} {number(value)}" for m, value in spread.items())
    holds: Outcome = spread["fr-train"] > spread["fairsieve"]
    if results.scope.quick or results.scope.seeds < 2 or max(spread.values()) < 1.25 * min(spread.values()):
        holds = None  # deviations of a few runs vary by that much themselves
    return holds, f"Mean deviation of EO disparity over draws, along the curves: {told}."


def rate_duels(rivals: Sequence[str], fairness: str, measure: str) -> list[Duel]:
    """Ours against others at every noise rate of Figs. 3 and 6."""
    ours = noise_rate_trials("fairsieve", fairness)
    return [
        Duel(one, other, measure)
        for rival in rivals
        for one, other in zip(ours, noise_rate_trials(rival, fairness), strict=True)
    ]


def reversed_duels(duels: Sequence[Duel]) -> list[Duel]:
    """The claim that the other does better."""
    return [Duel(duel.other, duel.one, duel.measure, duel.slack) for duel in duels]


def tell_rates(results: Results, duels: Sequence[Duel]) -> str:
    """Duels at several noise rates, summed up for each rival and measure."""
    grouped: dict[tuple[str, str, str], list[Duel]] = {}
    for duel in duels:
        grouped.setdefault((duel.one.method, duel.other.method, duel.measure), []).append(duel)
    sentences = []
    for (one, other, measure), same in grouped.items():
        gains = [float(duel.gains(results).mean()) for duel in same]
        ahead = sum(gain > 0 for gain in gains)
        what = "accuracy" if measure == "accuracy" else f"{ABBREVIATIONS[measure]} disparity"
        sentences.append(
            f"{what}, {METHODS[one].short} against {METHODS[other].short}: better at {ahead} of {len(gains)} rates, by "
            f"{number(min(gains))} to {number(max(gains))}."
        )
    return " ".join(sentences)
