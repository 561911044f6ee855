"""The order of an epoch, and resuming."""

import numpy as np
import pytest
from tests.selection.test_plan import random_cells

from fairsieve.errors import InvalidInputError, NotReadyError
from fairsieve.selection.epoch import Plan


def test_warm_up_trains_on_everything_plainly():
    rng = np.random.default_rng(0)
    plan = Plan(random_cells(rng), 10, clean_ratio=0.5, warmup_epochs=2)
    for _ in range(2):
        plan.update(rng.random(60))
        assert sorted(plan.batches().ravel()) == list(range(60))
        assert plan.ratios.tolist() == Plan(plan.cells, 10).ratios.tolist()
        plan.epoch += 1
    with pytest.raises(NotReadyError, match="epoch 2 selects samples"):
        plan.batches()
    plan.update(rng.random(60))
    assert len(plan.indices) <= 30


def test_constraints_and_weights_can_be_left_out():
    rng = np.random.default_rng(1)
    cells, losses = random_cells(rng), rng.random(60)
    itlm = Plan(cells, 10, fairness=None, clean_ratio=0.5, warmup_epochs=0, constrained=False, weighted=False)
    itlm.update(losses)
    assert set(itlm.indices) == set(np.argsort(losses)[:30])
    assert itlm.ratios.tolist() == Plan(cells, 10).ratios.tolist()
    fairbatch = Plan(cells, 10, warmup_epochs=0, constrained=False)
    fairbatch.update(losses)
    assert len(fairbatch.indices) == 60
    assert fairbatch.ratios.tolist() != Plan(cells, 10).ratios.tolist()


@pytest.mark.parametrize(("change", "message"), [
    ({"ratios": [[1.0]]}, "over the same samples"),
    ({"ratios": [[1.5, 0.5], [0.5, 0.5]]}, r"ratios in \[0, 1\]; got \[\[1.5"),
    ({"ratios": [[1.0, 0.0], [-0.5, 0.5]]}, r"ratios in \[0, 1\]"),
    ({"indices": [0, -1]}, "points outside"),
    ({"epoch": None}, "lacks epoch"),
])  # fmt: skip
def test_a_state_of_something_else_is_refused(change, message):
    plan = Plan(random_cells(np.random.default_rng(0)), 10)
    state = {k: v for k, v in (plan.state_dict() | change).items() if v is not None}
    with pytest.raises(InvalidInputError, match=message):
        plan.load_state_dict(state)


def test_signals_are_required_where_groups_are_not_compared_by_losses():
    plan = Plan(random_cells(np.random.default_rng(0)), 10, fairness="demographic_parity", warmup_epochs=0)
    with pytest.raises(InvalidInputError, match="signals must be given"):
        plan.update(np.ones(60))
    with pytest.raises(InvalidInputError, match=r"signals must have the shape .*\(1, 60\)"):
        plan.update(np.ones(60), np.ones((2, 60)))


@pytest.mark.parametrize(("options", "message"), [
    ({"batch_size": 2.5}, "batch_size must be a whole number"),
    ({"warmup_epochs": -1}, "warmup_epochs must be"),
    ({"seed": -1}, "seed must be"),
    ({"clean_ratio": 0}, "clean_ratio must be"),
    ({"signal": "margin"}, "signal must be one of loss, error; got 'margin'"),
])  # fmt: skip
def test_bad_options_are_named(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Plan(random_cells(np.random.default_rng(0)), **({"batch_size": 10} | options))
