"""Decide: whether to use what was made of a table, why, and what to do next.

A decision is computed once, from verdicts and reasons, and shown alike in the terminal, on the page, in the card and
in ``metrics.json``. Whoever finds a new reason adds a small function to a list in :mod:`fairsieve.tabular.reasons`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fairsieve.errors import InvalidInputError
from fairsieve.report.document import Verdict
from fairsieve.tabular.reading.table import closest

__all__ = ["Decision", "Outcome", "Reason", "Status", "TableVerdict", "check_fail_on", "decide"]

Outcome = Literal["use", "inconclusive", "do-not-use"]
Status = Literal["fails", "inconclusive", "holds"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)  # from the best to the worst
STATUSES: tuple[Status, ...] = get_args(Status)  # in the order in which they are shown
WORDS: dict[Status, str] = {"fails": "does not hold", "inconclusive": "inconclusive", "holds": "holds"}


@dataclass(frozen=True)
class TableVerdict:
    """A claim, and whether the numbers bear it out.

    Attributes
    ----------
    name : str
        One word, for programs: "accuracy", "fairness", "dropping", …
    claim : str
        A full sentence.
    status : {"fails", "inconclusive", "holds"}
    sentence : str
        What was found, with the numbers.
    value : float, optional
        What the claim is about.
    interval : (float, float), optional
        Its 95 % interval.
    source : str
        What it was measured on.
    """

    name: str
    claim: str
    status: Status
    sentence: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    source: str = "test part"

    @property
    def words(self) -> str:
        """The status in plain words."""
        return WORDS[self.status]

    def as_block(self) -> Verdict:
        """Return the verdict as a block of a page."""
        holds = {"fails": False, "inconclusive": None, "holds": True}[self.status]
        return Verdict(self.claim, self.source, holds, self.sentence)


@dataclass(frozen=True)
class Reason:
    """A reason for a decision.

    Attributes
    ----------
    outcome : {"use", "inconclusive", "do-not-use"}
        What follows from it alone; "use" is a remark that changes nothing.
    text : str
        A full sentence.
    next_steps : tuple of str
        What to do about it; each a full sentence.
    """

    outcome: Outcome
    text: str
    next_steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What to do with a model or a table.

    Attributes
    ----------
    outcome : {"use", "inconclusive", "do-not-use"}
    sentence : str
        The decision in one sentence.
    verdicts : list of TableVerdict
        Failed ones first.
    reasons : list of str
        The weightiest first.
    next_steps : list of str

    Examples
    --------
    >>> decision = Decision("inconclusive", "Too few rows to tell.", [], [], ["Measure on more rows."])
    >>> decision.fails("do-not-use"), decision.fails("inconclusive")
    (False, True)
    """

    outcome: Outcome
    sentence: str
    verdicts: list[TableVerdict]
    reasons: list[str]
    next_steps: list[str]

    def fails(self, at: Outcome | None) -> bool:
        """Return whether the outcome is as bad as ``at``, or worse; never where that is None.

        >>> [Decision(one, "", [], [], []).fails("inconclusive") for one in ("use", "inconclusive", "do-not-use")]
        [False, True, True]
        """
        return at is not None and OUTCOMES.index(self.outcome) >= OUTCOMES.index(at)

    def untold(self, notes: Iterable[str]) -> list[str]:
        """Return the notes that no reason tells already, in the same words or shorter."""
        told = {_beginning(reason) for reason in self.reasons}
        return [note for note in notes if _beginning(note) not in told]

    def record(self) -> dict[str, Any]:
        """Return what ``metrics.json`` holds of the decision."""
        return {
            "decision": self.outcome,
            "decision_sentence": self.sentence,
            "reasons": list(self.reasons),
            "next_steps": list(self.next_steps),
            "verdicts": [
                {
                    "name": one.name,
                    "claim": one.claim,
                    "status": one.status,
                    "sentence": one.sentence,
                    "value": None if one.value is None or not math.isfinite(one.value) else one.value,
                    "interval": None if one.interval is None else list(one.interval),
                }
                for one in self.verdicts
            ],
        }


def _beginning(text: str) -> str:
    """Return the first words of a sentence, by which it is recognised."""
    return text.removeprefix("Careful: ").casefold()[:30]


def decide(
    sentences: Mapping[Outcome, str], verdicts: Iterable[TableVerdict], reasons: Iterable[Reason]
) -> Decision:
    """Decide as the weightiest reason says; without any, to use.

    Parameters
    ----------
    sentences : mapping
        A sentence for each outcome; "{reason}" in it stands for the first reason that leads to it, in lower case.
    verdicts : iterable of TableVerdict
    reasons : iterable of Reason

    Examples
    --------
    >>> found = decide({"use": "Use it.", "do-not-use": "Do not use it: {reason}"}, [], [Reason("do-not-use", "No.")])
    >>> found.outcome, found.sentence
    ('do-not-use', 'Do not use it: no.')
    """
    ordered = sorted(reasons, key=lambda reason: -OUTCOMES.index(reason.outcome))
    outcome = ordered[0].outcome if ordered else "use"
    first = ordered[0].text if ordered else ""
    # What to do about a doubt matters little where something worse is certain.
    weighty = [reason for reason in ordered if reason.outcome in (outcome, "use")]
    sentence = sentences[outcome].replace("{reason}", first[:1].lower() + first[1:])
    return Decision(
        outcome,
        sentence,
        sorted(verdicts, key=lambda verdict: STATUSES.index(verdict.status)),
        list(dict.fromkeys(reason.text for reason in ordered)),
        list(dict.fromkeys(step for reason in weighty for step in reason.next_steps)),
    )


def check_fail_on(value: str | None) -> Outcome | None:
    """Check the value of ``--fail-on``."""
    known: dict[str | None, Outcome | None] = {
        None: None,
        "inconclusive": "inconclusive",
        "do-not-use": "do-not-use",
    }
    if value in known:
        return known[value]
    assert value is not None
    close = closest(value, ("inconclusive", "do-not-use"))
    hint = f". Did you mean {close!r}?" if close else ""
    raise InvalidInputError(f"--fail-on must be inconclusive or do-not-use; got {value!r}{hint}")
