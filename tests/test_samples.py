"""Groups that say nothing are warned of; a table of features is told by its columns."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from fairsieve import FairRobustClassifier, Samples, SieveClassifier
from fairsieve.data import make_synthetic
from fairsieve.errors import FairsieveWarning
from tests.support.refusals import refused

pytestmark = pytest.mark.filterwarnings(
    "ignore::fairsieve.errors.FairnessWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
DATA = make_synthetic(120, seed=0)
SHORT = {"clean_ratio": 0.9, "random_state": 0}
SIEVE = SieveClassifier(DecisionTreeClassifier(max_depth=2), max_iter=1, cv=2, **SHORT)
MODELS = [FairRobustClassifier(**SHORT), SIEVE]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("groups", "message"), [
    (["a"] * 120, "sensitive_features has one group, 'a': there is nothing to compare"),
    ([None] * 120, "sensitive_features has no group, all are missing: there is nothing to compare"),
    (np.arange(120), "sensitive_features has 120 groups for 120 samples: what differs"),
    (np.arange(120) // 4, "has 30 groups for 120 samples"),
])  # fmt: skip
def test_groups_that_say_nothing_are_warned_of(model, groups, message):
    with pytest.warns(FairsieveWarning, match=message) as caught:
        model.fit(DATA.features, DATA.labels, sensitive_features=groups)
    told = next(each for each in caught if re.search(message, str(each.message)))
    assert told.filename == __file__  # where the user called


@pytest.mark.parametrize("groups", [None, DATA.groups, np.arange(120) % 20, ["a", "b", None] * 40])
def test_other_groups_are_not(groups):
    MODELS[0].fit(DATA.features, DATA.labels, sensitive_features=groups)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("texts", [["baker"] * 120, ["1"] * 119 + ["many"]])
def test_a_column_of_texts_is_named(frame, texts):
    table = frame({"age": np.arange(120.0), "job": texts})
    refused(f"column 'job' holds texts such as '{texts[-1]}'", MODELS[0].fit, table, DATA.labels)


def test_texts_that_are_numbers_are_numbers():
    numbers = DATA.features.astype(np.float64)
    by_texts = MODELS[0].fit(numbers.astype(str), DATA.labels, sensitive_features=DATA.groups).ratios_
    by_numbers = MODELS[0].fit(numbers, DATA.labels, sensitive_features=DATA.groups).ratios_
    assert by_texts.tolist() == by_numbers.tolist()


@given(
    st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=6),
    st.sampled_from([np.int64, np.uint64, np.longdouble]),
    st.booleans(),
)
@example([2**24 + 1, 2], np.int64, False)
@settings(max_examples=40)
def test_samples_keep_whole_numbers_as_they_are(values, kind, is_sparse):
    values = [abs(value) for value in values] if kind is np.uint64 else values
    column = np.array(values, dtype=np.int64)[:, None].astype(kind)
    column = scipy.sparse.csr_matrix(column.astype(np.int64)) if is_sparse else column
    samples = Samples(column, np.arange(len(values)) % 2, ["a"] * len(values))
    kept = samples.features.toarray() if is_sparse else samples.features
    assert [int(value) for value in kept[:, 0]] == values
    assert samples.features.dtype == (np.float32 if max(map(abs, values)) < 2**24 else kept.dtype)
