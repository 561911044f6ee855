"""How claims are judged: each check reads the comparisons of a claim, or the runs of a figure, and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from fairsieve.benchmark.summary import standard_error
from fairsieve.notions import EO
from fairsieve.report.text import number
from fairsieve_reproduction import experiments as sets
from fairsieve_reproduction.experiments import OURS, Results
from fairsieve_reproduction.statistics import (
    BEYOND,
    LEVEL,
    MARGIN,
    Gain,
    Pairing,
    Said,
    holm,
    judge,
    pool,
    read_gain,
)

if TYPE_CHECKING:
    from fairsieve_reproduction.claims import Claim

SHARED = 0.275  # COMPAS: the size of a split's test part to that of its training part
MANY = 20  # times the runs that are there: nobody makes more

Outcome = bool | None | str  # holds, does not, inconclusive; "not comparable"


@dataclass(frozen=True)
class Answer:
    """What the records say of a claim: the outcome, its p-value, what was found, and the comparisons behind it."""

    holds: Outcome
    p: float | None
    summary: str
    gains: Sequence[Gain] = ()
    words: Sequence[str] = ()


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{number(abs(value))}"


def _open_or(
    holds: Outcome,
    p: float,
    told: str,
    gains: Sequence[Gain] = (),
    words: Sequence[str] = (),
    deciding: Sequence[Gain] = (),
) -> Answer:
    """Answer a claim; an open one has no p-value, and says what would decide it: the gains, if no others are named."""
    if holds is None:
        undecided = deciding or [gain for gain in gains if gain.p >= LEVEL] or gains
        times = max((gain.needed(gain.pairing.beyond) for gain in undecided), default=1.0)
        what = _what_would_decide(times, undecided, each=not deciding)
        return Answer(None, None, f"{told}; {what}", gains, words)
    return Answer(holds, p, told, gains, words)


def _compare(claim: Claim, results: Results) -> Answer:
    """Judge comparisons: on the whole by each measure, and, unless the paper says "usually", one by one.

    The p-value is that of the comparison that decides: of the surest one against the claim, or of the least sure one
    that is needed for it.
    """
    gains = [read_gain(pairing, results) for pairing in claim.pairings()]
    said = judge(gains)
    right = [gain for gain in gains if gain.pairing.measure == "accuracy"]
    fair = [gain for gain in gains if gain.pairing.measure != "accuracy"]
    pooled = [pool(part, results) for part in (right, fair) if part]
    on_the_whole = judge(pooled)
    behind = [gain for gain in gains if claim.every and not gain.speaks_for]
    against = [one.p for one in on_the_whole if one.word in ("against", "alike")]
    if not claim.usually:
        against += [one.p for one in said if one.word == "against"]
    holds, p = None, None
    if against:
        holds, p = False, min(against)
    elif all(one.word == "for" for one in on_the_whole) and not behind:
        holds, p = True, max(one.p for one in on_the_whole)
    words = _words(said)
    told = _tell(words, pooled, behind)
    if holds is None:
        times = _times_to_decide(pooled, [] if claim.usually else gains, can_hold=not behind)
        told.append(_what_would_decide(times, gains))
    runs = sorted({gain.n for gain in gains})
    told.append(f"{runs[0]} runs" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs")
    return Answer(holds, p, "; ".join(told), gains, words)


def _words(said: Sequence[Said]) -> list[str]:
    return [one.word for one in said]


def _tell(words: list[str], pooled: list[Gain], behind: list[Gain]) -> list[str]:
    """Say what was found on the whole, and how many comparisons speak for it."""
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
    return parts


def _times_to_decide(pooled: Sequence[Gain], single: Sequence[Gain], *, can_hold: bool) -> float:
    """Return how many times as many draws or splits would decide a claim, were the differences these.

    It fails by a comparison that is below what it claims, on the whole or by itself, or by a gain that is too small on
    the whole; it holds where it is better on the whole by every measure.
    """
    times = [gain.needed(gain.pairing.worst) for gain in (*pooled, *single) if gain.mean < gain.pairing.worst]
    times += [gain.needed(MARGIN) for gain in pooled if gain.pairing.claims_size and gain.mean < MARGIN]
    if can_hold and all(gain.speaks_for for gain in pooled):
        times.append(max(gain.needed(gain.pairing.beyond) for gain in pooled))
    return min(times, default=np.inf)


def _what_would_decide(times: float, gains: Sequence[Gain], *, each: bool = False) -> str:
    """Say that so many times as many draws or splits would decide a claim, or that no number would that one could make.

    Where a claim has cases, not each comparison need be decided; what is told is when each one would be.
    """
    splits = any(gain.floor > 0 for gain in gains)
    runs = "splits" if splits else "draws"
    decide = "decide every comparison" if each and gains else "decide"
    if times == np.inf and gains and max(gain.n for gain in gains) > 1:  # one run has no spread
        if splits:
            return f"no number of splits of these rows would {decide}: other data would"
        return f"no number of draws would {decide}, were the differences these"
    if MANY < times < np.inf:
        return f"not even {MANY} times as many {runs} would {decide}, were the differences these"
    if 1 < times < np.inf:
        return f"{times:.1f} times as many {runs} would {decide}, were the differences these"
    return f"more {runs} would {decide}"


def _ranks(claim: Claim, results: Results) -> Answer:
    """Best or second best of four: no worse (margin .01) than two of three others, in most columns.

    A column speaks against it where two others are better.
    """
    pairs = claim.pairings()
    gains = [read_gain(pair, results) for pair in pairs]
    said = judge(gains)
    better = judge([read_gain(replace(pair, beyond=0.0), results) for pair in pairs])
    columns: list[str] = []
    deciding: list[tuple[str, float]] = []
    count = len(pairs) // len(claim.others)
    for place in range(count):
        sides = {"against": [one.p for one in better[place::count] if one.word == "against"],
                 "for": [one.p for one in said[place::count] if one.word == "for"]}  # fmt: skip
        side = next((side for side, ps in sides.items() if len(ps) >= 2), "open")
        columns.append(side)
        deciding.append((side, sorted(sides[side])[1] if side != "open" else 1.0))
    told = f"{columns.count('for')} of {len(columns)} columns for it, {columns.count('against')} against it"
    holds = _most(columns, usually=claim.usually)
    p = _deciding(deciding, holds, usually=claim.usually)
    return _open_or(holds, p, told, gains, _words(said))


def _deciding(cases: Sequence[tuple[str, float]], holds: Outcome, *, usually: bool) -> float:
    """Return the p-value of the case that decides, of cases with what each says and how surely.

    Of a claim about all cases, the least sure one for it, or the surest one against it; of a claim about most, that
    which makes it most.
    """
    own = sorted(p for word, p in cases if word == ("for" if holds else "against"))
    if not own:
        return 1.0
    needed = len(cases) // 2 if usually else len(own) - 1 if holds else 0
    return own[min(needed, len(own) - 1)]


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
        return _open_or(None, 1.0, told, gains)
    slope = float(slopes.mean())
    error, floor = (standard_error(slopes, SHARED), float(slopes.std(ddof=1)) * SHARED**0.5)
    tested = replace(gains[0], mean=slope, error=error, freedom=len(slopes) - 1, n=len(slopes), floor=floor)
    told += f"; slope {slope:+.2f}, p = {tested.p:.2g}"
    holds = None if tested.p >= LEVEL else slope > 0
    return _open_or(holds, tested.p, told, gains, deciding=[tested])


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
    p_values = np.array(holm([gain.p for gain in gains])).reshape(len(claim.pairs), -1, 2)
    sure = p_values < LEVEL
    means = np.array([gain.mean for gain in gains]).reshape(sure.shape)
    turned = means * means[:, :1] < 0
    reversals = turned & sure & sure[:, :1]
    bad = int(reversals.sum())
    unsure = int(turned.sum()) - bad
    told = (
        f"of {turned[:, 1:].size} comparisons at higher rates {bad} are significantly the other way round than at "
        f"10 %, {unsure} by their means only"
    )
    holds = False if bad else None if unsure or any(gain.n < 2 for gain in gains) else True
    both = np.maximum(p_values, p_values[:, :1])  # of both differences that make a reversal
    p = float(both[reversals].min()) if bad else float(p_values[:, 0].max())
    return _open_or(holds, p, told, list(gains))


def _either_or(claim: Claim, results: Results) -> Answer:
    """Each ablation and column: fairness worse, and accuracy worse too or fairness much worse."""
    pairs = claim.pairings()  # accuracy and disparity of each case
    gains = [read_gain(pair, results) for pair in pairs]
    said = judge(gains)
    much_fairer = judge([read_gain(replace(pair, beyond=BEYOND["much"]), results) for pair in pairs[1::2]])
    cases: list[tuple[str, float]] = []
    for right, fair, much in zip(said[::2], said[1::2], much_fairer, strict=True):
        either = [one.p for one in (right, much) if one.word == "for"]
        if fair.word == "for" and either:
            cases.append(("for", max(fair.p, min(either))))
        else:
            cases.append(("against" if fair.word in ("against", "alike") else "open", fair.p))
    words = [word for word, _ in cases]
    told = f"{words.count('for')} of {len(cases)} cases for it, {words.count('against')} against it"
    holds = _most(words, usually=False)
    p = _deciding(cases, holds, usually=False)
    return _open_or(holds, p, told, gains, _words(said))


def _fairer_at_equal_accuracy(claim: Claim, results: Results) -> Answer:
    """Most points of FR-Train's curve have a fairer point of ours that is at most .01 less accurate."""
    rows = []
    for noise in sets.CURVE_FLIPS:
        mine = sets.curve_experiments(OURS, noise)
        for theirs in sets.curve_experiments(claim.rival, noise):
            close = [
                one
                for one in mine
                if read_gain(Pairing(one, theirs, "accuracy"), results).mean >= BEYOND["margin"]
            ]
            rows.append([read_gain(Pairing(one, theirs, EO), results) for one in close])
    flat = [gain for row in rows for gain in row]
    judged, place = judge(flat), 0
    cases: list[tuple[str, float]] = []
    for row in rows:
        said = judged[place : place + len(row)]
        place += len(row)
        fairer = [one.p for one in said if one.word == "for"]
        word = "for" if fairer else "open" if any(gain.mean > 0 for gain in row) else "against"
        cases.append((word, min(fairer) if fairer else max((gain.p for gain in row), default=0.0)))
    words = [word for word, _ in cases]
    told = (
        f"of {len(cases)} points of FR-Train's curve {words.count('for')} have a fairer one of the method's, at most "
        f".01 less accurate; {words.count('open')} open"
    )
    holds = None if not flat or any(gain.n < 2 for gain in flat) else _most(words)
    p = _deciding(cases, holds, usually=True)
    return _open_or(holds, p, told, flat, _words(judged))


def _wider_spread(claim: Claim, results: Results) -> Answer:
    """Test as Brown and Forsythe: distances from a point's median, of all points together."""
    spread: dict[str, list[float]] = {}
    for each in claim.experiments():
        row = results.values(each, EO)
        spread.setdefault(each.method, []).extend(np.abs(row - np.nanmedian(row))[~np.isnan(row)])
    ours, wider = spread[OURS], spread[claim.rival]
    means = [number(float(np.mean(distances))) for distances in (wider, ours)]
    told = f"mean distance of EO disparity from a point's median: FR-Train {means[0]}, the method {means[1]}"
    if len(wider) < 20:
        return _open_or(None, 1.0, told)
    p = float(stats.ttest_ind(wider, ours, equal_var=False).pvalue)
    holds = None if p >= LEVEL else bool(np.mean(wider) > np.mean(ours))
    return _open_or(holds, p, f"{told}; p = {p:.2g}")


CHECKS: dict[str, Callable[[Claim, Results], Answer]] = {
    check.__name__.removeprefix("_"): check
    for check in (_compare, _ranks, _smallest_set, _highest_loss, _growing_gain, _not_comparable, _same_order,
                  _either_or, _fairer_at_equal_accuracy, _wider_spread)
}  # fmt: skip
