"""The DDP example: as many ranks as you like, stopped and resumed, come to one model."""

import json

import pytest
from tests.sampling.launch import run_ranks


def test_one_rank_and_two_whole_and_resumed(tmp_path):
    run_ranks(2, "ddp_program.py", tmp_path)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first["two"] == second["two"]
    assert first["one"] == second["one"]
    # The same number of ranks, the same bits; another number adds gradients in another order.
    assert first["by two, resumed by two"] == first["two"]
    assert first["by one, resumed by one"] == first["one"]
    # Files that more ranks left behind do not disturb.
    assert first["by two, resumed by one, and again"] == first["by two, resumed by one"]
    for name in ("one", "by two, resumed by one", "by one, resumed by two"):
        assert first[name]["sum of weights"] == pytest.approx(first["two"]["sum of weights"], rel=1e-4)
        assert first[name]["accuracy"] == pytest.approx(first["two"]["accuracy"], abs=0.005)
        assert first[name]["disparity"] == pytest.approx(first["two"]["disparity"], abs=0.01)
        assert first[name]["selected"] == pytest.approx(first["two"]["selected"], abs=5)
    assert first["two"]["accuracy"] > 0.6


def test_a_lost_rank_ends_the_others_within_the_timeout(tmp_path):
    """Also where it is lost inside the sums of DistributedDataParallel."""
    run_ranks(3, "lost_rank.py", tmp_path, needed=1, seconds=120)
    for accident in ("frozen", "killed"):
        kind, message, seconds = json.loads((tmp_path / f"{accident}.json").read_text())
        assert kind == "WorkerError", message
        assert "rank 0 lost another worker while training" in message
        assert seconds < 30
