"""What the answers of people who checked labels changed: the estimate, and the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.intervals import wilson
from fairsieve.label_noise.clean_ratio_estimate import ALL_WRONG_LABELS
from fairsieve.report.number_format import number, percent
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.bootstrap import Score, score_models
from fairsieve.tabular.evaluation import Share
from fairsieve.tabular.model_files import decide, probabilities
from fairsieve.tabular.true_label_measures import (
    TrueLabelMeasures,
    measure_problem,
    rate_records,
    tell_rates,
)

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from fairsieve.label_noise.estimate import CleanRatioEstimate
    from fairsieve.tabular.table_run import TableRun

__all__ = ["VerifiedChange", "compare_with_answers"]


@dataclass(frozen=True, kw_only=True)
class VerifiedChange:
    """What checked labels say, and what they changed.

    Attributes
    ----------
    wrong : Share
        Checked labels that are wrong, of all that were checked.
    by_group : dict of Share
        The same in each group.
    unsure, unanswered : int
    in_test : int
        Checked rows that were set aside: they are measured on by their verified labels.
    share_wrong : Score
        Estimated share of wrong labels in the whole table, from the checked rows and their chances to be chosen.
    estimates : pair of dict
        What the data say about the labels, without the answers and with them.
    scores : dict of pair of Score
        Accuracy and disparity of the fair model without the answers and with them, on the same rows.
    change : dict of Score
        With less without.
    fairness : str
    true_labels : TrueLabelMeasures or None
        What the plain and the fair model are worth on the true labels; None where no row of the test part was
        checked, or too few to learn from.
    rates : list of dict
        Flip rates by true label and group, with intervals; empty where too few rows were checked.
    told_rates : list of str
        The same in words.
    """

    wrong: Share
    by_group: dict[str, Share]
    unsure: int
    unanswered: int
    in_test: int
    share_wrong: Score
    estimates: tuple[dict[str, Any], dict[str, Any]]
    scores: dict[str, tuple[Score, Score]]
    change: dict[str, Score]
    fairness: str
    true_labels: TrueLabelMeasures | None = None
    rates: list[dict[str, Any]] = field(default_factory=list)
    told_rates: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """What was found and what changed, in plain words."""
        true = [] if self.true_labels is None else [self.true_labels.sentence]
        return [self._counted(), self._estimated(), self._measured(), *true, *self.told_rates]

    def _counted(self) -> str:
        """Say how many of the checked labels are wrong, and what follows for the table."""
        groups = ", ".join(
            f"{share.hits:,} of {share.total:,} of {name}" for name, share in self.by_group.items()
        )
        left = [
            f"{count:,} {word}"
            for count, word in ((self.unsure, "unsure"), (self.unanswered, "without an answer"))
            if count
        ]
        rest = f"; {' and '.join(left)}" if left else ""
        low, high = self.share_wrong.interval
        return (
            f"Of {self.wrong.total:,} checked labels {self.wrong.hits:,} are wrong ({groups}){rest}. By the chances of "
            f"these rows to be chosen, about {percent(self.share_wrong.value)} of all labels are wrong (95 % interval "
            f"{percent(low)} to {percent(high)})."
        )

    def _estimated(self) -> str:
        """Compare the estimates of the share of right labels; without checks there is an upper bound at most."""
        texts = []
        for one in self.estimates:
            low, high = one["interval"]
            told = f"{number(one['clean_ratio'])} ({number(low)} to {number(high)})"
            told = told if one["covers"] == ALL_WRONG_LABELS else f"at most {number(high)}"
            texts.append(told if one["conclusive"] else "inconclusive")
        return f"Estimated share of right labels: {texts[0]} without the answers, {texts[1]} with them."

    def _measured(self) -> str:
        """Compare the models that were trained without the answers and with them."""
        parts = []
        for name, title in (
            ("accuracy", "accuracy"),
            ("disparity", f"{ABBREVIATIONS[self.fairness]} disparity"),
        ):
            before, after = self.scores[name]
            low, high = self.change[name].interval
            parts.append(
                f"{title} {number(before.value)} → {number(after.value)} (95 % interval of the change {number(low)} to "
                f"{number(high)})"
            )
        checked = (
            f", {self.in_test:,} of which are measured on by their verified labels" if self.in_test else ""
        )
        return f"The fair model trained without the answers → with them, on the same rows{checked}: {'; '.join(parts)}."


def compare_with_answers(run: TableRun, without: TableRun) -> VerifiedChange:
    """Compare a run that used answers with the same run without them."""
    problem, answers = run.problem, run.problem.answers
    assert answers is not None
    wrong = answers.codes != answers.given
    test = problem.test
    models = (without.model, run.model, run.trade_off[0].model)
    *codes, plain = (_predicted_codes(one, test.values, problem.labels.classes) for one in models)
    positive = (
        -1 if problem.labels.positive is None else problem.labels.classes.index(problem.labels.positive)
    )
    scores, change = score_models(test.cells, codes, run.asked.fairness, positive, run.asked.seed)
    return VerifiedChange(
        wrong=Share(int(wrong.sum()), len(wrong)),
        by_group=_count_by_group(run, answers.rows, wrong),
        unsure=answers.unsure,
        unanswered=answers.unanswered,
        in_test=0 if test.verified is None else int((test.verified >= 0).sum()),
        share_wrong=_weighted_share(wrong, answers.weights),
        estimates=(_told_estimate(without.estimate), _told_estimate(run.estimate)),
        scores={name: (scores[0][name], scores[1][name]) for name in scores[0]},
        change=change,
        fairness=run.asked.fairness,
        true_labels=measure_problem(problem, {"plain model": plain, "fair model": codes[1]}),
        rates=rate_records(_known(run.estimate)),
        told_rates=tell_rates(_known(run.estimate)),
    )


def _predicted_codes(model: Pipeline, values: pd.DataFrame, classes: tuple[str, ...]) -> NDArray[np.int64]:
    """Predict the rows of the test part by a model, as codes of the classes."""
    places = np.array([classes.index(str(label)) for label in model.classes_])
    return np.asarray(places[decide(model, probabilities([model], values)[0])], np.int64)


def _count_by_group(run: TableRun, rows: NDArray[np.int64], wrong: NDArray[np.bool_]) -> dict[str, Share]:
    """Count checked and wrong labels in each group."""
    names: dict[int, str | None] = {}
    for part in (
        (run.problem.train, run.problem.test) if run.asked.test_file is None else (run.problem.train,)
    ):
        chosen = np.isin(part.rows, rows)
        names |= dict(
            zip(part.rows[chosen].tolist(), part.group_names(part.groups.codes[chosen]), strict=True)
        )
    found: dict[str, Share] = {}
    for row, is_wrong in zip(rows.tolist(), wrong.tolist(), strict=True):
        name = names.get(row) or "no group"
        hits, total = found.get(name, Share(0, 0))
        found[name] = Share(hits + is_wrong, total + 1)
    return dict(sorted(found.items()))


def _weighted_share(wrong: NDArray[np.bool_], weights: NDArray[np.float64]) -> Score:
    """Estimate a share of the whole table; Wilson's interval for as many rows as the weights are worth.

    >>> _weighted_share(np.array([True, False]), np.array([1.0, 3.0])).value
    0.25
    """
    share = float(np.average(wrong, weights=weights))
    worth = float(weights.sum() ** 2 / (weights**2).sum())
    return Score(share, wilson(share * worth, worth))


def _known(estimate: CleanRatioEstimate | None) -> CleanRatioEstimate:
    assert estimate is not None  # verified labels need clean_ratio="auto"
    return estimate


def _told_estimate(estimate: CleanRatioEstimate | None) -> dict[str, Any]:
    """Collect what is told of an estimate."""
    estimate = _known(estimate)
    return {
        "conclusive": bool(estimate.credible),
        "clean_ratio": estimate.clean_ratio,
        "interval": list(estimate.interval),
        "covers": estimate.covers,
    }
