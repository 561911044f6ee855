"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairsieve.errors import InvalidInputError

try:
    import fcntl
except ImportError:  # Windows, where nobody else is waited for
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_new", "locked", "sync_folder", "write_output", "write_whole"]


def write_whole(target: Path, content: bytes) -> None:
    """Write under another name in the same folder, make it durable, then rename: all or nothing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"whole")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o644)
        part.replace(target)
    except BaseException:  # also an interrupt
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can (POSIX)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(handle: int) -> Iterator[None]:
    """Wait until no other process has locked this file; a process that is killed gives its lock back."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_UN)


def check_new(option: str, path: Path, *, force: bool) -> None:
    """Whether a file may be written: what is there already is replaced only when that is asked for."""
    if path.is_dir():
        raise InvalidInputError(f"{option} must be a file to write; {path} is a folder: name a file in it")
    if (path.exists() or path.is_symlink()) and not force:
        raise InvalidInputError(f"{option} must be a new file; {path} is there: add --force to replace it")


def write_output(target: Path, content: bytes) -> None:
    """Write a file that someone asked for; where that fails, the error says why.

    Examples
    --------
    >>> write_output(Path("no-such-folder/a.txt"), b"")
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: the output must be a file that can be written, in a folder that
    exists; no-such-folder/a.txt: No such file or directory
    """
    try:
        write_whole(target, content)
    except (OSError, ValueError) as error:  # a name may hold what no file's may
        raise InvalidInputError(
            "the output must be a file that can be written, in a folder that exists; "
            f"{target}: {getattr(error, 'strerror', error)}"
        ) from error
