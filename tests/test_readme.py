"""The README's code runs as written, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairsieve.cli.app import app
from tests.support.architecture import PAGE as ARCHITECTURE
from tests.support.architecture import page_with_listing

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = ("README.md", "docs/pytorch.md", "docs/scikit-learn.md")
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
BLOCKS = {
    f"{name}-{number}": code
    for name, text in PAGES.items()
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    if name != "README.md" or code not in PAGES["docs/pytorch.md"] + PAGES["docs/scikit-learn.md"]
}


@pytest.mark.parametrize("name", BLOCKS)
def test_code_runs(name):
    exec(compile(BLOCKS[name], name, "exec"), {})


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_the_printed_output_of_fit_is_true(capsys):
    code = next(block for block in BLOCKS.values() if "fit(None" in block)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert f"```text\n{printed}\n```" in PAGES["docs/pytorch.md"]


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/comparing.md",
        "docs/csv.md",
        "docs/pytorch.md",
        "docs/scikit-learn.md",
        "docs/scaling.md",
    ],
)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_architecture_lists_every_module():
    assert page_with_listing() == ARCHITECTURE.read_text("utf-8"), "run python -m tests.support.architecture"


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
        "metrics.json",
        "model.skops",
    }


def test_the_guide_to_tables_runs(capsys):
    text = (ROOT / "docs" / "csv.md").read_text(encoding="utf-8")
    exec(compile(re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1], "csv.md", "exec"), {})
    assert capsys.readouterr().out.startswith(
        ("Use the fair model", "Inconclusive: ", "Do not use this model: ")
    )


def words_of(text):
    """What is said, without how much."""
    return re.sub(r"\d[\d,.]*|\.\d+", "#", text).replace("# points above;", "#;").split()
