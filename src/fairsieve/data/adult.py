"""Adult: income above 50,000 dollars, 1994 census. 48,842 rows, 45,222 complete, 43,131 kept."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from fairsieve.data.sources import locate, locate_openml, numbers, one_hot, read_text
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

__all__ = ["load_adult"]

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = ("workclass", "education", "marital-status", "occupation", "relationship", "native-country")
RACES = ("Black", "White")
SEXES = ("Female", "Male")
INCOMES = ("<=50K", ">50K")
OPENML_FILE = "adult-openml.data"
OPENML_ID = 1590
ROWS = 48_842


def load_adult(
    path: str | os.PathLike[str] | None = None,
    *,
    sensitive: Literal["sex", "race"] = "sex",
    source: Literal["pypi", "openml"] = "pypi",
    check: bool = True,
) -> Samples:
    """Load Adult: 43,131 people, 97 features, label 1 for an income above 50,000 dollars.

    Rows with a missing value are dropped, and races other than Black and White. ``adult.test`` comes first,
    then ``adult.data``. Five numeric columns are raw (:func:`fairsieve.data.splits.split` scales them), the
    others are 0/1; ``fnlwgt`` is left out.

    Parameters
    ----------
    path : str or path, optional
        A folder that holds the files; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex", "race"}
        What the groups are. Both stay among the features.
    source : {"pypi", "openml"}
        Which fetched form to read.
    check : bool
        Refuse files whose SHA-256 is not the known one; the OpenML form has its rows counted instead.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.features.shape, adult.cells.groups, adult.cells.counts.tolist()
    ((43131, 97), ['Female', 'Male'], [[12386, 20004], [1581, 9160]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    check_choice("source", source, ("pypi", "openml"))
    files = find_files(path, source=source, check=check)
    rows = [row for file in files for row in read_rows(file)]
    if source == "openml" and check and len(rows) != ROWS:
        raise InvalidInputError(
            f"{files[0]} must have {ROWS} rows; got {len(rows)}: fairsieve data fetch adult --source openml "
            "replaces it; check=False takes it"
        )
    race = COLUMNS.index("race")
    kept = [row for row in rows if row[race] in RACES and "?" not in row]
    return _encode(kept, files[0].parent, sensitive)


def find_files(path: str | os.PathLike[str] | None, *, source: str, check: bool) -> list[Path]:
    """Find the files to read, in order."""
    if source == "openml":
        return [locate_openml(OPENML_FILE, path, command="fairsieve data fetch adult --source openml")]
    if path is not None and Path(path).is_file():
        raise InvalidInputError(
            f"path must be a folder that holds adult.data and adult.test; got the file {path}"
        )
    return [locate(name, path, check=check) for name in ("adult.test", "adult.data")]


def read_rows(path: Path) -> list[list[str]]:
    """Read the rows of one file; labels lose the full stop they have in ``adult.test``."""
    lines = csv.reader(read_text(path).splitlines(), skipinitialspace=True)
    rows = [line for line in lines if line and not line[0].startswith("|")]  # |1x3 Cross validator
    for row in rows:
        if len(row) != len(COLUMNS):
            raise InvalidInputError(f"every row of {path} must have {len(COLUMNS)} fields; got {row}")
        row[-1] = row[-1].removesuffix(".")
    return rows


def _encode(rows: Sequence[Sequence[str]], folder: Path, sensitive: str) -> Samples:
    """Encode complete rows as samples."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(COLUMNS, ())
    labels, _ = one_hot("income", columns["income"], INCOMES, folder)
    sex, _ = one_hot("sex", columns["sex"], SEXES, folder)
    race, _ = one_hot("race", columns["race"], RACES, folder)
    hot = [one_hot(name, columns[name], sorted(set(columns[name])), folder) for name in CATEGORICAL]
    raw = [numbers(name, columns[name], folder) for name in NUMERIC]
    return Samples(
        np.column_stack([*raw, *(block for block, _ in hot), race[:, 1], sex[:, 1]]),
        labels[:, 1].astype(np.int64),
        np.array(columns[sensitive]),
        feature_names=(*NUMERIC, *(name for _, names in hot for name in names), "race=White", "sex=Male"),
        classes=[0, 1],
        group_values=list(SEXES if sensitive == "sex" else RACES),
    )


def from_openml(rows: Iterable[Mapping[str, str | float | None]]) -> str:
    """Write OpenML's rows in the form of ``adult.data``: the target is called ``class`` there, missing is None."""
    names = [*COLUMNS[:-1], "class"]
    lines = []
    for row in rows:
        values = (row[name] for name in names)
        lines.append(", ".join("?" if value is None else _as_text(value) for value in values))
    return "\n".join(lines) + "\n"


def _as_text(value: str | float) -> str:
    """Write whole numbers without a point."""
    return value if isinstance(value, str) else f"{value:.0f}"
