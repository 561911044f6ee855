"""The Newton solver: a literal version of its loop, laws, and what a trainer promises."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fairsieve import Samples, select
from fairsieve.data import flip_uniform, make_synthetic
from fairsieve.training import linear_objective, newton_steps, newton_trainer
from fairsieve.training.newton import find_plain_optimum, fit_newton, new_objective
from fairsieve.training.newton_trainer import DAMPING, LAST_STEP, RIDGE, STEP_SIZE, UPDATES, WARMUP_STEPS


def draw(samples=400, seed=0):
    data = make_synthetic(samples, seed=seed)
    noisy = flip_uniform(data, 0.1, seed=seed).labels
    return Samples(data.features.astype(np.float64), noisy, data.groups)


def damped_step(x, y, weights, theta, ridge):
    chances = 1 / (1 + np.exp(-(x @ theta)))
    gradient = x.T @ (weights * (chances - y)) + ridge * theta
    hessian = x.T @ (x * (weights * chances * (1 - chances))[:, None]) + np.diag(ridge)
    return theta - np.linalg.solve(hessian + DAMPING * np.diag(hessian.diagonal()), gradient)


def literal_loop(data, clean_ratio, updates):
    """Equalized odds for two classes and two groups, as the module's docstring says it."""
    x = np.hstack([data.features, np.ones((len(data), 1))])
    y, z = data.labels, data.groups
    ridge = np.full(x.shape[1], max(1.0, RIDGE * len(data)))
    ridge[-1] = 0.0
    theta = np.zeros(x.shape[1])
    for _ in range(WARMUP_STEPS):
        theta = damped_step(x, y, np.ones(len(data)), theta, ridge)
    ratios = np.array([[np.mean(z[y == c] == g) for g in (0, 1)] for c in (0, 1)])
    selected, states = np.arange(len(data)), []
    for update in range(updates):
        scores = x @ theta
        losses = np.logaddexp(0, np.where(y == 1, -scores, scores))
        means = np.array(
            [
                [losses[selected][(y[selected] == c) & (z[selected] == g)].mean() for g in (0, 1)]
                for c in (0, 1)
            ]
        )
        gaps = means[:, 1] - means[:, 0]
        mover = int(np.abs(gaps).argmax())
        step = STEP_SIZE * LAST_STEP ** (update / (updates - 1))
        step = min(step, ratios[mover, 0 if gaps[mover] > 0 else 1])  # ratios stay in [0, 1]
        ratios[mover] += np.array([-step, step]) if gaps[mover] > 0 else np.array([step, -step])
        selected = select(losses, y, z, ratios, clean_ratio).indices
        weights = np.zeros(len(data))
        for c in (0, 1):
            for g in (0, 1):
                cell = selected[(y[selected] == c) & (z[selected] == g)]
                weights[cell] = ratios[c, g] * (y[selected] == c).sum() / len(cell)
        theta = damped_step(x, y, weights, theta, ridge)
        states.append(theta)
    return np.mean(states[-newton_trainer.AVERAGED :], axis=0), ratios, selected


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_literal_loop(seed, monkeypatch):
    monkeypatch.setattr(newton_trainer, "REFRESH", 1)
    data = draw(seed=seed)
    found = fit_newton(None, data, clean_ratio=0.9, seed=seed)
    theta, ratios, selected = literal_loop(data, 0.9, UPDATES)
    assert np.append(found.predictor.coef, found.predictor.intercept) == pytest.approx(theta, abs=1e-3)
    assert found.ratios == pytest.approx(ratios, abs=1e-9)
    assert len(np.setxor1d(found.indices, selected)) <= 4  # samples whose losses differ by rounding


