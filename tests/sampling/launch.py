"""Starting real ranks as torchrun does, but for one process that imports their script and is forked into them."""

import importlib.util
import multiprocessing
import os
import socket
import sys
import time
from pathlib import Path

from tests.support.programs import run_python

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # this tree, whatever is installed
QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def run_ranks(count, script, *arguments, needed=None, seconds=280):
    """Run a script of this folder (or a path from the root) on so many ranks, until the ``needed`` first ones end."""
    path = ROOT / script if "/" in str(script) else Path(__file__).parent / script
    variables = QUIET | {"PYTHONPATH": SOURCES}
    run_python(__file__, count, needed or count, path, *arguments, env=variables, timeout=seconds)


def be_rank(module, rank):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    module.main()


def main():
    count, needed = map(int, sys.argv[1:3])
    del sys.argv[:3]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    os.environ |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "TORCHELASTIC_RUN_ID": "tests"}
    spec = importlib.util.spec_from_file_location("script", sys.argv[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    forks = multiprocessing.get_context("fork")
    ranks = [forks.Process(target=be_rank, args=(module, rank)) for rank in range(count)]
    for rank in ranks:
        rank.start()
    while None in (codes := [rank.exitcode for rank in ranks[:needed]]) and not any(codes):
        time.sleep(0.02)
    for rank in ranks:
        rank.kill()
        rank.join()
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
