"""The linear model's objective: the same optimum as scikit-learn's, on any kind of features."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression

from fairsieve.training import linear_objective
from fairsieve.training.linear_objective import LinearObjective
from fairsieve.training.newton_steps import find_plain_optimum


def problem(samples, columns, classes, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((samples, columns)).astype(dtype)
    scores = features @ rng.standard_normal((columns, classes)) + rng.gumbel(size=(samples, classes))
    labels = scores.argmax(axis=1)
    labels[:classes] = np.arange(classes)
    return features, labels


def optimum(features, labels, classes, weights=None):
    return find_plain_optimum(LinearObjective(features, labels, classes), weights).model


@given(
    samples=st.integers(10, 80),
    columns=st.integers(1, 6),
    classes=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
)
def test_the_plain_optimum_is_that_of_scikit_learn(samples, columns, classes, seed, weighted):
    features, labels = problem(samples, columns, classes, seed)
    weights = np.random.default_rng(seed).random(samples) + 0.1 if weighted else None
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(features, labels, sample_weight=weights)
    ours = optimum(features, labels, classes, weights)
    assert ours.coef == pytest.approx(theirs.coef_, abs=2e-4)
    assert ours.probabilities(features) == pytest.approx(theirs.predict_proba(features), abs=2e-4)


@given(classes=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_gradient_and_curvature_are_the_derivatives(classes, seed):
    features, labels = problem(30, 3, classes, seed)
    rng = np.random.default_rng(seed)
    objective, weights = LinearObjective(features, labels, classes, ridge=0.7), rng.random(30)
    there = rng.standard_normal(objective.zeros().shape)

    def value(flat):
        parameters = flat.reshape(there.shape)
        return objective.value(parameters, objective.losses(objective.scores(parameters)), weights)

    def gradient(flat):
        parameters = flat.reshape(there.shape)
        return objective.gradient(parameters, objective.scores(parameters), weights).reshape(-1)

    assert gradient(there.reshape(-1)) == pytest.approx(
        optimize.approx_fprime(there.reshape(-1), value, 1e-6), abs=1e-3
    )
    curvature = objective.curvature(objective.scores(there), weights)
    wanted = rng.standard_normal(there.shape)
    wanted -= wanted.mean(axis=0) if classes > 2 else 0  # a shift of all classes changes nothing
    direction = curvature.solve(wanted)
    slope = (gradient((there + 1e-5 * direction).reshape(-1)) - gradient(there.reshape(-1))) / 1e-5
    assert slope == pytest.approx(-wanted.reshape(-1), abs=1e-2)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_features_give_the_model_of_dense_ones(kind, classes):
    features, labels = problem(200, 5, classes)
    features[np.abs(features) < 0.8] = 0.0
    dense, thin = (optimum(x, labels, classes) for x in (features, kind(features)))
    assert thin.coef == pytest.approx(dense.coef, abs=1e-6)
    assert thin.intercept == pytest.approx(dense.intercept, abs=1e-6)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_single_precision_stays_and_gives_nearly_the_same_model(make):
    features, labels = problem(500, 4, 2)
    whole = optimum(features, labels, 2)
    half = make(features.astype(np.float32))
    objective = LinearObjective(half, labels, 2)
    assert objective.features is half
    assert find_plain_optimum(objective).model.coef == pytest.approx(whole.coef, abs=1e-4)


def test_many_columns_are_solved_by_conjugate_gradients(monkeypatch):
    features, labels = problem(300, 8, 3)
    exact = optimum(features, labels, 3)
    monkeypatch.setattr(linear_objective, "HESSIAN_COLUMNS", 5)
    assert not LinearObjective(features, labels, 3).has_matrix
    assert optimum(features, labels, 3).probabilities(features) == pytest.approx(
        exact.probabilities(features), abs=1e-3
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_chunks_and_threads_change_nothing(monkeypatch, classes):
    features, labels = problem(1000, 5, classes)
    whole = optimum(features, labels, classes)
    monkeypatch.setattr(linear_objective, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(linear_objective, "THREADS_PAY", 1)
    objective = LinearObjective(features, labels, classes)
    assert len(objective.chunks) > 5
    parts = find_plain_optimum(objective).model
    assert parts.coef == pytest.approx(whole.coef, abs=1e-9)
    scores = objective.scores(objective.zeros() + 0.3)
    for target in range(classes):
        own = objective.losses_against(scores, target)[labels == target]
        assert own.tolist() == objective.losses(scores)[labels == target].tolist()


def test_a_curvature_from_some_rows_finds_the_same_optimum(monkeypatch):
    features, labels = problem(3000, 6, 2)
    features[:, 5] = 0.0
    features[:20, 5] = 3.0  # rare: most of its rows are not among those that the curvature is computed from
    exact = optimum(features, labels, 2)
    monkeypatch.setattr(linear_objective, "HESSIAN_SAMPLES", (150, 150))
    some = LinearObjective(features, labels, 2)
    assert len(some.hessian_rows) == 180
    found = find_plain_optimum(some)
    assert found.converged
    assert found.model.coef == pytest.approx(exact.coef, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_unscaled_columns_are_no_obstacle(scale):
    features, labels = problem(300, 3, 2)
    base = find_plain_optimum(LinearObjective(features, labels, 2, ridge=1.0)).model
    found = find_plain_optimum(LinearObjective(features * scale, labels, 2, ridge=scale**2))
    assert found.converged
    assert found.model.coef * scale == pytest.approx(base.coef, abs=1e-4)


def test_constant_and_collinear_columns_are_no_obstacle():
    features, labels = problem(200, 3, 2)
    wide = np.hstack([features, features[:, :1], np.ones((200, 1)), np.zeros((200, 1))])
    found = find_plain_optimum(LinearObjective(wide, labels, 2))
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(wide, labels)
    assert found.converged
    assert found.model.decision(wide) == pytest.approx(theirs.decision_function(wide), abs=1e-3)


def test_separable_classes_have_an_optimum_because_of_the_ridge():
    features = np.linspace(-1, 1, 40)[:, None]
    labels = (features[:, 0] > 0).astype(int)
    found = find_plain_optimum(LinearObjective(features, labels, 2))
    assert found.converged
    assert (found.model.predict_codes(features) == labels).all()


def test_tensors_give_the_model_of_arrays():
    torch = pytest.importorskip("torch")
    for classes in (2, 3):
        features, labels = problem(400, 4, classes)
        objective = LinearObjective(torch.from_numpy(features), torch.from_numpy(labels), classes)
        whole = optimum(features, labels, classes)
        assert find_plain_optimum(objective).model.coef == pytest.approx(whole.coef, abs=1e-8)


@pytest.mark.parametrize("kind", ["dense", "sparse", "single", "three classes"])
def test_an_exact_curvature_is_that_of_all_rows(monkeypatch, kind):
    monkeypatch.setattr(linear_objective, "HESSIAN_SAMPLES", (50, 50))
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 4))
    classes = 3 if kind == "three classes" else 2
    labels = rng.integers(0, classes, 3000)
    made = {"sparse": sparse.csr_matrix, "single": np.float32}.get(kind, np.asarray)(features)
    weights = rng.uniform(0.5, 2, 3000)
    few, all_rows = (LinearObjective(part, labels, classes) for part in (made, features))
    all_rows.hessian_rows = None
    assert len(few.hessian_rows) == 120
    scores = few.scores(few.zeros())
    gradient = few.gradient(few.zeros(), scores, weights)
    exact, sampled = (few.curvature(scores, weights, exact=exact).solve(gradient) for exact in (True, False))
    expected = all_rows.curvature(scores, weights).solve(gradient)
    assert exact == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert sampled != pytest.approx(expected, rel=1e-3)
