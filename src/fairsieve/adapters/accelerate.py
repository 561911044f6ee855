"""Hugging Face Accelerate: a loader that ``accelerator.prepare`` leaves as it is.

sieve, loader = prepared_sieve(accelerator, dataset, labels, groups, 64, clean_ratio=0.9, epochs=10)
for epoch in range(10):
    sieve.begin_epoch(model, epoch)
    for batch in loader: ...
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import Dataset

from fairsieve.adapters.sieve import Sieve
from fairsieve.errors import missing

try:
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader
except ImportError as error:
    raise missing("accelerate", purpose="the Accelerate adapter") from error


def prepared_sieve(
    accelerator: Accelerator,
    dataset: Dataset[Any],
    labels: Any,
    sensitive_features: Any,
    batch_size: int,
    *,
    loading: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[Sieve, Any]:
    """Return a sieve over a dataset, and the loader of this process's batches, on its device.

    Parameters
    ----------
    batch_size : int
        For each process, as in Accelerate's own loaders.
    loading : dict, optional
        For the ``DataLoader``: ``num_workers``, ``collate_fn``, …
    **options
        ``epochs``, ``clean_ratio``, … See :class:`~fairsieve.adapters.sieve.Sieve`.

    Returns
    -------
    sieve, loader
        Before each epoch call ``sieve.begin_epoch(model, epoch)``; after a step, to save the forward
        pass, ``sieve.observe(step, losses)``; on several processes ``losses.mean() * sieve.weight(step)``
        is the loss to call ``backward`` on. The sieve's state goes into ``accelerator.save_state``; one
        saved after some steps of an epoch is continued by ``sieve.continue_epoch(steps)`` and
        ``enumerate(loader, steps)``.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> x, y, z = torch.zeros(8, 2), torch.tensor([0, 1] * 4), ["a"] * 4 + ["b"] * 4
    >>> model = torch.nn.Linear(2, 2)
    >>> data = TensorDataset(x, y)
    >>> sieve, loader = prepared_sieve(Accelerator(cpu=True), data, y, z, 4, clean_ratio=1.0, warmup_epochs=0)
    >>> sieve.begin_epoch(model, 0)
    >>> [len(targets) for features, targets in loader]
    [4, 4]
    """
    sieve = Sieve(dataset, labels, sensitive_features, batch_size * accelerator.num_processes, **options)
    sieve.precision = accelerator.autocast
    accelerator.register_for_checkpointing(sieve)
    return sieve, prepared_loader(accelerator, sieve.loader(**(loading or {})))


def prepared_loader(accelerator: Accelerator, loader: Any) -> Any:
    """Prepare a loader that is sharded already as Accelerate prepares its own.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(torch.zeros(4, 2)), 2)
    >>> len(prepared_loader(Accelerator(cpu=True), loader))
    2
    """
    ready = prepare_data_loader(
        loader, device=accelerator.device, num_processes=1, process_index=0, put_on_device=True
    )
    ready._is_accelerate_prepared = True
    return accelerator.prepare(ready)
