"""Decide: which model to use, or whether to use labels or predictions, why, and what to do next.

A decision is data: an outcome, verdicts, reasons and next steps, each a kind with its numbers. The sentences are in
``templates/decision.j2``, one macro for each kind, and read alike in the terminal, on the page, in the card and in
``metrics.json``. Whoever finds a new reason adds a small function to :mod:`fairsieve.tabular.reasons` and a macro
``reason_…`` to the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from fairsieve.intervals import Score
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.judgement import rows_needed
from fairsieve.report.text import load_sentences, upper
from fairsieve.tabular.evaluation import Evaluation, is_useless
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.settings import TableSettings
from fairsieve.validation import check_choice

Use = Literal["use", "cannot-tell", "do-not-use"]
Outcome = Literal["use", "use-fair", "keep-plain", "your-call", "cannot-tell", "do-not-use"]
Status = Literal["fails", "cannot tell", "holds"]
Subject = Literal["model", "labels", "predictions"]
USES: tuple[Use, ...] = get_args(Use)  # from the best to the worst, as the others
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STATUSES: tuple[Status, ...] = get_args(Status)  # in the order in which they are shown
SHOWN = {"fails": "Does not hold", "cannot tell": "Cannot tell", "holds": "Holds"}
NO_GROUP = "(no group)"


def group_name(group: str | None) -> str:
    """Name a group."""
    return NO_GROUP if group is None else group


def tell(template: str, name: str, facts: dict[str, Any], *, in_python: bool = False) -> list[str]:
    """Word paragraphs, each in one line: the macro ``name`` of a template, where blank lines stand between them.

    With ``in_python``, advice names parameters instead of options of the command line.
    """
    macros = load_sentences("fairsieve.tabular", f"templates/{template}", in_python=in_python)
    parts = re.split(r"\n\s*\n", str(getattr(macros, name)(**facts)))
    return [" ".join(part.split()) for part in parts if part.strip()]


def say(template: str, name: str, facts: dict[str, Any], *, in_python: bool = False) -> str:
    """Word one sentence or a few, in one line."""
    return " ".join(tell(template, name, facts, in_python=in_python))


def estimate_sentence(estimate: CleanRatioEstimate) -> str:
    """Say how many labels were found to be wrong, how they came about, and what cannot be known."""
    return say("decision.j2", "estimate", {"it": estimate})


@dataclass(frozen=True)
class TableVerdict:
    """A claim, and whether the numbers bear it out.

    Attributes
    ----------
    name : str
        One word, for programs: "accuracy", "fairness", "dropping", …
    status : {"fails", "cannot tell", "holds"}
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
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    kind: str = ""
    source: str = "rows that no model saw"

    @cached_property
    def claim(self) -> str:
        """What is claimed, as a sentence."""
        return say("decision.j2", f"claim_{self.kind or self.name}", {"facts": self.facts})

    @cached_property
    def sentence(self) -> str:
        """What was found, with the numbers."""
        return say("decision.j2", f"found_{self.kind or self.name}", {"verdict": self, **self.facts})


