"""COMPAS: two-year recidivism in Broward County. 7,214 rows in the file, 6,172 usable, 5,278 kept."""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from fairsieve.data.sources import encode, locate, numbers, one_hot, read_table
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

# All that is kept of a line: names, birth dates and case numbers are not among them.
COLUMNS = (
    "sex", "race", "age_cat", "priors_count", "c_charge_degree", "days_b_screening_arrest", "is_recid", "score_text",
    "two_year_recid",
)  # fmt: skip
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
    sensitive : {"sex", "race"}, default="sex"
        What the groups are. Both stay among the features.
    check : bool, default=True
        Refuse a file whose SHA-256 is not the known one.

    Examples
    --------
    >>> compas = load_compas()
    >>> compas.features.shape, compas.cells.groups, compas.cells.counts.tolist()
    ((5278, 10), ['Female', 'Male'], [[658, 2137], [373, 2110]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    file = locate("compas-scores-two-years.csv", path, check=check)
    table = read_table(file, usecols=COLUMNS)
    days = numbers("days_b_screening_arrest", table["days_b_screening_arrest"].replace("", "nan"), file)
    # ProPublica's own filter (a missing number of days is not in time), and two races.
    usable = (table["is_recid"] != "-1") & (table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")
    table = table[(days >= -30) & (days <= 30) & usable & table["race"].isin(RACES)]
    priors = np.digitize(numbers("priors_count", table["priors_count"], file), [1, 4])
    table = table.assign(priors=np.array(PRIORS)[priors], charge_degree=table["c_charge_degree"])
    kinds = {"age_cat": AGES, "priors": PRIORS, "charge_degree": ("F", "M")}
    features, names = encode(table, kinds, file)
    first = np.column_stack([table["sex"] == "Female", table["race"] == "Caucasian"])
    return Samples(
        np.column_stack([first, features]).astype(np.float32),
        one_hot("two_year_recid", table["two_year_recid"], ("0", "1"), file)[:, 1].astype(np.int64),
        table[sensitive].to_numpy(dtype=str),
        feature_names=("sex=Female", "race=Caucasian", *names),
        classes=[0, 1],
        group_values=list(RACES if sensitive == "race" else SEXES),
    )
