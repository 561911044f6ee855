"""Keeping checkpoints of runs: whose they are, when one is due, and going back to the last."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fairsieve.errors import CheckpointWarning, InvalidInputError
from fairsieve.samples import Samples
from fairsieve.training.checkpoint.store import Checkpoint, Checkpoints
from fairsieve.training.checkpoint.trainer_state import live_tensors, state_of, take_over
from fairsieve.training.methods import SelectionMethod
from fairsieve.training.trainer import AutogradRun, Run
from fairsieve.validation import check_at_least

__all__ = ["Keeper", "epochs_between", "samples_checksum", "seed_folders", "training_of"]

SPARE = 16 * 2**20  # bytes for names and for small states
FACTOR, OWN_FACTOR = 4, 256  # what Adam, or an optimiser of one's own, may keep beside each parameter


class Keeper:
    """Keeps checkpoints of a run while it goes on.

    Parameters
    ----------
    run : Run
        At its start.
    folder : Path or None
        None keeps nothing.
    every : int
        Epochs between checkpoints; there is one after the last epoch too.
    training : dict
        See :func:`training_of`.
    """

    def __init__(self, run: Run, folder: Path | None, every: int, training: dict[str, Any]) -> None:
        self.run, self.every, self.kept = run, every, 0
        self.checkpoints: Checkpoints | None = None
        if folder is not None:
            self.first_weights = _checksum(
                value.cpu().reshape(-1).view(torch.uint8).numpy() for value in run.state().values()
            )
            own = sum(value.nbytes for value in live_tensors(run).values()) + len(run.plan.cells)
            factor = FACTOR if run.settings.optimizer is None else OWN_FACTOR
            self.checkpoints = Checkpoints(folder, training, SPARE + factor * own)

    def resume(self) -> None:
        """Go to the last whole checkpoint, if there is any."""
        if self.checkpoints is not None:
            self.kept = self.checkpoints.resume(self.take_over)

    def take_over(self, checkpoint: Checkpoint) -> None:
        """Go to a checkpoint, and say so if the run would have begun elsewhere."""
        take_over(self.run, checkpoint)
        if checkpoint.values.get("first_weights") != self.first_weights:
            warnings.warn(
                f"training goes on from checkpoint {checkpoint.number:06d}, which began with other first weights "
                "than the model has now; pass another checkpoint_dir to begin with these",
                CheckpointWarning,
                stacklevel=2,
            )

    @property
    def until_due(self) -> int:
        """Epochs until the next checkpoint; all that are left, where none are kept."""
        done = self.run.done
        return self.every - done % self.every if self.checkpoints else self.run.settings.epochs - done

    def keep(self) -> None:
        """Write a checkpoint, if one is due."""
        done, last = self.run.done, self.run.settings.epochs
        due = done // self.every > self.kept // self.every or done == last
        if self.checkpoints is not None and due and done > self.kept:
            values, tensors = state_of(self.run)
            self.checkpoints.write(done, values | {"first_weights": self.first_weights}, tensors)
            self.kept = done


def epochs_between(checkpoint_every: int | None, epochs: int) -> int:
    """Epochs from one checkpoint to the next; None is a twentieth of all.

    >>> epochs_between(None, 450), epochs_between(7, 450)
    (22, 7)
    """
    if checkpoint_every is None:
        return max(1, epochs // 20)
    return check_at_least("checkpoint_every", checkpoint_every, 1)


def seed_folders(checkpoint_dir: Path | str | None, seeds: Sequence[int]) -> list[Path | None]:
    """Where the checkpoints of each seed are: in the folder or, of several, in one for each below it."""
    if checkpoint_dir is None:
        return [None] * len(seeds)
    if len(seeds) == 1:
        return [Path(checkpoint_dir)]
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(
            f"seeds must be different where checkpoints are kept; got {list(seeds)}: leave one out"
        )
    return [Path(checkpoint_dir) / f"seed-{seed}" for seed in seeds]


def training_of(
    run: Run,
    data: Samples,
    method: SelectionMethod,
    seed: int,
    weights: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """What is trained, on what and how, in plain values: the same for the same training, in any process."""
    settings = {field.name: _plain(getattr(run.settings, field.name)) for field in fields(run.settings)}
    return settings | {
        "method": _plain(asdict(method)),
        "seed": seed,
        "engine": "autograd" if isinstance(run, AutogradRun) else "compiled",
        "model": _described(run.model),  # type: ignore[attr-defined]
        "data": samples_checksum(data),
        "evaluation": None if run.evaluation is None else samples_checksum(run.evaluation),
        "sample_weight": None if weights is None else _checksum([weights]),
    }


def _plain(value: Any) -> Any:
    """A setting as JSON has it; a function by its name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)


def _described(model: nn.Module) -> str:
    """A module's kind, and a checksum of the names, types and shapes of what it learns."""
    parts = [f"{name} {value.dtype} {tuple(value.shape)}" for name, value in model.state_dict().items()]
    return f"{type(model).__qualname__} {hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def samples_checksum(data: Samples) -> str:
    """A short name of samples; equal ones have equal names."""
    cells = data.cells
    names = repr((cells.classes, cells.groups)).encode()
    return _checksum([data.features, cells.codes, np.frombuffer(names, np.uint8)])


def _checksum(arrays: Iterable[NDArray[Any]]) -> str:
    """A short name of arrays.

    >>> _checksum([np.arange(3)]) == _checksum([np.arange(3)]) != _checksum([np.arange(4)])
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
