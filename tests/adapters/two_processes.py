"""Run on several ranks: an adapter's example on every process, and what each was given to train on."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from examples import accelerate_loop, lightning_trainer, transformers_trainer

from fairsieve.adapters.sieve import Sieve, _FilledBatches

warnings.filterwarnings("ignore")  # the frameworks' advice on workers and logging
EPOCHS = {"accelerate": 7, "lightning": 7, "transformers": 4}
SILENCED = "logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"
QUIET = dict.fromkeys(SILENCED, False)


def run(name, epochs, processes):
    """What the example comes to, on as many processes as there are."""
    if name == "accelerate":
        return accelerate_loop.train(epochs=epochs)[0]
    if name == "lightning":
        return lightning_trainer.train(epochs=epochs, devices=processes, **QUIET)[0]
    with tempfile.TemporaryDirectory() as folder:
        return transformers_trainer.train(Path(folder), epochs=epochs, samples=500)[0]


class Watched:
    """Keeps the losses that each epoch began with, its ratios, and the batches that were then asked for."""

    def __init__(self):
        self.epochs = []
        begin, batches = Sieve.begin_epoch, _FilledBatches.batches

        def begin_epoch(sieve, *arguments, **options):
            begin(sieve, *arguments, **options)
            sampler = sieve.sampler
            known = sampler.running
            losses = [known.losses.tolist(), known.signals[0].tolist()] if sampler.needs_update else None
            begun = {"losses": losses, "ratios": sampler.ratios.tolist(), "batches": []}
            self.epochs.append(begun | {"powers": sampler.plan.balance.powers.tolist()})

        def watched_batches(sampler):
            for number, batch in enumerate(batches(sampler)):
                own = batch[: sampler.own_sizes[number]] + sampler.first
                self.epochs[-1]["batches"].append(own.tolist())
                yield batch

        Sieve.begin_epoch, _FilledBatches.batches = begin_epoch, watched_batches


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    watched = Watched()
    for name in names:
        watched.epochs = []
        found = run(name, EPOCHS[name], dist.get_world_size())
        record = {"found": found, "epochs": watched.epochs}
        (out / f"{name}-{dist.get_rank()}.json").write_text(json.dumps(record))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
