"""German credit: 1,000 applicants, good or bad risk."""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from fairsieve.data.sources import encode, locate, one_hot, read_table
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

# Every column in the order of the file; for the categorical ones, each code and its text (OpenML's words). The purpose
# A47, vacation, never occurs.
_COLUMNS = """
checking_status: A11 <0; A12 0<=X<200; A13 >=200; A14 no checking
duration
credit_history: A30 no credits/all paid; A31 all paid; A32 existing paid; A33 delayed previously;
    A34 critical/other existing credit
purpose: A40 new car; A41 used car; A42 furniture/equipment; A43 radio/tv; A44 domestic appliance; A45 repairs;
    A46 education; A48 retraining; A49 business; A410 other
credit_amount
savings_status: A61 <100; A62 100<=X<500; A63 500<=X<1000; A64 >=1000; A65 no known savings
employment: A71 unemployed; A72 <1; A73 1<=X<4; A74 4<=X<7; A75 >=7
installment_commitment
personal_status: A91 male div/sep; A92 female div/dep/mar; A93 male single; A94 male mar/wid; A95 female single
other_parties: A101 none; A102 co applicant; A103 guarantor
residence_since
property_magnitude: A121 real estate; A122 life insurance; A123 car; A124 no known property
age
other_payment_plans: A141 bank; A142 stores; A143 none
housing: A151 rent; A152 own; A153 for free
existing_credits
job: A171 unemp/unskilled non res; A172 unskilled resident; A173 skilled; A174 high qualif/self emp/mgmt
num_dependents
own_telephone: A191 none; A192 yes
foreign_worker: A201 yes; A202 no
class: 1 good; 2 bad
"""
COLUMNS: dict[str, dict[str, str] | None] = {
    name: dict(code.split(" ", 1) for code in codes.split("; ")) if codes else None
    for name, _, codes in (
        line.partition(": ") for line in _COLUMNS.strip().replace("\n    ", " ").splitlines()
    )
}


def load_german(
    path: str | os.PathLike[str] | None = None,
    *,
    sensitive: Literal["sex"] = "sex",
    source: Literal["pypi", "openml"] = "pypi",
    check: bool = True,
) -> Samples:
    """Load German credit: 1,000 applicants, 58 features, label 1 for a good risk.

    Sex is read from ``personal_status``, which crosses it with the marital status; as a feature that column
    is replaced by ``sex=Male`` alone, because it tells women's marital status in one value only. That sex can
    be read from it at all has been doubted (Grömping, 2019, South German Credit Data): take the groups as
    the literature uses them. The seven numeric columns are raw
    (:func:`fairsieve.data.splits.split` scales them).

    Parameters
    ----------
    path : str or path, optional
        The file or a folder that holds it; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex"}, default="sex"
        What the groups are.
    source : {"pypi", "openml"}, default="pypi"
        Which fetched form to read.
    check : bool, default=True
        Refuse a file whose SHA-256 is not the known one; the OpenML form has none.

    Examples
    --------
    >>> german = load_german()
    >>> german.features.shape, german.cells.groups, german.cells.counts.tolist()
    ((1000, 58), ['Female', 'Male'], [[109, 191], [201, 499]])
    """
    check_choice("sensitive", sensitive, ("sex",))
    check_choice("source", source, ("pypi", "openml"))
    file = locate("german-openml.csv" if source == "openml" else "german.data", path, check=check)
    if source == "openml":
        codes = {
            name: {text: code for code, text in (texts or {}).items()} for name, texts in COLUMNS.items()
        }
        table = read_table(file, usecols=list(COLUMNS)).replace(codes)
    else:
        table = read_table(file, names=list(COLUMNS), sep=r"\s+")
    # A code has its column even when absent.
    features, names = encode(
        table,
        {name: values for name, values in COLUMNS.items() if name not in ("personal_status", "class")},
        file,
    )
    status = one_hot("personal_status", table["personal_status"], COLUMNS["personal_status"] or (), file)
    is_male = status[:, [0, 2, 3]].sum(axis=1)  # A91, A93, A94
    return Samples(
        np.column_stack([features, is_male]),
        one_hot("class", table["class"], ["2", "1"], file)[:, 1].astype(np.int64),
        np.where(is_male == 1, "Male", "Female"),
        feature_names=(*names, "sex=Male"),
        classes=[0, 1],
        group_values=["Female", "Male"],
    )
