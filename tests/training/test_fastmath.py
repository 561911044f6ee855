"""The vectorised functions equal those of NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from fairsieve.training.fastmath import exp_negative, log1p_unit, sigmoid


def test_exp_of_negative_numbers_equals_numpy():
    x = np.concatenate([-np.logspace(-300, 2.85, 2000), -np.linspace(0, 707.99, 5000)])
    assert [exp_negative(v) for v in x] == pytest.approx(np.exp(x).tolist(), rel=1e-15, abs=0)
    assert exp_negative(0.0) == 1
    assert exp_negative(-800.0) == 0
    assert exp_negative(-np.inf) == 0
    assert np.isnan(exp_negative(np.nan))


def test_log1p_of_the_unit_interval_equals_numpy():
    u = np.concatenate([np.logspace(-300, 0, 2000), np.linspace(0, 1, 5000)])
    assert [log1p_unit(v) for v in u] == pytest.approx(np.log1p(u).tolist(), rel=1e-15, abs=0)


def test_sigmoid_equals_scipy():
    x = np.linspace(-700, 700, 4001)
    assert [sigmoid(v) for v in x] == pytest.approx(expit(x).tolist(), rel=1e-14, abs=0)
    assert sigmoid(np.inf) == 1
    assert sigmoid(-np.inf) == 0
    assert np.isnan(sigmoid(np.nan))
