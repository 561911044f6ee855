"""Several processes plan what one would, send little, and fail together. One start of four processes."""

import json

import pytest
from tests.sampling.launch import run_ranks


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcome")
    run_ranks(4, "exactness.py", folder, 6)
    return folder


def test_any_number_of_ranks_plans_what_one_process_does(outcome):
    """The processes compare, and this start fails where they differ; see ``exactness.py``."""
    assert len(list(outcome.glob("traffic-*.json"))) == 4


def test_messages_do_not_grow_with_the_samples(outcome):
    found = json.loads((outcome / "traffic-0.json").read_text())
    assert found["1"]["1000"] == found["1"]["100000"] == [0, 0]
    table = 4 * 2**10 * 8  # cells, digits, bytes of a number
    rounds = 1 + 4 * (4 + 2)  # a search for each cell, through 32 bits of losses and 17 of indices
    for ranks in ("2", "3", "4"):
        for total, messages in found[ranks].values():
            assert total < rounds * table + 4096
            assert messages < rounds + 8


def told(outcome, rank):
    return json.loads((outcome / f"failures-{rank}.json").read_text())


def test_a_rank_that_fails_stops_all(outcome):
    for rank in range(3):
        assert "fine" not in told(outcome, rank)
        kind, message, _ = told(outcome, rank)["a NaN"]
        assert kind == ("InvalidInputError" if rank == 1 else "WorkerError")
        assert "losses must not be NaN; got 1, the first at 1" in message
        assert rank == 1 or f"rank {rank} stops because rank 1 failed with InvalidInputError" in message
        _, message, _ = told(outcome, rank)["a shape"]
        assert "outputs must be the logits of all 10 samples" in message
        for name, words in (("a setting", "seed"), ("a fairness", "fairness"), ("a method", "method")):
            kind, message, seconds = told(outcome, rank)[name]
            assert kind == "InvalidInputError"
            assert f"{words} must be the same on all workers; it is " in message
            assert seconds < 30
        kind, message, _ = told(outcome, rank)["an epoch"]
        assert kind == "InvalidInputError"
        assert "epoch must be the same on all workers; it is from 0 to 3" in message


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("accident", ["never comes", "dies"])
def test_a_rank_that_is_lost_is_not_waited_for(outcome, rank, accident):
    kind, message, seconds = told(outcome, rank)[accident]
    assert kind == "WorkerError"
    assert f"rank {rank} lost another worker while" in message
    assert "timeout=2 seconds" in message
    assert seconds < 30
