"""Records of runs: one JSON line each, appended as runs finish."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["append_record", "fingerprint", "read_records"]


def fingerprint(settings: dict[str, Any]) -> str:
    """A short name of what a run was asked to do; equal settings have equal ones."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def append_record(path: Path, record: dict[str, Any]) -> None:
    """Add a line in one write; a line that an interruption left half-written is closed off first."""
    line = json.dumps(record, sort_keys=True) + "\n"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = "\n" + line
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The whole records of a file; half-written lines are dropped."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, UnicodeDecodeError):
                continue
            if isinstance(record, dict) and "run" in record:
                yield record
