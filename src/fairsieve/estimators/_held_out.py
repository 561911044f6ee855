"""Compare a fair model with a plain one; where samples are few, on samples that neither saw."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairsieve.estimators._predictions import decide
from fairsieve.estimators._solvers import EPOCHS, choose_solver, new_solver
from fairsieve.inputs import Checked
from fairsieve.label_noise.collapse import Collapse, collapse_of, compare_chances

if TYPE_CHECKING:
    from fairsieve.estimators.classifier import FairRobustClassifier

__all__ = ["find_collapse", "predict_held_out"]

MOST = 4_000  # samples that are used
ENOUGH_FOR_A_PARAMETER = 200  # samples: what a model learns by heart is then below half a percent of accuracy
FEWEST = 40  # of a class, or there is too little to train on
AFFORDABLE = 2_000_000  # epochs × samples of the paper's loop; more would take long


class _HeldOut(NamedTuple):
    """Logits of samples, (n, outputs), by models that did not see them."""

    rows: NDArray[np.int64]
    fair: NDArray[np.float64]
    plain: NDArray[np.float64]


def find_collapse(
    estimator: FairRobustClassifier,
    checked: Checked,
    seed: int,
    predicted: NDArray[np.integer[Any]],
    plain: NDArray[np.integer[Any]],
) -> Collapse | None:
    """Compare the fair model with the plain one, by their predictions of the training samples as class codes.

    Where there is an estimate to judge by, they are compared in disparity too. Few samples are learnt by heart, so
    models that did not see them predict them then; of many samples for each parameter, the predictions at hand say
    the same, of the very models that are returned.
    """
    found = collapse_of(
        predicted,
        plain,
        checked.data.cells.host_codes // checked.data.cells.shape[1],
        1 - estimator.clean_ratio_,
        estimate=estimator.estimate_,
        weights=checked.weights,
    )
    estimate = estimator.estimate_
    if found is not None or estimate is None:
        return found
    held_out = estimator.module is not None or _is_learnt_by_heart(checked)
    if held_out and not _is_affordable(estimator, checked):
        return None
    rows, ours, theirs = np.arange(len(checked.data)), predicted, plain
    if held_out:
        unseen = predict_held_out(estimator, checked, seed)
        if unseen is None:
            return None
        rows, ours, theirs = unseen.rows, _decide_by_logits(unseen.fair), _decide_by_logits(unseen.plain)
    cells = checked.data.take(rows).cells if held_out else checked.data.cells
    return compare_chances(
        ours,
        theirs,
        cells,
        estimate.take(rows, cells) if held_out else estimate,
        fairness=estimator.fairness,
        pos_label=estimator.pos_label,
        weights=None if checked.weights is None else checked.weights[rows],
        held_out=held_out,
    )


def _is_learnt_by_heart(checked: Checked) -> bool:
    """Say whether there are so few samples for each parameter that a model does better on them than on others."""
    samples, columns = checked.data.features.shape
    classes = checked.data.cells.shape[0]
    return bool(samples < ENOUGH_FOR_A_PARAMETER * (columns + 1) * max(classes - 1, 1))


def _is_affordable(estimator: FairRobustClassifier, checked: Checked) -> bool:
    """Say whether training on halves of the samples takes seconds: the Newton solver always does."""
    passes = (estimator.epochs or EPOCHS) * min(len(checked.data), MOST)
    return choose_solver(estimator) == "newton" or passes <= AFFORDABLE


def _decide_by_logits(logits: NDArray[np.float64]) -> NDArray[np.integer[Any]]:
    """Return the likeliest class of each sample, from one logit for two classes or one for each class."""
    return (logits[:, 0] > 0).astype(np.int64) if logits.shape[1] == 1 else logits.argmax(axis=1)


def predict_held_out(
    estimator: FairRobustClassifier, checked: Checked, seed: int, most: int = MOST
) -> _HeldOut | None:
    """Train on each half of the samples and predict the other; None where there are too few, or on Ctrl-C.

    The halves have equally many samples of each class and group; at most ``most`` samples are used. ``estimator``
    knows its clean ratio, and its estimate if it made one.
    """
    clean_ratio, estimate = estimator.clean_ratio_, estimator.estimate_
    data, weights = checked.data, checked.weights
    counts = data.cells.counts.sum(axis=1)
    if counts[counts > 0].min() < FEWEST:
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(len(data))[:most])
    half = np.empty(len(rows), np.int64)
    half[np.argsort(data.cells.codes[rows], kind="stable")] = np.arange(len(rows)) % 2
    quiet = clone(estimator).set_params(checkpoint_dir=None, checkpoint_every=None, verbose=0)
    outputs = 1 if len(data.cells.classes) == 2 else len(data.cells.classes)
    found = _HeldOut(rows, np.zeros((len(rows), outputs)), np.zeros((len(rows), outputs)))
    for number in (0, 1):
        inside, outside = rows[half != number], rows[half == number]
        part = data.take(inside)
        own = None if weights is None else weights[inside]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = new_solver(quiet, Checked(part, own, None, len(inside)), seed)
            fair = solver.train_fair(
                clean_ratio, None if estimate is None else estimate.take(inside, part.cells)
            )
            plain = None if fair.interrupted else solver.train_plain()
        if plain is None:
            return None
        unseen = data.features[outside]
        for predictor, logits in ((fair.predictor, found.fair), (plain, found.plain)):
            logits[half == number] = decide(predictor, unseen).reshape(unseen.shape[0], -1)
    return found
