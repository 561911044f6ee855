"""Hugging Face Trainer: the same Trainer, with labels and groups.

FairRobustTrainer(model, args, train_dataset=data, sieve={"labels": y, "sensitive_features": z, …})
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from fairsieve.adapters.accelerate import prepared_loader
from fairsieve.adapters.sieve import Sieve
from fairsieve.errors import CheckpointError, InvalidInputError, missing

try:
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise missing("transformers", purpose="the Trainer adapter") from error

FILE = "fairsieve.pt"


def _forward_logits(model: nn.Module, batch: Any) -> torch.Tensor:
    """Return the logits of a model of Transformers for a batch."""
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return model(**inputs).logits  # type: ignore[no-any-return]


class FairRobustTrainer(Trainer):  # type: ignore[misc]
    """A ``Trainer`` whose training batches are clean and fair, on one process or several.

    On several processes each trains its share of every global batch, and its loss, which must be a mean over
    its samples, counts by how many it has: gradients are those of one process.

    Parameters
    ----------
    sieve : dict
        ``labels`` and ``sensitive_features`` of all training samples in order, ``clean_ratio``, and the
        other options of :class:`~fairsieve.adapters.sieve.Sieve`. The batch size is the Trainer's.
    *args, **kwargs
        Those of ``Trainer``.

    Examples
    --------
    >>> from transformers import TrainingArguments
    >>> data = [{"x": torch.zeros(2), "labels": number % 2} for number in range(8)]
    >>> options = {"labels": [0, 1] * 4, "sensitive_features": ["a"] * 4 + ["b"] * 4, "clean_ratio": 0.9}
    >>> arguments = TrainingArguments(use_cpu=True, report_to="none")
    >>> trainer = FairRobustTrainer(nn.Linear(2, 2), arguments, train_dataset=data, sieve=options)
    >>> trainer.train()  # doctest: +SKIP
    """

    loss_is_scaled_for_ga = False  # it is a mean over the batch at hand

    def __init__(self, *args: Any, sieve: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.train_dataset is None:
            raise InvalidInputError("train_dataset must be given, a map-style dataset; got None")
        self.sieve_options = sieve
        self.sieve: Sieve = None  # type: ignore[assignment]  # until the loader is made
        self.batch = 0  # of the present epoch
        self.add_callback(_BeginEpoch(self))

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        self.resumed_from = resume_from_checkpoint
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def get_train_dataloader(self) -> Any:
        own, options = self.args, {"forward": _forward_logits} | self.sieve_options
        epochs = own.num_train_epochs if own.max_steps <= 0 else None  # steps come before epochs
        limits = epochs, own.max_steps, own.gradient_accumulation_steps
        data = self.train_dataset, options.pop("labels"), options.pop("sensitive_features")
        self.sieve = Sieve.of_length(limits, *data, own.train_batch_size * own.world_size, **options)
        self.sieve.precision = self.autocast_smart_context_manager
        loader = self.sieve.loader(
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory and torch.cuda.is_available(),
        )
        return prepared_loader(self.accelerator, loader)

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        """Compute the Trainer's loss; in training weigh it by this process's samples, and observe it."""
        if self.sieve is None or not model.training:
            return super().compute_loss(model, inputs, return_outputs=return_outputs, **kwargs)
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)  # without num_items_in_batch
        self.sieve.observe_outputs(self.batch, outputs["logits"])
        loss = loss * self.sieve.weight(self.batch)
        self.batch += 1
        return (loss, outputs) if return_outputs else loss


def _read_state(path: Path) -> Any:
    """Read a sieve's state; a file with anything in it but numbers and tensors is refused, and none of it is run."""
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:  # torch has many for what it does not trust
        raise CheckpointError(
            f"checkpoint {path} must hold numbers and tensors only, as fairsieve writes it; it is damaged or of "
            "another kind, and was not loaded: resume from another checkpoint"
        ) from error


class _BeginEpoch(TrainerCallback):  # type: ignore[misc]
    """Selects an epoch's samples as it begins, and saves the state beside the Trainer's."""

    def __init__(self, trainer: FairRobustTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step > 0 and self.trainer.sieve is not None:
            given = self.trainer.resumed_from  # a folder, or True for the latest
            latest = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            folder = Path(given) if isinstance(given, (str, Path)) else latest
            self.trainer.sieve.load_state_dict(_read_state(folder / FILE))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        sieve = self.trainer.sieve
        accumulated = args.gradient_accumulation_steps
        steps = -(-len(sieve.sampler) // accumulated)  # of an epoch
        self.trainer.batch = 0 if args.ignore_data_skip else state.global_step % steps * accumulated
        if self.trainer.batch > 0:  # resumed inside an epoch; the Trainer leaves its first batches out
            sieve.continue_epoch()
        else:
            model = self.trainer.accelerator.unwrap_model(self.trainer.model)
            sieve.begin_epoch(model, collate_fn=self.trainer.data_collator)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        found = self.trainer.sieve.state_dict()
        if args.should_save:
            torch.save(found, Path(args.output_dir) / f"checkpoint-{state.global_step}" / FILE)
