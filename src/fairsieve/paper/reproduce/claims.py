"""The paper's claims, read from ``claims.toml`` beside this file, and the verdicts on them.

The rules are written in docs/reproduction/rules.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce import experiments as sets
from fairsieve.paper.reproduce.experiments import OURS, Experiment, column_experiment
from fairsieve.paper.reproduce.published import PaperColumn, paper_tables
from fairsieve.paper.reproduce.results import Protocols, Results
from fairsieve.paper.reproduce.statistics import (
    LEVEL,
    MARGIN,
    MUCH,
    Gain,
    Pairing,
    Word,
    holm,
    judge,
    pool,
    read_gain,
)
from fairsieve.report.text import number

__all__ = ["Answer", "Claim", "Judgement", "claims", "judgements", "signed", "verdict_word"]

BEYOND = {"": 0.0, "much": MUCH, "margin": -MARGIN, "same": -MARGIN}
RANK_RIVALS = ("itlm-fairbatch", "itlm-penalty", "fr-train")
VALIDATION = ("clean", "cleaned", "noisy")
Outcome = bool | None | str  # holds, does not, inconclusive; "not comparable"


@dataclass(frozen=True)
class Answer:
    """What the records say of a claim: the outcome, its p-value, what was found, and the comparisons behind it."""

    holds: Outcome
    p: float | None
    summary: str
    gains: Sequence[Gain] = ()
    words: Sequence[Word] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, as ``claims.toml`` has it."""

    id: str
    where: str
    text: str
    one: str = OURS
    ones: Sequence[str] = ()
    others: Sequence[str] = ()
    measures: Sequence[str] = ()
    columns: Sequence[str] = ()
    rates: str = ""
    compas_rates: str = ""
    beyond: str = ""
    usually: bool = False
    every: bool = False
    check: str = "compare"

    def answer(self, results: Results) -> Answer | None:
        """Judge the claim; None where runs are missing."""
        needed = self.experiments()
        if any(len(results.runs(each)) < min(2, len(results.scope.seeds_for(each))) for each in needed):
            return None
        return CHECKS[self.check](self, results)

    @property
    def is_synthetic(self) -> bool:
        """Whether the claim is about the synthetic data alone, and so can be judged on the authors' arrays."""
        needed = self.experiments()
        return bool(needed) and all(each.data == "synthetic" for each in needed)

    def experiments(self) -> list[Experiment]:
        """Return the experiments that the claim needs."""
        if self.check in NEEDS:
            return NEEDS[self.check](self)
        return list(dict.fromkeys(each for pair in self.pairings() for each in (pair.one, pair.other)))

    def pairings(self) -> list[Pairing]:
        """Return the comparisons of the claim."""
        found = []
        for one in self.ones or (self.one,):
            for other in self.others:
                for mine, theirs in zip(self.settings(one), self.settings(other), strict=True):
                    for measure in self.measures:
                        fairness = self.rates or self.compas_rates or self.fairness_of(mine, theirs)
                        name = fairness if measure == "disparity" else measure
                        found.append(Pairing(mine, theirs, name, BEYOND[self.beyond], self.beyond == "same"))
        return found

    @staticmethod
    def fairness_of(one: Experiment, other: Experiment) -> str:
        """Return the notion that is asked for, of whichever method knows one."""
        knows = METHODS[one.method].family not in ("plain", "robust")
        return (one if knows else other).fairness

    def settings(self, method: str) -> list[Experiment]:
        """Return a method's experiments, one for each column or rate."""
        if self.rates:
            return sets.rate_experiments(method, self.rates)
        if self.compas_rates:
            return [each for each in sets.compas_rate_experiments(method) if each.rate > 0]
        return [column_experiment(method, column) for column in self.table_columns()]

    def table_columns(self) -> list[PaperColumn]:
        """Return the columns that the claim names."""
        tables = paper_tables()
        known = {f"table{number}": table.columns for number, table in tables.items()} | {
            "adult": tables[7].columns[:4],
            "table5-synthetic": tables[5].columns[:2],
            "table5-compas": tables[5].columns[2:],
        }
        return [column for name in self.columns for column in known[name]]


