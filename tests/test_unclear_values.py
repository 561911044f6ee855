"""What lies under a mask never counts, and values that look alike are told."""

import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairsieve import (
    FairRobustClassifier,
    FairRobustResampler,
    Samples,
    SieveClassifier,
    equalized_odds_disparity,
    select,
)
from fairsieve.data import make_synthetic
from fairsieve.errors import FairsieveWarning
from fairsieve.samples import find_alike
from fairsieve.tabular.preparation import read_whole
from fairsieve.tabular.settings import TableSettings
from tests.support.refusals import refused

DATA = make_synthetic(200, seed=0)
WHOLE = {"y": DATA.labels, "z": DATA.groups, "w": np.ones(200)}
ARRAYS = {"X": DATA.features.astype(float)} | {name: each.astype(int) for name, each in WHOLE.items()}
LINEAR = FairRobustClassifier(clean_ratio=0.9, max_iter=5)
RESAMPLER = FairRobustResampler(LINEAR, random_state=0)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
SIEVE = SieveClassifier(TREE, clean_ratio=0.9, max_iter=1, cv=2, random_state=0)


def fit(model, X, y, z, w):
    return model.fit(X, y, sensitive_features=z, sample_weight=w).predict(ARRAYS["X"]).tolist()


ENTRIES = {
    "classifier": lambda X, y, z, w: fit(LINEAR, X, y, z, w),
    "sieve": lambda X, y, z, w: fit(SIEVE, X, y, z, w),
    "resampler": lambda X, y, z, w: RESAMPLER.fit_resample(X, y, z)[0].tolist(),
    "predictions": lambda X, y, z, w: LINEAR.fit(ARRAYS["X"], ARRAYS["y"]).predict(X).tolist(),
    "predictions of a sieve": lambda X, y, z, w: SIEVE.fit(ARRAYS["X"], ARRAYS["y"]).predict(X).tolist(),
    "samples": lambda X, y, z, w: Samples(X, y, z, missing="own").cells.codes.tolist(),
    "disparity": lambda X, y, z, w: equalized_odds_disparity(y, ARRAYS["y"], sensitive_features=z),
    "selection": lambda X, y, z, w: select(X[:, 0] ** 2, y, z, None, clean_ratio=0.5).indices.tolist(),
}


def outcome(call, arrays):
    """Return what a call gives, or the message of its error."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return call(**arrays)
        except ValueError as error:
            return str(error)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", [int, float])
@settings(max_examples=6, deadline=None)
@given(name=st.sampled_from(list(ARRAYS)), seed=st.integers(0, 2**32 - 1))
def test_values_under_a_mask_change_nothing(entry, kind, name, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(ARRAYS[name].shape) < 0.1
    found = []
    for under in (0, 1):
        values = np.where(mask, under, ARRAYS[name])
        values = values if name == "X" else values.astype(kind)
        found.append(outcome(ENTRIES[entry], ARRAYS | {name: np.ma.array(values, mask=mask)}))
    assert found[0] == found[1]


@pytest.mark.filterwarnings(
    "ignore::fairsieve.errors.FairnessWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_masks_are_gaps():
    masked = {name: np.ma.array(values, mask=np.zeros(values.shape, bool)) for name, values in ARRAYS.items()}
    assert outcome(ENTRIES["classifier"], masked) == outcome(ENTRIES["classifier"], ARRAYS)
    for name, message in (("y", "y must not have missing values"), ("w", "sample_weight must be finite")):
        values = masked[name].copy()
        values[3] = np.ma.masked
        refused(message, ENTRIES["classifier"], **masked | {name: values})
    values = masked["X"].copy()
    values[3, 0] = np.ma.masked
    with pytest.raises(ValueError, match="NaN"):
        ENTRIES["classifier"](**(masked | {"X": values}))
    groups = masked["z"].copy()
    groups[3] = np.ma.masked
    assert LINEAR.fit(ARRAYS["X"], ARRAYS["y"], sensitive_features=groups).sensitive_values_ == [0, 1, None]


CHANGES = {
    "case": str.swapcase,
    "space at the end": lambda text: text + " ",
    "two spaces": lambda text: text.replace(" ", "  "),
    "zero-width space": lambda text: text[:1] + "\u200b" + text[1:],
    "composition": lambda text: unicodedata.normalize("NFD", text),
}


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sampled_from(["Zoë", "São Paulo", "Île", "Å b"]), min_size=1, unique=True),
    change=st.sampled_from(list(CHANGES)),
)
def test_texts_that_look_alike_are_found(texts, change):
    changed = [CHANGES[change](text) for text in texts]
    pairs = [[text, other] for text, other in zip(texts, changed, strict=True) if text != other]
    assert sorted(find_alike(sorted({*texts, *changed}))) == sorted(sorted(pair) for pair in pairs)
    assert find_alike(texts) == []


@pytest.mark.parametrize(
    "model", [LINEAR, SieveClassifier(LogisticRegression(), max_iter=1, cv=2)], ids=["classifier", "sieve"]
)
@pytest.mark.filterwarnings(
    "ignore::fairsieve.errors.FairnessWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_groups_and_labels_that_look_alike_are_told(model):
    groups = np.where(ARRAYS["z"] == 1, "north", "south").astype(object)
    groups[::7] = "North "
    told = "sensitive_features has 2 values that read the same, 'North ' and 'north'"
    with pytest.warns(FairsieveWarning, match=told):
        model.fit(ARRAYS["X"], ARRAYS["y"], sensitive_features=groups)
    labels = np.where(ARRAYS["y"] == 1, "yes", "no").astype(object)
    labels[::9] = "Yes"
    with pytest.warns(FairsieveWarning, match="y has 2 values that read the same, 'Yes' and 'yes'"):
        model.fit(ARRAYS["X"], labels)


def test_a_table_tells_its_groups_and_labels_that_look_alike():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400), "region": rng.choice(["north", "North", "south"], 400)})
    table["side"] = np.where(table["a"] + rng.normal(size=400) > 0, "left", "right")
    table.loc[::5, "side"] = table.loc[::5, "side"].str.title()
    told = read_whole(TableSettings(data=table, label="side", sensitive=["region"])).notes
    for column, value in (("side", "'left'"), ("side", "'Right'"), ("region", "'North'")):
        assert any(f"{column!r} has values that read the same" in note and value in note for note in told)
