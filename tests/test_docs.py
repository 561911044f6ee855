"""The pages of the site: their code runs, they name every public name, and every page has its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairsieve
import fairsieve.data

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), flags=re.DOTALL)


def test_the_quickstart_runs_as_written(capsys):
    """One after the other, in one session; what the page shows is what is printed last."""
    page = DOCS / "quickstart.md"
    exec(compile("\n".join(blocks(page)), str(page), "exec"), {})
    shown = re.search(r"```text\n(.*?)\n```", page.read_text("utf-8"), flags=re.DOTALL)[1]
    assert capsys.readouterr().out.strip().endswith(shown)


@pytest.mark.parametrize("module", [fairsieve, fairsieve.data], ids=lambda module: module.__name__)
def test_the_reference_lists_every_public_name(module):
    sections = (DOCS / "reference" / "api.md").read_text("utf-8").split("currentmodule:: ")
    listed = [
        name
        for section in sections
        if section.startswith(f"{module.__name__}\n")
        for name in re.findall(r"^   (\w+)$", section, flags=re.MULTILINE)
    ]
    assert sorted(listed) == sorted(module.__all__)
