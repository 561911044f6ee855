"""Records of runs: one JSON line each, appended as runs finish; several processes may share a file."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fairsieve.files import hold
from fairsieve.notions import EO

Record = dict[str, Any]

LARGEST = sys.float_info.max


def fingerprint(settings: dict[str, Any]) -> str:
    """Return a short name of a run's settings; equal settings have equal names."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def append_record(path: Path, record: Record) -> bool:
    """Add a line, unless the run is recorded already; return whether it was added.

    A record of an error gives way to one of success, and a damaged one to a whole one. A line that an
    interruption left half-written is closed off first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [append_record(Path(folder) / "records.jsonl", {"run": "a"}) for _ in range(2)]
    [True, False]
    """
    line = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    try:
        with path.open("a+b") as file, hold(path, wait=True):
            file.seek(0)
            if _is_recorded(file, record):
                return False
            size = file.seek(0, os.SEEK_END)
            content = line.encode()
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                content = b"\n" + content
            file.write(content)  # all of it, or an error
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(
            error.errno,
            f"the record of a run could not be written ({error.strerror}). Make room, or name another folder, and give "
            "the same command again: runs that are recorded are not repeated",
            str(path),
        ) from error
    return True


def _is_recorded(file: BinaryIO, record: Record) -> bool:
    """Return whether a file holds a record of the same run that is as good."""
    name, content = json.dumps(record.get("run")).encode(), file.read()
    candidates = (_parsed(line) for line in content.splitlines() if name in line) if name in content else ()
    same = [old for old in candidates if old is not None and old["run"] == record.get("run")]
    rank = _is_result(record), "error" not in record
    return any((_is_result(old), "error" not in old) >= rank for old in same)


def read_results(path: Path) -> Iterator[Record]:
    """Yield the records of a file that hold a result; a run whose record is damaged is made again."""
    if path.exists():
        with path.open("rb") as lines:
            yield from (record for record in map(_parsed, lines) if record is not None and _is_result(record))


def _is_result(record: Record) -> bool:
    """Return whether a record is named by its settings and holds an error, a choice or measures."""
    settings = record.get("settings")
    if not isinstance(settings, dict) or record.get("run") != fingerprint(settings):
        return False
    if "error" in record:
        return isinstance(record["error"], str)
    if "tuning" in settings:
        return isinstance(record.get("hyperparameters"), dict) and isinstance(record.get("candidates"), list)
    if settings.get("history") and not isinstance(record.get("history"), dict):
        return False
    metrics, needed = record.get("metrics"), {"accuracy", settings.get("fairness", EO)}
    if not isinstance(metrics, dict) or not needed <= metrics.keys():
        return False
    numbers = *metrics.values(), record.get("seconds")  # that a double can hold, or NaN
    return all(type(value) in (int, float) and not abs(value) > LARGEST for value in numbers)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line, if it is whole."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("run"), str) else None
