"""The paper's claims, read from ``claims.toml`` beside this file, and the verdicts on them.

The rules are written in docs/reproduction/rules.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.benchmark.workers import Record
from fairsieve.notions import BY_SHORT
from fairsieve_reproduction import experiments as sets
from fairsieve_reproduction.checks import CHECKS, Answer, Outcome
from fairsieve_reproduction.experiments import (
    OURS,
    Experiment,
    Protocols,
    Results,
    Scope,
    column_experiment,
)
from fairsieve_reproduction.methods.registry import METHODS
from fairsieve_reproduction.published import paper_tables
from fairsieve_reproduction.statistics import (
    BEYOND,
    LEVEL,
    Pairing,
    holm,
)

FR_TRAIN, PUBLISHED = "fr-train", "fr-train-published"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, as ``claims.toml`` has it.

    ``before`` is what the rules before had in place of some of it, and ``strict`` their tests: without a margin for
    losses. ``rival`` is the FR-Train of the claims about curves.
    """

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
    before: Mapping[str, Any] | None = None
    strict: bool = False
    rival: str = "fr-train"

    @property
    def names_fr_train(self) -> bool:
        """Whether FR-Train is in the claim; then there are two verdicts, but for claims about seconds."""
        if self.check == "not_comparable":
            return False
        names = (self.one, *self.others, *(name for pair in self.pairs for name in pair))
        return self.figure == "figure5" or any(name.startswith(FR_TRAIN) for name in names)

    def with_published_settings(self) -> Claim:
        """Return the claim about FR-Train as its authors published it, in place of ours."""

        def published(name: str) -> str:
            return name.replace(FR_TRAIN, PUBLISHED) if name.startswith(FR_TRAIN) else name

        pairs = [(published(one), published(other)) for one, other in self.pairs]
        others = [published(name) for name in self.others]
        return replace(self, one=published(self.one), others=others, pairs=pairs, rival=PUBLISHED)

    def as_before(self) -> Claim:
        """Return the claim with the rules before: what it was then, and the smallest loss against it."""
        return replace(self, strict=True, **(self.before or {}))

    def answer(self, results: Results) -> Answer | None:
        """Judge the claim; None where runs are missing."""
        needed = self.experiments()
        if any(len(results.runs(each)) < min(2, len(results.scope.seeds_for(each))) for each in needed):
            return None
        return CHECKS[self.check](self, results)

    def experiments(self) -> list[Experiment]:
        """Return the experiments that the claim needs."""
        if self.figure:
            other = {FR_TRAIN, PUBLISHED} - {self.rival}
            return [each for each in sets.ITEMS[self.figure].experiments if each.method not in other]
        return list(dict.fromkeys(each for pair in self.pairings() for each in (pair.one, pair.other)))

    def pairings(self) -> list[Pairing]:
        """Return the comparisons of the claim."""
        pairings = []
        for one, other in self.pairs or [(self.one, other) for other in self.others]:
            for mine, theirs in zip(self.settings(one), self.settings(other), strict=True):
                knows = METHODS[mine.method].family not in ("plain", "robust")
                fairness = (
                    BY_SHORT.get(self.rates or self.compas_rates) or (mine if knows else theirs).fairness
                )
                for measure in self.measures:
                    name = fairness if measure == "disparity" else measure
                    beyond, same = BEYOND[self.beyond], self.beyond == "same"
                    ranked = self.every and not self.strict
                    pairings.append(Pairing(mine, theirs, name, beyond, same, ranked, self.strict))
        return pairings

    def settings(self, method: str) -> list[Experiment]:
        """Return a method's experiments, one for each column or rate."""
        if self.rates:
            return sets.rate_experiments(method, BY_SHORT[self.rates])
        if self.compas_rates:
            return [each for each in sets.compas_rate_experiments(method) if each.rate > 0]
        experiments = []
        for name in self.columns:
            table, _, data = name.partition("-")
            columns = paper_tables()[table].columns
            experiments += [
                column_experiment(method, column) for column in columns if data in ("", column.data)
            ]
        return experiments


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

    Attributes
    ----------
    fresh : Answer
        Against our FR-Train, where the claim names FR-Train.
    published : Answer, optional
        Against FR-Train with the settings that its authors published.
    authors : Answer, optional
        On the authors' draw.
    printed : Answer, optional
        By the paper's own printed means, where it prints them.
    before : Answer, optional
        By the rules before, where they answer otherwise.
    corrected : Outcome
        After a correction over all claims together.
    """

    claim: Claim
    fresh: Answer
    published: Answer | None
    authors: Answer | None
    printed: Answer | None
    before: Answer | None
    corrected: Outcome


def judgements(protocols: Protocols) -> list[Judgement]:
    """Judge every claim whose runs are there."""
    judged, printed = [], PrintedResults()
    for claim in claims():
        fresh, theirs = claim.answer(protocols.fresh), None
        if fresh is None:
            continue
        if protocols.authors and all(each.data == "synthetic" for each in claim.experiments()):
            theirs = claim.answer(protocols.authors)
        published = claim.with_published_settings().answer(protocols.fresh) if claim.names_fr_train else None
        by_means = claim.answer(printed) if printed.tells(claim) else None
        before = claim.as_before().answer(protocols.fresh)
        before = None if before is None or before.holds == fresh.holds else before
        judged.append(Judgement(claim, fresh, published, theirs, by_means, before, fresh.holds))
    tested = {each.claim.id: each.fresh.p for each in judged if each.fresh.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [
        replace(each, corrected=None) if corrected.get(each.claim.id, 0.0) >= LEVEL else each
        for each in judged
    ]


def verdict_word(holds: Outcome) -> str:
    """Write an outcome."""
    if isinstance(holds, str):
        return holds
    return "inconclusive" if holds is None else "holds" if holds else "does not hold"


class PrintedResults(Results):
    """The means that the paper prints, as if they were all that there is: whatever is apart is apart for sure."""

    def __init__(self) -> None:
        super().__init__([], Scope())
        self.means: dict[tuple[Experiment, str], float] = {}
        for table in paper_tables().values():
            for line, cells in table.lines.items() if table.name != "table4" else ():
                for column, numbers in zip(table.columns, cells, strict=True):
                    for name, one in zip(("accuracy", column.fairness), numbers, strict=True):
                        self.means.setdefault((column_experiment(line, column), name), one.value)
                        # What a notion of fairness changes nothing about stands in two columns.

    def tells(self, claim: Claim) -> bool:
        """Say whether the paper prints all means that a claim is about."""
        told = all((each, "accuracy") in self.means for each in claim.experiments())
        return told and claim.check != "not_comparable"

    def runs(self, experiment: Experiment) -> list[Record]:
        """Return two equal records."""
        return [{"rows": {"test": 0, "train": 1}}] * 2

    def values(self, experiment: Experiment, measure: str) -> NDArray[np.float64]:
        """Return the mean twice."""
        return np.full(2, self.means.get((experiment, measure), np.nan))
