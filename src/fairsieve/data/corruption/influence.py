"""Label flips guided by influence: those that raise the error on clean validation samples most.

Flipping the label of one sample moves the logistic regression by about ``−H⁻¹ g``, with H the Hessian
of the training loss and g what the flip adds to its gradient. The validation loss V then moves by
``−∇V · H⁻¹ g``, so that one linear system with ∇V on its right side scores every sample at once. The
flips are made in rounds, with the regression fitted anew between them.

Stronger than flips by margin, since it may spend its whole budget in one cell: a stress test. With most
of a cell flipped no method can recover without clean data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.data.corruption.flips import NoisyLabels, flipped_to, flips_of, mask_of
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_at_least

__all__ = ["flip_influence"]

# How steeply a validation sample comes to count as wrong. On the synthetic data sharp ones do most harm
# at rates of 5 to 10 %, blunt ones from 15 % on, where the whole regression can be turned round.
SHARPNESS = (1.0, 3.0, 10.0)


def flip_influence(
    samples: Samples,
    rate: float,
    among: ArrayLike | None = None,
    *,
    validation: Samples | None = None,
    rounds: int = 10,
) -> NoisyLabels:
    """Flip the labels whose flips raise the error on clean validation samples most, to first order.

    The loss that is raised is a smooth error rate. It is tried at a few degrees of smoothness; the
    flips that leave the largest error are given. Nothing is random.

    Parameters
    ----------
    samples : Samples
        With right labels, of two classes.
    rate : float in [0, 1]
        Share of *all* samples to flip.
    among : boolean array, optional
        Who may be flipped; everyone when None.
    validation : Samples, optional
        Where the damage is measured, with right labels; the samples themselves when None.
    rounds : int
        Into how many equal parts the flips are cut.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_influence(make_synthetic(1000, seed=0), 0.1)
    >>> int(noisy.flipped.sum())
    100
    """
    candidates = mask_of(among, len(samples))
    wanted = flips_of(rate, len(samples), int(candidates.sum()))
    check_at_least("rounds", rounds, 1)
    target = samples if validation is None else validation
    _check_binary(samples, target)
    if wanted == 0:
        return flipped_to(samples, np.zeros(0, np.int64), np.zeros(0, np.int64))
    attempts = [_flips_by_influence(samples, target, candidates, wanted, rounds, each) for each in SHARPNESS]
    chosen = np.flatnonzero(max(attempts, key=lambda flipped: _error_after(samples, flipped, target)))
    return flipped_to(samples, chosen, 1 - samples.cells.label_codes[chosen])


def _flips_by_influence(
    samples: Samples,
    target: Samples,
    candidates: NDArray[np.bool_],
    wanted: int,
    rounds: int,
    sharpness: float,
) -> NDArray[np.bool_]:
    """Whom to flip: in each round, those with the largest influence then."""
    labels = samples.cells.label_codes
    flipped = np.zeros(len(samples), dtype=bool)
    influence = np.zeros(len(samples))
    for part in np.array_split(np.arange(wanted), min(rounds, wanted)):
        present = np.where(flipped, 1 - labels, labels)
        if present.min() < present.max():  # with one class left there is nothing to fit
            influence = _influence_of_flips(samples.features, present, target, sharpness)
        order = np.argsort(-np.where(candidates & ~flipped, influence, -np.inf), kind="stable")
        flipped[order[: len(part)]] = True
    return flipped


def _influence_of_flips(
    features: NDArray[Any], labels: NDArray[np.int64], target: Samples, sharpness: float
) -> NDArray[np.float64]:
    """How much each flip raises the loss on the target, to first order.

    The loss is σ(−sharpness · margin): the error rate, made smooth. The training loss itself would not
    do, since its gradient is next to nothing where training ended.
    """
    regression = LogisticRegression(max_iter=1000).fit(features, labels)
    rows, target_rows = _with_constant(features), _with_constant(target.features)
    chances = regression.predict_proba(features)[:, 1]
    penalty = np.ones(rows.shape[1])  # scikit-learn's, with C = 1
    penalty[-1] = 1e-8  # it spares the intercept; this much keeps the system solvable
    hessian = (rows * (chances * (1 - chances))[:, None]).T @ rows + np.diag(penalty)
    signs = 2 * target.cells.label_codes - 1
    steepness = 1 - np.tanh(sharpness * regression.decision_function(target.features) / 2) ** 2
    gradient = -target_rows.T @ (signs * steepness) * sharpness / 4 / len(target)
    # A flip changes the sample's part of the training gradient, (chance − label)·x, by (2·label − 1)·x.
    influence: NDArray[np.float64] = -(2 * labels - 1) * (rows @ np.linalg.solve(hessian, gradient))
    return influence


def _error_after(samples: Samples, flipped: NDArray[np.bool_], target: Samples) -> float:
    """Error on the target of a regression trained on flipped labels."""
    labels = samples.cells.label_codes
    present = np.where(flipped, 1 - labels, labels)
    truth = target.cells.label_codes
    if present.min() == present.max():
        return float((truth != present[0]).mean())
    regression = LogisticRegression(max_iter=1000).fit(samples.features, present)
    return float((regression.predict(target.features) != truth).mean())


def _with_constant(features: NDArray[Any]) -> NDArray[np.float64]:
    """Features with a last column of ones, in double precision."""
    return np.column_stack([features, np.ones(len(features))]).astype(np.float64)


def _check_binary(samples: Samples, validation: Samples) -> None:
    """Two classes, the same on both sides."""
    found = np.unique(samples.cells.label_codes)
    if samples.cells.shape[0] != 2 or len(found) != 2:
        raise InvalidInputError(
            f"samples must have two classes, both in the data, for influence-guided flips; got "
            f"{len(found)} of the classes {samples.cells.classes}: use flip_margin"
        )
    if validation.cells.classes != samples.cells.classes or len(validation) == 0:
        raise InvalidInputError(
            f"validation must have samples of the classes {samples.cells.classes}; got {len(validation)} of "
            f"{validation.cells.classes}"
        )
