"""Write files whole or not at all, and read archives within limits."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from fairsieve.errors import InvalidInputError, spell

try:
    import fcntl
except ImportError:  # Windows, where nobody else is waited for
    fcntl = None  # type: ignore[assignment]

OTHER_FORMATS = (".parquet", ".xlsx", ".xls", ".gz", ".bz2", ".xz", ".zip")
CHUNK = 2**16  # bytes unpacked at a time
MOST_MEMBERS = 10_000
FULL = (errno.ENOSPC, errno.EDQUOT)  # a full disk, or somebody's part of it


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
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    # Its rights are those that the umask leaves, as of any file that a program makes.
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream, hold(part):
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except FileNotFoundError:  # another process took it for stale, in the moment before it was held
        write_whole(target, content)
    except BaseException:  # also an interrupt
        with contextlib.suppress(OSError):
            part.unlink()
        raise


@contextlib.contextmanager
def hold(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock a file or folder while it is in use; yield whether that worked. A process that ends lets go of it.

    With ``wait`` another process that holds it is waited for.
    """
    if fcntl is None:
        yield False
        return
    handle = os.open(path, os.O_RDONLY)
    is_held = False
    try:
        with contextlib.suppress(OSError):  # another holds it, or the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_held = True
        yield is_held
    finally:
        os.close(handle)


def clear_stale(folder: Path, name: str) -> None:
    """Remove the parts of ``name`` that a killed process left in a folder, which nobody holds any more."""
    with contextlib.suppress(OSError):
        for part in folder.iterdir():
            if part.name.startswith(f".{name}.") and part.name.endswith(".part"):
                with contextlib.suppress(OSError), hold(part) as is_stale:
                    if is_stale and part.is_dir() and not part.is_symlink():
                        shutil.rmtree(part, ignore_errors=True)
                    elif is_stale:
                        part.unlink(missing_ok=True)


def move_together(parts: Path, targets: Iterable[Path]) -> None:
    """Move files of a folder to the places of the same names, and remove what is at a place that none is for.

    Everything is as it was before if one of them cannot be moved.
    """
    targets = list(targets)
    kept = {path: parts / f"{path.name}.kept" for path in targets if path.exists() or path.is_symlink()}
    for path, copy in kept.items():
        shutil.copy2(path, copy, follow_symlinks=False)
    try:
        for path in targets:
            if (parts / path.name).exists():
                (parts / path.name).replace(path)
            else:
                path.unlink(missing_ok=True)
    except BaseException:  # also an interrupt
        for path in targets:
            path.unlink(missing_ok=True)
            if path in kept:
                kept[path].replace(path)
        raise


def make_folder(option: str, folder: Path) -> None:
    """Make the folder that an option names, or raise an error that says why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{spell(option)} must be a folder that can be written; {folder}: {error.strerror}"
        ) from error


def check_new(option: str, path: Path, *, force: bool) -> None:
    """Check that a file may be written; replace what is there only with ``force``."""
    if path.is_dir():
        raise InvalidInputError(
            f"{spell(option)} must be a file to write; {path} is a folder: name a file in it"
        )
    if path.suffix.lower() in OTHER_FORMATS:  # what is written is CSV
        name = path.with_suffix("").with_suffix(".csv")
        raise InvalidInputError(f"{spell(option)} must be a CSV file; got {path}: name it {name}")
    if (path.exists() or path.is_symlink()) and not force:
        raise InvalidInputError(
            f"{spell(option)} must be a new file; {path} is there: add {spell('--force', True)} to replace it"
        )


def keep_inputs(option: str, out: Path, *inputs: Path | None, names: Iterable[str] = ()) -> None:
    """Refuse an output that would replace one of the inputs, by whatever path or link.

    The files of an input that is a folder are inputs too. Where ``out`` is a folder, ``names`` are the files that are
    written into it.
    """
    written = [path for path in (out, *(out / name for name in names)) if path.exists()]
    there = [path for path in inputs if path is not None and path.exists()]
    for path in chain(there, *(folder.iterdir() for folder in there if folder.is_dir())):
        if any(output.samefile(path) for output in written):
            raise InvalidInputError(
                f"{spell(option)} must not be a file that is read; got {out}, which would replace {path}: name another"
            )


def write_output(target: Path, content: bytes) -> None:
    """Write a file that someone asked for; say why where that fails.

    Examples
    --------
    >>> write_output(Path("no-such-folder/a.txt"), b"")
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: the output must be a file that can be written, in a folder that
    exists; no-such-folder/a.txt: No such file or directory
    """
    with output_errors(target):
        clear_stale(target.parent, target.name)
        write_whole(target, content)


@contextlib.contextmanager
def output_errors(target: Path) -> Iterator[None]:
    """Say why an output could not be written."""
    try:
        yield
    except InvalidInputError:  # says why itself
        raise
    except (OSError, ValueError) as error:  # a name may hold what no file's may
        if getattr(error, "errno", None) in FULL:
            raise InvalidInputError(
                f"{target} could not be written: {getattr(error, 'strerror', error)}. Make room, or name another place"
            ) from error
        raise InvalidInputError(
            "the output must be a file that can be written, in a folder that exists; "
            f"{target}: {getattr(error, 'strerror', error)}"
        ) from error


def read_archive(
    source: Path | IO[bytes], *, most: int, names: Collection[str] | None = None
) -> dict[str, bytes]:
    """Unpack members of a zip archive, ``most`` bytes in all, whatever sizes it declares.

    Only stored and deflated members are read: other methods of compression unpack without a bound.

    Parameters
    ----------
    source : Path or file
    most : int
        How many bytes to unpack at most, over all members.
    names : collection of str, optional
        The members to read; all when None.

    Raises
    ------
    zipfile.BadZipFile
        Where the archive is damaged, too large, or compressed in another way.
    KeyError
        Where a member is not there.
    """
    contents: dict[str, bytes] = {}
    left = most
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist() if names is None else [archive.getinfo(name) for name in names]
        if len(members) > MOST_MEMBERS:
            raise zipfile.BadZipFile(f"it has {len(members):,} members, more than {MOST_MEMBERS:,}")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{member.filename} is neither stored nor deflated")
            if member.filename in contents:
                raise zipfile.BadZipFile(f"{member.filename} is there twice")
            pieces = []
            with archive.open(member) as stream:
                while piece := stream.read(CHUNK):
                    left -= len(piece)
                    if left < 0:
                        raise zipfile.BadZipFile(f"it unpacks to more than {most:,} bytes")
                    pieces.append(piece)
            contents[member.filename] = b"".join(pieces)
    return contents
