"""Print a version's part of the changelog: python tools/release_notes.py 0.2.0."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def notes(text: str, version: str) -> str:
    """The part under the heading of a version."""
    section = re.search(
        rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", text, flags=re.DOTALL | re.MULTILINE
    )
    if section is None:
        sys.exit(f"CHANGELOG.md has no part for version {version}")
    return section[1].strip()


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text(encoding="utf-8"), *sys.argv[1:]))
