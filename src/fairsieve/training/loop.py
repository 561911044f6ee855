"""Trainers to their end: one after another, or side by side; with checkpoints on the way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from queue import Empty, SimpleQueue

from fairsieve.training.checkpoint.resume import TrainerCheckpoints
from fairsieve.training.linear_trainer import LinearTrainer
from fairsieve.training.trainer import Trainer

__all__ = ["train_all"]


def train_all(
    trainers: Sequence[Trainer],
    checkpoints: Sequence[TrainerCheckpoints],
    report: Callable[[int], None],
    *,
    watched: bool = True,
) -> bool:
    """Train until all trainers are at their end; return True when interrupted.

    A single trainer that is watched goes epoch by epoch; otherwise linear trainers share the processors.
    ``report`` is called with the number of epochs that are done.
    """
    linear = [trainer for trainer in trainers if isinstance(trainer, LinearTrainer)]
    try:
        for each in checkpoints:
            each.resume()
        if len(linear) == len(trainers) and (len(trainers) > 1 or not watched):
            _share_processors(linear, checkpoints, report)
        else:
            for trainer, kept in zip(trainers, checkpoints, strict=True):
                while trainer.done < trainer.settings.epochs:
                    trainer.run_epoch()
                    kept.write_if_due()
                    report(sum(each.done for each in trainers))
    except KeyboardInterrupt:
        return True
    return False


def _share_processors(
    trainers: Sequence[LinearTrainer],
    checkpoints: Sequence[TrainerCheckpoints],
    report: Callable[[int], None],
) -> None:
    """Train on threads, in slices of epochs, so that no processor waits for the last trainer."""
    workers = min(len(trainers), os.cpu_count() or 1)
    waiting = SimpleQueue[tuple[LinearTrainer, TrainerCheckpoints]]()
    for pair in zip(trainers, checkpoints, strict=True):
        if pair[0].done < pair[0].settings.epochs:
            waiting.put(pair)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                trainer, kept = waiting.get_nowait()
            except Empty:
                return
            epochs = trainer.settings.epochs
            trainer.run_epochs(min(max(1, epochs // 20), kept.epochs_until_due))
            kept.write_if_due()
            report(sum(each.done for each in trainers))
            if trainer.done < epochs:
                waiting.put((trainer, kept))

    with ThreadPoolExecutor(workers) as pool:
        try:
            for worker in [pool.submit(copy_context().run, work) for _ in range(workers)]:
                worker.result()
        finally:
            stop.set()
