"""Rows on a dask cluster: the fit of the same rows in memory, with nothing of their length fetched."""

import copy
import os
import pickle
import signal

import numpy as np
import pandas as pd
import pytest
from tests.support.refusals import refused

from fairsieve import FairRobustClassifier
from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.estimators import _parts
from fairsieve.training.parts import PartRows

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

pytestmark = pytest.mark.usefixtures("rows_in_their_order")
ROWS = 35_000  # above what is solved in one process


@pytest.fixture(scope="module")
def client():
    """Two processes, which stay for all tests."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as found:
        yield found


def draw(rows, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, rows)
    features = np.column_stack([rng.normal(size=rows) + groups, rng.normal(size=rows), groups])
    labels = (features[:, 0] + features[:, 1] + 0.8 * groups + rng.logistic(size=rows) > 0.8).astype(int)
    flipped = rng.random(rows) < 0.1
    return features, np.where(flipped, 1 - labels, labels), groups


def in_parts(*arrays, parts=5):
    """Return dask arrays in so many parts, and an empty one, as filters leave them."""
    sizes = [len(part) for part in np.array_split(arrays[0], parts)]
    sizes.insert(1, 0)
    return tuple(da.from_array(values, chunks=(tuple(sizes), *values.shape[1:])) for values in arrays)


def fitted(features, labels, groups, **settings):
    model = FairRobustClassifier(**({"clean_ratio": 0.9, "tolerance": 0.02, "max_iter": 4} | settings))
    return model.fit(features, labels, sensitive_features=groups)


@pytest.fixture(scope="module")
def large():
    return draw(ROWS)


@pytest.fixture(scope="module")
def in_memory(large):
    return fitted(*large)


def same(one, other):
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-6)
    assert one.intercept_ == pytest.approx(other.intercept_, abs=1e-6)
    assert one.ratios_ == pytest.approx(other.ratios_, abs=1e-6)
    assert (one.stopped_, one.n_iter_) == (other.stopped_, other.n_iter_)
    assert one.gap_ == pytest.approx(other.gap_, abs=1e-6)


def test_the_model_is_that_of_the_rows_in_memory(client, large, in_memory, monkeypatch):
    ask, most = PartRows.ask, []

    def watched(self, *arguments, **options):
        answers = ask(self, *arguments, **options)
        most.extend(len(pickle.dumps(answer)) for answer in answers)
        return answers

    monkeypatch.setattr(PartRows, "ask", watched)
    lazy = in_parts(*large)
    model = fitted(*lazy)
    same(model, in_memory)
    assert len(most) > 20
    assert max(most) < 50_000  # bytes: less than one number for each row of a partition
    assert isinstance(model.sample_indices_, da.Array)
    assert model.sample_indices_.compute().tolist() == in_memory.sample_indices_.tolist()
    found, expected = model.suspects(), in_memory.suspects()
    assert isinstance(found, dd.DataFrame)
    by_loss = found.compute().sort_values(["loss", "row"], ascending=[False, True]).reset_index(drop=True)
    expected = expected.sort_values(["loss", "row"], ascending=[False, True]).reset_index(drop=True)
    pd.testing.assert_frame_equal(by_loss, expected, check_exact=False, rtol=1e-5)
    for name in ("predict", "predict_proba", "decision_function"):
        predicted = getattr(model, name)(lazy[0])
        assert isinstance(predicted, da.Array)
        expected = getattr(in_memory, name)(large[0])
        assert predicted.shape == expected.shape
        assert predicted.compute() == pytest.approx(expected, abs=1e-5)


@pytest.mark.skipif(os.name != "posix", reason="kills are signals")
def test_a_worker_that_is_killed_changes_nothing(client, large, in_memory, monkeypatch):
    ask, calls = PartRows.ask, []

    def kill_once(self, *arguments, **options):
        calls.append(arguments)
        if len(calls) == 10:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return ask(self, *arguments, **options)

    monkeypatch.setattr(PartRows, "ask", kill_once)
    same(fitted(*in_parts(*large)), in_memory)
    assert len(calls) > 10


@pytest.mark.parametrize("kind", ["names", "several columns", "missing", "weights"])
def test_data_frames_of_any_labels_and_groups(client, kind):
    features, labels, groups = draw(4000)
    frame = pd.DataFrame(features, columns=["a", "b", "c"])
    frame["label"] = np.where(labels == 1, "yes", "no")
    frame["group"] = np.where(groups == 1, "x", "y")
    frame["other"] = np.random.default_rng(1).choice(["p", "q"], 4000)
    frame["weight"] = np.random.default_rng(2).integers(0, 3, 4000).astype(float)
    if kind == "missing":
        frame.loc[::7, "group"] = None
    names = ["group", "other"] if kind == "several columns" else "group"
    table = dd.from_pandas(frame, npartitions=3)
    models = []
    for own in (frame, table):
        model = FairRobustClassifier(clean_ratio=0.9, tolerance=0.05)
        weights = own["weight"] if kind == "weights" else None
        features, labels = own[["a", "b", "c"]], own["label"]
        models.append(model.fit(features, labels, sensitive_features=own[names], sample_weight=weights))
    same(models[1], models[0])
    assert models[1].sensitive_values_ == models[0].sensitive_values_
    assert models[1].classes_.tolist() == ["no", "yes"]
    assert models[1].feature_names_in_.tolist() == ["a", "b", "c"]
    predicted = models[1].predict(table[["a", "b", "c"]]).compute()
    assert predicted.tolist() == models[0].predict(frame[["a", "b", "c"]]).tolist()
    refused("columns that the model was trained on", models[1].predict, table[["b", "a", "c"]])


def test_the_estimate_is_of_a_sample_and_says_so(client, monkeypatch):
    monkeypatch.setattr(_parts, "SAMPLE", 3000)
    with pytest.warns(FairsieveWarning, match=r"estimated on a sample of 3,000 of 6,000 rows"):
        model = fitted(*in_parts(*draw(6000)), clean_ratio="auto")
    assert 0.8 < model.clean_ratio_ <= 1
    assert len(model.estimate_.cells) == 3000


@pytest.mark.parametrize(("change", "message"), [
    (lambda X, y, z: (X, y.compute(), z), "y must be a dask array, data frame or series.*got ndarray"),
    (lambda X, y, z: (X, y, z[:-1]), "sensitive_features must have the"),
    (lambda X, y, z: (X * np.nan, y, z), "X must be finite"),
    (lambda X, y, z: (X.astype(str), y, z), "X must hold numbers"),
    (lambda X, y, z: (X, y * 0, z), "two or more classes"),
])  # fmt: skip
def test_bad_input_is_named_in_the_error(client, change, message):
    refused(message, fitted, *change(*in_parts(*draw(500))))


def test_a_model_is_stored_and_copied_without_the_rows_of_the_cluster(client):
    """Another process does not reach the cluster; it loads the model, predicts, and says what it lacks."""
    features, labels, groups = draw(3000)
    model = fitted(*in_parts(features, labels, groups))
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.predict(features).tolist() == model.predict(features).tolist()
        assert other.gap_ == model.gap_
        refused(r"suspects\(\) needs the training rows", other.suspects)
    assert len(model.suspects().compute()) > 0


@pytest.mark.parametrize("texts", [False, True])
def test_no_more_labels_are_suspected_than_may_be_wrong(client, texts):
    features, labels, groups = draw(3000)
    if texts:
        labels, groups = (np.array(["no", "yes"], object)[each] for each in (labels, groups))
    model = fitted(*in_parts(features, labels, groups))
    found = model.suspects().compute()
    assert 0 < len(found) <= 300
    assert found["loss"].is_monotonic_decreasing


def test_gaps_are_refused_where_predictions_are_computed(client):
    features, labels, groups = in_parts(*draw(500))
    model = fitted(features, labels, groups)
    for kind in (model.predict, model.predict_proba, model.decision_function):
        refused("X must be finite numbers", kind(da.where(features > 2, np.nan, features)).compute)


def test_partitions_of_weight_zero_are_left_out_as_rows_are(client):
    features, labels, groups = draw(4000)
    weights = np.where(np.arange(4000) < 1000, 0.0, 1.0)
    lazy = in_parts(features, labels, groups, weights, parts=4)
    model = FairRobustClassifier(clean_ratio=0.9, tolerance=0.05)
    model.fit(*lazy[:2], sensitive_features=lazy[2], sample_weight=lazy[3])
    rows = slice(1000, None)
    expected = FairRobustClassifier(clean_ratio=0.9, tolerance=0.05)
    expected.fit(features[rows], labels[rows], sensitive_features=groups[rows])
    assert model.coef_ == pytest.approx(expected.coef_, abs=1e-4)
    with pytest.raises(InvalidInputError, match="sample_weight must be above zero for some sample"):
        model.fit(*lazy[:2], sensitive_features=lazy[2], sample_weight=lazy[3] * 0)


def test_verified_labels_need_rows_in_memory(client):
    features, labels, groups = in_parts(*draw(500))
    with pytest.raises(InvalidInputError, match="verified_labels must be None where X is a dask collection"):
        FairRobustClassifier().fit(features, labels, sensitive_features=groups, verified_labels=labels)
