"""Decide: whether to use what was made of a table, why, and what to do next.

A decision is data: an outcome, verdicts, reasons and next steps, each a kind with its numbers. The sentences are in
``templates/decision.j2``, one macro for each kind, and read alike in the terminal, on the page, in the card and in
``metrics.json``. Whoever finds a new reason adds a small function to a list in :mod:`fairsieve.tabular.reasons` (or
:mod:`~fairsieve.tabular.audit_reasons`) and a macro ``reason_…`` to the template.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from fairsieve.errors import InvalidInputError
from fairsieve.report.document import Verdict
from fairsieve.tabular.reading.columns import closest
from fairsieve.tabular.words import say, upper

__all__ = ["Decision", "Outcome", "Reason", "Status", "Step", "TableVerdict", "check_fail_on", "decide"]

Outcome = Literal["use", "inconclusive", "do-not-use"]
Status = Literal["fails", "inconclusive", "holds"]
Subject = Literal["model", "labels", "predictions"]
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
    status : {"fails", "inconclusive", "holds"}
    value : float, optional
        What the claim is about.
    interval : (float, float), optional
        Its 95 % interval.
    facts : dict
        Names and numbers of its sentences.
    kind : str
        The macros ``claim_…`` and ``found_…`` that word it; the name where empty.
    source : str
        What it was measured on.
    """

    name: str
    status: Status
    value: float | None = None
    interval: tuple[float, float] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    source: str = "test part"

    @property
    def words(self) -> str:
        """The status in plain words."""
        return WORDS[self.status]

    @cached_property
    def claim(self) -> str:
        """What is claimed, as a sentence."""
        return say("decision.j2", f"claim_{self.kind or self.name}", {"facts": self.facts})

    @cached_property
    def sentence(self) -> str:
        """What was found, with the numbers."""
        return say("decision.j2", f"found_{self.kind or self.name}", {"verdict": self, **self.facts})

    def as_block(self) -> Verdict:
        """Return the verdict as a block of a page."""
        holds = {"fails": False, "inconclusive": None, "holds": True}[self.status]
        return Verdict(self.claim, self.source, holds, self.sentence)


@dataclass(frozen=True)
class Step:
    """Something to do next: a kind, and the names and numbers that its sentence needs."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reason:
    """A reason for a decision.

    Attributes
    ----------
    kind : str
        Such as "leak"; the macro ``reason_…`` words it.
    outcome : {"use", "inconclusive", "do-not-use"}
        What follows from it alone; "use" is a remark that changes nothing.
    facts : dict
        Names and numbers of its sentence.
    steps : tuple of Step
        What to do about it.
    warning : bool
        Whether a reader must not miss it, whatever the decision.
    """

    kind: str
    outcome: Outcome
    facts: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    warning: bool = False

    @cached_property
    def text(self) -> str:
        """The reason, as a full sentence."""
        return say("decision.j2", f"reason_{self.kind}", self.facts)


@dataclass(frozen=True)
class Decision:
    """What to do with a model, with labels or with predictions.

    Attributes
    ----------
    subject : {"model", "labels", "predictions"}
    outcome : {"use", "inconclusive", "do-not-use"}
    verdicts : list of TableVerdict
        Failed ones first.
    findings : list of Reason
        The weightiest first.
    facts : dict
        Names and numbers of the sentence.
    in_python : bool
        Whether advice names parameters of functions, rather than options of commands.

    Examples
    --------
    >>> found = Reason("few", "inconclusive", {"text": "Too few rows."})
    >>> decision = Decision("labels", "inconclusive", [], [found])
    >>> decision.sentence, decision.fails("do-not-use"), decision.fails("inconclusive")
    ('Inconclusive: too few rows.', False, True)
    """

    subject: Subject
    outcome: Outcome
    verdicts: list[TableVerdict]
    findings: list[Reason]
    facts: dict[str, Any] = field(default_factory=dict)
    in_python: bool = False

    @cached_property
    def sentence(self) -> str:
        """The decision, in a sentence or two."""
        name = f"sentence_{self.subject}_{self.outcome.replace('-', '_')}"
        reason = self.findings[0].text if self.findings else ""
        facts = {"reason": reason[:1].lower() + reason[1:], "facts": self.facts}
        return upper(say("decision.j2", name, facts))

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons as sentences, the weightiest first."""
        return list(dict.fromkeys(reason.text for reason in self.findings))

    @cached_property
    def next_steps(self) -> list[str]:
        """What to do next, as sentences."""
        # What to do about a doubt matters little where something worse is certain.
        weighty = [reason for reason in self.findings if reason.outcome in (self.outcome, "use")]
        steps = [step for reason in weighty for step in reason.steps]
        told = (
            say("decision.j2", f"step_{step.kind}", step.facts, in_python=self.in_python) for step in steps
        )
        return list(dict.fromkeys(told))

    @property
    def warnings(self) -> list[str]:
        """The reasons that a reader must not miss, as sentences."""
        return list(dict.fromkeys(reason.text for reason in self.findings if reason.warning))

    def for_python(self) -> Decision:
        """Return the decision with advice for those who call functions."""
        return replace(self, in_python=True)

    def fails(self, at: Outcome | None) -> bool:
        """Return whether the outcome is as bad as ``at``, or worse; never where that is None.

        >>> [Decision("model", one, [], []).fails("inconclusive") for one in OUTCOMES]
        [False, True, True]
        """
        return at is not None and OUTCOMES.index(self.outcome) >= OUTCOMES.index(at)

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


def decide(
    subject: Subject,
    verdicts: Iterable[TableVerdict],
    reasons: Iterable[Reason],
    facts: dict[str, Any] | None = None,
    *,
    in_python: bool = False,
) -> Decision:
    """Decide as the weightiest reason says; without any, to use.

    Examples
    --------
    >>> leak, few = (Reason(one, to, {"text": one}) for one, to in (("leak", "do-not-use"), ("few", "inconclusive")))
    >>> found = decide("model", [], [few, leak])
    >>> found.outcome, found.reasons
    ('do-not-use', ['leak', 'few'])
    """
    ordered = sorted(reasons, key=lambda reason: -OUTCOMES.index(reason.outcome))
    return Decision(
        subject,
        ordered[0].outcome if ordered else "use",
        sorted(verdicts, key=lambda verdict: STATUSES.index(verdict.status)),
        ordered,
        facts or {},
        in_python,
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