@cache
def claims() -> tuple[Claim, ...]:
    """Read the claims.

    Examples
    --------
    >>> claims()[0].id
    'abstract-fairness'
    """
    text = resources.files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(Claim(**entry) for entry in tomllib.loads(text)["claim"])


@dataclass(frozen=True)
class Judgement:
    """A claim, what fresh draws or splits say of it, what the authors' draw says, and the corrected outcome.

    ``corrected`` is the outcome after a correction over all claims together.
    """

    claim: Claim
    fresh: Answer
    authors: Answer | None
    corrected: Outcome


def judgements(protocols: Protocols) -> list[Judgement]:
    """Judge every claim whose runs are there."""
    found = []
    for claim in claims():
        fresh = claim.answer(protocols.fresh)
        if fresh is None:
            continue
        theirs = claim.answer(protocols.authors) if protocols.authors and claim.is_synthetic else None
        found.append(Judgement(claim, fresh, theirs, fresh.holds))
    tested = [
        each.fresh.p for each in found if each.fresh.p is not None and isinstance(each.fresh.holds, bool)
    ]
    corrected = iter(holm(tested))
    return [
        replace(each, corrected=each.fresh.holds if next(corrected) < LEVEL else None)
        if each.fresh.p is not None and isinstance(each.fresh.holds, bool)
        else each
        for each in found
    ]


def verdict_word(holds: Outcome) -> str:
    """Write an outcome."""
    if isinstance(holds, str):
        return holds
    return "inconclusive" if holds is None else "holds" if holds else "does not hold"


