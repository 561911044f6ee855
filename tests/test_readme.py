"""The README's code runs as written, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_code_runs(code):
    exec(compile(code, "README.md", "exec"), {})


def test_the_printed_output_of_fit_is_true(capsys):
    code = next(block for block in BLOCKS if "fit(None" in block)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert f"```text\n{printed}\n```" in TEXT


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/comparing.md"]
)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_architecture_names_every_core_file():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for folder in ("core", "training", "estimators"):
        for path in (ROOT / "src" / "fairsieve" / folder).glob("[a-z]*.py"):
            assert path.name in text, path.name
