"""Numbered checkpoints in a folder: each is whole or is refused, and nothing in them can run.

``000120.safetensors`` holds the tensors after 120 epochs; ``000120.json`` says of which training they
are, and their SHA-256. Each is written under another name and renamed, the second after the first, so a
checkpoint that has both was whole when it was written. The last two are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import stat
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.files import sync_folder, write_whole

__all__ = [
    "Checkpoint",
    "Checkpoints",
]

FORMAT = 1
KEPT = 2
LARGEST_JSON = 64 * 2**20
MARK = "fairsieve-checkpoints.txt"  # a folder without it is somebody's, and nothing in it is removed
FILE_NAME = re.compile(r"(\d{6,12})\.(json|safetensors)", re.ASCII)


class Checkpoint(NamedTuple):
    """A training at some epoch.

    ``training`` names what is trained, on what and how; ``values`` and ``tensors`` are its state.
    """

    number: int
    training: dict[str, Any]
    values: dict[str, Any]
    tensors: dict[str, torch.Tensor]


class Checkpoints:
    """The checkpoints of one training, in a folder of their own.

    Parameters
    ----------
    folder : Path
        Made, where it is not there.
    training : dict of plain values
        What is trained, on what and how. Checkpoints of another training are an error.
    largest : int
        The most bytes of tensors that this training could have written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Checkpoints(Path(folder), {"seed": 0})
    ...     for number in (10, 20, 30):
    ...         kept.write(number, {}, {"weights": torch.ones(2)})
    ...     print(kept.numbers(), kept.resume(lambda checkpoint: None))
    [20, 30] 30
    """

    def __init__(self, folder: Path, training: Mapping[str, Any], largest: int = 2**30) -> None:
        self.folder, self.training, self.largest = folder, json.loads(json.dumps(training)), largest
        self.whole: list[int] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / MARK).exists():
                self.check_empty()
                write_whole(
                    folder / MARK, b"Checkpoints that fairsieve keeps here, and removes when they are old.\n"
                )
            for part in folder.glob(".*.part"):  # a killed process leaves them
                part.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"checkpoint_dir must be a folder that can be written; {folder}: {error.strerror}"
            ) from error

    def check_empty(self) -> None:
        """Whether nothing of somebody else's could be taken for a checkpoint."""
        strangers = self.numbers()
        if strangers:
            raise InvalidInputError(
                f"checkpoint_dir must be new, empty, or made by fairsieve; {self.folder} holds files such as "
                f"{strangers[0]:06d}.json and no {MARK}: pass another folder"
            )

    def numbers(self) -> list[int]:
        """The checkpoints that are there, whole or not."""
        found = (FILE_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted({int(match[1]) for match in found if match})

    def resume(self, take_over: Callable[[Checkpoint], None]) -> int:
        """Hand over the last whole checkpoint and return its number; 0 when there is none.

        One that is damaged, or that ``take_over`` refuses by a :class:`CheckpointError`, is named in a
        :class:`CheckpointWarning`, and the one before it is used.
        """
        for number in reversed(self.numbers()):
            try:
                checkpoint = _read_checkpoint(self.folder, number, self.largest)
                self.check_training(checkpoint)
                take_over(checkpoint)
            except CheckpointError as error:
                warnings.warn(
                    f"{self.folder}: {error}. It is not used; the one before it is, if there is any",
                    CheckpointWarning,
                    stacklevel=2,
                )
                continue
            self.whole = [number]
            return number
        return 0

    def check_training(self, checkpoint: Checkpoint) -> None:
        """Whether a checkpoint is of this training."""
        was, now = checkpoint.training, self.training
        different = [
            f"{name} was {_short(was.get(name))} and is {_short(now.get(name))}"
            for name in sorted(was.keys() | now.keys())
            if (name in was, was.get(name)) != (name in now, now.get(name))
        ]
        if different:
            raise InvalidInputError(
                f"checkpoint_dir must hold checkpoints of this training or none; {self.folder} holds those of "
                f"another: {'; '.join(different)}. Pass another folder, or remove this one"
            )

    def write(self, number: int, values: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        """Add a checkpoint, then remove all up to it but two; where that fails, say so and go on."""
        try:
            _write_checkpoint(self.folder, Checkpoint(number, self.training, dict(values), dict(tensors)))
        except OSError as error:
            warnings.warn(
                f"checkpoint {number:06d} could not be written to {self.folder} ({error.strerror or error}); "
                "training goes on, and those before it are kept",
                CheckpointWarning,
                stacklevel=2,
            )
            return
        self.whole = [*(n for n in self.whole if n < number), number][-KEPT:]
        for old in self.numbers():
            if old < number and old not in self.whole:
                for ending in ("json", "safetensors"):
                    with contextlib.suppress(OSError):
                        (self.folder / f"{old:06d}.{ending}").unlink()


def _write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all."""
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in checkpoint.tensors.items()}
    try:
        content = save(plain)
    except (SafetensorError, KeyError, ValueError) as error:
        raise InvalidInputError(
            f"a checkpoint must hold tensors that safetensors can: {error}; train without checkpoint_dir"
        ) from error
    described = {
        "format": FORMAT,
        "number": checkpoint.number,
        "training": checkpoint.training,
        "values": checkpoint.values,
        "tensors_sha256": hashlib.sha256(content).hexdigest(),
        "versions": {name: metadata.version(name) for name in ("fairsieve", "numpy", "torch")},
    }
    write_whole(folder / f"{checkpoint.number:06d}.safetensors", content)
    write_whole(folder / f"{checkpoint.number:06d}.json", _signed(described))
    sync_folder(folder)


def _signed(described: Mapping[str, Any]) -> bytes:
    """A description as JSON, with a checksum of itself; one form only, so that no bit may differ."""
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**described, "sha256": checksum}, sort_keys=True, indent=1).encode()


def _read_checkpoint(folder: Path, number: int, largest: int = 2**30) -> Checkpoint:
    """Read a checkpoint; a :class:`CheckpointError` says what is wrong with one that is not whole.

    Only numbers, text and tensors are read; nothing in the files is run, and no name in them becomes a path.
    """
    description = folder / f"{number:06d}.json"
    if not description.exists():
        raise CheckpointError(
            f"checkpoint {number:06d} was not written to its end: it has no {description.name}"
        )
    described = _read_description(description)
    if described.get("format") != FORMAT:
        raise InvalidInputError(
            f"checkpoint_dir must hold checkpoints of format {FORMAT}; {description} has format "
            f"{described.get('format')!r}: use the version of fairsieve that wrote it, or another folder"
        )
    training, values = described.get("training"), described.get("values")
    if described.get("number") != number or not isinstance(training, dict) or not isinstance(values, dict):
        raise CheckpointError(
            f"checkpoint {description.name} must be of epoch {number}, with training and values"
        )
    path = folder / f"{number:06d}.safetensors"
    content = _read_plain(path, largest)
    if hashlib.sha256(content).hexdigest() != described.get("tensors_sha256"):
        raise CheckpointError(
            f"checkpoint {path.name} is damaged: it does not have the SHA-256 that was noted"
        )
    return Checkpoint(number, training, values, _load_tensors(path, content))


def _read_description(path: Path) -> dict[str, Any]:
    """The JSON of a checkpoint, if it is exactly as it was written."""
    content = _read_plain(path, LARGEST_JSON)
    try:
        described = json.loads(content)
        checksum = described.pop("sha256")
        same = _signed(described) == content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        same = False
    if not same or not isinstance(checksum, str):
        raise CheckpointError(f"checkpoint {path.name} is damaged: it is not the JSON that was written")
    return dict(described)


def _read_plain(path: Path, largest: int) -> bytes:
    """A file's content; links, pipes, devices and files that are too large are refused unread."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointError(f"checkpoint {path.name} must be a plain file")
        if found.st_size > largest:
            raise CheckpointError(
                f"checkpoint {path.name} must be at most {largest:,} bytes; it has {found.st_size:,}"
            )
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"checkpoint {path.name} cannot be read: {error.strerror}") from error


def _load_tensors(path: Path, content: bytes) -> dict[str, torch.Tensor]:
    """The tensors in a safetensors file."""
    try:
        return dict(load(content))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"checkpoint {path.name} is no sound safetensors file: {error}") from error


def _short(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