def signed(value: float) -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5)
    ('+.012', '−.500')
    """
    return f"{'−' if value < 0 else '+'}{number(abs(value))}"


def _compare(claim: Claim, results: Results) -> Answer:
    return _judge_pairings(claim.pairings(), results, usually=claim.usually, every=claim.every)


def _judge_pairings(
    pairings: Sequence[Pairing], results: Results, *, usually: bool = False, every: bool = False
) -> Answer:
    """Judge comparisons: on the whole by each measure, and, unless the paper says "usually", one by one."""
    gains = [read_gain(pairing, results) for pairing in pairings]
    words = judge(gains)
    parts = [
        [gain for gain in gains if (gain.pairing.measure == "accuracy") == right] for right in (True, False)
    ]
    pooled = [pool(part, results) for part in parts if part]
    said = judge(pooled)
    behind = [gain for gain in gains if not gain.speaks_for]
    p_against = [gain.p for gain, word in zip(pooled, said, strict=True) if word in ("against", "alike")]
    if not usually:
        p_against += [
            p for p, word in zip(holm([gain.p for gain in gains]), words, strict=True) if word == "against"
        ]
    if "against" in said or "alike" in said or (not usually and "against" in words):
        holds: Outcome = False
        p = min(p_against)
    elif all(word == "for" for word in said) and not (every and behind):
        holds, p = True, max(gain.p for gain in pooled)  # all of them must be right
    else:
        holds, p = None, None
    return Answer(holds, p, _tell(gains, words, pooled, holds, behind if every else []), gains, words)


def _tell(
    gains: Sequence[Gain],
    words: Sequence[Word],
    pooled: Sequence[Gain],
    holds: Outcome,
    behind: Sequence[Gain],
) -> str:
    """Say what was found on the whole, how many comparisons speak for it, and what would decide an open claim."""
    parts = []
    for gain in pooled:
        what = "accuracy" if gain.pairing.measure == "accuracy" else "disparity"
        interval = (
            "" if gain.n < 2 else f" [{signed(gain.mean - gain.half)}, {signed(gain.mean + gain.half)}]"
        )
        parts.append(f"{what}: {signed(gain.mean)} better{interval}")
    counts = [f"{words.count(word)} {title}" for word, title in
              (("for", "for it"), ("against", "against it"), ("alike", "below .01"), ("open", "open"))
              if words.count(word)]  # fmt: skip
    parts.append(f"of {len(words)} comparisons {', '.join(counts)}")
    if behind:
        parts.append(f"{len(behind)} on the other side by the mean")
    if holds is None:
        needed = [gain.needed() for gain in pooled if gain.p >= LEVEL]
        known = [count for count in needed if count is not None]
        if known:
            parts.append(f"about {max(known):,} draws would decide, were the differences these")
        elif behind:
            parts.append("more draws of these columns would decide")
    runs = sorted({gain.n for gain in gains})
    parts.append(f"{runs[0]} runs" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs")
    return "; ".join(parts)


def _ranks(claim: Claim, results: Results) -> Answer:
    """Best or second best of four: no worse (margin .01) than two of three others, in most columns.

    A column speaks against it where two others are better.
    """
    gains, words, columns = [], [], []
    for column in claim.table_columns():
        name = "accuracy" if claim.measures[0] == "accuracy" else column.fairness
        pairs = [Pairing(column_experiment(OURS, column), column_experiment(rival, column), name)
                 for rival in RANK_RIVALS]  # fmt: skip
        strict = [read_gain(pair, results) for pair in pairs]
        level = [read_gain(replace(pair, beyond=-MARGIN), results) for pair in pairs]
        said = judge(level)
        columns.append(
            "against" if judge(strict).count("against") >= 2 else "for" if said.count("for") >= 2 else "open"
        )
        gains += level
        words += said
    holds = _most(columns, usually="usually" in claim.text)
    summary = (
        f"{columns.count('for')} of {len(columns)} columns for it, {columns.count('against')} against it"
    )
    if holds is None:
        summary += "; more splits would decide"
    deciding = [max(sorted(gain.p for gain in gains[3 * i : 3 * i + 3])[:2]) for i in range(len(columns))]
    return Answer(holds, None if holds is None else float(np.median(deciding)), summary, gains, words)


def _most(words: Sequence[str], *, usually: bool = True) -> Outcome:
    """Combine cases: most of them must speak for a claim, or all where the paper does not say "usually"."""
    enough = len(words) / 2 if usually else len(words) - 0.5
    if words.count("for") > enough:
        return True
    return None if words.count("for") + words.count("open") > enough else False


def _smallest_set(claim: Claim, results: Results) -> Answer:
    history = results.runs(sets.PLAIN_COMPAS)[0]["history"]
    counts = np.array(history["counts"])
    label, group = np.unravel_index(counts.argmin(), counts.shape)
    name = (history["classes"][label], history["groups"][group])
    told = (
        f"the smallest set is (y = {name[0]}, {name[1]}), {counts.min()} of {counts.sum()} training samples"
    )
    return Answer(name == ("1", "Female"), None, told)


def _highest_loss(claim: Claim, results: Results) -> Answer:
    """Judge a claim about one run: in most runs, at nine of ten epochs."""
    shares = []
    for record in results.runs(sets.PLAIN_COMPAS):
        history = record["history"]
        losses = np.array(history["cell_losses"])
        own = losses[:, history["classes"].index("1"), history["groups"].index("Female")]
        shares.append(float((own >= losses.max(axis=(1, 2))).mean()))
    told = (
        f"highest at {np.mean(shares):.1%} of the epochs; in {sum(share >= 0.9 for share in shares)} of "
        f"{len(shares)} runs at nine of ten or more (random first weights decide the first ones)"
    )
    return Answer(bool(np.mean(np.array(shares) >= 0.9) > 0.5), None, told)


def _growing_gain(claim: Claim, results: Results) -> Answer:
    """Test the slope of ITLM's gain over LR, over the paper's noise rates."""
    pairs = [
        Pairing(itlm, lr, "accuracy")
        for lr, itlm in zip(*(sets.compas_rate_experiments(name) for name in ("lr", "itlm")), strict=True)
        if lr.rate > 0
    ]
    rates = np.array([pair.one.rate for pair in pairs])
    gains = [read_gain(pair, results) for pair in pairs]
    rows = np.stack([pair.gains(results) for pair in pairs])
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    slopes = ((rates - rates.mean()) @ rows) / ((rates - rates.mean()) ** 2).sum()
    told = ", ".join(f"{rate:.3g}: {signed(gain.mean)}" for rate, gain in zip(rates, gains, strict=True))
    if len(slopes) < 2:
        return Answer(None, None, f"one run; ITLM's accuracy less LR's by noise rate: {told}", gains)
    scale = np.sqrt(1 / len(slopes) + 0.275)  # splits share rows, see statistics.py
    score = float(slopes.mean() / max(slopes.std(ddof=1) * scale, 1e-300))
    p = float(2 * stats.t.sf(abs(score), len(slopes) - 1))
    holds = None if p >= LEVEL else score > 0
    told = f"ITLM's accuracy less LR's by noise rate: {told}; slope {slopes.mean():+.2f}, p = {p:.2g}"
    told += "; more splits would decide" if holds is None else ""
    return Answer(holds, p if holds is not None else None, told, gains)


def _validation_experiments(claim: Claim) -> list[Experiment]:
    columns = paper_tables()[3].columns
    return [
        column_experiment("fr-train", column, validation=kind) for kind in VALIDATION for column in columns
    ]


def _validation_falls(claim: Claim, results: Results) -> Answer:
    clean, cleaned, noisy = (_validation_experiments(claim)[i : i + 2] for i in (0, 2, 4))
    pairs = [Pairing(one, other, "accuracy") for more, less in ((clean, cleaned), (cleaned, noisy))
             for one, other in zip(more, less, strict=True)]  # fmt: skip
    return _judge_pairings(pairs, results, every=True)


def _comparable_to_cleaned(claim: Claim, results: Results) -> Answer:
    pairs = [
        Pairing(
            column_experiment(OURS, column),
            column_experiment("fr-train", column, validation="cleaned"),
            name,
            -MARGIN,
        )
        for column in paper_tables()[3].columns
        for name in ("accuracy", column.fairness)
    ]
    return _judge_pairings(pairs, results, usually=True)


def _not_comparable(claim: Claim, results: Results) -> Answer:
    """Tell times: our code is compiled, and selects without the greedy walk; the paper's is Python."""
    if claim.id == "sec52-bottleneck":
        shares = [record["history"].get("selecting", np.nan)
                  for column in sets.TABLE1 for record in results.runs(_traced(column))]  # fmt: skip
        told = f"our selection needs no walk; in plain NumPy it takes {np.nanmean(shares):.0%} of the time"
        return Answer("not comparable", None, told)
    data = "compas" if claim.id.endswith("compas") else "synthetic"
    seconds = [
        float(np.nanmedian(results.values(Experiment(name, data), "cpu_seconds")))
        for name in (OURS, "fr-train")
    ]
    told = (
        f"medians of one core: the method {seconds[0]:.2f} s, FR-Train {seconds[1]:.1f} s, both compiled here"
    )
    return Answer("not comparable", None, told)


