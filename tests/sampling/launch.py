"""Starting real processes under torchrun."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # this tree, whatever is installed


def torchrun(processes, script, *arguments, timeout=280):
    """Run a script of this folder (or a path from the root) on so many processes; its output on failure."""
    path = ROOT / script if "/" in str(script) else Path(__file__).parent / script
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCES, "TORCH_CPP_LOG_LEVEL": "ERROR"}
    run = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(processes), str(path), *map(str, arguments)),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-6000:]
    return run.stdout
