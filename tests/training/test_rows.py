"""Rows, wherever they are: every answer is the sum of the answers of single rows in memory.

A place where rows are belongs into ``PLACES``.
"""

from itertools import repeat

import dask
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve.training.parts import DaskEngine, LocalEngine, Part, PartRows
from fairsieve.training.rows import EVERYTHING, LinearRows, LossLimit


def on_a_device(features, labels, groups, shape, weights):
    tensors = (torch.as_tensor(values) for values in (features, labels, groups))
    return LinearRows(*tensors, shape, torch.as_tensor(weights))


def in_parts(make_engine):
    """Three parts, kept by an engine."""

    def place(features, labels, groups, shape, weights):
        engine, pieces = make_engine(), np.array_split(np.arange(len(labels)), 3)
        columns = [[values[rows] for rows in pieces] for values in (features, labels, groups)]
        parts = engine.keep("parts", Part, *columns, repeat(shape), [weights[rows] for rows in pieces])
        return PartRows(engine, parts, [len(rows) for rows in pieces], shape, features[:1])

    return place


PLACES = {
    "memory": LinearRows, "device": on_a_device, "parts in memory": in_parts(LocalEngine),
    "parts in files": in_parts(lambda: LocalEngine(memory=0)), "cluster": in_parts(DaskEngine),
}  # fmt: skip


def answers(rows, parameters, table, direction, limit):
    """Ask every question of the contract of the rows whose losses are selected."""
    chosen = rows.select(parameters, limit)
    mean, spread = np.full(rows.columns, 0.1), np.full(rows.columns, 1.5)
    coefficients = table[..., None] * np.arange(len(table))
    return {
        "moments": chosen.moments(np.zeros(rows.columns)),
        "standard moments": chosen.standard_moments(mean, spread),
        **chosen.derivatives(parameters, table, hessian=True)._asdict(),
        "hessian times": chosen.hessian_times(parameters, table, direction),
        "confusion": chosen.confusion(parameters, -parameters),
        "soft confusion": chosen.soft_confusion(parameters, 0.7),
        "soft gradient": chosen.soft_gradient(parameters, coefficients, 0.7),
        "score moments": chosen.score_moments(parameters),
        "loss counts": chosen.loss_counts(parameters, 0.0, 1.0, 8),
    }


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 3), st.booleans())
def test_every_answer_is_the_sum_over_single_rows(place, seed, classes, groups, is_cut):
    rng, shape = np.random.default_rng(seed), (classes, groups)
    n = int(rng.integers(6, 14))
    arrays = rng.normal(size=(n, 2)), rng.integers(0, classes, n), rng.integers(0, groups, n)
    weights = rng.integers(0, 3, n).astype(float)
    outputs = 1 if classes == 2 else classes
    parameters, direction = rng.normal(size=(2, outputs, 3))
    table = rng.uniform(0.5, 2.0, shape)
    limit = LossLimit(0.35, 0.6, 0.25) if is_cut else EVERYTHING
    asked = parameters, table, direction, limit
    with dask.config.set(scheduler="synchronous"):
        found = answers(PLACES[place](*arrays, shape, weights), *asked)
    singles = []
    for row in range(n):
        one = slice(row, row + 1)
        single = LinearRows(*(values[one] for values in arrays), shape, weights[one])
        singles.append(answers(single, *asked))
    for name, answer in found.items():
        expected = sum(np.asarray(single[name]) for single in singles)
        np.testing.assert_allclose(answer, expected, atol=1e-9, err_msg=name)
