"""Decide: which model to use, or whether to use labels or predictions, why, and what to do next.

A decision is data: an outcome, verdicts, reasons and next steps, each a kind with its numbers. The sentences are in
``sentences.j2``, one macro for each kind, and read alike in the terminal, on the page, in the card and in
``metrics.json``. To add a reason, write a function that takes a run or an audit and yields it, name it in the list that
decides, and word it by a macro ``reason_…``. Which of two models is the better one is seen in
:mod:`fairsieve.tabular.evaluation`; the stored one is judged here, by the rules that hold for any predictions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.judgement import rows_needed
from fairsieve.metrics import Bounds, Score, simultaneous, wilson
from fairsieve.report.text import load_sentences, upper
from fairsieve.tabular.answers import Facts, describe_answers, tell_revealed
from fairsieve.tabular.audits import Audit, PredictionAudit
from fairsieve.tabular.evaluation import Evaluation, Gap, is_useless, label_shares, uselessness
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.read import is_frame
from fairsieve.tabular.settings import TableSettings, table_options, training_command
from fairsieve.tabular.table_notes import few_notes
from fairsieve.tabular.table_run import TableRun
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


def tell(name: str, facts: Facts) -> list[str]:
    """Word paragraphs, each in one line: the macro ``name`` of a template, where blank lines stand between them."""
    macros = load_sentences("fairsieve.tabular", "sentences.j2")
    parts = re.split(r"\n\s*\n", str(getattr(macros, name)(**facts)))
    return [" ".join(part.split()) for part in parts if part.strip()]


def say(name: str, facts: Facts) -> str:
    """Word one sentence or a few, in one line."""
    return " ".join(tell(name, facts))


def estimate_sentence(estimate: CleanRatioEstimate) -> str:
    """Say how many labels were found to be wrong, how they came about, and what cannot be known."""
    return say("estimate", {"it": estimate})


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
    interval: Bounds | None = None
    facts: Facts = field(default_factory=dict, repr=False)
    kind: str = ""
    source: str = "rows that no model saw"

    @cached_property
    def claim(self) -> str:
        """What is claimed, as a sentence."""
        return say(f"claim_{self.kind or self.name}", {"facts": self.facts})

    @cached_property
    def sentence(self) -> str:
        """What was found, with the numbers."""
        return say(f"found_{self.kind or self.name}", {"verdict": self, **self.facts})


@dataclass(frozen=True)
class Step:
    """Something to do next: a kind, and the names and numbers that its sentence needs."""

    kind: str
    facts: Facts = field(default_factory=dict, repr=False)


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
    facts: Facts = field(default_factory=dict, repr=False)
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
    facts: Facts = field(default_factory=dict, repr=False)

    def word(self, *worded: Reason | Step) -> list[str]:
        """Say reasons or steps as full sentences, each once."""
        told = (say(f"{type(one).__name__.lower()}_{one.kind}", one.facts) for one in worded)
        return list(dict.fromkeys(told))

    @cached_property
    def sentence(self) -> str:
        """The decision, in a sentence or two."""
        name = f"sentence_{self.subject}_{self.outcome.replace('-', '_')}"
        against = [reason for reason in self.findings if reason.outcome == self.usable]
        reason = "".join(self.word(*against[:1]))
        facts = {"reason": reason[:1].lower() + reason[1:], "facts": self.facts, "usable": self.usable}
        decided = upper(say(name, facts))
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

    def record(self) -> Facts:
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
    facts: Facts | None = None,
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


# ---- Any predictions


def _judge(bounds: list[Bounds], most: float) -> Status:
    """Judge whether everything stays below a bound: what fails decides, then what cannot be told."""
    if any(low > most for low, _ in bounds):
        return "fails"
    return "cannot tell" if any(high >= most for _, high in bounds) else "holds"


def gaps_verdict(evaluation: Evaluation, model: int, most: float) -> TableVerdict:
    """Judge whether all gaps between groups are small; one of many is only found wide beyond what chance gives many."""
    gaps = [gap if gap.models[model].value >= 0 else gap.turned() for gap in evaluation.gaps]
    if not gaps:
        return TableVerdict("gaps", "cannot tell", facts={"gap": None, "most": most})
    status = _judge([(gap.at_once[model].interval[0], gap.models[model].interval[1]) for gap in gaps], most)
    surest = max(gaps, key=lambda gap: gap.at_once[model].interval[0])
    worst = surest if status == "fails" else max(gaps, key=lambda gap: gap.models[model].value)
    wide = worst.models[model].value > most  # to be found wide takes more than to be found narrow
    score = worst.at_once[model] if wide else worst.models[model]
    more = None
    if status == "cannot tell":
        asked = [(worst.rate.name, worst.rate.code, worst.low, worst.high)]
        [by_chance] = evaluation.judged.on_given_labels.gaps(model, asked, len(gaps) if wide else 1)
        more = _more_rows(evaluation, score, most, by_chance)
    facts = {"most": most, "count": len(gaps), "more": more, **gap_facts(evaluation, worst, score)}
    return TableVerdict("gaps", status, score.value, score.interval, facts)


def _more_rows(evaluation: Evaluation, score: Score, boundary: float, by_chance: Score) -> int | None:
    """Compute how many more rows would tell on which side of a boundary a number lies; None if rows would not."""
    rows = rows_needed(score, boundary, by_chance, len(evaluation.cells), evaluation.judged.basis)
    return None if rows is None or rows > POLICY.most_rows else rows - len(evaluation.cells)


def gap_facts(evaluation: Evaluation, gap: Gap, score: Score) -> Facts:
    """Collect what is said of a gap between two groups."""
    low, high = (group_name(evaluation.groups[place]) for place in (gap.low, gap.high))
    return {"gap": gap.rate, "low": low, "high": high, "value": score.value, "bounds": score.interval}


def guess_verdict(evaluation: Evaluation, model: int) -> TableVerdict:
    """Judge whether a model is right more often than the commonest label for everyone."""
    label, share = max(label_shares(evaluation, model).items(), key=lambda pair: pair[1])
    accuracy = evaluation.judged.models[model].accuracy
    low, high = accuracy.interval
    status: Status = "holds" if low > share else "fails" if high < share else "cannot tell"
    by_chance = evaluation.judged.on_given_labels.models[model].accuracy
    facts = {"share": share, "label": label, "more": _more_rows(evaluation, accuracy, share, by_chance)}
    return TableVerdict("guess", status, accuracy.value, accuracy.interval, facts)


def _verdict_reasons(
    verdicts: list[TableVerdict], evaluation: Evaluation, steps: Mapping[str, tuple[Step, ...]]
) -> Iterator[Reason]:
    """Turn verdicts into reasons."""
    for verdict in verdicts:
        if verdict.status == "fails":
            yield Reason(f"{verdict.name}_fails", "do-not-use", verdict.facts, steps.get(verdict.name, ()))
        elif verdict.status == "cannot tell":
            facts = {"rows": len(evaluation.cells), "basis": evaluation.judged.basis, **verdict.facts}
            yield Reason(f"{verdict.name}_unknown", "cannot-tell", facts)


def _too_few(evaluation: Evaluation) -> Iterator[Reason]:
    """Name the groups of too few people."""
    for note in few_notes(evaluation.cells):
        yield Reason("few", "cannot-tell", {"text": note}, (Step("few"),))


def review_steps(
    asked: TableSettings, estimate: CleanRatioEstimate | None, checks: int | None = None
) -> Iterator[Step]:
    """Have labels checked that nobody checked yet, as far as there are any, and use the answers.

    ``checks`` are how many it takes in all; a few when None.
    """
    checked = 0 if estimate is None else len(estimate.checked)
    if estimate is not None and checked == len(estimate.cells):
        return
    rows = max(50, 10 * math.ceil(((checks or 0) - checked) / 10))
    if is_frame(asked.data):
        yield Step("review", {"words": [], "again": [], "rows": rows})
        return
    page = new_page(Path("review.html"))
    words = command_words("review", asked, *asked.verified) + (["--rows", str(rows)] if rows != 50 else [])
    again = _verified_options(*asked.verified, page.with_suffix(".csv"))
    yield Step("review", {"words": [*words, "-o", str(page)], "again": again, "rows": rows})


def command_words(command: str, asked: TableSettings, *answers: Path) -> list[str]:
    """Write a command that reads a table, and files with answers."""
    return ["fairsieve", command, str(asked.data), *table_options(asked), *_verified_options(*answers)]


def _verified_options(*paths: Path) -> list[str]:
    """Write the files with answers as options of a command."""
    return [word for path in paths for word in ("--verified", str(path))]


def new_page(page: Path) -> Path:
    """Name a page that is not there yet, nor its file for answers.

    >>> new_page(Path("no-such-folder/review.html")).name
    'review.html'
    """
    pages = chain([page], (page.with_stem(f"{page.stem}-{number}") for number in count(2)))
    return next(one for one in pages if not (one.exists() or one.with_suffix(".csv").exists()))


# ---- A model


def decide_run(run: TableRun) -> Decision:
    """Decide which model to use, and whether the stored one can be used as it is."""
    reasons = [one for find in RUN for one in find(run)]
    facts = {"run": run, **run_facts(run)}
    if run.verified is not None:
        facts["revealed"] = tell_revealed(run.verified)
    return decide("model", reasons, facts, outcome=run.choice.outcome, steps=_steps(run))


def run_facts(run: TableRun) -> Facts:
    """Collect the rates that a decision speaks of: those in which groups lie farthest apart under the plain model."""
    evaluation = run.evaluation
    if not evaluation.widest:
        return {"rate": None, "rates": []}
    rate = evaluation.widest[0].rate
    rows = zip(evaluation.groups, *rate.models, strict=True)
    return {"rate": rate, "rates": [row for row in rows if row[0] is not None and None not in row]}


def _steps(run: TableRun) -> Iterator[Step]:
    """Say what to do about the choice: the command for each model, or what would tell."""
    choice, asked = run.choice, run.asked
    if choice.outcome == "your-call":
        tolerance = asked.tolerance or 0.02
        other = "plain" if choice.stored == "fair" else "fair"
        words = training_command(asked, {"tolerance": None if other == "plain" else tolerance})
        yield Step("store_other", {"other": other, "words": words, "tolerance": tolerance})
    elif choice.outcome == "cannot-tell":
        needed, count = choice.needed, len(run.evaluation.cells)
        # Who has a thousand rows hardly finds a hundred thousand more.
        rows = needed.rows if (needed.rows or 0) <= POLICY.most_times * count else None
        if rows:
            yield Step("more_rows", {"more": rows - count, "checks": needed.checks})
        if needed.checks or not rows:
            yield from review_steps(asked, run.estimate, needed.checks)


def _models(run: TableRun) -> Iterator[TableVerdict]:
    """Judge the fair model beside the plain one, as the choice did."""
    evaluation, choice = run.evaluation, run.choice
    facts = {"run": run, "price": choice.price}
    kept = evaluation.judged.keeps_accuracy(choice.price)
    yield TableVerdict("accuracy", kept, *choice.change["accuracy"], facts)
    if not evaluation.gaps:
        yield TableVerdict("fairness", "cannot tell", kind="fairness_of_few")
        return
    ends = [gap_facts(evaluation, gap, gap.at_once[model]) for model, gap in enumerate(evaluation.widest)]
    alike = evaluation.judged.more_alike()
    yield TableVerdict("fairness", alike, *choice.change["disparity"], {"run": run, "gaps": ends})


def _stored(run: TableRun) -> Iterator[TableVerdict | Reason]:
    """Judge the stored model by the rules that hold for any predictions."""
    evaluation, model = run.evaluation, run.place
    verdicts = [gaps_verdict(evaluation, model, max(POLICY.acceptable_gap, run.asked.tolerance or 0.0))]
    yield from verdicts
    yield from _verdict_reasons(verdicts, evaluation, {})
    useless = uselessness(evaluation, model)
    if useless is not None:
        steps = (*_threshold_steps(run), *_rare_steps(run)) if useless.surely else _rare_steps(run)
        yield Reason(useless.kind, "do-not-use" if useless.surely else "cannot-tell", {"it": useless}, steps)


def _threshold_steps(run: TableRun) -> Iterator[Step]:
    """Find people of a label that is hardly predicted by another threshold."""
    labels, evaluation = run.problem.labels, run.evaluation
    if len(labels.classes) == 2 and run.asked.threshold.is_default:
        share = label_shares(evaluation, run.place)[labels.classes[labels.positive_code]]
        auc = evaluation.of_everyone("auc", run.place)
        facts = {"label": labels.positive, "share": share, "auc": None if auc is None else auc.value}
        if 0 < share < 0.5:
            yield Step("threshold", facts)


def _rare_steps(run: TableRun) -> tuple[Step, ...]:
    """Do something about a label that is hardly ever predicted."""
    counts = run.problem.whole.cells.counts.sum(axis=1)
    share, rarest = float(counts.min() / counts.sum()), int(counts.argmin())
    if share < POLICY.rare_label:
        facts = {"share": share, "count": int(counts.min()), "label": run.problem.labels.classes[rarest]}
        return (Step("rare_label", facts),)
    other = next(_other_model(run), None)
    return (Step("columns"), *_try_models(run)) if other is None else other.steps


def _try_models(run: TableRun) -> tuple[Step, ...]:
    """Offer other kinds of model, where none were compared."""
    return () if run.asked.model == "auto" else (Step("models"),)


def _other_model(run: TableRun) -> Iterator[Reason]:
    """Remark that another kind of model predicts these labels better than a linear one."""
    tried = None if run.estimate is None else run.estimate.predictor
    if run.trained.kind != "logistic" or tried is None or "linear" not in tried.losses:
        return
    linear, best = tried.losses["linear"], tried.losses[tried.name]
    if linear - best >= POLICY.better_model:
        facts = {"name": tried.name, "best": best, "linear": linear}
        yield Reason("other_model", "use", facts, _try_models(run))


def _leaks(run: TableRun) -> Iterator[Reason]:
    """Refuse models that read the answer from a column."""
    for note in run.notes:
        if note_kind(note) == "leak":
            yield Reason("leak", "do-not-use", {"text": note}, (Step("leak"),))


def _dropped(run: TableRun) -> Iterator[TableVerdict | Reason]:
    """Doubt a fair model that lost most of a cell for no known reason; warn of a cell that hardly counts."""
    if run.choice.stored == "plain":
        return
    named = [cell for cell in run.dropped if cell.group is not None]
    measured = [cell for cell in named if cell.dropped.total >= POLICY.fewest]
    most = POLICY.mostly_dropped
    gone = [cell for cell in measured if cell.dropped.value >= most + (cell.estimated_noise or 0.0)]
    if gone and len(getattr(run.trained.estimator, "left_out_", ())):  # not by a clean ratio
        yield Reason("cells_left_out", "use", {"cells": gone})
    elif gone:
        ways = (Step("higher_ratio"), *review_steps(run.asked, run.estimate))
        yield Reason("cells_dropped", "cannot-tell", {"cells": gone}, ways, warning=True)
    weighed = [cell for cell in named if cell.effective_weight is not None]
    if weighed:
        least = min(weighed, key=lambda cell: cell.effective_weight or 0.0)
        status: Status = "fails" if least.is_ignored else "holds"
        facts = {"least": least}
        yield TableVerdict("weight", status, least.effective_weight, facts=facts, source="training")
    ignored = [cell for cell in weighed if cell.is_ignored]
    if ignored:
        yield Reason("ignored", "use", {"cells": ignored}, (Step("looser"),), warning=True)


def _sensitive(run: TableRun) -> Iterator[Reason]:
    """Say what learning from the sensitive columns would give, where it would help a model that is of use."""
    tried = run.with_sensitive
    if tried is None or is_useless(run.evaluation, run.place):
        return
    if tried.both[1].value < tried.fair[1].value - POLICY.small_change:
        yield Reason("sensitive", "use", {"it": tried, "title": run.problem.groups.title})


def _suspects(run: TableRun) -> Iterator[Reason]:
    """Remark that labels look wrong, or that nobody knows which are."""
    steps = tuple(review_steps(run.asked, run.estimate))
    if run.is_inconclusive and run.estimate is not None:
        yield Reason("unknown_labels", "use", {"it": run.estimate}, steps)
    elif len(run.suspects):
        yield Reason("suspects", "use", {"run": run}, steps)


RUN: list[Callable[[TableRun], Iterator[TableVerdict | Reason]]] = [
    _leaks,
    _models,
    _stored,
    lambda run: _too_few(run.evaluation),
    _dropped,
    _sensitive,
    _other_model,
    _suspects,
]


# ---- Labels


def decide_audit(audit: Audit) -> Decision:
    """Decide whether the labels of a table can be used as they are."""
    facts = {}
    if audit.answers is not None:
        facts["revealed"] = tell_revealed(describe_answers(audit, audit.estimate)[0])
    return decide("labels", _labels(audit), facts)


def _labels(audit: Audit) -> Iterator[Reason]:
    """Say whether labels look wrong; doubt it where one label is so rare that wrong ones would hardly show."""
    estimate, steps = audit.estimate, tuple(review_steps(audit.asked, audit.estimate))
    told = {"it": estimate}
    if not estimate.credible:
        yield Reason("unknown_labels", "cannot-tell", told, steps)
        return
    none_found = estimate.verified is not None and estimate.interval[1] > 1 - 1e-9  # by those who checked
    # The share is that in the sentence, as it is written.
    if round(estimate.share_wrong, 3) >= POLICY.wrong_labels and not none_found:
        yield Reason("wrong_labels", "do-not-use", told, steps)
        yield Reason("audit_suspects", "use", {"count": len(audit.suspects)}, (Step("train"),))
    else:
        sure = 1 - estimate.interval[0] <= POLICY.all_clear
        yield Reason("wrong_labels", "use" if sure else "cannot-tell", told, steps)
    counts = estimate.cells.counts.sum(axis=1)
    share, rarest = float(counts.min() / counts.sum()), int(counts.argmin())
    if share < POLICY.hardly_there:
        facts = {"share": share, "label": str(estimate.cells.classes[rarest])}
        yield Reason("rare_label", "cannot-tell", facts, steps)


# ---- Predictions


def decide_predictions(audit: PredictionAudit) -> Decision:
    """Decide whether to use predictions that a table has already."""
    evaluation = audit.evaluation
    gaps = gaps_verdict(evaluation, 0, POLICY.acceptable_gap)
    verdicts = [guess_verdict(evaluation, 0), gaps, *calibration_verdict(audit)]
    return decide("predictions", [*verdicts, *_prediction_reasons(audit, verdicts)])


def calibration_verdict(audit: PredictionAudit) -> Iterator[TableVerdict]:
    """Judge whether scores mean what they say, in every group, for right labels.

    One of many groups is only found wrong beyond what chance gives many.
    """
    if not audit.calibration:
        return
    alone, at_once = (_calibration_errors(audit, compared) for compared in (1, len(audit.calibration)))
    surely = [max(low, -high, 0.0) for _, (low, high) in at_once]
    at_most = [max(map(abs, error.interval)) for error in alone]
    status = _judge(list(zip(surely, at_most, strict=True)), POLICY.acceptable_gap)
    worst = int(np.argmax(surely if status == "fails" else [abs(error.value) for error in alone]))
    error = (at_once if status == "fails" else alone)[worst]
    facts = {"worst": audit.calibration[worst], "error": error, "label": audit.labels.positive}
    yield TableVerdict("calibration", status, *error, facts)


def _calibration_errors(audit: PredictionAudit, compared: int) -> list[Score]:
    """Compute how many more have the label than scores say, with intervals that hold for ``compared`` groups."""
    judged = audit.evaluation.judged
    if judged.basis == "given labels":
        shares = [one.observed for one in audit.calibration]
        ends = [wilson(share.hits, share.total, simultaneous(compared)) for share in shares]
        scores = [Score(share.value, end) for share, end in zip(shares, ends, strict=True)]
    else:
        every = judged.class_shares(audit.labels.positive_code, compared)
        by_group = dict(zip(audit.evaluation.groups, every, strict=True))
        scores = [by_group[one.group] for one in audit.calibration]
    return [score.less(one.predicted) for score, one in zip(scores, audit.calibration, strict=True)]


def _prediction_reasons(audit: PredictionAudit, verdicts: list[TableVerdict]) -> Iterator[Reason]:
    """Turn verdicts into reasons, name groups of too few people, and doubt the labels themselves."""
    predicted = audit.evaluation.predicted[0]
    if len(predicted) == 1:
        facts: Facts = {"label": next(iter(predicted))}
        yield Reason("predictions_one_label", "do-not-use", facts, (Step("look_at_threshold"),))
    steps = {name: (Step(name),) for name in ("guess", "gaps", "calibration")}
    yield from _verdict_reasons(verdicts, audit.evaluation, steps)
    yield from _too_few(audit.evaluation)
    if not audit.estimate.credible or len(audit.suspects):
        yield Reason("labels_in_doubt", "use", {"it": audit.estimate}, (Step("check_labels"),))
