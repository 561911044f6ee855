"""Audit a table: which labels look wrong, what the predictions of any system are worth, and who is selected.

Selection rates and impact ratios are those that New York City's Local Law 144 asks for. The rule (6 RCNY § 5-301) asks
for the rate at which each category is selected, and for that rate divided by the rate of the category that is selected
most: by sex, by race or ethnicity, and by both crossed. Where a system gives scores, the rate is the share whose score
is above the median of all. It sets no threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio, estimate_with_rule
from fairsieve.label_noise.verified import check_verification
from fairsieve.metrics import wilson
from fairsieve.progress import Report
from fairsieve.selection.cells import Cells, Flags, Floats
from fairsieve.tabular.answers import tell_rates
from fairsieve.tabular.evaluation import Calibration, Evaluation, ModelOutput, calibrate_scores, evaluate
from fairsieve.tabular.models import record_warnings
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.preparation import TablePart, TableProblem, named_estimate, open_table, read_whole
from fairsieve.tabular.reading.columns import InputTable, count_rows, name_rows
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.roles import Labels
from fairsieve.tabular.settings import TableSettings

STAGES = ("reading the table", "estimating how many labels are wrong")
SMALL = 0.02  # of the data: smaller categories may be left out, see 6 RCNY § 5-301 (d)
UNKNOWN = "unknown"
SMALL_NOTE = "below 2 % of the data: the rule allows to leave it out, with a justification"


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(TableProblem):
    """What the data say of themselves: a table in its roles, and what is estimated of its labels.

    Attributes
    ----------
    estimate : CleanRatioEstimate
        Its ``cells`` have the counts, its ``noise`` the share of wrong labels in each.
    suspects : DataFrame
        The rows whose labels are more likely wrong than right, the surest first.
    suspects_table : InputTable
        The table that the rows of the suspects are in.
    impact : DataFrame, optional
        Selection rates and impact ratios, where they were asked for.
    """

    estimate: CleanRatioEstimate
    suspects: pd.DataFrame
    suspects_table: InputTable
    impact: pd.DataFrame | None = None


def audit_table(asked: TableSettings, report: Report) -> Audit:
    """Count the cells of a table, estimate how many of its labels are wrong, and list those."""
    report(STAGES[0])
    problem = read_whole(asked)
    part = problem.without_leaks
    report(STAGES[1])
    parts = problem.parts if len(part.values.columns) else None
    with record_warnings(part) as warned:
        if parts is None:
            # Where all columns are leaks, nothing tells of the labels.
            numbers = Preparation().fit(part.values).encode(part.values)
            numbers = numbers if numbers.shape[1] else np.zeros((len(part), 1), np.float32)
            coded = estimate_clean_ratio(numbers, part.label_codes, random_state=asked.seed, **part.facts)
        else:  # on the sample
            parts.encode(part.values, asked.reading.missing, asked.dates)
            table = parts.table(FairRobustClassifier(random_state=asked.seed), part)
            checks = (part.facts.get(name) for name in ("verified_labels", "verified_weight"))
            verified = check_verification(table.checked, *checks)
            coded, rule = estimate_with_rule(table.checked, asked.seed, verified)
    estimate, listed = named_estimate(coded, part), problem.table
    if parts is None:
        suspects = _list_wrong(part, estimate)
    else:
        suspects, listed, more = parts.audit(table, rule if estimate.credible else None)
        warned = [*more, *warned]
    leaks = [repr(name) for name in problem.train.values if name not in part.values]
    if leaks:
        told = f"What is said of wrong labels does without {', '.join(leaks)}, which may hold the answer."
        warned = [told, *warned]
    problem = replace(problem, notes=[*tell_rates(estimate), *problem.notes, *warned])
    return Audit(**vars(problem), estimate=estimate, suspects=suspects, suspects_table=listed)


def _list_wrong(part: TablePart, estimate: CleanRatioEstimate) -> pd.DataFrame:
    """List the rows whose labels are more likely wrong than right, the surest first."""
    wrong = np.flatnonzero(estimate.wrong > 0.5) if estimate.credible else np.zeros(0, np.int64)
    rows = wrong[np.argsort(-estimate.wrong[wrong], kind="stable")]
    chances = estimate.true_class[rows]
    columns = {"row": rows, "label": part.label_codes[rows], "suggested": chances.argmax(axis=1)}
    return part.named_suspects(pd.DataFrame(columns | {"probability": chances.max(axis=1)}))


# ---- Predictions


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionAudit(Audit):
    """What predictions of any system are worth, group by group, beside what the data say about the labels.

    Attributes
    ----------
    prediction, score : str
        The columns of the predictions and of the positive label's probability; the latter may be None.
    evaluation : Evaluation
        Of one model, "predictions".
    calibration : list of Calibration
        Empty without a column of scores.
    left_out : int
        Rows without a prediction.
    """

    prediction: str
    score: str | None
    evaluation: Evaluation
    calibration: list[Calibration]
    left_out: int


def audit_predictions(
    asked: TableSettings, prediction: str, score: str | None, report: Report
) -> PredictionAudit:
    """Rate the predictions in a column of a table against its labels; nothing is trained to predict.

    Parameters
    ----------
    asked : TableSettings
    prediction : str
        A column of predicted labels.
    score : str or None
        A column of probabilities of the positive label.
    report : callable
        Called with what begins.
    """
    apart = [column for column in (prediction, score) if column is not None]
    table, parts = open_table(asked)
    if parts is not None:
        table = parts.only_sample()
    for option, column in zip(("--prediction", "--score"), apart, strict=False):
        table.column(column, option)
        if column in (asked.label, *asked.sensitive):
            raise InvalidInputError(
                f"{spell(option)} must be a column of its own; got {column!r}, which is the label or a sensitive one: "
                "name another"
            )
    audited = audit_table(replace(asked, data=table, drop=(*asked.drop, *apart)), report)
    labels, notes, part = audited.labels, audited.notes, audited.whole
    inside = np.searchsorted(table.rows, part.rows)  # the rows with a label, which the estimate is of
    guessed = labels.read(table, prediction).codes[inside]
    places = np.flatnonzero(guessed >= 0)
    if not len(places):
        raise InvalidInputError(
            f"{spell('--prediction')} must have values in rows with a label; {prediction!r} has none"
        )
    measured, copies = part.take(places), part.find_copies()
    unknown = np.zeros((0, len(labels.classes)))  # the chances
    evaluation = evaluate(
        measured.cells,
        {"predictions": ModelOutput(unknown, guessed[places].astype(np.int64))},
        labels,
        asked.fairness,
        estimate=audited.estimate.take(places),
        copies=None if copies is None else copies[places],
        seed=asked.seed,
    )
    calibration: list[Calibration] = []
    if score is not None:
        given_scores = _read_scores(table, labels, score)[inside][places]
        unscored = measured.rows[np.isnan(given_scores)]
        if len(unscored):
            told = f"Rows without a score in {score!r}, which do not count for what scores mean: "
            notes = [*notes, f"{told}{count_rows(table.name, unscored)}."]
        calibration = _calibrate(measured.cells, given_scores, labels)
    return PredictionAudit(
        **vars(replace(audited, asked=asked, notes=notes)),
        prediction=prediction,
        score=score,
        evaluation=evaluation,
        calibration=calibration,
        left_out=len(part) - len(places),
    )


def _read_scores(table: InputTable, labels: Labels, column: str) -> Floats:
    """Read probabilities of the positive label."""
    if labels.positive is None:
        raise InvalidInputError(
            f"{spell('--score')} must be the probability of one label; {labels.column!r} has {len(labels.classes)}: "
            f"name it by {spell('--positive')}"
        )
    parsed = table.numbers(column, "--score")
    if table.frame[column].isna().all():
        raise InvalidInputError(
            f"{spell('--score')} must hold probabilities; no row has a value in {column!r}: name another column, or "
            f"leave it out"
        )
    wrong = parsed.odd | (parsed.numbers < 0) | (parsed.numbers > 1)
    if wrong.any():
        row = int(table.rows[np.flatnonzero(wrong)[0]])
        raise InvalidInputError(
            f"{spell('--score')} must hold probabilities, numbers from 0 to 1, of {labels.positive!r}; {column!r} "
            f"has something else in {int(wrong.sum()):,} rows (the first: {name_rows(table.name, [row])}): give such "
            "a column, or leave it out"
        )
    return parsed.numbers


def _calibrate(cells: Cells, scores: Floats, labels: Labels) -> list[Calibration]:
    """Compare scores with what is found, in every group with enough people who have one."""
    known = ~np.isnan(scores)
    if not known.any() or labels.positive is None:
        return []
    cells, scores = Cells(cells.codes[known], cells.classes, cells.groups), scores[known]
    hits = cells.label_codes == labels.positive_code
    calibration = calibrate_scores("given", cells, scores, hits, labels.positive)
    return [one for one in calibration if one.group is not None and one.observed.total >= POLICY.fewest]


# ---- Impact ratios


def ratio_interval(first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float]:
    """Compute the interval of one share divided by another, (hits, total) each, of different people.

    It combines Wilson's intervals (Donner and Zou 2012), and ends at infinity where the second share may be zero.

    Examples
    --------
    >>> [round(bound, 3) for bound in ratio_interval((30, 100), (60, 100))]
    [0.355, 0.696]
    """
    share, other = first[0] / first[1], second[0] / second[1]
    (low, high), (other_low, other_high) = wilson(*first), wilson(*second)
    product, below = share * other, low * (2 * share - low)
    root = math.sqrt(max(product**2 - below * other_high * (2 * other - other_high), 0.0))
    least = below / (product + root) if below > 0 else 0.0
    beside = other_low * (2 * other - other_low)
    root = math.sqrt(max(product**2 - high * (2 * share - high) * beside, 0.0))
    return least, (product + root) / beside if beside > 0 else math.inf


def rate_categories(categories: pd.Series, selected: Flags) -> pd.DataFrame:
    """Rate every category, the one that is selected most first; the last row counts those whose category is unknown.

    The rate that others are divided by is the highest among categories of 2 % of the data or more.

    Examples
    --------
    >>> import numpy as np
    >>> groups = pd.Series(["a"] * 50 + ["b"] * 50)
    >>> found = rate_categories(groups, np.arange(100) % 50 < np.repeat([20, 30], 50))
    >>> found[["category", "selected", "impact_ratio"]].round(2).to_numpy().tolist()
    [['b', 30, 1.0], ['a', 20, 0.67]]
    """
    names = categories.astype(object).where(categories.notna(), UNKNOWN).to_numpy()
    table = pd.Series(selected.astype(int)).groupby(names).agg(people="size", selected="sum")
    table = table.rename_axis("category").reset_index()
    table.insert(2, "share", table["people"] / len(categories))
    table["rate"] = table["selected"] / table["people"]
    counts = list(zip(table["selected"], table["people"], strict=True))
    table[["rate_low", "rate_high"]] = [wilson(*each) for each in counts]
    known, small = table["category"] != UNKNOWN, table["share"] < SMALL
    large = table[known & ~small]
    table[["impact_ratio", "ratio_low", "ratio_high"]] = math.nan
    if large["selected"].any():
        best = int(large["rate"].idxmax())
        table["impact_ratio"] = (table["rate"] / table["rate"][best]).where(known)
        for place in table.index[known].drop(best):
            table.loc[place, ["ratio_low", "ratio_high"]] = ratio_interval(counts[place], counts[best])
    table["note"] = np.select([~known, small], ["no category is known", SMALL_NOTE], "")
    order = ["unknown", "rate", "people"]
    table = table.assign(unknown=~known).sort_values(order, ascending=[True, False, False], kind="stable")
    return table.drop(columns="unknown").reset_index(drop=True)


def find_impact_ratios(audit: Audit, prediction: str | None = None, score: str | None = None) -> pd.DataFrame:
    """Rate the categories of every sensitive column, and those of all crossed.

    Who is selected are those with the positive label: in the column of predictions, or in the labels where there is
    none. With a column of scores those are also rated whose score is above the median.
    """
    labels, table = audit.labels, audit.table
    if labels.positive is None:
        raise InvalidInputError(
            f"{spell('--positive')} must name the label that stands for being selected; {labels.column!r} has "
            f"{', '.join(labels.classes)}: add {spell('--positive', labels.classes[-1])}"
        )
    codes = labels.read(table, prediction or labels.column).codes
    selections = [("selection", codes >= 0, codes == labels.positive_code)]
    if score is not None:
        scores = table.numbers(score, "--score").numbers
        known = ~np.isnan(scores)
        selections.append(("scoring", known, scores > np.median(scores[known])))
    columns = audit.groups.columns
    crossings = [*((column,) for column in columns), *([columns] if len(columns) > 1 else [])]
    measures = []
    for measure, counted, selected in selections:
        for crossing in crossings:
            categories = audit.groups.categories(table, crossing).reset_index(drop=True)
            part = rate_categories(categories[counted], selected[counted])
            part.insert(0, "by", " × ".join(crossing))
            part.insert(0, "measure", measure)
            measures.append(part)
    return pd.concat(measures, ignore_index=True)


def impact_csv(impact: pd.DataFrame) -> str:
    """Write the table as CSV; numbers with four decimals."""
    return str(impact.to_csv(index=False, float_format="%.4f", lineterminator="\n"))
