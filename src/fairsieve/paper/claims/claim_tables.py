"""The verdicts and every comparison behind them, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairsieve.paper.claims.claims import Judgement
from fairsieve.paper.claims.evidence import Answer
from fairsieve.paper.claims.pairwise import OUTCOMES, Gain, printed_value
from fairsieve.paper.reproduce.titles import number, signed
from fairsieve.report.document import Cell, Column, Table

__all__ = ["claims_table", "comparisons_table"]


def claims_table(judgements: Sequence[Judgement]) -> Table:
    """Make a table of the claims, with a verdict for each protocol and each FR-Train."""
    rows = []
    for place, judgement in enumerate(judgements, 1):
        both = judgement.claim.other is not None
        rows.append(
            [
                Cell(str(place), value=place),
                Cell(judgement.claim.source),
                Cell(judgement.claim.text),
                Cell(_say(judgement.authors, judgement.authors_ours, both)),
                Cell(_say(judgement.fresh, judgement.ours, both)),
                Cell(judgement.fresh.summary + "."),
            ]
        )
    heads = [
        Column("no.", True),
        *(
            Column(title)
            for title in ("where", "claim", "the authors' draw", "fresh draws or splits", "numbers")
        ),
    ]
    caption = "The paper's claims, and whether they hold here; with FR-Train, against the published one / against ours"
    return Table("claims", caption, heads, rows)


def _say(answer: Answer | None, ours: Answer | None, both: bool) -> str:
    """Write a verdict, or two where there are two FR-Trains."""
    if answer is None:
        return "–"
    told = OUTCOMES[answer.holds]
    return f"{told} / {OUTCOMES[ours.holds]}" if both and ours is not None else told


def comparisons_table(judgements: Sequence[Judgement]) -> Table:
    """Make a table of every comparison: the paper's values, those of both protocols, and the difference's interval."""
    rows = []
    for place, judgement in enumerate(judgements, 1):
        for fresh, authors in (
            (judgement.fresh, judgement.authors),
            (judgement.ours, judgement.authors_ours),
        ):
            if fresh is None:
                continue
            for i, gain in enumerate(fresh.gains):
                on_draw = authors.gains[i] if authors is not None else None
                rows.append(
                    _comparison_row(place, gain, fresh.words[i], on_draw, authors.words[i] if authors else "")
                )
    heads = [
        Column("claim", True),
        *(
            Column(title)
            for title in ("where", "methods", "the paper", "authors' draw", "fresh draws or splits")
        ),
        Column("gain [95 %]", True),
        *(Column(title) for title in ("authors' draw says", "fresh draws say")),
    ]
    caption = (
        "Every comparison behind the claims: means of the first and the second method, and by how much the first is "
        "better on fresh draws or splits, over the pairs that both have"
    )
    return Table("comparisons", caption, heads, rows, filterable=True)


def _comparison_row(place: int, gain: Gain, word: str, on_draw: Gain | None, its_word: str) -> list[Cell]:
    pairing = gain.pairing
    one, other = pairing.titles()
    printed = [printed_value(each, pairing.measure) for each in pairing.experiments]
    interval = "" if np.isnan(gain.low) else f" [{signed(gain.low)}, {signed(gain.high)}]"
    return [
        Cell(str(place), value=place),
        Cell(pairing.setting + (f", at most {number(pairing.slack)} worse" if pairing.slack else "")),
        Cell(f"{one} – {other}"),
        Cell(_pair(*printed)),
        Cell("–" if on_draw is None else _pair(on_draw.one, on_draw.other)),
        Cell(_pair(gain.one, gain.other)),
        Cell(f"{signed(gain.mean)}{interval}", value=round(gain.mean, 6), note=f"{gain.n} pairs"),
        Cell(its_word or "–"),
        Cell(word),
    ]


def _pair(one: float | None, other: float | None) -> str:
    told = ["–" if value is None or np.isnan(value) else number(value) for value in (one, other)]
    return "–" if told == ["–", "–"] else " – ".join(told)
