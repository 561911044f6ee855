"""What comes along is listed, pinned, and free to use."""

import re
from importlib import metadata

import pytest
from packaging.utils import canonicalize_name

from tests.support import dependencies as known

LINES = [line for line in (known.ROOT / "constraints.txt").read_text().splitlines() if line]
PINS = {canonicalize_name(name): version for name, version in (line.split("==") for line in LINES)}
others = [name for name in ("numpy", "scikit-learn", "typer") if metadata.version(name) != PINS[name]]
pinned = pytest.mark.skipif(bool(others), reason="describes the versions in constraints.txt")


def test_pins_are_exact_and_each_is_there_once():
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in LINES)
    assert len(PINS) == len(LINES)


@pinned
def test_everything_that_comes_along_is_pinned():
    found = known.closure([one for asked in known.requirements().values() for one in asked])
    assert len(found) > 60
    assert found - PINS.keys() == {"setuptools"}  # torch asks for it; it is a tool that environments have


@pinned
def test_licences_are_permissive():
    for name, licence, comes in known.rows():
        for one in known.licences_in(licence) - known.PERMISSIVE:
            assert name in known.FILE_COPYLEFT.get(one, ()), f"{name} is under {one}"
            assert comes != "always"


@pinned
def test_the_table_lists_them():
    assert known.FILE.read_text() == known.table(), "run make licences"


def test_the_suite_has_every_extra():
    assert set().union(*known.EXTRAS.values()) <= set(known.PROJECT["optional-dependencies"]["dev"])