def _traced(column: PaperColumn) -> Experiment:
    return column_experiment("sample-selection-authors", column, traced=True)


def _same_order(claim: Claim, results: Results) -> Answer:
    """No two methods change places significantly between 10 % and another rate."""
    gains, bad, unsure = [], 0, 0
    for one, other in combinations(sets.RATE_METHODS, 2):
        for measure in ("accuracy", claim.rates):
            mine, theirs = (sets.rate_experiments(name, claim.rates) for name in (one, other))
            pairs = [Pairing(ours, rival, measure) for ours, rival in zip(mine, theirs, strict=True)]
            gains.append([read_gain(pair, results) for pair in pairs])
    flat = [gain for row in gains for gain in row]
    corrected = iter(holm([gain.p for gain in flat]))
    for row in gains:
        sure = [next(corrected) < LEVEL for _ in row]
        turned = [gain.mean * row[0].mean < 0 for gain in row]
        bad += sum(now and sure[0] and then for now, then in zip(turned, sure, strict=True))
        unsure += sum(now and not (sure[0] and then) for now, then in zip(turned, sure, strict=True))
    told = (
        f"of {len(flat) - len(gains)} comparisons at higher rates {bad} are significantly the other way round than at "
        f"10 %, {unsure} by their means only"
    )
    holds = False if bad else None if unsure or any(gain.n < 2 for gain in flat) else True
    if holds is None:
        told += "; more draws would decide"
    return Answer(
        holds, None if holds is None else 0.0 if bad else max(row[0].p for row in gains), told, flat
    )


