"""Folders for output."""

from __future__ import annotations

from pathlib import Path

from fairsieve.errors import InvalidInputError

__all__ = ["make_folder"]


def make_folder(folder: Path) -> None:
    """Make the folder for output, or raise an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--out must be a folder that can be written; {folder}: {error.strerror}"
        ) from error