def test_plain_training_is_logistic_regression():
    data = draw()
    start = find_plain_optimum(new_objective(data)).parameters
    found = fit_newton(None, data, "lr", epochs=1, average_last=1, start=start)
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(data.features, data.labels)
    assert found.predictor.decision(data.features) == pytest.approx(
        theirs.decision_function(data.features), abs=2e-3
    )


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_the_rows_does_not_matter(seed):
    data = draw(200, seed)
    rows = np.random.default_rng(seed).permutation(200)
    one, two = (fit_newton(None, part, clean_ratio=0.9) for part in (data, data.take(rows)))
    assert two.predictor.coef == pytest.approx(one.predictor.coef, abs=1e-6)
    assert two.ratios == pytest.approx(one.ratios)


def test_seeds_do_not_matter_and_two_fits_give_the_same_bits():
    data = draw()
    one, two = (fit_newton(None, data, clean_ratio=0.9, seed=seed) for seed in (0, 7))
    assert one.predictor.coef.tolist() == two.predictor.coef.tolist()


def test_only_the_proportions_of_weights_matter():
    data, weights = draw(), np.random.default_rng(0).random(400)
    one, two = (fit_newton(None, data, clean_ratio=0.9, sample_weight=scale * weights) for scale in (1, 50))
    assert two.predictor.coef == pytest.approx(one.predictor.coef, abs=1e-9)
    plain = fit_newton(None, data, clean_ratio=0.9)
    assert (np.abs(plain.predictor.coef - one.predictor.coef) > 1e-4).any()


def test_single_precision_features_give_nearly_the_same_model():
    data = draw()
    half = Samples(data.features.astype(np.float32), data.labels, data.groups)
    one, two = (fit_newton(None, part, clean_ratio=0.9) for part in (data, half))
    assert two.predictor.coef == pytest.approx(one.predictor.coef, abs=0.02)


@pytest.mark.parametrize("fairness", ["equalized_odds", "demographic_parity", "equal_opportunity"])
@pytest.mark.parametrize("signal", ["loss", "error"])
def test_many_classes_and_groups(fairness, signal):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 4))
    labels = np.digitize(features[:, 0] + 0.5 * rng.standard_normal(300), [-0.7, 0.7])
    data = Samples(features, labels, rng.integers(0, 3, 300))
    found = fit_newton(None, data, clean_ratio=0.9, fairness=fairness, signal=signal, pos_label=1)
    assert found.predictor.coef.shape == (3, 4)
    assert found.ratios.sum(axis=1) == pytest.approx(np.ones(3))
    assert (found.predict(features) == labels).mean() > 0.6


def test_one_sample_per_cell_and_empty_cells():
    features = np.array([[-1.0], [0.5], [1.0], [-0.5]])
    full = Samples(features, [0, 1, 1, 0], ["a", "a", "b", "b"])
    assert np.isfinite(fit_newton(None, full, clean_ratio=1.0).predictor.coef).all()
    lacking = Samples(features, [0, 1, 1, 0], ["a", "a", "b", "a"])
    assert np.isfinite(fit_newton(None, lacking, clean_ratio=1.0).predictor.coef).all()


def test_the_history_has_a_row_for_each_update():
    data = draw()
    found = fit_newton(None, data, clean_ratio=0.9, epochs=12, evaluation=data.take(np.arange(50)))
    history = found.history
    assert len(history) == 12
    assert (history.counts.sum(axis=(1, 2)) <= 360).all()
    assert history.counts[-1].sum() == len(found.indices)
    assert history.times_selected.sum() == history.counts.sum()
    assert history.train.accuracy.shape == history.evaluation.accuracy.shape == (12,)
    start = LogisticRegression().fit(data.features, data.labels)
    assert history.train.accuracy[0] == pytest.approx(start.score(data.features, data.labels), abs=0.05)


