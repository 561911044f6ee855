"""Checkpoints of a module's training: each file is whole or is refused.

``000120.checkpoint`` holds the state after 120 epochs: the SHA-256 of what follows, then a file of ``torch.save`` that
is loaded with ``weights_only=True``, so that nothing in it can run. A file is written under another name and renamed.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.files import clear_stale, make_folder, write_whole

if TYPE_CHECKING:
    from fairsieve.training.models import AutogradTrainer

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
    spec, data = trainer.spec, (trainer.spec.data, trainer.spec.evaluation)
    settings = {name: _plain(value) for name, value in vars(spec.settings).items()}
    shapes = [(name, str(value.dtype), value.shape) for name, value in trainer.model.state_dict().items()]
    given, shown = (
        each and joblib.hash((each.features, each.cells.codes, each.classes, each.group_values))
        for each in data
    )
    return settings | {
        "method": spec.method.name,
        "seed": spec.seed,
        "model": f"{type(trainer.model).__qualname__} {joblib.hash(shapes)}",
        "data": given,
        "evaluation": shown,
        "sample_weight": None if spec.weights is None else joblib.hash(spec.weights),
    }


def _plain(value: Any) -> Any:
    """Return a setting as a plain value; a function by its name."""
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return value if value is None or isinstance(value, (int, float, str)) else repr(value)
