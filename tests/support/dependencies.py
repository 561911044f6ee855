"""Everything that fairsieve and its extras bring along, and under which licence: docs/reference/licences.csv.

    python -m tests.support.dependencies    # writes the table anew, from what is installed

Licences are those that the packages' own metadata names.
"""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "reference" / "licences.csv"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = {"dev", "docs", "test"}  # for those who work on fairsieve
EXTRAS = {name: found for name, found in PROJECT["optional-dependencies"].items() if name not in TOOLS}

PERMISSIVE = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC",
    "LLVM-exception", "MIT", "MIT-CMU", "PSF-2.0", "Zlib",
}  # fmt: skip
# Copyleft for changes to its own files alone; it does not come without an extra.
FILE_COPYLEFT = {"MPL-2.0": {"tqdm"}}

# What classifiers and older metadata say, in the words of SPDX.
SAID = {
    "Apache 2.0": "Apache-2.0", "Apache 2.0 License": "Apache-2.0", "Apache License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0", "Apache Software License": "Apache-2.0",
    "BSD License": "BSD", "ISC License (ISCL)": "ISC", "MIT License": "MIT", "MIT License (MIT)": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0", "Python Software Foundation License": "PSF-2.0",
}  # fmt: skip


def requirements() -> dict[str, list[str]]:
    """What pyproject asks for, by extra; "" is what always comes."""
    return {"": PROJECT["dependencies"], **EXTRAS}


def closure(asked: list[str]) -> set[str]:
    """The packages that requirements bring along here, themselves included."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(text, "") for text in asked]
    while todo:
        text, extra = todo.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        found.add(name)
        for wanted in {"", *requirement.extras} - {old for package, old in seen if package == name}:
            seen.add((name, wanted))
            todo += [(further, wanted) for further in metadata.requires(name) or []]
    return found


def licence_of(name: str) -> str:
    """A package's licence, as its metadata has it."""
    about = metadata.metadata(name)
    said = about.get("License-Expression")
    if said:
        return str(said)
    prefix = "License :: OSI Approved :: "
    classifiers = [c.removeprefix(prefix) for c in about.get_all("Classifier") or [] if c.startswith(prefix)]
    files = metadata.distribution(name).files or []
    named = about.get_all("License-File", [])
    texts = [about.get("License"), *(file.read_text() for file in files if file.name in named)]
    first_lines = [text.strip().splitlines()[0] for text in texts if text and text.strip()]
    told = classifiers or first_lines[:1] or ["unknown"]
    return " AND ".join(SAID.get(one, one) for one in told)


def licences_in(expression: str) -> set[str]:
    """The licences that an expression names.

    >>> sorted(licences_in("(MIT OR Apache-2.0) AND BSD-3-Clause"))
    ['Apache-2.0', 'BSD-3-Clause', 'MIT']
    """
    return set(re.split(r"\s+(?:AND|OR|WITH)\s+", expression.replace("(", "").replace(")", "")))


def rows() -> Iterator[tuple[str, str, str]]:
    """Package, licence, and what brings it."""
    brought = {extra: closure(asked) for extra, asked in requirements().items()}
    for name in sorted(set().union(*brought.values())):
        by = [extra for extra, names in brought.items() if name in names]
        yield (name, licence_of(name), "always" if "" in by else " ".join(sorted(by)))


def table() -> str:
    """The rows as CSV."""
    return "\n".join(["package,licence,comes with", *(",".join(row) for row in rows())]) + "\n"


if __name__ == "__main__":
    FILE.write_text(table())
