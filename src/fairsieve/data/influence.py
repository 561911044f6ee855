"""Label flips guided by influence: those that raise a clean validation loss most.

Flipping the label of one sample moves the logistic regression by about ``−H⁻¹ g``, with H the Hessian
of the training loss and g what the flip adds to its gradient. The validation loss then moves by
``−∇V · H⁻¹ g``, so that one linear system with ∇V on its right side scores every sample at once. The
flips are made in rounds, with the regression fitted anew between them.

Stronger than flips by margin, since it may spend its whole budget in one cell: a stress test. With most
of a cell flipped no method can recover without clean data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve.core.checks import check_at_least
from fairsieve.data.noise import NoisyLabels, flipped_to, flips_of, mask_of
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

__all__ = ["flip_influence"]


def flip_influence(
    samples: Samples,
    rate: float,
    among: ArrayLike | None = None,
    *,
    validation: Samples | None = None,
    rounds: int = 10,
) -> NoisyLabels:
    """Flip the labels whose flips raise a clean validation loss most, to first order.

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
    candidates = mask_of(among, len(samples)).copy()
    wanted = flips_of(rate, len(samples), int(candidates.sum()))
    check_at_least("rounds", rounds, 1)
    target = samples if validation is None else validation
    check_binary(samples, target)
    labels = samples.cells.label_codes
    flipped = np.zeros(len(samples), dtype=bool)
    influence = np.zeros(len(samples))
    for part in np.array_split(np.arange(wanted), rounds):
        if len(part) == 0:
            continue
        present = np.where(flipped, 1 - labels, labels)
        if present.min() < present.max():  # with one class left there is nothing to fit
            influence = influence_of_flips(samples.features, present, target.features, target.cells.label_codes)
        order = np.argsort(-np.where(candidates & ~flipped, influence, -np.inf), kind="stable")
        flipped[order[: len(part)]] = True
    chosen = np.flatnonzero(flipped)
    return flipped_to(samples, chosen, 1 - labels[chosen])


def influence_of_flips(
    features: NDArray[np.floating], labels: NDArray[np.int64], shown: NDArray[np.floating], truth: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How much each flip raises the loss on the samples shown, to first order."""
    regression = LogisticRegression(max_iter=1000).fit(features, labels)
    rows, shown_rows = with_constant(features), with_constant(shown)
    chances = regression.predict_proba(features)[:, 1]
    penalty = np.ones(rows.shape[1]) / regression.C
    penalty[-1] = 1e-8  # the intercept is not penalised; this much keeps the system solvable
    hessian = (rows * (chances * (1 - chances))[:, None]).T @ rows + np.diag(penalty)
    gradient = shown_rows.T @ (regression.predict_proba(shown)[:, 1] - truth) / len(truth)
    direction = np.linalg.solve(hessian, gradient)
    # A flip changes the sample's part of the gradient, (chance − label)·x, by (2·label − 1)·x.
    return -(2 * labels - 1) * (rows @ direction)


def with_constant(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """Features with a last column of ones, in double precision."""
    return np.column_stack([features, np.ones(len(features))]).astype(np.float64)


def check_binary(samples: Samples, validation: Samples) -> None:
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
