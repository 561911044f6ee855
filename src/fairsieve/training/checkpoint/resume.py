"""Checkpoints of trainers: which training they are of, when one is due, and going back to the last."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.samples import Samples
from fairsieve.selection.cells import as_array
from fairsieve.training.checkpoint.store import Checkpoint, CheckpointFolder
from fairsieve.training.trainer import Arrays, Trainer
from fairsieve.validation import check_at_least

__all__ = ["TrainerCheckpoints", "epochs_between", "samples_checksum", "seed_folders"]

SPARE = 16 * 2**20  # bytes for names and for small states
FACTOR, OWN_FACTOR = 4, 256  # what Adam, or an optimiser of one's own, may keep beside each parameter


class TrainerCheckpoints:
    """Writes checkpoints of a trainer while it trains, and goes back to the last.

    Parameters
    ----------
    trainer : Trainer
        At its start.
    folder : Path or None
        None writes nothing.
    every : int
        Epochs between checkpoints; there is one after the last epoch too.
    """

    def __init__(self, trainer: Trainer, folder: Path | None, every: int) -> None:
        self.trainer, self.every, self.written = trainer, every, 0
        self.folder: CheckpointFolder | None = None
        if folder is not None:
            self.first_weights = _checksum(trainer.state_arrays(trainer.state()).values())
            size = sum(array.nbytes for array in _state(trainer)[1].values())
            factor = FACTOR if trainer.settings.optimizer is None else OWN_FACTOR
            self.folder = CheckpointFolder(folder, _describe_training(trainer), SPARE + factor * size)

    def resume(self) -> None:
        """Go to the last whole checkpoint, if there is any."""
        if self.folder is not None:
            self.written = self.folder.resume(self.restore)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go to a checkpoint; warn if the training would have begun with other weights."""
        _restore_trainer(self.trainer, checkpoint)
        if checkpoint.values.get("first_weights") != self.first_weights:
            warnings.warn(
                f"training goes on from checkpoint {checkpoint.number:06d}, which began with other first weights "
                "than the model has now; pass another checkpoint_dir to begin with these",
                CheckpointWarning,
                stacklevel=2,
            )

    @property
    def epochs_until_due(self) -> int:
        """Epochs until the next checkpoint; all that are left, if none are written."""
        done = self.trainer.done
        return self.every - done % self.every if self.folder else self.trainer.settings.epochs - done

    def write_if_due(self) -> None:
        """Write a checkpoint, if one is due."""
        done, last = self.trainer.done, self.trainer.settings.epochs
        due = done // self.every > self.written // self.every or done == last
        if self.folder is not None and due and done > self.written:
            values, arrays = _state(self.trainer)
            self.folder.write(done, values | {"first_weights": self.first_weights}, arrays)
            self.written = done


def _state(trainer: Trainer) -> tuple[dict[str, Any], Arrays]:
    """Return the whole state of a trainer, in plain values and arrays."""
    values, arrays = trainer.checkpoint()
    plan = trainer.plan
    selected = np.zeros(len(plan.cells), bool)
    selected[as_array("indices", plan.indices)] = True  # they are ascending
    arrays |= {"selected": selected, "ratios": plan.ratios}
    arrays |= {f"recording.{name}": value for name, value in trainer.recording._asdict().items()}
    for kind, state in (("best", trainer.best), ("average", trainer.average)):
        if state is not None:
            arrays |= {f"{kind}.{name}": value for name, value in trainer.state_arrays(state).items()}
    return values | {"best_merit": None if trainer.best is None else float(trainer.best_merit)}, arrays


def _restore_trainer(trainer: Trainer, checkpoint: Checkpoint) -> None:
    """Take a trainer at its start to a checkpoint of it; everything is checked before anything is changed."""
    number, values, found = checkpoint.number, checkpoint.values, checkpoint.arrays
    if not 1 <= number <= trainer.settings.epochs:
        raise CheckpointError(f"it must be of an epoch up to {trainer.settings.epochs}")
    state = trainer.state_arrays(trainer.state())
    kinds = {kind for kind in ("best", "average") if any(name.startswith(f"{kind}.") for name in found)}
    fresh = {name: value for name, value in _state(trainer)[1].items() if not name.startswith("optimizer.")}
    _check_arrays(found, fresh | {f"{kind}.{name}": v for kind in kinds for name, v in state.items()})
    _check_values(trainer, checkpoint, kinds)
    trainer.restore(values, found)
    for name, value in trainer.recording._asdict().items():
        value[...] = found[f"recording.{name}"]

    def saved(kind: str) -> Any:
        parts = {name: found[f"{kind}.{name}"] for name in state} if kind in kinds else None
        return None if parts is None else trainer.state_from_arrays(parts)

    trainer.best, trainer.average = saved("best"), saved("average")
    trainer.best_merit = -np.inf if values["best_merit"] is None else float(values["best_merit"])
    trainer.done = number
    trainer.plan.load_state_dict(
        {
            "epoch": number,
            "seed": trainer.spec.seed,
            "ratios": found["ratios"],
            "indices": np.flatnonzero(found["selected"]),
            "is_selective": number > trainer.plan.rules.warmup_epochs,
            "samples": len(trainer.plan.cells),
        }
    )


