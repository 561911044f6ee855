"""Learning to reweight (Ren et al. 2018): weigh samples by what they do for a clean validation set.

Each step takes a batch of training samples and all validation samples. A sample's weight is the part above 0 of the
scalar product of its gradient with the validation loss's gradient, since that is how much the validation loss falls
with a step along it; weights are divided by their sum. The linear model, two classes. It knows nothing of fairness
beyond what the validation set shows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from fairsieve.paper.methods.contract import Trained, TrainingInput, trained_by_scores

__all__ = ["train_learning_to_reweight"]

RATE = 0.01  # of Adam


def train_learning_to_reweight(given: TrainingInput, reweight_epochs: int = 100) -> Trained:
    """Train the linear model; of the settings the batch size counts."""
    data, validation, rng = given.data, given.validation, np.random.default_rng(given.seed)
    assert validation is not None
    x, clean = (
        np.column_stack([part.features, np.ones(len(part))]).astype(np.float64) for part in (data, validation)
    )
    y, right = data.cells.label_codes, validation.cells.label_codes
    weights = np.append(rng.normal(0, 0.2, x.shape[1] - 1), 0.0)
    first, second, steps = np.zeros_like(weights), np.zeros_like(weights), 0
    size, average, averaged = min(given.settings.batch_size, len(data)), np.zeros_like(weights), 0
    for epoch in range(reweight_epochs):
        for rows in np.array_split(rng.permutation(len(data)), max(1, len(data) // size)):
            wrong = expit(x[rows] @ weights) - y[rows]
            target = (expit(clean @ weights) - right) @ clean / len(clean)
            gains = np.maximum(wrong * (x[rows] @ target), 0)
            if not gains.any():  # nothing in this batch helps
                continue
            steps += 1
            slope = (gains / gains.sum() * wrong) @ x[rows]
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            scale = np.sqrt(second / (1 - 0.999**steps)) + 1e-8
            weights = weights - RATE * first / (1 - 0.9**steps) / scale
            if epoch >= reweight_epochs * 3 // 4:  # the last quarter is averaged: steps do not get smaller
                averaged += 1
                average += (weights - average) / averaged
    found = average if averaged else weights
    return trained_by_scores(lambda features: features @ found[:-1] + found[-1], data, epochs=reweight_epochs)