def test_very_many_samples_start_on_a_part_of_them(monkeypatch):
    data = draw(3000)
    whole = fit_newton(None, data, clean_ratio=0.9)
    monkeypatch.setattr(newton_trainer, "MANY", 2000)
    monkeypatch.setattr(newton_trainer, "PART", 1500)
    monkeypatch.setattr(newton_steps, "MANY", 2000)
    monkeypatch.setattr(newton_steps, "PART", 1500)
    part = fit_newton(None, data, clean_ratio=0.9)
    assert part.history.epochs.tolist() == list(range(28, 40))
    assert part.history.sizes.sum() == 3000
    assert part.predictor.coef == pytest.approx(whole.predictor.coef, abs=0.15)
    assert part.ratios == pytest.approx(whole.ratios, abs=0.05)


@pytest.mark.filterwarnings("ignore:the model has not converged")
def test_a_fit_holds_few_bytes_for_each_sample(monkeypatch):
    """Scores and losses, two selections and some codes: 40; it was 130 before."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300_000, 2), dtype=np.float32)
    labels = (features[:, 0] + rng.standard_normal(300_000) > 0).astype(np.int8)
    data = Samples(features, labels, (features[:, 1] > 0).astype(np.int8))
    tracemalloc.start()
    try:
        fit_newton(None, data, clean_ratio=0.9, epochs=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 65 * len(data)  # what is computed in chunks is some of it, of so few samples


def test_it_warns_when_it_has_not_converged(monkeypatch):
    monkeypatch.setattr(newton_trainer, "CONVERGED", -1.0)
    with pytest.warns(ConvergenceWarning, match="not converged after 5 updates.*Raise epochs"):
        fit_newton(None, draw(), clean_ratio=0.9, epochs=5)


def test_control_c_returns_the_best_so_far(monkeypatch):
    taken = newton_trainer.take_step
    steps = []

    def stop(*arguments):
        steps.append(1)
        if len(steps) == 10:
            raise KeyboardInterrupt
        return taken(*arguments)

    monkeypatch.setattr(newton_trainer, "take_step", stop)
    found = fit_newton(None, draw(), clean_ratio=0.9)
    assert found.interrupted
    assert len(found.history) == 9 - WARMUP_STEPS
    assert np.isfinite(found.predictor.coef).all()


def test_tensors_take_the_same_way_as_arrays(monkeypatch):
    torch = pytest.importorskip("torch")
    data = draw()
    whole = fit_newton(None, data, clean_ratio=0.9)
    made = newton_trainer.new_objective

    def on_tensors(data, device):
        objective = made(data, device)
        return type(objective)(torch.from_numpy(objective.features), torch.from_numpy(objective.labels), 2)

    monkeypatch.setattr(newton_trainer, "new_objective", on_tensors)
    found = fit_newton(None, data, clean_ratio=0.9)
    assert found.predictor.coef == pytest.approx(whole.predictor.coef, abs=1e-6)
    assert found.indices.tolist() == whole.indices.tolist()
    assert found.history.ratios == pytest.approx(whole.history.ratios)
    assert found.history.times_selected.tolist() == whole.history.times_selected.tolist()


def test_the_plain_optimum_takes_few_steps_where_columns_add_up_to_each_other(monkeypatch):
    """One-hot columns add up to the intercept: with a curvature from some rows it took more than 100 steps."""
    monkeypatch.setattr(newton_steps, "MANY", 3000)
    monkeypatch.setattr(newton_steps, "PART", 2000)
    monkeypatch.setattr(linear_objective, "HESSIAN_SAMPLES", (300, 300))
    rng = np.random.default_rng(0)
    codes, other = rng.integers(0, 8, 6000), rng.integers(0, 5, 6000)
    features = np.column_stack([np.eye(8)[codes], np.eye(5)[other], rng.normal(size=6000)]).astype(np.float32)
    labels = (rng.random(6000) < 1 / (1 + np.exp(-np.sin(codes) - features[:, -1]))).astype(int)
    found = find_plain_optimum(linear_objective.LinearObjective(features, labels, 2))
    assert found.converged
    assert found.steps <= 5
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(features.astype(float), labels)
    assert found.model.decision(features) == pytest.approx(theirs.decision_function(features), abs=2e-3)