@dataclass(frozen=True)
class Step:
    """Something to do next: a kind, and the names and numbers that its sentence needs."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Reason:
    """A reason for a decision.

    Attributes
    ----------
    kind : str
        Such as "leak"; the macro ``reason_…`` words it.
    outcome : {"use", "cannot-tell", "do-not-use"}
        What follows from it alone; "use" is a remark that changes nothing.
    facts : dict
        Names and numbers of its sentence.
    steps : tuple of Step
        What to do about it.
    warning : bool
        Whether a reader must not miss it, whatever the decision.
    """

    kind: str
    outcome: Use
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    steps: tuple[Step, ...] = ()
    warning: bool = False


@dataclass(frozen=True)
class Decision:
    """What to do with models, with labels or with predictions.

    Attributes
    ----------
    subject : {"model", "labels", "predictions"}
    outcome : str
        Of models "use-fair", "keep-plain", "your-call" or "cannot-tell"; else what ``usable`` says.
    usable : {"use", "cannot-tell", "do-not-use"}
        Whether the stored model, the labels or the predictions can be used as they are.
    verdicts : list of TableVerdict
        Failed ones first.
    findings : list of Reason
        The weightiest first.
    steps : list of Step
        What to do about the outcome itself.
    facts : dict
        Names and numbers of the sentence.
    in_python : bool
        Whether advice names parameters of functions, rather than options of commands.

    Examples
    --------
    >>> found = Reason("few", "cannot-tell", {"text": "Too few rows."})
    >>> decision = decide("labels", [found])
    >>> decision.sentence, decision.fails("do-not-use"), decision.fails("cannot-tell")
    ('Cannot tell: too few rows.', False, True)
    """

    subject: Subject
    outcome: Outcome
    usable: Use
    verdicts: list[TableVerdict]
    findings: list[Reason]
    steps: list[Step] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    in_python: bool = True

    def word(self, *worded: Reason | Step) -> list[str]:
        """Say reasons or steps as full sentences, each once."""
        told = (
            say(
                "decision.j2", f"{type(one).__name__.lower()}_{one.kind}", one.facts, in_python=self.in_python
            )
            for one in worded
        )
        return list(dict.fromkeys(told))

    @cached_property
    def sentence(self) -> str:
        """The decision, in a sentence or two."""
        name = f"sentence_{self.subject}_{self.outcome.replace('-', '_')}"
        against = [reason for reason in self.findings if reason.outcome == self.usable]
        reason = "".join(self.word(*against[:1]))
        facts = {"reason": reason[:1].lower() + reason[1:], "facts": self.facts, "usable": self.usable}
        decided = upper(say("decision.j2", name, facts, in_python=self.in_python))
        return f"{self.facts.get('revealed', '')} {decided}".strip()  # what people found comes first

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons as sentences, the weightiest first."""
        return self.word(*self.findings)

    @cached_property
    def next_steps(self) -> list[str]:
        """What to do next, as sentences."""
        # What to do about a doubt matters little where something worse is certain.
        weighty = [reason for reason in self.findings if reason.outcome in (self.usable, "use")]
        steps = [step for reason in weighty for step in reason.steps]
        urgent = any(reason.outcome == "do-not-use" and reason.steps for reason in weighty)
        ordered = steps + self.steps if urgent else self.steps + steps
        first: dict[str, Step] = {}
        for step in ordered:
            first.setdefault(step.kind, step)
        return self.word(*first.values())

    @property
    def warnings(self) -> list[str]:
        """What a reader must not miss, as sentences; but for what the decision says itself."""
        told = self.word(*(reason for reason in self.findings if reason.warning))
        return [text for text in told if text[1:] not in self.sentence]

    @property
    def lines(self) -> list[str]:
        """The verdicts, failed ones first, the reasons that the sentence leaves out, and what to do next."""
        told = self.sentence.lower()
        return [
            *(f"{SHOWN[one.status]}: {one.claim} {one.sentence}" for one in self.verdicts),
            *(reason for reason in self.reasons if reason.lower() not in told),
            *(f"Next: {step}" for step in self.next_steps),
        ]

    def fails(self, at: Outcome | None) -> bool:
        """Return whether the outcome is as bad as ``at``, or worse; never where that is None.

        What must not be used is worse than any outcome.

        >>> [Decision("model", one, "use", [], []).fails("your-call") for one in OUTCOMES]
        [False, False, False, True, True, True]
        """
        worst = "do-not-use" if self.usable == "do-not-use" else self.outcome
        return at is not None and OUTCOMES.index(worst) >= OUTCOMES.index(at)

    def record(self) -> dict[str, Any]:
        """Return what ``metrics.json`` holds of the decision."""
        names = ("name", "claim", "status", "sentence", "value", "interval")
        return {
            "decision": self.outcome,
            "decision_sentence": self.sentence,
            "usable": self.usable,
            "reasons": self.reasons,
            "next_steps": self.next_steps,
            "verdicts": [{name: getattr(one, name) for name in names} for one in self.verdicts],
        }