def _either_or(claim: Claim, results: Results) -> Answer:
    """Each ablation and column: fairness worse, and accuracy worse too or fairness much worse."""
    cases, gains = [], []
    for name in ("sample-selection-no-constraints", "sample-selection-no-weights", "itlm"):
        for column in claim.table_columns():
            one, other = column_experiment(OURS, column), column_experiment(name, column)
            right = read_gain(Pairing(one, other, "accuracy"), results)
            fair = read_gain(Pairing(one, other, column.fairness), results)
            much = read_gain(Pairing(one, other, column.fairness, MUCH), results)
            words = judge([right, fair]) + judge([much])
            gains += [right, fair]
            good = words[1] == "for" and (words[0] == "for" or words[2] == "for")
            cases.append("for" if good else "against" if words[1] in ("against", "alike") else "open")
    told = f"{cases.count('for')} of {len(cases)} cases for it, {cases.count('against')} against it"
    holds = _most(cases, usually=False)
    if holds is None:
        told += "; more draws would decide"
    return Answer(holds, None if holds is None else min(gain.p for gain in gains), told, gains, judge(gains))


def _settled(claim: Claim, results: Results) -> Answer:
    """Training twice as long changes accuracy and disparity by at most .01, either way."""
    pairs = [
        Pairing(
            column_experiment(OURS, column), sets.longer_experiment(column), name, -MARGIN, equivalent=True
        )
        for column in claim.table_columns()
        for name in ("accuracy", column.fairness)
    ]
    return _judge_pairings(pairs, results)


def _like_two_step(claim: Claim, results: Results) -> Answer:
    pairs = [
        Pairing(column_experiment(f"itlm+penalty-{step}", column), column_experiment(f"itlm-{step}", column),
                name, -MARGIN, equivalent=True)
        for step in ("fairbatch", "penalty")
        for column in claim.table_columns()
        for name in ("accuracy", column.fairness)
    ]  # fmt: skip
    return _judge_pairings(pairs, results)


def _curve_points(claim: Claim) -> list[Experiment]:
    return [
        each
        for name in sets.CURVES
        for noise in ("label", "group-targeted")
        for each in sets.curve_experiments(name, noise)
    ]


def _fairer_at_equal_accuracy(claim: Claim, results: Results) -> Answer:
    """Most points of FR-Train's curve have a fairer point of ours that is at most .01 less accurate."""
    rows = []
    for noise in ("label", "group-targeted"):
        mine = sets.curve_experiments(OURS, noise)
        for theirs in sets.curve_experiments("fr-train", noise):
            close = [
                one for one in mine if read_gain(Pairing(one, theirs, "accuracy"), results).mean >= -MARGIN
            ]
            rows.append([read_gain(Pairing(one, theirs, "equalized_odds"), results) for one in close])
    flat = [gain for row in rows for gain in row]
    words, cases, place = judge(flat), [], 0
    for row in rows:
        said = words[place : place + len(row)]
        place += len(row)
        ahead = any(gain.mean > 0 for gain in row)
        cases.append("for" if "for" in said else "open" if ahead else "against")
    holds = None if not flat or any(gain.n < 2 for gain in flat) else _most(cases)
    told = (
        f"of {len(cases)} points of FR-Train's curve {cases.count('for')} have a fairer one of the method's, at most "
        f".01 less accurate; {cases.count('open')} open"
    )
    if holds is None:
        told += "; more draws along FR-Train's curve would decide"
    return Answer(holds, None if holds is None else min(gain.p for gain in flat), told, flat, words)


