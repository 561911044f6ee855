"""Make labels wrong: by margin, general or aimed at a group; greedily; and at random.

Every function takes samples with right labels and returns the labels with flips and the mask of who
was flipped; nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples, check_kind_of_samples
from fairsieve.selection.cells import Flags, Floats, Integers, Values
from fairsieve.selection.select import count_budget
from fairsieve.validation import check_at_least, check_seed, check_share, shown


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels, some of them wrong.

    Attributes
    ----------
    labels : array of shape (n,)
    flipped : boolean array of shape (n,)
        Which of them are wrong.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> samples = make_synthetic(1000, seed=0)
    >>> noisy = flip_uniform(samples, 0.1, seed=0)
    >>> bool(((noisy.labels != samples.labels) == noisy.flipped).all())
    True
    """

    labels: Values
    flipped: Flags


def flip_margin(
    samples: Samples,
    rate: float,
    *,
    among: ArrayLike | None = None,
    validation: Samples | None = None,
    sees_group: bool = True,
) -> NoisyLabels:
    """Flip the labels that a logistic regression is surest of.

    The rule behind the paper's published flips: fit a logistic regression on the right labels and
    flip the samples with the largest margin. With more than two classes a label becomes the class
    that the regression finds least likely.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of *all* samples to flip.
    among : boolean array, optional
        Who may be flipped; everyone when None.
    validation : Samples, optional
        Samples that the regression is fitted on too, and that are not flipped.
    sees_group : bool, default=True
        Whether the regression sees the columns that tell the groups apart. That of the paper's authors did not.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_margin(make_synthetic(1000, seed=0), 0.1)
    >>> int(noisy.flipped.sum())
    100
    """
    check_kind_of_samples("samples", samples)
    candidates = np.ones(len(samples), bool) if among is None else np.asarray(among)
    if candidates.shape != (len(samples),) or candidates.dtype != bool:
        raise InvalidInputError(
            f"among must be a boolean mask of the {len(samples)} samples; got {candidates.dtype} of shape "
            f"{candidates.shape}"
        )
    wanted = count_flips(rate, len(samples))
    if wanted > candidates.sum():
        raise InvalidInputError(
            f"rate must not ask for more flips than there are candidates; {rate} of {len(samples)} samples is "
            f"{wanted}, of {candidates.sum()}"
        )
    codes, rows = samples.cells.label_codes, np.arange(len(samples))
    seen, fitted_on, labels = _regression_inputs(samples, validation, sees_group)
    if len(np.unique(labels)) < 2:
        raise InvalidInputError(
            f"samples must have two or more classes to flip between; got {np.unique(labels).size}"
        )
    model = LogisticRegression(max_iter=1000).fit(fitted_on, labels)
    scores = model.decision_function(seen)
    if scores.ndim == 1:  # two classes: margins are differences of log-odds
        scores = np.column_stack([np.zeros(len(samples)), scores])
    log_odds = np.full((len(samples), samples.cells.shape[0]), -np.inf)
    log_odds[:, model.classes_] = scores
    own_odds = log_odds[rows, codes]
    others = log_odds.copy()
    others[rows, codes] = -np.inf
    margin = np.where(candidates, own_odds - others.max(axis=1), -np.inf)
    chosen = np.argsort(-margin, kind="stable")[:wanted]
    others[~np.isfinite(others)] = np.inf  # neither the own label nor a class that never occurs
    return flipped_to(samples, chosen, others[chosen].argmin(axis=1))


def _regression_inputs(
    samples: Samples, validation: Samples | None, sees_group: bool
) -> tuple[Values, Values, Integers]:
    """Return what a regression sees of the samples, what it is fitted on, and the labels for that."""
    parts = [samples] if validation is None else [samples, validation]
    features = np.concatenate([part.features.reshape(len(part), -1) for part in parts])
    labels = np.concatenate([part.cells.label_codes for part in parts])
    if not sees_group:
        groups = np.concatenate([part.cells.group_codes for part in parts])
        constant = np.ones(features.shape[1], dtype=bool)  # one value in each group …
        for group in np.unique(groups):
            constant &= np.ptp(features[groups == group], axis=0) == 0
        features = features[:, ~(constant & (np.ptp(features, axis=0) > 0))]  # … and not the same in all
    return features[: len(samples)], features, labels


