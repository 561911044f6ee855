"""German credit: 1,000 applicants, good or bad risk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from fairsieve.data.sources import locate, locate_openml, numbers, one_hot, read_text
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

__all__ = ["load_german"]

FILE = "german.data"
OPENML_FILE = "german-openml.data"
OPENML_ID = 31
ROWS = 1_000

# Every column in the order of the file; for the categorical ones, the text of each code (OpenML's words).
COLUMNS: dict[str, dict[str, str] | None] = {
    "checking_status": {"A11": "<0", "A12": "0<=X<200", "A13": ">=200", "A14": "no checking"},
    "duration": None,
    "credit_history": {
        "A30": "no credits/all paid",
        "A31": "all paid",
        "A32": "existing paid",
        "A33": "delayed previously",
        "A34": "critical/other existing credit",
    },
    "purpose": {  # A47, vacation, never occurs
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture/equipment",
        "A43": "radio/tv",
        "A44": "domestic appliance",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": None,
    "savings_status": {
        "A61": "<100",
        "A62": "100<=X<500",
        "A63": "500<=X<1000",
        "A64": ">=1000",
        "A65": "no known savings",
    },
    "employment": {"A71": "unemployed", "A72": "<1", "A73": "1<=X<4", "A74": "4<=X<7", "A75": ">=7"},
    "installment_commitment": None,
    "personal_status": {
        "A91": "male div/sep",
        "A92": "female div/dep/mar",
        "A93": "male single",
        "A94": "male mar/wid",
        "A95": "female single",
    },
    "other_parties": {"A101": "none", "A102": "co applicant", "A103": "guarantor"},
    "residence_since": None,
    "property_magnitude": {
        "A121": "real estate",
        "A122": "life insurance",
        "A123": "car",
        "A124": "no known property",
    },
    "age": None,
    "other_payment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "existing_credits": None,
    "job": {
        "A171": "unemp/unskilled non res",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "high qualif/self emp/mgmt",
    },
    "num_dependents": None,
    "own_telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "class": {"1": "good", "2": "bad"},
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
    sensitive : {"sex"}
        What the groups are.
    source : {"pypi", "openml"}
        Which fetched form to read.
    check : bool
        Refuse a file whose SHA-256 is not the known one; the OpenML form has its rows counted instead.

    Examples
    --------
    >>> german = load_german()
    >>> german.features.shape, german.cells.groups, german.cells.counts.tolist()
    ((1000, 58), ['Female', 'Male'], [[109, 191], [201, 499]])
    """
    check_choice("sensitive", sensitive, ("sex",))
    check_choice("source", source, ("pypi", "openml"))
    if source == "openml":
        file = locate_openml(OPENML_FILE, path, command="fairsieve data fetch german --source openml")
    else:
        file = locate(FILE, path, check=check)
    rows = _read_rows(file)
    if source == "openml" and check and len(rows) != ROWS:
        raise InvalidInputError(
            f"{file} must have {ROWS} rows; got {len(rows)}: fairsieve data fetch german --source openml "
            "replaces it; check=False takes it"
        )
    return _encode(rows, file)


def _read_rows(path: Path) -> list[list[str]]:
    """Read the rows, split at blanks."""
    rows = [line.split() for line in read_text(path).splitlines() if line.strip()]
    for row in rows:
        if len(row) != len(COLUMNS):
            raise InvalidInputError(f"every row of {path} must have {len(COLUMNS)} fields; got {row}")
    return rows


def _encode(rows: list[list[str]], path: Path) -> Samples:
    """Encode rows in the codes of ``german.data`` as samples; a code has its column even when absent."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    texts = dict(zip(COLUMNS, columns, strict=True))
    blocks, names = [], []
    for name, values in COLUMNS.items():
        if name in ("personal_status", "class"):
            continue
        if values is None:
            blocks.append(numbers(name, texts[name], path)[:, None])
            names.append(name)
        else:
            block, _ = one_hot(name, texts[name], list(values), path)
            blocks.append(block)
            names += [f"{name}={value}" for value in values.values()]
    status, _ = one_hot(
        "personal_status", texts["personal_status"], list(COLUMNS["personal_status"] or ()), path
    )
    is_male = status[:, [0, 2, 3]].sum(axis=1)  # A91, A93, A94
    labels, _ = one_hot("class", texts["class"], ["2", "1"], path)
    return Samples(
        np.column_stack([*blocks, is_male]),
        labels[:, 1].astype(np.int64),
        np.where(is_male == 1, "Male", "Female"),
        feature_names=(*names, "sex=Male"),
        classes=[0, 1],
        group_values=["Female", "Male"],
    )


def from_openml(rows: Iterable[Mapping[str, str | float | None]]) -> str:
    """Write OpenML's rows, whose values are words, in the codes of ``german.data``."""
    codes = {
        name: {text: code for code, text in values.items()} for name, values in COLUMNS.items() if values
    }
    lines = []
    for row in rows:
        fields = []
        for name, value in ((name, row[name]) for name in COLUMNS):
            if name not in codes:
                fields.append(f"{value:.0f}")
            elif value in codes[name]:
                fields.append(codes[name][str(value)])
            else:
                raise InvalidInputError(
                    f"{name} from OpenML must be among {sorted(codes[name])}; got {value!r}"
                )
        lines.append(" ".join(fields))
    return "\n".join(lines) + "\n"
