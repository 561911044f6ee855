"""The public CI's workflow names extras, make targets and versions of Python that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

pytestmark = pytest.mark.skipif(not WORKFLOW.exists(), reason="a release does not contain the workflow")


@pytest.fixture(scope="module")
def workflow():
    return WORKFLOW.read_text(encoding="utf-8")


def test_its_extras_exist(workflow):
    asked = {extra for names in re.findall(r'"\.\[([\w,]+)\]"', workflow) for extra in names.split(",")}
    assert asked
    assert asked <= set(PROJECT["optional-dependencies"])


def test_its_make_targets_exist(workflow):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = set(re.findall(r"run: make (\S+)", workflow))
    assert asked
    assert asked <= targets


def test_its_versions_of_python_are_those_of_the_classifiers(workflow):
    lists = {frozenset(re.findall(r"3\.\d+", found)) for found in re.findall(r"python: \[(.*)\]", workflow)}
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert lists == {frozenset(named)}
