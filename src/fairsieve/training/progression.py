"""Runs → their end: one after another, or side by side; checkpoints on the way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

import torch

from fairsieve.training.checkpoint.resume import Keeper
from fairsieve.training.trainer import CompiledRun

__all__ = ["advance_together"]


def advance_together(
    keepers: Sequence[Keeper],
    seeds: Sequence[int],
    epochs: int,
    report: Callable[[int], None],
    *,
    watched: bool = True,
) -> bool:
    """Take all runs to their end; True when interrupted.

    One run that is watched goes epoch by epoch; compiled runs otherwise share the processors.
    """
    try:
        compiled = all(isinstance(keeper.run, CompiledRun) for keeper in keepers)
        if compiled and (len(keepers) > 1 or not watched):
            _share_processors(keepers, epochs, report)
        else:
            for keeper, seed in zip(keepers, seeds, strict=True):
                with torch.random.fork_rng():
                    torch.manual_seed(seed)
                    keeper.resume()  # here, for it sets the state of random numbers
                    while keeper.run.done < epochs:
                        keeper.run.run_epoch()
                        keeper.keep()
                        report(sum(each.run.done for each in keepers))
    except KeyboardInterrupt:
        return True
    return False


def _share_processors(keepers: Sequence[Keeper], epochs: int, report: Callable[[int], None]) -> None:
    """Advance compiled runs on threads; in slices, so that no processor waits for the last run."""
    workers = min(len(keepers), os.cpu_count() or 1)
    slice_size = max(1, epochs // 20)
    waiting = SimpleQueue[Keeper]()
    for keeper in keepers:
        keeper.resume()
        if keeper.run.done < epochs:
            waiting.put(keeper)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                keeper = waiting.get_nowait()
            except Empty:
                return
            run = keeper.run
            assert isinstance(run, CompiledRun)
            run.run_epochs(min(slice_size, keeper.until_due))
            keeper.keep()
            report(sum(each.run.done for each in keepers))
            if run.done < epochs:
                waiting.put(keeper)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(workers)]:
                worker.result()
        finally:
            stop.set()
