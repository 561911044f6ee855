"""BLAS gets one thread while the solver works, and what it had before when the fit is done."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic
from fairsieve.training import newton_trainer
from fairsieve.training.threads import map_in_threads, one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def fit(seed=0):
    data = make_synthetic(300, seed=0)
    model = FairRobustClassifier(clean_ratio=0.9, random_state=seed)
    return model.fit(data.features, data.labels, sensitive_features=data.groups).coef_


def test_one_thread_inside_blocks_and_the_limit_before_outside():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            raise ZeroDivisionError
        assert blas_threads() == {2}


def test_a_fit_uses_one_thread_and_leaves_the_limit_as_it_was(monkeypatch):
    seen = set()
    step = newton_trainer.take_step

    def watched(*arguments):
        seen.update(blas_threads())
        return step(*arguments)

    monkeypatch.setattr(newton_trainer, "take_step", watched)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limit, user_api="blas"):
            found.append(fit())
            assert blas_threads() == {limit}
    assert seen == {1}
    np.testing.assert_array_equal(*found)


def test_fits_in_threads_restore_the_limit():
    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: fit(), range(4)))
        assert blas_threads() == {2}
    assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_items(threads):
    assert map_in_threads(lambda item: item**2, range(50), threads) == [item**2 for item in range(50)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_threads_of_its_own():
    map_in_threads(abs, range(4), 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if map_in_threads(abs, [-1, -2], 2) == [1, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
