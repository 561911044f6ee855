"""A fitted preparation as scikit-learn's own transformers, which need no fairsieve, and back.

They are made from what was learnt: scikit-learn's encoder takes half a minute to fit where counting takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from fairsieve.tabular.reading.columns import NUMBER, PANDAS_MISSING, ColumnFormat, InputTable, is_text
from fairsieve.tabular.reading.encoding import Preparation

REST = "(any other)"  # stands for the rarer categories, which share a column
TRUTHS = {"true", "false"}


def reasons_to_read(table: InputTable, formats: Mapping[str, ColumnFormat]) -> list[str]:
    """Say why pandas alone would not read the columns as they were read; nothing where it would."""
    found = []
    if table.odd:
        told = ", ".join("spaces around them" if mark == " " else repr(mark) for mark in sorted(table.odd))
        found.append(f"values are read in a way of their own ({told})")
    for name, one in formats.items():
        column = table.frame[name]
        texts = column.array.categories if is_text(column) else []
        if one.kind == "dates":
            found.append(f"{name!r} has dates")
        elif one.kind == "numbers" and not all(map(NUMBER.fullmatch, texts)):
            found.append(f"{name!r} has numbers with signs or marks")
        elif one.kind == "categories":
            other = (
                not is_text(column) or all(map(NUMBER.fullmatch, texts)) or PANDAS_MISSING.intersection(texts)
            )
            if other or TRUTHS.issuperset(map(str.lower, texts)):
                found.append(f"{name!r} has categories that pandas would not read as texts")
    return found


def to_sklearn(prepared: Preparation) -> ColumnTransformer:
    """Build the transformer that encodes as a preparation does."""
    texts, numbers = list(prepared.categories_), prepared.numbers_
    rows = 2 * max(map(len, prepared.categories_.values()), default=1) + 2
    # Equal rows but for what has to be met: every category twice, the stand-in for rarer ones once, each gap.
    shown: dict[str, Any] = {
        name: np.append(
            np.resize(np.array(known, object), rows - 1), REST if name in prepared.rest_ else known[0]
        )
        for name, known in prepared.categories_.items()
    }
    fill = prepared.fill_ if prepared.one_hot else np.zeros(len(numbers))
    for name, value in zip(numbers, fill, strict=True):
        shown[name] = np.full(rows, value)
        if name in prepared.gaps_:
            shown[name][0] = np.nan
    lists = [[*known, *[REST] * (name in prepared.rest_)] for name, known in prepared.categories_.items()]
    categories = [np.array(known, object) for known in lists]
    if prepared.one_hot:
        encoder: Any = OneHotEncoder(
            categories=categories, handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False
        )
        steps = SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
        scaled: Any = Pipeline([("fill", steps[0]), ("scale", steps[1])])
    else:
        encoder = OrdinalEncoder(
            categories=categories,
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
            encoded_missing_value=np.nan,
        )
        scaled = "passthrough"
    gaps = [
        (name, SimpleImputer(missing_values=gap, strategy="constant", fill_value=""))
        for name, gap in (("gaps", np.nan), ("nothing", None))
    ]
    parts = [("texts", Pipeline([*gaps, ("encode", encoder)]), texts), ("numbers", scaled, numbers)]
    parts = [part for part in (parts[::-1] if prepared.one_hot else parts) if part[2]]
    made = ColumnTransformer(parts, verbose_feature_names_out=False)
    made.fit(pd.DataFrame(shown))
    if prepared.one_hot and numbers:
        scaler = made.named_transformers_["numbers"]["scale"]
        scaler.mean_, scaler.scale_ = prepared.mean_.copy(), prepared.scale_.copy()
        scaler.var_ = prepared.scale_**2
    return made


def from_sklearn(made: ColumnTransformer) -> Preparation:
    """Return the preparation that a transformer was built from; ValueError where it is another."""
    parts = getattr(made, "transformers_", [])
    columns = {name: list(map(str, names)) for name, _, names in parts if name != "remainder"}
    if not columns or not set(columns) <= {"texts", "numbers"}:
        raise ValueError("its parts are not those of a model of this version")
    texts, numbers = (columns.get(name, []) for name in ("texts", "numbers"))
    encoder = made.named_transformers_["texts"]["encode"] if texts else None
    scaled = made.named_transformers_["numbers"] if numbers else None
    prepared = Preparation(
        one_hot=not isinstance(encoder, OrdinalEncoder) and isinstance(scaled, Pipeline | None)
    )
    prepared.numbers_, prepared.n_features_in_ = numbers, len(texts) + len(numbers)
    known = [] if encoder is None else [list(map(str, each)) for each in encoder.categories_]
    prepared.rest_ = [name for name, each in zip(texts, known, strict=True) if each[-1] == REST]
    prepared.categories_ = {
        name: each[: len(each) - (name in prepared.rest_)] for name, each in zip(texts, known, strict=True)
    }
    prepared.gaps_ = []
    if isinstance(scaled, Pipeline):
        fill, scale = scaled["fill"], scaled["scale"]
        prepared.gaps_ = [numbers[place] for place in fill.indicator_.features_]
        prepared.fill_, prepared.mean_, prepared.scale_ = fill.statistics_, scale.mean_, scale.scale_
    elif prepared.one_hot:
        prepared.fill_ = prepared.mean_ = prepared.scale_ = np.zeros(0)
    return prepared
