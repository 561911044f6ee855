"""Numbered checkpoints in a folder: each is whole or is refused, and nothing in them can run.

``000120.safetensors`` holds the arrays after 120 epochs; ``000120.json`` says of which training they
are, and their SHA-256. Each is written under another name and renamed, the second after the first, so a
checkpoint that has both was whole when it was written. The last two are kept.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.files import sync_folder, write_whole

__all__ = ["Checkpoint", "CheckpointFolder", "warn_of_one_folder"]

FORMAT = 2
KEPT = 2
LARGEST_JSON = 64 * 2**20
MARK = "fairsieve-checkpoints.txt"  # nothing is removed from a folder without it: it is somebody else's
FILE_NAME = re.compile(r"(\d{6,12})\.(json|safetensors)", re.ASCII)
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_unwritten: ContextVar[dict[str, Path] | None] = ContextVar("unwritten", default=None)  # the first folder


@contextlib.contextmanager
def warn_of_one_folder() -> Iterator[None]:
    """Warn only once that checkpoints cannot be written, whatever folders are used in this context.

    A fit that trains several models keeps one folder for each; a full disk is one piece of news for all.
    """
    outer = _unwritten.get()
    token = _unwritten.set({} if outer is None else outer)
    try:
        yield
    finally:
        _unwritten.reset(token)


class Checkpoint(NamedTuple):
    """A training at some epoch.

    ``training`` names what is trained, on what and how; ``values`` and ``arrays`` are its state.
    """

    number: int
    training: dict[str, Any]
    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class CheckpointFolder:
    """The checkpoints of one training, in a folder of their own.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    training : dict of plain values
        What is trained, on what and how. Checkpoints of another training are an error.
    largest : int
        The most bytes of arrays that this training could have written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = CheckpointFolder(Path(folder), {"seed": 0})
    ...     for number in (10, 20, 30):
    ...         checkpoints.write(number, {}, {"weights": np.ones(2)})
    ...     print(checkpoints.numbers(), checkpoints.resume(lambda checkpoint: None))
    [20, 30] 30
    """

    def __init__(self, folder: Path, training: Mapping[str, Any], largest: int = 2**30) -> None:
        self.folder, self.training, self.largest = folder, json.loads(json.dumps(training)), largest
        self.whole: list[int] = []
        self.is_claimed = self.has_warned = False
        try:
            self.claim()
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise InvalidInputError(
                    f"checkpoint_dir must be a folder that can be written; {folder}: {error.strerror}"
                ) from error
            self.warn_not_written(error)

    def claim(self) -> None:
        """Make the folder and mark it as ours; remove what a killed process has left half-written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / MARK).exists():
            strangers = self.numbers()
            if strangers:
                raise InvalidInputError(
                    f"checkpoint_dir must be new, empty, or made by fairsieve; {self.folder} holds files such as "
                    f"{strangers[0]:06d}.json and no {MARK}: pass another folder"
                )
            text = b"Checkpoints that fairsieve keeps here, and removes when they are old.\n"
            write_whole(self.folder / MARK, text)
        for part in self.folder.glob(".*.part"):
            part.unlink(missing_ok=True)
        self.is_claimed = True

    def numbers(self) -> list[int]:
        """List the checkpoints that are there, whole or not."""
        if not self.folder.exists():
            return []
        found = (FILE_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted({int(match[1]) for match in found if match})

    def resume(self, restore: Callable[[Checkpoint], None]) -> int:
        """Pass the last whole checkpoint to ``restore`` and return its number; 0 when there is none.

        One that is damaged, or that ``restore`` refuses by a :class:`CheckpointError`, is named in a
        :class:`CheckpointWarning`, and the one before it is used.
        """
        for number in reversed(self.numbers()):
            try:
                checkpoint = _read_checkpoint(self.folder, number, self.largest)
                self.check_training(checkpoint)
                restore(checkpoint)
            except CheckpointError as error:
                warnings.warn(
                    f"{self.folder}: checkpoint {number:06d} is not used: {error}. The one before it is, if there is "
                    "any",
                    CheckpointWarning,
                    stacklevel=2,
                )
                continue
            self.whole = [number]
            return number
        return 0

    def check_training(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint of another training."""
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

    def write(self, number: int, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add a checkpoint and remove all before it but one; if that fails, warn once and go on."""
        try:
            if not self.is_claimed:
                self.claim()
            _write_checkpoint(self.folder, Checkpoint(number, self.training, dict(values), dict(arrays)))
        except OSError as error:
            self.warn_not_written(error, number)
            return
        self.whole = [*(n for n in self.whole if n < number), number][-KEPT:]
        for old in self.numbers():
            if old < number and old not in self.whole:
                for ending in ("json", "safetensors"):
                    with contextlib.suppress(OSError):
                        (self.folder / f"{old:06d}.{ending}").unlink()

    def warn_not_written(self, error: OSError, number: int = 0) -> None:
        """Say once that checkpoints cannot be written, see :func:`warn_of_one_folder`."""
        unwritten = _unwritten.get()
        first = self.folder if unwritten is None else unwritten.setdefault("first", self.folder)  # one step
        if not self.has_warned and first is self.folder:
            self.has_warned = True
            warnings.warn(
                f"checkpoint {number:06d} could not be written to {self.folder} ({error.strerror or error}); "
                "training goes on, and those before it are kept. Make room on the disk: later checkpoints are tried "
                "again, without another warning",
                CheckpointWarning,
                stacklevel=3,
            )


def _write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all."""
    try:
        content = save({name: np.array(value, order="C") for name, value in checkpoint.arrays.items()})
    except (SafetensorError, KeyError, ValueError) as error:
        raise InvalidInputError(
            f"a checkpoint must hold arrays that safetensors can: {error}; train without checkpoint_dir"
        ) from error
    described = {
        "format": FORMAT,
        "number": checkpoint.number,
        "training": checkpoint.training,
        "values": checkpoint.values,
        "tensors_sha256": hashlib.sha256(content).hexdigest(),
        "versions": {name: metadata.version(name) for name in ("fairsieve", "numpy")},
    }
    write_whole(folder / f"{checkpoint.number:06d}.safetensors", content)
    write_whole(folder / f"{checkpoint.number:06d}.json", _signed(described))
    sync_folder(folder)


def _signed(described: Mapping[str, Any]) -> bytes:
    """Write a description as JSON, with a checksum of itself, in one form only: no bit may differ."""
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**described, "sha256": checksum}, sort_keys=True, indent=1).encode()


def _read_checkpoint(folder: Path, number: int, largest: int = 2**30) -> Checkpoint:
    """Read a checkpoint; a :class:`CheckpointError` says what is wrong with one that is not whole.

    Only numbers, text and arrays are read; nothing in the files is run, and no name in them becomes a path.
    """
    path = folder / f"{number:06d}.json"
    if not path.exists():
        raise CheckpointError(f"it was not written to its end, and has no {path.name}")
    content = _read_plain(path, LARGEST_JSON)
    try:
        described = json.loads(content)
        checksum = described.pop("sha256")
        same = isinstance(checksum, str) and _signed(described) == content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        same = False
    if not same:
        raise CheckpointError(f"{path.name} is damaged: it is not the JSON that was written")
    if described.get("format") != FORMAT:
        raise InvalidInputError(
            f"checkpoint_dir must hold checkpoints of format {FORMAT}; {path} has format "
            f"{described.get('format')!r}: use the version of fairsieve that wrote it, or another folder"
        )
    training, values = described.get("training"), described.get("values")
    if described.get("number") != number or not isinstance(training, dict) or not isinstance(values, dict):
        raise CheckpointError(f"{path.name} must be of epoch {number}, with training and values")
    content = _read_plain(folder / f"{number:06d}.safetensors", largest)
    if hashlib.sha256(content).hexdigest() != described.get("tensors_sha256"):
        raise CheckpointError(
            f"{number:06d}.safetensors is damaged: its SHA-256 is not the one in {path.name}"
        )
    try:
        arrays = {name: np.array(value) for name, value in load(content).items()}  # that can be written to
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"{number:06d}.safetensors is no sound safetensors file: {error}") from error
    return Checkpoint(number, training, values, arrays)


def _read_plain(path: Path, largest: int) -> bytes:
    """Read a file; refuse links, pipes, devices and files that are too large, without reading them."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointError(f"{path.name} must be a plain file")
        if found.st_size > largest:
            raise CheckpointError(f"{path.name} must be at most {largest:,} bytes; it has {found.st_size:,}")
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from error


def _short(value: Any) -> str:
    """Write a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
