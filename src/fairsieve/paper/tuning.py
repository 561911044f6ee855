"""Choose hyperparameters inside the training part alone, as the paper says.

The paper's rule: "choose the hyperparameters that result in the best fairness while having an accuracy that best aligns
with other results". So fairness comes first: of the candidates whose cross-validated accuracy on the (noisy) training
data is at most .05 below the best candidate's, the one with the lowest cross-validated disparity. It is not less
than .05, since accuracy on labels of which a tenth are wrong may differ by that tenth from the accuracy that is meant:
what fits an attack best looks most accurate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.splits import fold_numbers
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.paper.methods.contract import Method
from fairsieve.samples import Samples
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["candidates", "choose", "fold_scores", "measure", "pick", "train_with"]

CLOSE = 0.05  # how far below the best accuracy a candidate may be


def candidates(method: Method) -> list[dict[str, Any]]:
    """List all combinations of a method's candidate values."""
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
    own: Mapping[str, Any] | None = None,
) -> Fitted:
    """Train with hyperparameters: those that are settings change them, others are passed on.

    ``own`` are passed on whatever their names.
    """
    known = {name: value for name, value in values.items() if name in settings.__dataclass_fields__}
    others = {name: value for name, value in values.items() if name not in known} | dict(own or {})
    chosen = replace(settings, **known)
    method.check(data, chosen, validation)
    fitted = method.train(data, chosen, seed=seed, validation=validation, **others)
    if fitted.interrupted:  # half a training is a model, but not a result
        raise KeyboardInterrupt
    return fitted


def choose(
    method: Method,
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    validation: Samples | None = None,
    folds: int = 5,
) -> dict[str, Any]:
    """Choose the hyperparameters to use on ``data``."""
    options = candidates(method)
    if len(options) == 1:
        return options[0]
    return options[pick(*fold_scores(method, data, settings, seed=seed, validation=validation, folds=folds))]


def fold_scores(
    method: Method,
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    validation: Samples | None = None,
    folds: int = 5,
) -> NDArray[np.float64]:
    """Measure accuracies and disparities on the held-out folds: (2, folds, candidates)."""
    options = candidates(method)
    scores = np.zeros((2, folds, len(options)))
    for fold, (kept, held) in enumerate(_fold_indices(data, folds, seed)):
        train, test = data.take(kept), data.take(held)
        for i, values in enumerate(options):
            fitted = train_with(
                method, train, settings, values, seed=seed, validation=validation, own=method.while_tuning
            )
            scores[:, fold, i] = measure(fitted, test, settings.fairness)
    return scores


def pick(accuracies: NDArray[np.float64], disparities: NDArray[np.float64]) -> int:
    """Pick the candidate to use, from scores of (folds, candidates): the fairest of those close to the best accuracy.

    Of equally fair ones the first, which is the default, wins.

    Examples
    --------
    >>> pick(np.array([[0.72, 0.71, 0.60]]), np.array([[0.20, 0.10, 0.01]]))
    1
    """
    means = accuracies.mean(axis=0)
    close = means >= means.max() - CLOSE
    return int(np.where(close, disparities.mean(axis=0), np.inf).argmin())


def _fold_indices(
    data: Samples, folds: int, seed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield training and held-out indices, every cell spread evenly over the folds."""
    fold = fold_numbers(data.cells, folds, seed)
    for k in range(folds):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def measure(fitted: Fitted, samples: Samples, fairness: str) -> tuple[float, float]:
    """Measure accuracy and disparity."""
    predicted = fitted.predict(samples.features, sensitive_features=samples.groups)
    table, *_ = confusion_table(samples.labels, predicted, samples.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, fairness))
