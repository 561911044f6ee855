"""Selection rates and impact ratios, as New York City's Local Law 144 asks for them.

The rule (6 RCNY § 5-301) asks for the rate at which each category is selected, and for that rate divided by the rate of
the category that is selected most: by sex, by race or ethnicity, and by both crossed. Where a system gives scores, the
rate is the share whose score is above the median of all. It sets no threshold.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, spell
from fairsieve.intervals import wilson
from fairsieve.selection.cells import Flags
from fairsieve.tabular.label_review import Audit
from fairsieve.tabular.reading.columns import find_column, parse_numbers

SMALL = 0.02  # of the data: smaller categories may be left out, see 6 RCNY § 5-301 (d)
UNKNOWN = "unknown"
SMALL_NOTE = "below 2 % of the data: the rule allows to leave it out, with a justification"


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
    best = large["rate"].idxmax() if large["selected"].any() else None
    table["impact_ratio"] = (table["rate"] / (math.nan if best is None else table["rate"][best])).where(known)
    compared = known & (best is not None) & (table.index != best)
    table[["ratio_low", "ratio_high"]] = [
        ratio_interval(each, counts[best]) if beside else (math.nan, math.nan)
        for each, beside in zip(counts, compared, strict=True)
    ]
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
        scores = parse_numbers(find_column(table, score, "--score"), table.reading.decimal).numbers
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