def flip_group_targeted(
    samples: Samples,
    rate: float,
    *,
    group: Any = None,
    validation: Samples | None = None,
    sees_group: bool = True,
) -> NoisyLabels:
    """Flip labels in one group only, by :func:`flip_margin`: the one whose attack lowers overall accuracy most.

    Flips never reach half of the group's labels: beyond it they would say the opposite of the truth.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of *all* samples to flip.
    group : optional
        The group to attack; the one that leaves the least accurate logistic regression when None.
    validation, sees_group
        As for :func:`flip_margin`.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> samples = make_synthetic(1000, seed=0)
    >>> noisy = flip_group_targeted(samples, 0.1)
    >>> int(noisy.flipped.sum()), set(samples.groups[noisy.flipped].tolist())
    (100, {1})
    """
    check_kind_of_samples("samples", samples)
    cells, wanted = samples.cells, count_flips(rate, len(samples))
    if group is not None and group not in cells.groups:
        raise InvalidInputError(f"group must be one of {cells.groups}; got {group!r}")
    sizes = cells.counts.sum(axis=0)
    allowed = [
        code
        for code, value in enumerate(cells.groups)
        if (group is None or value == group) and (wanted < sizes[code] / 2 or wanted == 0)
    ]
    if not allowed:
        raise InvalidInputError(
            f"rate must leave under half of a group's labels flipped; {rate} of {len(samples)} samples is {wanted}, "
            f"too much for {'groups' if group is None else f'group {group!r}, one'} of {sizes.tolist()}: lower it"
        )
    asked: Any = {"validation": validation, "sees_group": sees_group}
    attacks = [flip_margin(samples, rate, among=cells.group_codes == code, **asked) for code in allowed]
    if len(attacks) == 1:
        return attacks[0]
    seen, _, _ = _regression_inputs(samples, None, sees_group)
    models = [LogisticRegression(max_iter=1000).fit(seen, noisy.labels) for noisy in attacks]
    return attacks[int(np.argmin([model.score(seen, samples.labels) for model in models]))]


def flip_uniform(
    samples: Samples,
    rates: float | ArrayLike | Mapping[tuple[Any, Any], float],
    *,
    seed: int | np.random.Generator,
) -> NoisyLabels:
    """Flip labels at random, with rates per class and group.

    Parameters
    ----------
    rates : float, array of shape (classes, groups), or dict of (label, group) → rate
        The chance of each sample to be flipped, to any other class alike. Cells that a dict leaves
        out keep their labels.
    seed : int or Generator

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> samples = make_synthetic(1000, seed=0)
    >>> noisy = flip_uniform(samples, {(1, 0): 0.3}, seed=0)
    >>> set(samples.groups[noisy.flipped].tolist()), set(samples.labels[noisy.flipped].tolist())
    ({0}, {1})
    """
    check_kind_of_samples("samples", samples)
    cells = samples.cells
    if isinstance(rates, Mapping):
        table: Floats = np.zeros(cells.shape)
        for cell, rate in rates.items():
            label, group = cell if isinstance(cell, tuple) and len(cell) == 2 else (cell, None)
            if label not in cells.classes or group not in cells.groups:
                raise InvalidInputError(
                    f"rates must name cells of classes {cells.classes} and groups {cells.groups}, as (label, group); "
                    f"got {shown(cell)}"
                )
            table[cells.classes.index(label), cells.groups.index(group)] = rate
    else:
        table = np.zeros(0)
        with suppress(TypeError, ValueError):
            table = np.asarray(rates, dtype=np.float64)
        if table.shape not in ((), cells.shape):
            raise InvalidInputError(
                f"rates must be one number or one per cell, the shape {cells.shape}; got {shown(rates)}"
            )
        table = np.broadcast_to(table, cells.shape)
    if not ((table >= 0) & (table <= 1)).all():
        raise InvalidInputError(f"rates must lie in [0, 1]; got {table.tolist()}")
    if cells.shape[0] < 2 and table.any():
        raise InvalidInputError(f"samples must have two or more classes to flip between; got {cells.classes}")
    rng = np.random.default_rng(seed if isinstance(seed, np.random.Generator) else check_seed("seed", seed))
    chosen = np.flatnonzero(rng.random(len(samples)) < table.reshape(-1)[cells.codes])
    shift = rng.integers(1, max(2, cells.shape[0]), len(chosen))
    return flipped_to(samples, chosen, (cells.label_codes[chosen] + shift) % cells.shape[0])