def _wider_spread(claim: Claim, results: Results) -> Answer:
    """Test as Brown and Forsythe: distances from a point's median, of all points together."""
    spread = {}
    for method in sets.CURVES:
        rows = [results.values(each, "equalized_odds") for noise in ("label", "group-targeted")
                for each in sets.curve_experiments(method, noise)]  # fmt: skip
        found = np.concatenate([np.abs(row - np.nanmedian(row)) for row in rows])
        spread[method] = found[~np.isnan(found)]
    wider, ours = spread["fr-train"], spread[OURS]
    means = [number(float(found.mean())) for found in (wider, ours)]
    told = f"mean distance of EO disparity from a point's median: FR-Train {means[0]}, the method {means[1]}"
    if len(wider) < 20:
        return Answer(None, None, f"{told}; more draws would decide")
    p = float(stats.ttest_ind(wider, ours, equal_var=False).pvalue)
    holds = None if p >= LEVEL else bool(wider.mean() > ours.mean())
    told += f"; p = {p:.2g}" + ("; more draws would decide" if holds is None else "")
    return Answer(holds, None if holds is None else p, told)


CHECKS: dict[str, Callable[[Claim, Results], Answer]] = {
    "compare": _compare,
    "ranks": _ranks,
    "smallest_set": _smallest_set,
    "highest_loss": _highest_loss,
    "growing_gain": _growing_gain,
    "validation_falls": _validation_falls,
    "comparable_to_cleaned": _comparable_to_cleaned,
    "not_comparable": _not_comparable,
    "same_order": _same_order,
    "either_or": _either_or,
    "settled": _settled,
    "like_two_step": _like_two_step,
    "fairer_at_equal_accuracy": _fairer_at_equal_accuracy,
    "wider_spread": _wider_spread,
}


def _in_columns(*methods: str) -> Callable[[Claim], list[Experiment]]:
    return lambda claim: [
        column_experiment(name, column) for name in methods for column in claim.table_columns()
    ]


NEEDS: dict[str, Callable[[Claim], list[Any]]] = {
    "ranks": _in_columns(OURS, *RANK_RIVALS),
    "smallest_set": lambda claim: [sets.PLAIN_COMPAS],
    "highest_loss": lambda claim: [sets.PLAIN_COMPAS],
    "growing_gain": lambda claim: [
        each for name in ("lr", "itlm") for each in sets.compas_rate_experiments(name)
    ],
    "validation_falls": _validation_experiments,
    "comparable_to_cleaned": lambda claim: [
        *(column_experiment(OURS, column) for column in paper_tables()[3].columns),
        *_validation_experiments(claim)[2:4],
    ],
    "not_comparable": lambda claim: (
        [_traced(column) for column in sets.TABLE1]
        if claim.id == "sec52-bottleneck"
        else [
            Experiment(name, "compas" if claim.id.endswith("compas") else "synthetic")
            for name in (OURS, "fr-train")
        ]
    ),
    "same_order": lambda claim: [
        each for name in sets.RATE_METHODS for each in sets.rate_experiments(name, claim.rates)
    ],
    "either_or": _in_columns(OURS, "sample-selection-no-constraints", "sample-selection-no-weights", "itlm"),
    "settled": lambda claim: [
        each
        for column in claim.table_columns()
        for each in (column_experiment(OURS, column), sets.longer_experiment(column))
    ],
    "like_two_step": _in_columns(
        "itlm-fairbatch", "itlm-penalty", "itlm+penalty-fairbatch", "itlm+penalty-penalty"
    ),
    "fairer_at_equal_accuracy": _curve_points,
    "wider_spread": _curve_points,
}