def decide(
    subject: Subject,
    given: Iterable[TableVerdict | Reason],
    facts: dict[str, Any] | None = None,
    *,
    outcome: Outcome | None = None,
    steps: Iterable[Step] = (),
) -> Decision:
    """Decide as the weightiest reason says; without any, to use.

    Parameters
    ----------
    outcome : str, optional
        Which model to use, where there are two; reasons are then about the one that is stored.
    steps : iterable of Step
        What to do about that.

    Examples
    --------
    >>> leak, few = (Reason(one, to, {"text": one}) for one, to in (("leak", "do-not-use"), ("few", "cannot-tell")))
    >>> found = decide("labels", [few, leak])
    >>> found.outcome, found.reasons
    ('do-not-use', ['leak', 'few'])
    """
    every = list(given)
    reasons = (one for one in every if isinstance(one, Reason))
    ordered = sorted(reasons, key=lambda reason: -USES.index(reason.outcome))
    verdicts = (one for one in every if isinstance(one, TableVerdict))
    judged = sorted(verdicts, key=lambda verdict: STATUSES.index(verdict.status))
    usable = ordered[0].outcome if ordered else "use"
    return Decision(subject, outcome or usable, usable, judged, ordered, list(steps), facts or {})


def check_fail_on(value: str | None) -> Outcome | None:
    """Check the value of ``--fail-on``."""
    if value is not None:
        check_choice("--fail-on", value, OUTCOMES[2:])
    return value  # type: ignore[return-value]


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
    rows, checks : int or None
        How many rows, or checked labels, in all would tell; None where they would not, or where it is told.
    """

    outcome: Chosen
    why: Why
    stored: Literal["plain", "fair"]
    change: dict[str, Score]
    price: float
    rows: int | None = None
    checks: int | None = None


def choose_model(evaluation: Evaluation, asked: TableSettings) -> Choice:
    """Choose between the models of a run; the stored model follows from it."""
    change = evaluation.judged.change(0, 1)
    price = max(POLICY.accuracy_price, asked.max_accuracy_loss or 0.0)
    outcome, why = _decide(evaluation, change, price)
    named = asked.tolerance is not None or asked.max_accuracy_loss is not None
    if named and why in ("alike", "fair enough"):  # either will do, and the user has said which
        outcome = "your-call"
    stored: Literal["plain", "fair"] = "plain"
    follows = outcome == "your-call" or (outcome == "cannot-tell" and not _loses(change))
    if outcome == "use-fair" or (named and follows):
        stored = "fair"
    open_ = outcome == "cannot-tell" and evaluation.gaps
    rows, checks = _needed(evaluation, change) if open_ else (None, None)
    return Choice(
        outcome=outcome, why=why, stored=stored, change=change, price=price, rows=rows, checks=checks
    )


def _decide(evaluation: Evaluation, change: dict[str, Score], price: float) -> tuple[Chosen, Why]:
    """Say which model is better, where the intervals do."""
    accuracy, disparity = change["accuracy"].interval, change["disparity"].interval
    fairer = evaluation.judged.more_alike(0, 1).verdict
    small = _small(evaluation)
    if is_useless(evaluation, 1):
        return "keep-plain", "neither" if is_useless(evaluation, 0) else "useless"
    if not evaluation.gaps:  # no two groups have enough people to be compared
        return "cannot-tell", "unknown"
    if fairer == "holds":
        kept = evaluation.judged.keeps_accuracy(price, 0, 1).verdict
        return ("use-fair", "fairer") if kept == "holds" else ("your-call", "trade")
    if accuracy[0] > 0:
        if disparity[1] <= small:
            return "use-fair", "more accurate"
        # surely more accurate by what fairness may cost, and perhaps less fair
        return (
            ("your-call", "other trade")
            if disparity[0] > 0 or accuracy[0] > price
            else ("cannot-tell", "unknown")
        )
    if fairer == "fails" or (accuracy[1] < 0 and disparity[0] > -small):
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


def _needed(evaluation: Evaluation, change: dict[str, Score]) -> tuple[int | None, int | None]:
    """Compute how many rows, or checked labels, would tell that the fair model is fairer, or that nothing changes."""
    judged, score, small = evaluation.judged, change["disparity"], _small(evaluation)
    count = len(evaluation.cells)
    rows = [judged.more_alike(0, 1).rows]
    if abs(score.value) < small:  # then the interval has to fit between two changes that do not matter
        given = judged.on_given_labels.change(0, 1)["disparity"]
        ends = [rows_needed(score, end, given, count, judged.basis) for end in (-small, small)]
        rows.append(None if None in ends else max(each for each in ends if each is not None))
    able = [each for each in rows if each is not None and count < each <= POLICY.most_rows]
    return min(able, default=None), judged.checks_to_tell(0, 1)
