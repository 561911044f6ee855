"""Run as three ranks: the first trains the DDP example with one that freezes, then with one that dies."""

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

TIMEOUT = 8
ACCIDENTS = {"frozen": signal.SIGSTOP, "killed": signal.SIGKILL}


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, step, steps, lost = dist.get_rank(), torch.optim.Adam.step, 0, 0.0
    alone = [dist.new_group([each]) for each in range(3)]
    pairs = [dist.new_group([0, other], timeout=timedelta(seconds=TIMEOUT)) for other in (1, 2)]

    def lose(optimizer, *arguments, **options):
        nonlocal steps, lost
        steps += 1
        if steps == 105:  # after the warm-up
            lost = time.perf_counter()
            if rank > 0:
                os.kill(os.getpid(), list(ACCIDENTS.values())[rank - 1])
        return step(optimizer, *arguments, **options)

    # What a first training imports may take longer than the timeout, on a busy machine.
    train(epochs=1, group=alone[rank])
    dist.barrier()
    torch.optim.Adam.step = lose
    while rank == 2 and not (out / "frozen.json").exists():
        time.sleep(0.05)
    for other, accident in enumerate(ACCIDENTS, 1):
        if rank not in (0, other):
            continue
        steps = 0
        try:
            train(group=pairs[other - 1])
        except Exception as error:
            told = [type(error).__name__, str(error), time.perf_counter() - lost]
            (out / f"{accident}.json").write_text(json.dumps(told))
    os._exit(0)  # the groups are broken, on purpose: there is nothing to close


if __name__ == "__main__":
    main()
