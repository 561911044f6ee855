"""The DDP example: as many ranks as you like, stopped and resumed, come to one model."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling.launch import SOURCES, torchrun


def test_one_rank_and_two_whole_and_resumed(tmp_path):
    torchrun(2, "ddp_program.py", tmp_path)
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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"PYTHONPATH": SOURCES, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, str(Path(__file__).with_name("lost_rank.py")), str(tmp_path)]
    ranks = [
        subprocess.Popen(command, env=environment | {"RANK": str(rank), "WORLD_SIZE": "3"})
        for rank in range(3)
    ]
    try:
        assert ranks[0].wait(120) == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    for accident in ("frozen", "killed"):
        kind, message, seconds = json.loads((tmp_path / f"{accident}.json").read_text())
        assert kind == "WorkerError", message
        assert "rank 0 lost another worker while training" in message
        assert seconds < 30
