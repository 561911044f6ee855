"""Put a built site beside those of other versions: python tools/place_docs.py SITE PAGES VERSION.

VERSION is "dev" or the name of a tag. ``switcher.json`` lists the versions for the menu of the site, the newest first,
and the first page leads to the newest release.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

BASE = "https://fairsieve.github.io/fairsieve"


def order(name: str) -> tuple[bool, tuple[int, ...]]:
    """Releases by number; "dev" stands behind them."""
    return name != "dev", tuple(int(part) for part in name.split(".") if part.isdigit())


def place(site: Path, pages: Path, version: str) -> None:
    """Copy the site, and write the list of versions and the first page."""
    version = version.removeprefix("v")
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(site, pages / version)
    names = sorted((path.parent.name for path in pages.glob("*/index.html")), key=order, reverse=True)
    entries = [{"name": name, "version": name, "url": f"{BASE}/{name}/"} for name in names]
    entries[0]["preferred"] = True
    (pages / "switcher.json").write_text(json.dumps(entries, indent=2), encoding="utf-8")
    refresh = f'<meta http-equiv="refresh" content="0; url={names[0]}/">'
    first = f'<!doctype html><meta charset="utf-8">{refresh}<title>fairsieve</title>'
    (pages / "index.html").write_text(first, encoding="utf-8")
    (pages / ".nojekyll").touch()  # folders that begin with an underscore are served too


if __name__ == "__main__":
    site, pages, version = sys.argv[1:]
    place(Path(site), Path(pages), version)
