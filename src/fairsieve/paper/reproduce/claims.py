"""The paper's claims, read from ``claims.toml`` beside this file, and the verdicts on them.

The rules are written in docs/reproduction/rules.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import numpy as np
from scipy import stats

from fairsieve.notions import BY_SHORT, EO
from fairsieve.paper.measures import standard_error
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce import experiments as sets
from fairsieve.paper.reproduce.experiments import OURS, Experiment, Protocols, Results, column_experiment
from fairsieve.paper.reproduce.published import paper_tables
from fairsieve.paper.reproduce.statistics import BEYOND, LEVEL, Gain, Pairing, holm, judge, pool, read_gain
from fairsieve.report.text import number

Outcome = bool | None | str  # holds, does not, inconclusive; "not comparable"


@dataclass(frozen=True)
class Answer:
    """What the records say of a claim: the outcome, its p-value, what was found, and the comparisons behind it."""

    holds: Outcome
    p: float | None
    summary: str
    gains: Sequence[Gain] = ()
    words: Sequence[str] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, as ``claims.toml`` has it."""

    id: str
    where: str
    text: str
    one: str = OURS
    others: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()
    measures: Sequence[str] = ()
    columns: Sequence[str] = ()
    rates: str = ""
    compas_rates: str = ""
    beyond: str = ""
    usually: bool = False
    every: bool = False
    figure: str = ""
    check: str = "compare"

    def answer(self, results: Results) -> Answer | None:
        """Judge the claim; None where runs are missing."""
        needed = self.experiments()
        if any(len(results.runs(each)) < min(2, len(results.scope.seeds_for(each))) for each in needed):
            return None
        return CHECKS[self.check](self, results)

    def experiments(self) -> list[Experiment]:
        """Return the experiments that the claim needs."""
        if self.figure:
            return list(sets.ITEMS[self.figure].experiments)
        return list(dict.fromkeys(each for pair in self.pairings() for each in (pair.one, pair.other)))

    def pairings(self) -> list[Pairing]:
        """Return the comparisons of the claim."""
        found = []
        for one, other in self.pairs or [(self.one, other) for other in self.others]:
            for mine, theirs in zip(self.settings(one), self.settings(other), strict=True):
                knows = METHODS[mine.method].family not in ("plain", "robust")
                fairness = (
                    BY_SHORT.get(self.rates or self.compas_rates) or (mine if knows else theirs).fairness
                )
                for measure in self.measures:
                    name = fairness if measure == "disparity" else measure
                    found.append(Pairing(mine, theirs, name, BEYOND[self.beyond], self.beyond == "same"))
        return found

    def settings(self, method: str) -> list[Experiment]:
        """Return a method's experiments, one for each column or rate."""
        if self.rates:
            return sets.rate_experiments(method, BY_SHORT[self.rates])
        if self.compas_rates:
            return [each for each in sets.compas_rate_experiments(method) if each.rate > 0]
        found = []
        for name in self.columns:
            table, _, data = name.partition("-")
            columns = paper_tables()[table].columns
            found += [column_experiment(method, column) for column in columns if data in ("", column.data)]
        return found


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
        fresh, theirs = claim.answer(protocols.fresh), None
        if fresh is None:
            continue
        if protocols.authors and all(each.data == "synthetic" for each in claim.experiments()):
            theirs = claim.answer(protocols.authors)
        found.append(Judgement(claim, fresh, theirs, fresh.holds))
    tested = {each.claim.id: each.fresh.p for each in found if each.fresh.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [
        replace(each, corrected=None) if corrected.get(each.claim.id, 0.0) >= LEVEL else each
        for each in found
    ]


def verdict_word(holds: Outcome) -> str:
    """Write an outcome."""
    if isinstance(holds, str):
        return holds
    return "inconclusive" if holds is None else "holds" if holds else "does not hold"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{number(abs(value))}"


def _open_or(
    claim: Claim, holds: Outcome, p: float, told: str, gains: Sequence[Gain] = (), words: Sequence[str] = ()
) -> Answer:
    """Answer a claim; an open one has no p-value, and says what would decide it."""
    if holds is None:
        what = "draws" if claim.experiments()[0].data == "synthetic" else "splits"
        return Answer(None, None, f"{told}; more {what} would decide", gains, words)
    return Answer(holds, p, told, gains, words)


def _compare(claim: Claim, results: Results) -> Answer:
    """Judge comparisons: on the whole by each measure, and, unless the paper says "usually", one by one."""
    gains = [read_gain(pairing, results) for pairing in claim.pairings()]
    words = judge(gains)
    right = [gain for gain in gains if gain.pairing.measure == "accuracy"]
    fair = [gain for gain in gains if gain.pairing.measure != "accuracy"]
    pooled = [pool(part, results) for part in (right, fair) if part]
    said = judge(pooled)
    behind = [gain for gain in gains if claim.every and not gain.speaks_for]
    p_against = [gain.p for gain, word in zip(pooled, said, strict=True) if word in ("against", "alike")]
    if not claim.usually:
        corrected = holm([gain.p for gain in gains])
        p_against += [p for p, word in zip(corrected, words, strict=True) if word == "against"]
    holds, p = None, None
    if p_against:
        holds, p = False, min(p_against)
    elif all(word == "for" for word in said) and not behind:
        holds, p = True, max(gain.p for gain in pooled)  # all of them must be right
    return Answer(holds, p, _tell(gains, words, pooled, holds, behind), gains, words)


def _tell(gains: list[Gain], words: list[str], pooled: list[Gain], holds: Outcome, behind: list[Gain]) -> str:
    """Say what was found on the whole, how many comparisons speak for it, and what would decide an open claim."""
    parts = []
    for gain in pooled:
        what = "accuracy" if gain.pairing.measure == "accuracy" else "disparity"
        ends = f" [{_signed(gain.mean - gain.half)}, {_signed(gain.mean + gain.half)}]" if gain.n > 1 else ""
        parts.append(f"{what}: {_signed(gain.mean)} better{ends}")
    titles = {"for": "for it", "against": "against it", "alike": "below .01", "open": "open"}
    counts = [f"{words.count(word)} {title}" for word, title in titles.items() if word in words]
    parts.append(f"of {len(words)} comparisons {', '.join(counts)}")
    if behind:
        parts.append(f"{len(behind)} on the other side by the mean")
    if holds is None:
        open_ = [gain.needed() for gain in pooled if gain.p >= LEVEL]
        if any(gain.pairing.one.data != "synthetic" for gain in gains):
            parts.append("more rows would decide: splits share theirs")
        elif open_ and max(open_) < np.inf:
            parts.append(f"{max(open_):.1f} times as many draws would decide, were the differences these")
        else:
            parts.append("more draws would decide")
    runs = sorted({gain.n for gain in gains})
    parts.append(f"{runs[0]} runs" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs")
    return "; ".join(parts)


def _ranks(claim: Claim, results: Results) -> Answer:
    """Best or second best of four: no worse (margin .01) than two of three others, in most columns.

    A column speaks against it where two others are better.
    """
    pairs, rivals = claim.pairings(), len(claim.others)
    gains: list[Gain] = []
    words: list[str] = []
    columns, deciding = [], []
    for place in range(len(pairs) // rivals):
        own = pairs[place :: len(pairs) // rivals]
        strict = [read_gain(replace(pair, beyond=0.0), results) for pair in own]
        level = [read_gain(pair, results) for pair in own]
        said = judge(level)
        worse = judge(strict).count("against") >= 2
        columns.append("against" if worse else "for" if said.count("for") >= 2 else "open")
        deciding.append(sorted(gain.p for gain in level)[1])
        gains += level
        words += said
    told = f"{columns.count('for')} of {len(columns)} columns for it, {columns.count('against')} against it"
    holds = _most(columns, usually=claim.usually)
    return _open_or(claim, holds, float(np.median(deciding)), told, gains, words)


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
    size = f"{counts.min()} of {counts.sum()} training samples"
    return Answer(name == ("1", "Female"), None, f"the smallest set is (y = {name[0]}, {name[1]}), {size}")


def _highest_loss(claim: Claim, results: Results) -> Answer:
    """Judge a claim about one run: in most runs, at nine of ten epochs."""
    shares = []
    for record in results.runs(sets.PLAIN_COMPAS):
        history = record["history"]
        losses = np.array(history["cell_losses"])
        own = losses[:, history["classes"].index("1"), history["groups"].index("Female")]
        shares.append(float((own >= losses.max(axis=(1, 2))).mean()))
    often = np.array(shares) >= 0.9
    told = (
        f"highest at {np.mean(shares):.1%} of the epochs; in {often.sum()} of {len(shares)} runs at nine of ten or "
        "more (random first weights decide the first ones)"
    )
    return Answer(bool(often.mean() > 0.5), None, told)


def _growing_gain(claim: Claim, results: Results) -> Answer:
    """Test the slope of ITLM's gain over LR, over the paper's noise rates."""
    pairs = claim.pairings()
    rates = np.array([pair.one.rate for pair in pairs])
    gains = [read_gain(pair, results) for pair in pairs]
    rows = np.stack([pair.gains(results) for pair in pairs])
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    slopes = ((rates - rates.mean()) @ rows) / ((rates - rates.mean()) ** 2).sum()
    told = ", ".join(f"{rate:.3g}: {_signed(gain.mean)}" for rate, gain in zip(rates, gains, strict=True))
    told = f"ITLM's accuracy less LR's by noise rate: {told}"
    if len(slopes) < 2:
        return _open_or(claim, None, 1.0, told, gains)
    score = float(slopes.mean() / max(standard_error(slopes, 0.275), 1e-300))
    p = float(2 * stats.t.sf(abs(score), len(slopes) - 1))
    told += f"; slope {slopes.mean():+.2f}, p = {p:.2g}"
    return _open_or(claim, None if p >= LEVEL else score > 0, p, told, gains)


def _not_comparable(claim: Claim, results: Results) -> Answer:
    """Tell times: our code is compiled, and selects without the greedy walk; the paper's is Python."""
    if claim.id == "sec52-bottleneck":
        shares = [run["history"]["selecting"] for each in claim.experiments() for run in results.runs(each)]
        told = f"our selection needs no walk; in plain NumPy it takes {np.mean(shares):.0%} of the time"
        return Answer("not comparable", None, told)
    ours, theirs = (np.nanmedian(results.values(each, "cpu_seconds")) for each in claim.experiments())
    told = f"medians of one core: the method {ours:.2f} s, FR-Train {theirs:.1f} s, both compiled here"
    return Answer("not comparable", None, told)


def _same_order(claim: Claim, results: Results) -> Answer:
    """No two methods change places significantly between 10 % and another rate."""
    gains = np.array([read_gain(pair, results) for pair in claim.pairings()], dtype=object)
    sure = (np.array(holm([gain.p for gain in gains])) < LEVEL).reshape(len(claim.pairs), -1, 2)
    means = np.array([gain.mean for gain in gains]).reshape(sure.shape)
    turned = means * means[:, :1] < 0
    bad = int((turned & sure & sure[:, :1]).sum())
    unsure = int(turned.sum()) - bad
    told = (
        f"of {turned[:, 1:].size} comparisons at higher rates {bad} are significantly the other way round than at "
        f"10 %, {unsure} by their means only"
    )
    holds = False if bad else None if unsure or any(gain.n < 2 for gain in gains) else True
    first = gains.reshape(sure.shape)[:, 0].ravel()
    return _open_or(claim, holds, 0.0 if bad else max(gain.p for gain in first), told, list(gains))


def _either_or(claim: Claim, results: Results) -> Answer:
    """Each ablation and column: fairness worse, and accuracy worse too or fairness much worse."""
    pairs = claim.pairings()
    cases, gains = [], [read_gain(pair, results) for pair in pairs]
    for place in range(0, len(pairs), 2):  # accuracy and disparity of one case
        right, fair = judge(gains[place : place + 2])
        (much,) = judge([read_gain(replace(pairs[place + 1], beyond=BEYOND["much"]), results)])
        good = fair == "for" and "for" in (right, much)
        cases.append("for" if good else "against" if fair in ("against", "alike") else "open")
    told = f"{cases.count('for')} of {len(cases)} cases for it, {cases.count('against')} against it"
    p = min(gain.p for gain in gains)
    return _open_or(claim, _most(cases, usually=False), p, told, gains, judge(gains))


def _fairer_at_equal_accuracy(claim: Claim, results: Results) -> Answer:
    """Most points of FR-Train's curve have a fairer point of ours that is at most .01 less accurate."""
    rows = []
    for noise in sets.CURVE_FLIPS:
        mine = sets.curve_experiments(OURS, noise)
        for theirs in sets.curve_experiments("fr-train", noise):
            close = [
                one
                for one in mine
                if read_gain(Pairing(one, theirs, "accuracy"), results).mean >= BEYOND["margin"]
            ]
            rows.append([read_gain(Pairing(one, theirs, EO), results) for one in close])
    flat = [gain for row in rows for gain in row]
    words, cases, place = judge(flat), [], 0
    for row in rows:
        said = words[place : place + len(row)]
        place += len(row)
        cases.append("for" if "for" in said else "open" if any(gain.mean > 0 for gain in row) else "against")
    told = (
        f"of {len(cases)} points of FR-Train's curve {cases.count('for')} have a fairer one of the method's, at most "
        f".01 less accurate; {cases.count('open')} open"
    )
    holds = None if not flat or any(gain.n < 2 for gain in flat) else _most(cases)
    return _open_or(claim, holds, min((gain.p for gain in flat), default=1.0), told, flat, words)


def _wider_spread(claim: Claim, results: Results) -> Answer:
    """Test as Brown and Forsythe: distances from a point's median, of all points together."""
    spread: dict[str, list[float]] = {}
    for each in claim.experiments():
        row = results.values(each, EO)
        spread.setdefault(each.method, []).extend(np.abs(row - np.nanmedian(row))[~np.isnan(row)])
    ours, wider = spread[OURS], spread["fr-train"]
    means = [number(float(np.mean(found))) for found in (wider, ours)]
    told = f"mean distance of EO disparity from a point's median: FR-Train {means[0]}, the method {means[1]}"
    if len(wider) < 20:
        return _open_or(claim, None, 1.0, told)
    p = float(stats.ttest_ind(wider, ours, equal_var=False).pvalue)
    holds = None if p >= LEVEL else bool(np.mean(wider) > np.mean(ours))
    return _open_or(claim, holds, p, f"{told}; p = {p:.2g}")


CHECKS: dict[str, Callable[[Claim, Results], Answer]] = {
    check.__name__.removeprefix("_"): check
    for check in (_compare, _ranks, _smallest_set, _highest_loss, _growing_gain, _not_comparable, _same_order,
                  _either_or, _fairer_at_equal_accuracy, _wider_spread)
}  # fmt: skip
