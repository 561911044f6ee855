"""The README's code runs as written, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairsieve.cli.app import app

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_runs(number):
    exec(compile(BLOCKS[number], "README.md", "exec"), {})


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 170


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    generated = ("command-line.md", ".rst")  # written by the build of the site
    for target in re.findall(r"\]\((?!http)([^)#]+)[)#]", path.read_text(encoding="utf-8")):
        assert target.endswith(generated) or (path.parent / target).exists(), target


def test_from_a_csv_runs_as_written(tmp_path, monkeypatch):
    """The commands of that section, in order; what they print is what is written, but for the last digits."""
    section = TEXT.partition("## From a CSV\n")[2].partition("\n## ")[0]
    console = re.search(r"```console\n(.*?)```", section, flags=re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    for command, expected in re.findall(r"^\$ fairsieve (.*)\n((?:[^$].*\n)*)", console, flags=re.MULTILINE):
        found = CliRunner().invoke(app, shlex.split(command))
        assert found.exit_code == 0, found.output
        assert words_of(found.stdout) == words_of(expected)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "report.html",
        "rows.csv",
        "suspects.csv",
        "card.md",
        "settings.toml",
        "metrics.json",
        "model.skops",
    }


def words_of(text):
    """What is said, without how much."""
    return re.sub(r"\d[\d,.]*|\.\d+", "#", text).replace("# points above;", "#;").split()
