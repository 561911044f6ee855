"""Random problems for the property tests."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st


class Problem(NamedTuple):
    """A selection problem in codes."""

    losses: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    ratios: np.ndarray
    clean_ratio: float


@st.composite
def ratio_rows(draw, columns):
    """One row of ratios: anything on the simplex, its corners and its centre included."""
    kind = draw(st.sampled_from(["corner", "even", "drawn"]))
    if kind == "corner":
        return np.eye(columns)[draw(st.integers(0, columns - 1))]
    if kind == "even":
        return np.full(columns, 1 / columns)
    weights = np.array(draw(st.lists(st.integers(0, 100), min_size=columns, max_size=columns)), float)
    return weights / weights.sum() if weights.sum() else np.full(columns, 1 / columns)


LOSSES = {
    "any": st.floats(allow_nan=False, width=32),
    "ties": st.sampled_from([0.0, -0.0, 0.5, 1.0]),
    "ordinary": st.floats(0, 20, width=32),
    "same": st.just(1.5),
    "far": st.sampled_from([-np.inf, -3e38, -1.0, 0.0, 1.0, 3e38, np.inf]),  # most of all bit patterns apart
}


@st.composite
def problems(draw, max_samples=40):
    """Two to four classes and groups, some of them empty; ties; tiny n."""
    classes, columns = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    n = draw(st.integers(1, max_samples))
    codes = draw(st.lists(st.integers(0, classes * columns - 1), min_size=n, max_size=n))
    values = LOSSES[draw(st.sampled_from(sorted(LOSSES)))]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    losses = np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype)
    ratios = np.array([draw(ratio_rows(columns)) for _ in range(classes)])
    clean_ratio = draw(st.one_of(st.just(1.0), st.sampled_from([0.1, 0.29, 0.5, 0.9]), st.floats(0.01, 1)))
    codes = np.array(codes)
    return Problem(losses, codes // columns, codes % columns, ratios, clean_ratio)


def untied(problem):
    """The same problem with losses that differ, in the order in which the walk goes."""
    order = np.lexsort((np.arange(len(problem.losses)), problem.losses))
    losses = np.empty(len(order))
    losses[order] = np.arange(len(order))
    return problem._replace(losses=losses)


def codes_of(problem):
    """The cell of each sample."""
    return (problem.labels * problem.ratios.shape[1] + problem.groups).astype(np.uint8)


@st.composite
def tables(draw):
    """Ratios and counts of selected samples."""
    classes, groups = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = classes * groups
    counts = np.array(draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)))
    raw = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), float)
    raw = raw.reshape(classes, groups)
    sums = raw.sum(axis=1, keepdims=True)
    ratios = np.divide(raw, sums, out=np.full_like(raw, 1 / groups), where=sums > 0)
    return ratios, counts


@st.composite
def predictions(draw, classes=2, groups=3):
    """Labels, predictions, groups and weights, in which every group has every label."""
    n = draw(st.integers(0, 40))
    sure = [(y, z) for y in range(classes) for z in range(groups)]
    cell = st.tuples(st.integers(0, classes - 1), st.integers(0, groups - 1))
    rest = draw(st.lists(cell, min_size=n, max_size=n))
    labels, columns = zip(*(sure + rest), strict=True)
    guessed = draw(st.lists(st.integers(0, classes - 1), min_size=len(labels), max_size=len(labels)))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(labels), max_size=len(labels)))
    return np.array(labels), np.array(guessed), np.array(columns), np.array(weights, float)


def shuffles(size):
    """Orders of 0 … size − 1."""
    return st.permutations(range(size)).map(lambda order: np.array(order, int))