def _check_arrays(found: Arrays, wanted: Arrays) -> None:
    """Require all arrays that are wanted, of their types and shapes, and no others but an optimiser's."""
    names = {name for name in found if not name.startswith("optimizer.")}
    for name in sorted(names ^ wanted.keys()):
        raise CheckpointError(f"it {'must' if name in wanted else 'must not'} have an array {name!r}")
    for name, like in wanted.items():
        if found[name].dtype != like.dtype or found[name].shape != like.shape:
            raise CheckpointError(
                f"it must have {name!r} as {like.dtype} of shape {like.shape}; it has {found[name].dtype} of shape "
                f"{found[name].shape}"
            )


def _check_values(trainer: Trainer, checkpoint: Checkpoint, kinds: set[str]) -> None:
    """Check the values that compiled code relies on, which does not check them again."""
    number, ratios, merit = (
        checkpoint.number,
        checkpoint.arrays["ratios"],
        checkpoint.values.get("best_merit"),
    )
    in_warmup = number <= trainer.plan.rules.warmup_epochs
    rules = {
        "ratios must be in [0, 1] and sum to 1 in each class": bool(
            ((ratios >= 0) & (ratios <= 1)).all() and np.allclose(ratios.sum(axis=1), 1, rtol=0, atol=1e-6)
        ),
        "everyone must be selected in the warm-up": not in_warmup
        or bool(checkpoint.arrays["selected"].all()),
        "an average is of the last epochs": ("average" in kinds) == (number > trainer.first_averaged),
        "the best state must have a merit": isinstance(merit, float) if "best" in kinds else merit is None,
    }
    for rule, holds in rules.items():
        if not holds:
            raise CheckpointError(f"it breaks a rule: {rule}")


def epochs_between(checkpoint_every: int | None, epochs: int) -> int:
    """Return the epochs from one checkpoint to the next; None is a twentieth of all.

    >>> epochs_between(None, 450), epochs_between(7, 450)
    (22, 7)
    """
    if checkpoint_every is None:
        return max(1, epochs // 20)
    return check_at_least("checkpoint_every", checkpoint_every, 1)


def seed_folders(checkpoint_dir: Path | str | None, seeds: Sequence[int]) -> list[Path | None]:
    """Return the folder of each seed's checkpoints: the folder itself or, of several, one below it for each."""
    if checkpoint_dir is None:
        return [None] * len(seeds)
    if len(seeds) == 1:
        return [Path(checkpoint_dir)]
    if len(set(seeds)) < len(seeds):
        raise InvalidInputError(
            f"seeds must be different where checkpoints are written; got {list(seeds)}: leave one out"
        )
    return [Path(checkpoint_dir) / f"seed-{seed}" for seed in seeds]


def _describe_training(trainer: Trainer) -> dict[str, Any]:
    """Describe what is trained, on what and how, in plain values: the same in any process."""
    spec = trainer.spec
    settings = {field.name: _plain(getattr(spec.settings, field.name)) for field in fields(spec.settings)}
    return settings | {
        "method": _plain(asdict(spec.method)),
        "seed": spec.seed,
        "engine": trainer.engine,
        "model": trainer.describe_model(),
        "data": samples_checksum(spec.data),
        "evaluation": None if spec.evaluation is None else samples_checksum(spec.evaluation),
        "sample_weight": None if spec.weights is None else _checksum([spec.weights]),
    }


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it; a function by its name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)


def samples_checksum(data: Samples) -> str:
    """Return a checksum of samples."""
    cells = data.cells
    names = repr((cells.classes, cells.groups)).encode()
    return _checksum([data.features, cells.codes, np.frombuffer(names, np.uint8)])


def _checksum(arrays: Iterable[NDArray[Any]]) -> str:
    """Return a short checksum of arrays.

    >>> _checksum([np.arange(3)]) == _checksum([np.arange(3)]) != _checksum([np.arange(4)])
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
