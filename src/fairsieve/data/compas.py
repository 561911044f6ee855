"""COMPAS: two-year recidivism in Broward County. 7,214 rows in the file, 6,172 usable, 5,278 kept."""

from __future__ import annotations

import csv
import io
import os
from operator import itemgetter
from pathlib import Path
from typing import Literal

import numpy as np

from fairsieve.data.sources import locate, numbers, one_hot, read_text
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

__all__ = ["load_compas"]

FILE = "compas-scores-two-years.csv"
COLUMNS = (  # all that is kept of a line: names, birth dates and case numbers are not among them
    "sex",
    "race",
    "age_cat",
    "priors_count",
    "c_charge_degree",
    "days_b_screening_arrest",
    "is_recid",
    "score_text",
    "two_year_recid",
)
SEXES = ("Female", "Male")
RACES = ("African-American", "Caucasian")
AGES = ("Less than 25", "25 - 45", "Greater than 45")
PRIORS = ("0", "1-3", ">3")


def load_compas(
    path: str | os.PathLike[str] | None = None,
    *,
    sensitive: Literal["sex", "race"] = "sex",
    check: bool = True,
) -> Samples:
    """Load COMPAS: 5,278 people, ten 0/1 features, label 1 for recidivism within two years.

    Kept: screened within 30 days of the arrest, ``is_recid`` known, no ordinary traffic offence, a score
    given, and race African-American or Caucasian. Names and birth dates are never kept from the file.

    Parameters
    ----------
    path : str or path, optional
        The CSV file or a folder that holds it; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex", "race"}
        What the groups are. Both stay among the features.
    check : bool
        Refuse a file whose SHA-256 is not the known one.

    Examples
    --------
    >>> compas = load_compas()
    >>> compas.features.shape, compas.cells.groups, compas.cells.counts.tolist()
    ((5278, 10), ['Female', 'Male'], [[658, 2137], [373, 2110]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    file = locate(FILE, path, check=check)
    rows = _read_rows(file)
    days = numbers("days_b_screening_arrest", [row["days_b_screening_arrest"] or "nan" for row in rows], file)
    screened_in_time = (days >= -30) & (days <= 30)  # a missing number of days is not
    kept = [
        row
        for row, in_time in zip(rows, screened_in_time, strict=True)
        if in_time and _is_usable(row) and row["race"] in RACES
    ]

    def column(name: str) -> list[str]:
        return [row[name] for row in kept]

    priors = numbers("priors_count", column("priors_count"), file)
    brackets = np.array(PRIORS)[np.digitize(priors, [1, 4])].tolist()
    blocks = [
        one_hot("age_cat", column("age_cat"), AGES, file),
        one_hot("priors", brackets, PRIORS, file),
        one_hot("charge_degree", column("c_charge_degree"), ("F", "M"), file),
    ]
    groups = {"sex": np.array(column("sex")), "race": np.array(column("race"))}
    features = [groups["sex"] == "Female", groups["race"] == "Caucasian", *(block for block, _ in blocks)]
    labels, _ = one_hot("two_year_recid", column("two_year_recid"), ("0", "1"), file)
    return Samples(
        np.column_stack(features).astype(np.float32),
        labels[:, 1].astype(np.int64),
        groups[sensitive],
        feature_names=("sex=Female", "race=Caucasian", *(name for _, names in blocks for name in names)),
        classes=[0, 1],
        group_values=list(RACES if sensitive == "race" else SEXES),
    )


def _read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of the file, each with :data:`COLUMNS` only."""
    lines = csv.reader(io.StringIO(read_text(path), newline=""))
    header = next(lines, [])
    lacking = [name for name in COLUMNS if name not in header]
    if lacking:
        raise InvalidInputError(f"the header of {path} must have the columns {list(COLUMNS)}; {lacking} lack")
    pick = itemgetter(*(header.index(name) for name in COLUMNS))  # the first of two priors_count
    try:
        return [dict(zip(COLUMNS, pick(line), strict=True)) for line in lines if line]
    except IndexError:
        raise InvalidInputError(
            f"every line of {path} must have {len(header)} fields; line {lines.line_num} has fewer"
        ) from None


def _is_usable(row: dict[str, str]) -> bool:
    """Apply the rest of ProPublica's own filter: an outcome, no ordinary traffic offence, a score."""
    return row["is_recid"] != "-1" and row["c_charge_degree"] != "O" and row["score_text"] != "N/A"
