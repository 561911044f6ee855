"""Ways to check a claim against records; :mod:`~fairsieve.paper.claims.claims` has the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairsieve.paper.claims.pairwise import Outcome, Pairing, most_speak_for, none_speaks_against, tell
from fairsieve.paper.methods.registry import METHODS
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
from fairsieve.paper.reproduce.titles import FLIPS, column_title, number
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = [
    "FAIR_AND_ROBUST",
    "SIMILAR",
    "Claim",
    "claim_by_pairings",
    "describe_rates",
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
FAIR_AND_ROBUST = ("itlm-fairbatch", "itlm-penalty", "fr-train")

Answer = tuple[Outcome, str]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, its source, the experiments it needs, and the function that checks it."""

    text: str
    source: str
    experiments: tuple[Experiment, ...]
    check: Callable[[Results], Answer]

    def can_be_checked(self, results: Results) -> bool:
        """Return whether all runs of the claim are there."""
        return all(results.has(experiment) for experiment in self.experiments)


def claim_by_pairings(
    text: str,
    source: str,
    *rounds: Sequence[Pairing],
    rule: Callable[[Sequence[Outcome]], Outcome] = none_speaks_against,
    describe: Callable[[Results, Sequence[Pairing]], str] = tell,
) -> Claim:
    """Make a claim that one method does better than others."""
    pairings = [pairing for each in rounds for pairing in each]
    experiments = dict.fromkeys(
        experiment for pairing in pairings for experiment in (pairing.one, pairing.other)
    )

    def check(results: Results) -> Answer:
        outcomes = [pairing.outcome(results) for pairing in pairings]
        counts = (
            f"Of {len(outcomes)} comparisons {outcomes.count(True)} speak for it, {outcomes.count(False)} against it, "
            f"and {outcomes.count(None)} are inconclusive"
        )
        return rule(outcomes), f"{counts}. {describe(results, pairings)}"

    return Claim(text, source, tuple(experiments), check)


def ranks_claim(text: str, source: str, columns: Sequence[PaperColumn]) -> Claim:
    """Make a claim that ours is best or second best of the fair and robust methods, in most columns."""
    methods = ("fairsieve", *FAIR_AND_ROBUST)
    experiments = [
        Experiment(m, column.data, column.noise, column.fairness) for column in columns for m in methods
    ]

    def check(results: Results) -> Answer:
        outcomes, told = [], []
        for column in columns:
            for measure in ("accuracy", column.fairness):
                means = {
                    m: results.values(
                        Experiment(m, column.data, column.noise, column.fairness), measure
                    ).mean()
                    for m in methods
                }
                order = sorted(means, key=means.__getitem__, reverse=measure == "accuracy")
                place = order.index("fairsieve") + 1
                outcomes.append(place <= 2)
                told.append(
                    f"{column_title(column)}, {'accuracy' if measure == 'accuracy' else 'disparity'}: {place}"
                )
        evidence = f"Best or second best in {sum(outcomes)} of {len(outcomes)}. Its places of four: {'; '.join(told)}."
        single = len(results.scope.seeds_for(experiments[0])) < 2
        return None if single else most_speak_for(outcomes), evidence

    return Claim(text, source, tuple(experiments), check)


def smallest_set(results: Results) -> Answer:
    """Check which set is the smallest (Fig. 1a)."""
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
    """Check which set has the highest loss in every epoch (Fig. 1b)."""
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
    """Check whether ITLM's gain in accuracy over LR grows with the noise rate (Fig. 2a)."""
    plain, cleaned = compas_rate_experiments("lr"), compas_rate_experiments("itlm")
    gains = [
        results.values(itlm, "accuracy") - results.values(lr, "accuracy")
        for lr, itlm in zip(plain, cleaned, strict=True)
    ]
    rates = [experiment.rate for experiment in plain]
    means = [float(gain.mean()) for gain in gains]
    told = ", ".join(f"{rate:.0%}: {number(mean)}" for rate, mean in zip(rates, means, strict=True))
    rising = all(b >= a for a, b in pairwise(means))
    holds: Outcome = rising and means[-1] > 0
    return (None if len(gains[0]) < 2 else holds), f"ITLM's accuracy less LR's, by noise rate: {told}."


def fairer_at_equal_accuracy(results: Results) -> Answer:
    """Check whether ours is fairer at each point of FR-Train's curve, at about its accuracy (Fig. 5)."""
    outcomes: list[Outcome] = []
    told = []
    for noise in ("label", "group-targeted"):
        scores = {
            method: [
                (results.values(t, "equalized_odds").mean(), results.values(t, "accuracy").mean())
                for t in trade_off_experiments(method, noise)
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
    return (None if results.scope.quick else most_speak_for(outcomes)), evidence


def wider_spread(results: Results) -> Answer:
    """Check whether FR-Train's disparity varies more from draw to draw (Fig. 5)."""
    spread = {
        method: float(
            np.mean(
                [
                    results.values(experiment, "equalized_odds").std()
                    for noise in ("label", "group-targeted")
                    for experiment in trade_off_experiments(method, noise)
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
    return [Pairing(pairing.other, pairing.one, pairing.measure, pairing.slack) for pairing in pairings]


def describe_rates(results: Results, pairings: Sequence[Pairing]) -> str:
    """Describe pairings at several noise rates, in a sentence for each rival and measure."""
    grouped: dict[tuple[str, str, str], list[Pairing]] = {}
    for pairing in pairings:
        grouped.setdefault((pairing.one.method, pairing.other.method, pairing.measure), []).append(pairing)
    sentences = []
    for (one, other, measure), same in grouped.items():
        gains = [float(pairing.gains(results).mean()) for pairing in same]
        ahead = sum(gain > 0 for gain in gains)
        what = "accuracy" if measure == "accuracy" else f"{ABBREVIATIONS[measure]} disparity"
        sentences.append(
            f"{what}, {METHODS[one].short} against {METHODS[other].short}: better at {ahead} of {len(gains)} rates, by "
            f"{number(min(gains))} to {number(max(gains))}."
        )
    return " ".join(sentences)
