"""Checkpoints of a module's training, and the arrays of a long computation: each file is whole or is refused.

``000120.checkpoint`` holds the state after 120 epochs: the SHA-256 of what follows, then a file of ``torch.save`` that
is loaded with ``weights_only=True``, so that nothing in it can run. A file is written under another name and renamed.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.files import clear_stale, make_folder, write_whole
from fairsieve.samples import Samples

if TYPE_CHECKING:
    from fairsieve.training.models import AutogradTrainer

__all__ = ["Checkpoints", "remember_calls"]

Floats = NDArray[np.float64]

KEPT = 2  # the last, and the one before it in case the last is damaged
NAME = re.compile(r"\d{6,}\.checkpoint", re.ASCII)
DIGEST = hashlib.sha256().digest_size


class Checkpoints:
    """Writes checkpoints of a trainer while it trains, and goes back to the last.

    Parameters
    ----------
    trainer : AutogradTrainer
        At its start.
    folder : Path
        Made if it does not exist. Checkpoints of another training in it are an error.
    every : int, optional
        Epochs between checkpoints; a twentieth of all when None. There is one after the last epoch too.
    """

    def __init__(self, trainer: AutogradTrainer, folder: Path, every: int | None) -> None:
        self.trainer, self.folder, self.has_warned = trainer, folder, False
        self.every = max(1, trainer.settings.epochs // 20) if every is None else every
        self.training = _describe_training(trainer)
        make_folder("checkpoint_dir", folder)

    def files(self) -> list[Path]:
        """List the checkpoints that are there, the oldest first."""
        found = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.stem))

    def resume(self) -> None:
        """Take the trainer to the last whole checkpoint, if there is any; warn of those that are not."""
        for path in reversed(self.files()):
            try:
                content = _read(path)
            except CheckpointError as error:
                warnings.warn(
                    f"{path} is not used: {error}. The checkpoint before it is, if there is any",
                    CheckpointWarning,
                    stacklevel=4,
                )
                continue
            self.check_training(content["training"])
            self.trainer.restore(content["state"])
            return

    def check_training(self, was: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another training."""
        now = self.training
        different = [
            f"{name} was {was.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        ]
        if different:
            raise InvalidInputError(
                f"checkpoint_dir must hold checkpoints of this training or none; {self.folder} holds those of "
                f"another: {'; '.join(different)}. Pass another folder, or remove this one"
            )

    def write_if_due(self) -> None:
        """Write a checkpoint if one is due, and remove all before it but one; where that fails, warn once and go on."""
        done = self.trainer.done
        if done % self.every and done < self.trainer.settings.epochs:
            return
        path = self.folder / f"{done:06d}.checkpoint"
        content = _pack({"training": self.training, "state": self.trainer.checkpoint()})
        try:
            clear_stale(self.folder, path.name)  # what a training that was killed here has left
            write_whole(path, content)
            for old in self.files()[:-KEPT]:
                old.unlink()
        except OSError as error:
            if not self.has_warned:
                self.has_warned = True
                warnings.warn(
                    f"{path} could not be written ({error.strerror or error}); training goes on, and later "
                    "checkpoints are tried again, without another warning. Make room on the disk",
                    CheckpointWarning,
                    stacklevel=4,
                )


def _pack(content: dict[str, Any]) -> bytes:
    """Write the content of a checkpoint as bytes, with their checksum before them."""
    import torch

    buffer = io.BytesIO()
    try:
        torch.save(content, buffer)
        torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    except Exception as error:  # whatever the state cannot be written by
        raise InvalidInputError(
            "a checkpoint must hold numbers, text and tensors only, and the optimizer's state has something else: use "
            f"another optimizer, or train without checkpoint_dir ({str(error).splitlines()[0]})"
        ) from error
    return hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()


def _read(path: Path) -> dict[str, Any]:
    """Read a checkpoint, or raise an error that says what is wrong with it."""
    import torch

    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"it cannot be read: {error.strerror}") from error
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        raise CheckpointError("it is damaged: its checksum is another")
    try:
        found = torch.load(io.BytesIO(content[DIGEST:]), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file makes torch raise
        raise CheckpointError(f"torch cannot load it: {str(error).splitlines()[0]}") from error
    if not (isinstance(found, dict) and found.keys() == {"training", "state"}):
        raise CheckpointError("it was not written by fairsieve")
    return found


def _describe_training(trainer: AutogradTrainer) -> dict[str, Any]:
    """Describe what is trained, on what and how, in plain values: the same in any process."""
    spec = trainer.spec
    settings = {field.name: _plain(getattr(spec.settings, field.name)) for field in fields(spec.settings)}
    learned = trainer.model.state_dict()
    shapes = [f"{name} {value.dtype} {tuple(value.shape)}" for name, value in learned.items()]
    return settings | {
        "method": _plain(asdict(spec.method)),
        "seed": spec.seed,
        "model": f"{type(trainer.model).__qualname__} {hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]}",
        "data": _samples_checksum(spec.data),
        "evaluation": None if spec.evaluation is None else _samples_checksum(spec.evaluation),
        "sample_weight": None if spec.weights is None else _checksum(spec.weights),
    }


def _plain(value: Any) -> Any:
    """Return a setting as a plain value; a function by its name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)


def _samples_checksum(data: Samples) -> str:
    """Return a checksum of samples."""
    names = repr((data.cells.classes, data.cells.groups)).encode()
    return _checksum(data.features, data.cells.codes, np.frombuffer(names, np.uint8))


def _checksum(*arrays: NDArray[Any]) -> str:
    """Return a short checksum of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def remember_calls(
    path: Path, fingerprint: str, compute: Callable[[Floats | None], Floats]
) -> Callable[[Floats | None], Floats]:
    """Wrap a slow function of weights, so that what it has answered is kept in a file and not computed again.

    For the rounds of a sieve around a slow learner: a fit that was stopped goes on with the first round that it lacks.
    The file is used where ``fingerprint``, which describes the computation, is the same.
    """
    kept = _load_arrays(path, fingerprint)

    def answer(weights: Floats | None) -> Floats:
        key = "plain" if weights is None else _checksum(weights)
        if key not in kept:
            kept[key] = compute(weights)
            buffer = io.BytesIO()
            np.savez(buffer, fingerprint=np.array(fingerprint), **kept)  # type: ignore[arg-type]
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, buffer.getvalue())
            except OSError as error:
                told = f"{path} could not be written ({error.strerror or error}); the work goes on without it"
                warnings.warn(told, CheckpointWarning, stacklevel=2)
        return kept[key].copy()

    return answer


def _load_arrays(path: Path, fingerprint: str) -> dict[str, NDArray[Any]]:
    """Return the arrays that were kept; none, with a warning, where they are damaged or others'."""
    if not path.exists():
        return {}
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            found = dict(kept)
        if str(found.pop("fingerprint")) == fingerprint:
            return found
        reason = "it is of another computation"
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = f"it cannot be read ({error})"
    warnings.warn(f"{path} is not used: {reason}", CheckpointWarning, stacklevel=3)
    return {}
