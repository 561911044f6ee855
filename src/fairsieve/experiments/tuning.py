"""Choosing hyperparameters, as the paper says, inside the training part alone.

Cross-validation on the (noisy) training data; of the candidates whose accuracy stays close to the
best, the one with the lowest disparity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.baselines.contract import Method
from fairsieve.data.splits import fold_numbers
from fairsieve.metrics import accuracy_of, confusion_table, disparity_of
from fairsieve.samples import Samples
from fairsieve.training.fitted import Fitted
from fairsieve.training.settings import Settings

__all__ = ["choose", "scores_of", "train_with"]

CLOSE = 0.02  # how far below the best accuracy a candidate may be


def candidates(method: Method) -> list[dict[str, Any]]:
    """All combinations of a method's candidate values."""
    names = list(method.candidates)
    return [dict(zip(names, values, strict=True)) for values in product(*method.candidates.values())]


def train_with(
    method: Method,
    data: Samples,
    settings: Settings,
    values: Mapping[str, Any],
    *,
    seed: int,
    validation: Samples | None = None,
    evaluation: Samples | None = None,
) -> Fitted:
    """Train with hyperparameters: those that are settings change them, others are passed on."""
    known = {name: value for name, value in values.items() if name in settings.__dataclass_fields__}
    others = {name: value for name, value in values.items() if name not in known}
    chosen = replace(settings, **known)
    method.check(data, chosen, validation)
    return method.train(data, chosen, seed=seed, validation=validation, evaluation=evaluation, **others)


def choose(
    method: Method,
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    validation: Samples | None = None,
    folds: int = 3,
) -> dict[str, Any]:
    """The hyperparameters to use on ``data``."""
    options = candidates(method)
    if len(options) == 1:
        return options[0]
    results = np.zeros((len(options), 2))
    for kept, held in fold_indices(data, folds, seed):
        train, test = data.take(kept), data.take(held)
        for i, values in enumerate(options):
            fitted = train_with(method, train, settings, values, seed=seed, validation=validation)
            accuracy, disparity = scores_of(fitted, test, settings.fairness)
            results[i] += accuracy / folds, disparity / folds
    close = results[:, 0] >= results[:, 0].max() - CLOSE
    return options[int(np.where(close, results[:, 1], np.inf).argmin())]


def fold_indices(
    data: Samples, folds: int, seed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and held-out positions, every cell spread evenly over the folds."""
    fold = fold_numbers(data.cells, folds, seed)
    for k in range(folds):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def scores_of(fitted: Fitted, samples: Samples, fairness: str) -> tuple[float, float]:
    """Accuracy and disparity."""
    predicted = fitted.predict(samples.features, sensitive_features=samples.groups)
    table, _ = confusion_table(samples.labels, predicted, samples.groups)
    return float(accuracy_of(table)), float(disparity_of(table, fairness))
