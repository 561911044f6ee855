"""Run on several ranks: the DDP example on two ranks and on one, whole, interrupted and resumed."""

import json
import shutil
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from examples.ddp import train


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    alone = [dist.new_group([each]) for each in range(2)][rank]
    folders = {"by two": out / "by two", "by one": out / f"by one {rank}"}
    found = {"two": train(epochs=9), "one": train(epochs=9, group=alone)}
    train(stop=7, folder=folders["by two"])
    train(stop=7, folder=folders["by one"], group=alone)
    dist.barrier()
    for saved in ("by two", "by one"):
        source = out / ("by two" if saved == "by two" else "by one 0")
        mine, ours = out / f"{saved}, alone, {rank}", out / f"{saved}, together"
        shutil.copytree(source, mine)
        if rank == 0:
            shutil.copytree(source, ours)
        dist.barrier()
        found[f"{saved}, resumed by one"] = train(epochs=9, folder=mine, group=alone)
        found[f"{saved}, resumed by two"] = train(epochs=9, folder=ours)
        found[f"{saved}, resumed by one, and again"] = train(epochs=9, folder=mine, group=alone)
    (out / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
