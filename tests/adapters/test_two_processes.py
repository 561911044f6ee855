"""Every adapter on two processes: together they train the batches of one process, and come to its model."""

import json

import numpy as np
import pytest
import torch
from examples.transformers_trainer import chosen_rows
from tests.adapters.two_processes import EPOCHS, run
from tests.sampling.launch import run_ranks

from fairsieve import FairRobustBatchSampler
from fairsieve.data import flip_group_targeted, synthetic_splits

pytestmark = pytest.mark.filterwarnings("ignore")
WARMUP = {"accelerate": 5, "lightning": 5, "transformers": 2}
LENGTH = {"accelerate": None, "lightning": 7, "transformers": 4}  # the other two know it from their Trainer


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcome")
    run_ranks(2, "tests/adapters/two_processes.py", folder, *EPOCHS)
    return folder


@pytest.mark.parametrize("name", EPOCHS)
def test_two_processes_train_what_one_does(outcome, name):
    first, second = (json.loads((outcome / f"{name}-{rank}.json").read_text()) for rank in range(2))
    assert first["found"] == second["found"]
    alone = run(name, EPOCHS[name], 1)
    assert first["found"]["sum of weights"] == pytest.approx(alone["sum of weights"], rel=1e-4)
    assert first["found"]["accuracy"] == pytest.approx(alone["accuracy"], abs=0.005)
    assert first["found"]["disparity"] == pytest.approx(alone["disparity"], abs=0.01)

    train = synthetic_splits(seed=0).train
    rows = chosen_rows(len(train), 500) if name == "transformers" else slice(None)
    labels, groups = flip_group_targeted(train, 0.1).labels[rows], train.groups[rows]
    options = {"clean_ratio": 0.9, "warmup_epochs": WARMUP[name]}
    one = FairRobustBatchSampler(labels, groups, 100, **options, epochs=LENGTH[name])
    assert len(first["epochs"]) == len(second["epochs"]) == EPOCHS[name]
    for epoch, halves in enumerate(zip(first["epochs"], second["epochs"], strict=True)):
        if epoch >= WARMUP[name]:
            known = np.concatenate([half["losses"] for half in halves], axis=1)  # beliefs and rivals
            one.plan.balance.powers[:] = halves[0]["powers"]  # foretold from outputs
            one.plan.update(one._scores(torch.from_numpy(known.astype(np.float32))))
        assert halves[0]["ratios"] == halves[1]["ratios"] == one.ratios.tolist()
        together = [sorted(a + b) for a, b in zip(*(half["batches"] for half in halves), strict=True)]
        whole = [sorted(batch) for batch in one]
        assert together == whole
        assert [len(batch) for batch in together] == [100] * (len(labels) // 100)