def count_flips(rate: float, samples: int) -> int:
    """Compute how many labels a rate flips."""
    return count_budget(rate, samples) if check_share("rate", rate) > 0 else 0


def flipped_to(samples: Samples, chosen: Integers, codes: Integers) -> NoisyLabels:
    """Give the chosen samples new labels."""
    labels = samples.labels.copy()
    labels[chosen] = np.asarray(samples.cells.classes, dtype=labels.dtype)[codes]
    flipped = np.zeros(len(samples), dtype=bool)
    flipped[chosen] = True
    return NoisyLabels(labels, flipped)


def flip_greedily(
    samples: Samples, rate: float, *, validation: Samples | None = None, rounds: int = 100
) -> NoisyLabels:
    """Flip the labels, one after the other, that raise the loss of a logistic regression on right labels most.

    Paudice et al. (2018) flip the label after which the retrained learner has the highest loss on a validation set. To
    train once for every candidate takes hours; here a candidate is scored by what its flip does to the loss of logistic
    regression to first order. With θ the parameters and H the curvature of the training loss, a flip of sample i moves
    θ by −H⁻¹ (2yᵢ − 1) xᵢ, so that the validation loss L changes by −(2yᵢ − 1) xᵢ · H⁻¹ ∇L. The regression is trained
    again after every round of flips, and the scores are taken anew.

    It is the strongest of the attacks here: it may flip most labels of one cell, after which no method without right
    labels can recover. Two classes.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of the samples to flip.
    validation : Samples, optional
        Samples with right labels that the loss is measured on; the samples themselves, with their right labels, when
        None.
    rounds : int, default=100
        How often the regression is trained again; each round flips as many labels. With as many rounds as flips, labels
        are flipped one by one.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_greedily(make_synthetic(1000, seed=0), 0.1, rounds=20)
    >>> int(noisy.flipped.sum())
    100
    """
    check_kind_of_samples("samples", samples)
    check_at_least("rounds", rounds, 1)
    cells, wanted = samples.cells, count_flips(rate, len(samples))
    if cells.shape[0] != 2:
        raise InvalidInputError(
            f"samples must have two classes for this attack; got {cells.shape[0]}: use flip_margin"
        )
    features = samples.features.reshape(len(samples), -1).astype(np.float64)
    shift, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)

    def standardised(part: Samples) -> Floats:
        return np.column_stack([(part.features.reshape(len(part), -1) - shift) / scale, np.ones(len(part))])

    x, right = standardised(samples), cells.label_codes.astype(np.int64)
    target, target_labels = x, right
    if validation is not None:
        check_kind_of_samples("validation", validation)
        target = standardised(validation)
        target_labels = np.array([cells.classes.index(label) for label in validation.labels], dtype=np.int64)
    labels, model = right.copy(), LogisticRegression(max_iter=1000, warm_start=True)
    free = np.ones(len(samples), dtype=bool)
    left = np.diff(np.round(np.linspace(0, wanted, min(rounds, max(wanted, 1)) + 1)).astype(int))
    for flips in left[left > 0]:
        if len(np.unique(labels)) < 2:
            break  # nothing is left to learn
        model.fit(x[:, :-1], labels)
        scores = np.where(free, _effects(model, x, labels, target, target_labels), -np.inf)
        chosen = np.argsort(-scores, kind="stable")[:flips]
        labels[chosen] = 1 - labels[chosen]
        free[chosen] = False
    chosen = np.flatnonzero(labels != right)
    return flipped_to(samples, chosen, labels[chosen])


def _effects(model: Any, x: Floats, labels: Integers, target: Floats, target_labels: Integers) -> Floats:
    """Compute by how much the flip of each sample raises the validation loss, to first order."""
    at = np.append(model.coef_[0], model.intercept_)
    chances, ridge = expit(x @ at), np.append(np.full(x.shape[1] - 1, 1.0 / model.C), 1e-9)
    curvature = (x.T * (chances * (1 - chances))) @ x + np.diag(ridge)
    slope = (expit(target @ at) - target_labels) @ target / len(target)
    return -(2 * labels - 1) * (x @ np.linalg.solve(curvature, slope))
