"""What comes along is listed, pinned, and free to use."""

import re
from importlib import metadata

import pytest
from packaging.utils import canonicalize_name

from tests.support.dependencies import (
    EXTRAS,
    FILE,
    FILE_COPYLEFT,
    PERMISSIVE,
    PROJECT,
    ROOT,
    closure,
    licences_in,
    requirements,
    rows,
    table,
)

LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line]
PINS = {canonicalize_name(name): version for name, version in (line.split("==") for line in LINES)}
pinned = pytest.mark.skipif(
    any(metadata.version(name) != PINS[name] for name in ("numpy", "scikit-learn", "typer")),
    reason="describes the versions in constraints.txt",
)


def test_pins_are_exact_and_each_is_there_once():
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in LINES)
    assert len(PINS) == len(LINES)


@pinned
def test_everything_that_comes_along_is_pinned():
    found = closure([one for asked in requirements().values() for one in asked])
    assert len(found) > 60
    assert found - PINS.keys() == {"setuptools"}  # torch asks for it; it is a tool that environments have


@pinned
def test_licences_are_permissive():
    for name, licence, comes in rows():
        for one in licences_in(licence) - PERMISSIVE:
            assert name in FILE_COPYLEFT.get(one, ()), f"{name} is under {one}"
            assert comes != "always"


@pinned
def test_the_table_lists_them():
    assert FILE.read_text() == table(), "run make licences"


def test_the_suite_has_every_extra():
    assert set().union(*EXTRAS.values()) <= set(PROJECT["optional-dependencies"]["dev"])
