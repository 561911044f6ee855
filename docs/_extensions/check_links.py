"""Check the links of a built site: every page, file and anchor that a page of ours points at must be there.

python docs/_extensions/check_links.py build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page points at, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []  # from other places
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value:
                self.targets.append(value)
                if (
                    tag != "a"
                    and urlsplit(value).netloc
                    and ("rel", "canonical") not in attrs
                ):
                    self.loaded.append(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each file that a page would load from elsewhere."""
    pages = {
        path.resolve(): _Page(path)
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        found += [
            f"{path.relative_to(site.resolve())}: {target}: loaded from elsewhere"
            for target in page.loaded
        ]
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if file.is_dir():
                file /= "index.html"
            if not file.is_file():
                found.append(
                    f"{path.relative_to(site.resolve())}: {target}: no such file"
                )
            elif (
                parts.fragment
                and file in pages
                and unquote(parts.fragment) not in pages[file].anchors
            ):
                found.append(
                    f"{path.relative_to(site.resolve())}: {target}: no such anchor"
                )
    return sorted(set(found))


def main() -> int:
    """Print the broken links of the site that the command names; 1 if there are any."""
    site = Path(sys.argv[1])
    found = broken_links(site)
    print(
        "\n".join(found)
        if found
        else f"{site}: every internal link and anchor leads somewhere"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
