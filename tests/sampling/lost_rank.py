"""Run as two ranks: the DDP example, in which the second is frozen or killed inside a training step."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from examples.ddp import train

TIMEOUT = 5
ACCIDENTS = {"frozen": signal.SIGSTOP, "killed": signal.SIGKILL}


def main():
    out, accident = Path(sys.argv[1]), ACCIDENTS[sys.argv[2]]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT))
    rank, steps = dist.get_rank(), 0
    step = torch.optim.Adam.step
    lost = 0.0

    def lose(optimizer, *arguments, **options):
        nonlocal steps, lost
        steps += 1
        if steps == 150:  # after the warm-up
            lost = time.perf_counter()
            if rank == 1:
                os.kill(os.getpid(), accident)
        return step(optimizer, *arguments, **options)

    torch.optim.Adam.step = lose
    try:
        train(timeout=TIMEOUT)
    except Exception as error:
        told = [type(error).__name__, str(error), time.perf_counter() - lost]
        (out / f"{rank}.json").write_text(json.dumps(told))
    os._exit(0)  # the group is broken, on purpose: there is nothing to close


if __name__ == "__main__":
    main()
