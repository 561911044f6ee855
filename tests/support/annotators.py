"""Make labels wrong as people do: by what they know, where it is hard, and by what they see.

Every function returns the labels with flips and the mask of who was flipped. ``rates`` is the share of wrong labels:
one number, or one for each group.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve.data.flips import flipped_to


def flip_weak_annotator(samples, rates, *, seed, columns=2, rows=100):
    """Take some labels from a weak annotator, a model that saw few columns and few rows.

    The annotator is wrong by stereotype: about everybody whom its few columns mislead it about. Its labels are
    mixed with the true ones so that the share of wrong labels is as asked for.
    """
    rng, features, codes = np.random.default_rng(seed), _standard(samples), samples.cells.label_codes
    some = rng.permutation(features.shape[1])[:columns]
    order = rng.permutation(len(samples))
    _, first = np.unique(codes[order], return_index=True)  # one row of each class
    seen = np.sort(np.concatenate([order[first], order[:rows]]))
    model = LogisticRegression(max_iter=1000).fit(features[np.ix_(seen, some)], codes[seen])
    guesses = model.predict(features[:, some])
    chosen = _draw(samples, rates, (guesses != codes).astype(np.float64), rng)
    return flipped_to(samples, chosen, guesses[chosen])


def flip_near_boundary(samples, rates, *, seed):
    """Flip labels where it is hard to say: near the boundary of a logistic regression, to the likeliest other class."""
    rng, features, codes = np.random.default_rng(seed), _standard(samples), samples.cells.label_codes
    model = LogisticRegression(max_iter=1000).fit(features, codes)
    chances = np.zeros((len(samples), samples.cells.shape[0]))
    chances[:, model.classes_] = model.predict_proba(features)
    rows, others = np.arange(len(samples)), chances.copy()
    others[rows, codes] = -1.0
    second = others.argmax(axis=1)
    margin = np.log(np.maximum(chances[rows, codes], 1e-12) / np.maximum(chances[rows, second], 1e-12))
    chosen = _draw(samples, rates, np.exp(-2 * np.abs(margin)) + 1e-9, rng)
    return flipped_to(samples, chosen, second[chosen])


def flip_by_feature(samples, rates, *, seed, feature=None):
    """Flip labels by a column, the one that says most about them when None: the higher it is, the likelier."""
    rng, features, codes = np.random.default_rng(seed), _standard(samples), samples.cells.label_codes
    classes = samples.cells.shape[0]
    if feature is None:
        own = np.equal.outer(codes, np.arange(classes)).astype(np.float64)
        feature = int(np.abs((own - own.mean(axis=0)).T @ features).max(axis=0).argmax())
    order = np.argsort(rng.permutation(len(samples)))  # among equal values by chance
    rank = np.empty(len(samples))
    rank[np.lexsort((order, features[:, feature]))] = (np.arange(len(samples)) + 1.0) / len(samples)
    chosen = _draw(samples, rates, rank**4, rng)
    steps = rng.integers(1, max(2, classes), len(chosen))
    return flipped_to(samples, chosen, (codes[chosen] + steps) % classes)


def _standard(samples):
    """Return the features with mean 0 and deviation 1; constant ones are 0."""
    features = np.asarray(samples.features, np.float64).reshape(len(samples), -1)
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread < 1e-12, np.inf, spread)


def _draw(samples, rates, weights, rng):
    """Draw as many samples of each group as its rate says, without replacement, by their weights."""
    keys = np.log(np.maximum(weights, 1e-300)) + rng.gumbel(size=len(samples))
    keys[weights <= 0] = -np.inf
    chosen = []
    for number, group in enumerate(samples.cells.groups):
        rate = rates.get(group, 0.0) if isinstance(rates, dict) else rates
        members = np.flatnonzero(samples.cells.group_codes == number)
        wanted, candidates = round(rate * len(members)), int(np.isfinite(keys[members]).sum())
        if wanted > candidates:
            raise ValueError(f"{rate} of group {group!r} is {wanted} samples; only {candidates} can be wrong")
        chosen.append(members[np.argsort(-keys[members], kind="stable")[:wanted]])
    return np.concatenate(chosen)


def check_some(samples, count, seed=0):
    """Let somebody check so many rows, drawn at random: their right labels, and None for the others."""
    verified = np.full(len(samples), None, dtype=object)
    rows = np.random.default_rng(seed).permutation(len(samples))[:count]
    verified[rows] = samples.labels[rows]
    return verified
