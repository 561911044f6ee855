"""Methods for noisy labels since 2018: two losses that undo noise, group by group, and learning to reweight.

The losses are those of Wang, Liu & Levy (FAccT 2021), for known or estimated rates.

With ε⁺(z) = Pr(label 0 | truth 1, z) and ε⁻(z) = Pr(label 1 | truth 0, z), two losses have the expectation of the
loss on true labels (up to a factor and a constant). The *surrogate loss* of a sample of label y is [(1 −
ε(−y))·ℓ(f, y) − ε(y)·ℓ(f, −y)] / (1 − ε⁺ − ε⁻), where ε(y) is the rate at which labels y become others. The *group
peer loss* is [ℓ(f(x), y) − ℓ(f(x), y′)] / (1 − ε⁺ − ε⁻) with y′ the label of a random peer of the same group, in
expectation over peers. The rates of the fairness constraint are corrected in the same way: every sample counts for
both classes, by unbiased estimates of its true class.

Here the model is linear, a loss is the logistic one, and the constraint is a penalty μ·Σ gap² on smooth rates,
minimised by L-BFGS. The noise must depend on class and group alone: against flips that are aimed at single samples,
nothing is promised. Two classes, two groups.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from fairsieve.benchmark.methods import Trained, TrainingInput
from fairsieve.notions import DP, EO, EOPP
from fairsieve.samples import Samples
from fairsieve.training.linear_trainer import Adam, adam_step
from fairsieve_reproduction.methods.selection import trained_linear

MOST = 0.45  # the largest sum of both rates that is corrected for: beyond it losses explode
CERTAIN = 0.1  # of a group, whose class is taken for certain
RIDGE = 1e-3

Floats = NDArray[np.float64]


def estimate_noise_rates(data: Samples) -> Floats:
    """Estimate how often each class's labels are wrong in each group, (classes, groups), by anchor points.

    Where the truth is certain, a label is wrong as often as the noise rate says (Liu & Tao 2016). The tenth of a
    group with the highest out-of-fold scores is taken for certainly positive, that with the lowest for negative.

    Examples
    --------
    >>> from fairsieve.data import flip_uniform, make_synthetic
    >>> clean = make_synthetic(2000, seed=0)
    >>> estimate_noise_rates(clean.with_labels(flip_uniform(clean, 0.2, seed=0).labels)).shape
    (2, 2)
    """
    cells, rates = data.cells, np.zeros(data.cells.shape)
    for group in range(cells.shape[1]):
        rows = cells.group_codes == group
        if min(np.bincount(cells.label_codes[rows], minlength=2)) < 5:
            continue  # too few to tell
        labels, model = cells.label_codes[rows], LogisticRegression(max_iter=1000)
        scores = cross_val_predict(model, data.features[rows], labels, method="decision_function", cv=5)
        order = np.argsort(scores)
        ends = max(1, round(CERTAIN * len(order)))
        rates[:, group] = labels[order[:ends]].mean(), 1 - labels[order[-ends:]].mean()
    return rates


def train_noise_loss(
    given: TrainingInput, loss: Literal["surrogate", "peer"], mu: float = 1.0, rates: Any | None = None
) -> Trained:
    """Train the linear model by a loss; ``rates`` are (classes, groups), estimated when None."""
    data = given.data
    known = estimate_noise_rates(data) if rates is None else np.asarray(rates)
    known = known * np.minimum(1, MOST / np.maximum(known.sum(axis=0, keepdims=True), MOST))
    return trained_linear(_minimise(data, loss, known, mu, given.settings.fairness), data)


def _minimise(data: Samples, loss: str, rates: Floats, mu: float, fairness: str) -> Floats:
    """Find the weights and the bias of the linear model."""
    cells, x = data.cells, np.column_stack([data.features, np.ones(len(data))]).astype(np.float64)
    y, z, rows = cells.label_codes, cells.group_codes, np.arange(len(data))
    spread = 1 - rates.sum(axis=0)[z]
    # Unbiased estimates of which class a sample truly has: (n, 2). Each row sums to 1.
    truth = np.empty((len(data), 2))
    truth[rows, y] = (1 - rates[1 - y, z]) / spread
    truth[rows, 1 - y] = -rates[y, z] / spread
    pulls = truth
    if loss == "peer":
        shares = cells.counts / np.maximum(cells.counts.sum(axis=0), 1)
        pulls = (np.eye(2)[y] - shares.T[z]) / spread[:, None]
    masks = {EO: [truth[:, 1], truth[:, 0]], DP: [np.ones(len(data))], EOPP: [truth[:, 1]]}[fairness]
    tests = []  # weights whose products with the smooth predictions are differences of rates between groups
    for mask in masks:
        parts = [np.where(z == group, mask, 0.0) for group in range(cells.shape[1])]
        sums = [max(part.sum(), 1.0) for part in parts]
        tests += [part / size - parts[0] / sums[0] for part, size in zip(parts[1:], sums[1:], strict=True)]
    scale = np.append(np.full(x.shape[1] - 1, RIDGE), 0.0)

    def objective(weights: Floats) -> tuple[float, Floats]:
        scores = x @ weights
        # ℓ is clipped at both ends, so that negative weights cannot be followed to infinity.
        bounded = 4 * np.tanh(scores / 4)
        value = (pulls[:, 1] * np.logaddexp(0, -bounded) + pulls[:, 0] * np.logaddexp(0, bounded)).mean()
        slope = (pulls[:, 0] * expit(bounded) - pulls[:, 1] * expit(-bounded)) / len(data)
        slope = slope * (1 - (bounded / 4) ** 2)
        chance = expit(scores)
        for test in tests:
            gap = float(test @ chance)
            value += mu * gap**2
            slope = slope + 2 * mu * gap * test * chance * (1 - chance)
        return float(value + (scale * weights**2).sum() / 2), x.T @ slope + scale * weights

    return np.asarray(minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


# Learning to reweight (Ren et al. 2018): weigh samples by what they do for a clean validation set. Each step takes a
# batch of training samples and all validation samples. A sample's weight is the part above 0 of the scalar product of
# its gradient with the validation loss's gradient, since that is how much the validation loss falls with a step along
# it; weights are divided by their sum. It knows nothing of fairness beyond what the validation set shows.

RATE = 0.01  # of Adam
REWEIGHT_EPOCHS = 100


def train_learning_to_reweight(given: TrainingInput) -> Trained:
    """Train the linear model; of the settings the batch size counts."""
    data, validation, rng = given.data, given.validation, np.random.default_rng(given.seed)
    assert validation is not None
    x, clean = (
        np.column_stack([part.features, np.ones(len(part))]).astype(np.float64) for part in (data, validation)
    )
    y, right = data.cells.label_codes, validation.cells.label_codes
    weights = np.append(rng.normal(0, 0.2, x.shape[1] - 1), 0.0)
    adam, late = Adam.new(weights.size), []
    given_weights = np.zeros(len(data))  # of the samples, over all epochs
    size = min(given.settings.batch_size, len(data))
    for epoch in range(REWEIGHT_EPOCHS):
        for rows in np.array_split(rng.permutation(len(data)), max(1, len(data) // size)):
            wrong = expit(x[rows] @ weights) - y[rows]
            target = (expit(clean @ weights) - right) @ clean / len(clean)
            gains = np.maximum(wrong * (x[rows] @ target), 0)
            if not gains.any():  # nothing in this batch helps
                continue
            given_weights[rows] += gains / gains.sum()
            adam_step(weights, (gains / gains.sum() * wrong) @ x[rows], adam, RATE)
            if epoch >= REWEIGHT_EPOCHS * 3 // 4:  # the last quarter is averaged: steps do not get smaller
                late.append(weights.copy())
    averaged = np.mean(late, axis=0) if late else weights
    return trained_linear(averaged, data, epochs=REWEIGHT_EPOCHS, trace={"weights": given_weights.tolist()})
