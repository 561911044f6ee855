"""Lightning: a callback for the Trainer.

Trainer(callbacks=[FairRobustCallback(labels, groups, clean_ratio=0.9)]).fit(model, loader)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader

from fairsieve.adapters.sieve import Sieve
from fairsieve.errors import InvalidInputError, missing

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise missing("lightning", purpose="the Lightning callback") from error


class FairRobustCallback(Callback):  # type: ignore[misc]
    """Train on clean and fair batches of the data that ``fit`` is given, on one process or several.

    The training ``DataLoader`` keeps its dataset, batch size (for each process, as ever), workers and
    collation; the callback decides which samples come. Where ``training_step`` returns a dictionary with
    ``"losses"``, one per sample of the batch, those are used; otherwise each epoch begins with a
    forward pass over the data. The state is saved in checkpoints.

    On several processes each trains its share of every global batch, and its loss, which must be a mean over
    its samples, counts by how many it has: gradients are those of one process.

    Parameters
    ----------
    labels, sensitive_features : arrays
        Of all samples of the training dataset, in order.
    **options
        ``clean_ratio``, ``fairness``, ``warmup_epochs``, … and ``share``, ``forward``, ``loss``: see
        :class:`~fairsieve.adapters.sieve.Sieve`.

    Examples
    --------
    >>> labels, groups = [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> callback = FairRobustCallback(labels, groups, clean_ratio=0.9, warmup_epochs=1)
    >>> trainer = Trainer(max_epochs=3, callbacks=[callback])  # doctest: +SKIP
    >>> trainer.fit(model, loader)  # doctest: +SKIP
    """

    def __init__(self, labels: Any, sensitive_features: Any, **options: Any) -> None:
        self.labels, self.sensitive_features, self.options = labels, sensitive_features, options
        self.sieve: Sieve = None  # type: ignore[assignment]  # until the training is set up
        self._state: Mapping[str, Any] | None = None
        self._trained = 0  # batches of the present epoch

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Replace the training loader by ours."""
        if stage != "fit":
            return
        source = trainer.fit_loop._data_source
        given = source.dataloader()
        if not isinstance(given, DataLoader) or given.batch_size is None:
            raise InvalidInputError(
                "the training data must be one DataLoader with a batch_size, so that its batches can be "
                f"selected; got {type(given).__name__}"
            )
        size, limit = given.batch_size * trainer.world_size, trainer.max_epochs
        limits = None if limit in (None, -1) else limit, trainer.max_steps, trainer.accumulate_grad_batches
        data = given.dataset, self.labels, self.sensitive_features, size
        self.sieve = Sieve.of_length(limits, *data, **self.options)
        self.sieve.convert = trainer.precision_plugin.convert_input
        self.sieve.precision = trainer.precision_plugin.forward_context
        self.sieve.probe(pl_module, given.collate_fn)
        self._loading = {"num_workers": given.num_workers, "collate_fn": given.collate_fn}
        source.instance = self.sieve.loader(
            **self._loading, pin_memory=given.pin_memory, persistent_workers=given.persistent_workers
        )
        trainer._accelerator_connector.use_distributed_sampler = False  # the shards are ours
        if self._state is not None:
            self.load_state_dict(dict(self._state))
        self.sieve.sampler.is_open = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.fit_loop.restarted_mid_epoch:  # then no on_train_epoch_start comes
            self.sieve.continue_epoch(skip=self._trained)
            self._open(trainer)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._trained = 0
        self.sieve.begin_epoch(pl_module, trainer.current_epoch, **self._loading)
        if not self.sieve.sampler.is_open:
            self._open(trainer)

    def _open(self, trainer: Trainer) -> None:
        """Let a new pass begin: the Trainer began one before it told us, and its workers would read on in it."""
        self.sieve.sampler.is_open = True
        iter(trainer.fit_loop._data_fetcher)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self._trained = batch_idx + 1

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: torch.Tensor) -> None:
        if trainer.world_size > 1:
            loss *= self.sieve.weight(self._trained - 1)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if isinstance(outputs, Mapping) and isinstance(outputs.get("losses"), torch.Tensor):
            self.sieve.observe(batch_idx, outputs["losses"])

    def state_dict(self) -> dict[str, Any]:
        return {} if self.sieve is None else {**self.sieve.state_dict(), "trained": self._trained}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self.sieve is None:
            self._state = state_dict  # comes before setup
        else:
            self._trained = int(state_dict["trained"])
            self.sieve.load_state_dict(state_dict)
