"""Adult: income above 50,000 dollars, 1994 census. 48,842 rows, 45,222 complete, 43,131 kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fairsieve.data.sources import encode, locate, one_hot, read_table
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = ("workclass", "education", "marital-status", "occupation", "relationship", "native-country")
RACES = ("Black", "White")
SEXES = ("Female", "Male")
INCOMES = ("<=50K", ">50K")


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
    sensitive : {"sex", "race"}, default="sex"
        What the groups are. Both stay among the features.
    source : {"pypi", "openml"}, default="pypi"
        Which fetched form to read.
    check : bool, default=True
        Refuse files whose SHA-256 is not the known one; the OpenML form has none.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.features.shape, adult.cells.groups, adult.cells.counts.tolist()
    ((43131, 97), ['Female', 'Male'], [[12386, 20004], [1581, 9160]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    check_choice("source", source, ("pypi", "openml"))
    if source == "openml":
        place = locate("adult-openml.csv", path)
        table = read_table(place, usecols=[*COLUMNS[:-1], "class"]).rename(columns={"class": "income"})
    else:
        place, table = read_raw(path, check=check)
    table = table[table["race"].isin(RACES) & (table != "?").all(axis=1)]
    kinds = dict.fromkeys(NUMERIC) | {name: sorted(set(table[name])) for name in CATEGORICAL}
    features, names = encode(table, kinds, place)
    pairs = {"race": RACES, "sex": SEXES, "income": INCOMES}
    race, sex, label = (one_hot(name, table[name], values, place)[:, 1] for name, values in pairs.items())
    return Samples(
        np.column_stack([features, race, sex]),
        label.astype(np.int64),
        table[sensitive].to_numpy(dtype=str),
        feature_names=(*names, "race=White", "sex=Male"),
        classes=[0, 1],
        group_values=list(pairs[sensitive]),
    )


def read_raw(path: str | os.PathLike[str] | None = None, *, check: bool = True) -> tuple[Path, pd.DataFrame]:
    """Find and read all rows, gaps ("?") included; return the folder too."""
    if path is not None and Path(path).is_file():
        raise InvalidInputError(
            f"path must be a folder that holds adult.data and adult.test; got the file {path}"
        )
    files = [locate(name, path, check=check) for name in ("adult.test", "adult.data")]
    # The first line of adult.test begins with a |, and its labels end with a full stop.
    tables = [read_table(file, names=COLUMNS, skipinitialspace=True, comment="|") for file in files]
    table = pd.concat(tables, ignore_index=True)
    return files[0].parent, table.assign(income=table["income"].str.removesuffix("."))
