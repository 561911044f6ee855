"""Make labels wrong as people do: by what they know, where it is hard, and by what they see.

Every function takes samples with right labels and returns the labels with flips and the mask of who was
flipped. ``rates`` is the share of wrong labels: one number, or one for each group. Importing this makes them known to
``add_noise`` by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairsieve import Samples
from fairsieve.data import NoisyLabels
from fairsieve.data.flips import check_samples_object, flipped_to
from fairsieve.errors import InvalidInputError
from fairsieve.paper.problems import NOISES
from fairsieve.validation import check_at_least, check_seed, check_share, shown

__all__ = ["flip_by_feature", "flip_near_boundary", "flip_weak_annotator"]

Floats = NDArray[np.float64]
Rates = float | Mapping[Any, float]


def flip_weak_annotator(
    samples: Samples, rates: Rates, *, seed: int, columns: int = 2, rows: int = 100
) -> NoisyLabels:
    """Take some labels from a weak annotator: a model that saw few columns and few rows.

    The annotator is wrong by stereotype: about everybody whom its few columns mislead it about. Its labels are
    mixed with the true ones so that the share of wrong labels is as asked for.

    Parameters
    ----------
    rates : float in [0, 1], or dict of group → rate
        Share of wrong labels. Groups that a dict leaves out keep their labels.
    columns, rows : int
        How many columns and rows the annotator saw; they are drawn at random.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_weak_annotator(make_synthetic(1000, seed=0), 0.1, seed=0)
    >>> int(noisy.flipped.sum())
    100
    """
    rng = _check(samples, seed)
    features, codes = _standard(samples), samples.cells.label_codes
    some = rng.permutation(features.shape[1])[: check_at_least("columns", columns, 1)]
    order = rng.permutation(len(samples))
    seen = np.sort(
        np.concatenate([_one_of_each(codes[order], order), order[: check_at_least("rows", rows, 1)]])
    )
    model = LogisticRegression(max_iter=1000).fit(features[np.ix_(seen, some)], codes[seen])
    guesses = model.predict(features[:, some])
    wrong = guesses != codes
    chosen = _draw(samples, rates, wrong.astype(np.float64), rng, "the annotator is wrong about")
    return flipped_to(samples, chosen, guesses[chosen])


def flip_near_boundary(samples: Samples, rates: Rates, *, seed: int) -> NoisyLabels:
    """Flip labels where it is hard to say: near the boundary that a logistic regression draws.

    The chance to be flipped falls with the margin; the new label is the likeliest other class.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> noisy = flip_near_boundary(make_synthetic(1000, seed=0), {0: 0.1}, seed=0)
    >>> set(make_synthetic(1000, seed=0).groups[noisy.flipped].tolist())
    {0}
    """
    rng = _check(samples, seed)
    features, codes = _standard(samples), samples.cells.label_codes
    model = LogisticRegression(max_iter=1000).fit(features, codes)
    chances = np.zeros((len(samples), samples.cells.shape[0]))
    chances[:, model.classes_] = model.predict_proba(features)
    rows = np.arange(len(samples))
    others = chances.copy()
    others[rows, codes] = -1.0
    second = others.argmax(axis=1)
    margin = np.log(np.maximum(chances[rows, codes], 1e-12) / np.maximum(chances[rows, second], 1e-12))
    chosen = _draw(samples, rates, np.exp(-2 * np.abs(margin)) + 1e-9, rng, "candidates are")
    return flipped_to(samples, chosen, second[chosen])


def flip_by_feature(samples: Samples, rates: Rates, *, seed: int, feature: int | None = None) -> NoisyLabels:
    """Flip labels by what a feature says: the higher its value, the likelier the label is wrong.

    Parameters
    ----------
    feature : int, optional
        The column; the one that says most about the labels when None.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data = make_synthetic(1000, seed=0)
    >>> noisy = flip_by_feature(data, 0.1, seed=0, feature=1)
    >>> bool(data.features[noisy.flipped, 1].mean() > data.features[~noisy.flipped, 1].mean() + 1)
    True
    """
    rng = _check(samples, seed)
    features, codes, classes = _standard(samples), samples.cells.label_codes, samples.cells.shape[0]
    if feature is None:
        own = np.equal.outer(codes, np.arange(classes)).astype(np.float64)
        feature = int(np.abs((own - own.mean(axis=0)).T @ features).max(axis=0).argmax())
    elif not -features.shape[1] <= feature < features.shape[1]:
        raise InvalidInputError(f"feature must be a column, below {features.shape[1]}; got {shown(feature)}")
    order = np.argsort(rng.permutation(len(samples)))  # among equal values by chance
    rank = np.empty(len(samples))
    rank[np.lexsort((order, features[:, feature]))] = (np.arange(len(samples)) + 1.0) / len(samples)
    chosen = _draw(samples, rates, rank**4, rng, "candidates are")
    shift = rng.integers(1, max(2, classes), len(chosen))
    return flipped_to(samples, chosen, (codes[chosen] + shift) % classes)


def _check(samples: Samples, seed: int) -> np.random.Generator:
    """Check the samples and the seed; return a generator."""
    check_samples_object(samples)
    found = np.unique(samples.cells.label_codes).size
    if found < 2:
        raise InvalidInputError(f"samples must have two or more classes to flip between; got {found}")
    return np.random.default_rng(check_seed("seed", seed))


def _standard(samples: Samples) -> Floats:
    """Return the features with mean 0 and deviation 1; constant ones are 0."""
    features = np.asarray(samples.features, np.float64).reshape(len(samples), -1)
    spread = features.std(axis=0)
    scaled: Floats = (features - features.mean(axis=0)) / np.where(spread < 1e-12, np.inf, spread)
    return scaled


def _one_of_each(codes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one row of each class."""
    _, first = np.unique(codes, return_index=True)
    return rows[first]


def _draw(
    samples: Samples, rates: Rates, weights: Floats, rng: np.random.Generator, what: str
) -> NDArray[np.int64]:
    """Draw as many samples of each group as its rate says, without replacement, by their weights."""
    groups, codes = samples.cells.groups, samples.cells.group_codes
    if isinstance(rates, Mapping):
        unknown = [group for group in rates if group not in groups]
        if unknown:
            raise InvalidInputError(f"rates must name groups of {groups}; got {shown(unknown[0])}")
        by_group = [check_share("rates", rates.get(group, 0.0)) for group in groups]
    else:
        by_group = [check_share("rates", rates)] * len(groups)
    keys = np.log(np.maximum(weights, 1e-300)) + rng.gumbel(size=len(samples))
    keys[weights <= 0] = -np.inf
    chosen = []
    for number, rate in enumerate(by_group):
        members = np.flatnonzero(codes == number)
        wanted = round(rate * len(members))
        candidates = int(np.isfinite(keys[members]).sum())
        if wanted > candidates:
            raise InvalidInputError(
                f"rates must not ask for more wrong labels than there are candidates; {rate} of group "
                f"{shown(groups[number])} is {wanted} of {len(members)} samples, and {what} {candidates}: lower it"
            )
        chosen.append(members[np.argsort(-keys[members], kind="stable")[:wanted]])
    return np.concatenate(chosen)


NOISES |= {
    "weak-annotator": lambda samples, rate, seed: flip_weak_annotator(samples, rate, seed=seed),
    "boundary": lambda samples, rate, seed: flip_near_boundary(samples, rate, seed=seed),
    "feature": lambda samples, rate, seed: flip_by_feature(samples, rate, seed=seed),
}
