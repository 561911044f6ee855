"""FairRobustResampler: cells in proportion to the ratios, in the containers that came in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from fairsieve import FairRobustClassifier, FairRobustResampler

SELECTOR = FairRobustClassifier(clean_ratio=0.9, random_state=0)


class Chosen(BaseEstimator):
    """Selects what it was made with."""

    def __init__(self, chosen, ratios):
        self.chosen, self.ratios = chosen, ratios

    def fit(self, X, y, sensitive_features=None):
        self.classes_, self.sensitive_values_ = (list(range(size)) for size in self.ratios.shape)
        self.sample_indices_, self.ratios_ = self.chosen, self.ratios
        return self


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(2, 3))
def test_cells_are_in_proportion_to_the_ratios(seed, classes, groups):
    rng = np.random.default_rng(seed)
    labels, columns = np.divmod(rng.permutation(np.arange(120) % (classes * groups)), groups)
    chosen = np.flatnonzero(rng.random(120) < 0.7)
    ratios = rng.dirichlet(np.ones(groups), classes)
    resampler = FairRobustResampler(Chosen(chosen, ratios), random_state=seed % 1000)
    resampler.fit_resample(np.zeros((120, 1)), labels, sensitive_features=columns)
    rows, codes = resampler.sample_indices_, labels * groups + columns
    assert len(rows) == len(chosen)
    assert (np.diff(rows) >= 0).all()
    assert np.isin(rows, chosen).all()
    before, after = (np.bincount(codes[some], minlength=ratios.size) for some in (chosen, rows))
    before, after = before.reshape(ratios.shape), after.reshape(ratios.shape)
    if (before > 0).all():
        wanted = ratios * before.sum(axis=1, keepdims=True)
        assert np.abs(after - wanted).max() <= 1  # rounding to whole rows
    times = np.bincount(rows, minlength=120)
    for code in range(ratios.size):  # every row of a cell as often as any other, or once more
        of_cell = times[chosen[codes[chosen] == code]]
        assert of_cell.size == 0 or np.ptp(of_cell) <= 1


def test_rows_groups_and_indices_are_aligned(data):
    resampler = FairRobustResampler(SELECTOR, random_state=0)
    X, y = resampler.fit_resample(data.features, data.labels, sensitive_features=data.groups)
    rows = resampler.sample_indices_
    assert X.tolist() == data.features[rows].tolist()
    assert y.tolist() == data.labels[rows].tolist()
    assert resampler.sensitive_features_.tolist() == data.groups[rows].tolist()
    selector = clone(SELECTOR).fit(data.features, data.labels, sensitive_features=data.groups)
    assert set(rows) <= set(selector.sample_indices_)
    assert len(rows) == len(selector.sample_indices_)
    again = clone(resampler)
    again.fit_resample(data.features, data.labels, sensitive_features=data.groups)
    assert again.sample_indices_.tolist() == rows.tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse", "lists"])
def test_rows_come_back_in_the_container_they_came_in(data, kind):
    names = ["yes" if label else "no" for label in data.labels]
    X, y, z = {
        "pandas": lambda: (
            pd.DataFrame(data.features, columns=list("abc"), index=np.arange(300) + 7),
            pd.Series(names, name="label"),
            pd.DataFrame({"sex": data.groups, "old": data.groups}),
        ),
        "polars": lambda: (
            pl.DataFrame(data.features, schema=list("abc")),
            pl.Series("label", names),
            pl.Series(data.groups),
        ),
        "sparse": lambda: (sparse.csr_matrix(data.features), np.array(names), data.groups),
        "lists": lambda: (data.features.tolist(), names, data.groups.tolist()),
    }[kind]()
    resampler = FairRobustResampler(SELECTOR, random_state=0)
    some, labels = resampler.fit_resample(X, y, sensitive_features=z)
    assert (type(some), type(labels), type(resampler.sensitive_features_)) == (type(X), type(y), type(z))
    rows = resampler.sample_indices_
    assert list(labels) == [names[row] for row in rows]
    if kind == "pandas":
        assert some.index.tolist() == (rows + 7).tolist()
        assert resampler.sensitive_features_.columns.tolist() == ["sex", "old"]


def test_without_groups_no_row_is_drawn_twice(data):
    resampler = FairRobustResampler(clone(SELECTOR), random_state=0)
    _, y = resampler.fit_resample(data.features, data.labels)
    assert resampler.sensitive_features_ is None
    assert len(np.unique(resampler.sample_indices_)) == len(y) == 270


def test_samples_without_a_group_keep_their_share(data):
    groups = np.where(np.arange(300) % 3 == 0, np.nan, data.groups)
    resampler = FairRobustResampler(SELECTOR, random_state=0)
    _, y = resampler.fit_resample(data.features, data.labels, sensitive_features=groups)
    share = np.isnan(resampler.sensitive_features_)[y == 1].mean()
    assert share == pytest.approx(np.isnan(groups)[data.labels == 1].mean(), abs=0.01)
