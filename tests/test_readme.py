"""The README's code runs as written, and its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.data import load_nhanes
from tests.tabular.test_folder import FILES

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore::fairsieve.errors.FairsieveWarning")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_runs_and_prints_what_is_shown(number, capsys):
    code, shown = BLOCKS[number]
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert words_of(printed) == words_of(shown)
    assert numbers_of(printed) == pytest.approx(numbers_of(shown), rel=0.1, abs=0.05)


def test_the_readme_is_short():
    assert len(BLOCKS) == TEXT.count("```python") == 2
    assert len(TEXT.splitlines()) <= 140


def test_the_demo_prints_what_is_shown(tmp_path, monkeypatch):
    """Tables to the point; what is measured may differ in the last digit on other machines."""
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(app, ["demo"]).stdout
    shown = re.search(r"\$ make demo.*\n((?:.*\n)*?)```", TEXT)[1]
    assert words_of(printed) == words_of(shown)
    for found, written in zip(numbers_of(printed), numbers_of(shown), strict=True):
        assert found == pytest.approx(written, abs=1.5 if written >= 1 else 0.05)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    generated = ("command-line.md", ".rst")  # written by the build of the site
    for target in re.findall(r"\]\((?!http)([^)#]+)[)#]", path.read_text(encoding="utf-8")):
        assert target.endswith(generated) or (path.parent / target).exists(), target


def test_from_a_csv_runs_as_written(tmp_path, monkeypatch):
    """The commands of that section, in order; what they print is what is written, but for the last digits."""
    section = TEXT.partition("## From a CSV\n")[2].partition("\n## ")[0]
    console = re.search(r"```console\n(.*?)```", section, flags=re.DOTALL)[1].replace("\\\n", "")
    monkeypatch.chdir(tmp_path)
    for command, expected in re.findall(r"^\$ fairsieve (.*)\n((?:[^$].*\n)*)", console, flags=re.MULTILINE):
        found = CliRunner().invoke(app, shlex.split(command))
        assert found.exit_code == 0, found.output
        assert words_of(found.stdout) == words_of(expected)
        assert numbers_of(found.stdout) == pytest.approx(numbers_of(expected), rel=0.15, abs=0.05)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


def words_of(text):
    """What is said, without how much."""
    return re.sub(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)", "#", text).split()


def numbers_of(text):
    """The numbers in a text, in order."""
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?|\.\d+", text)]


def test_the_numbers_of_the_joss_paper_are_those_of_the_demo():
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    example = re.sub(r"\[?@\w+\]?", "", paper.partition("# An example")[2].partition("# How it works")[0])
    demo = re.search(r"\$ make demo.*\n((?:.*\n)*?)```", TEXT)[1]
    people = load_nhanes()
    obese = people.truth == 1
    known = {len(people), 2017.0, 2018.0, 95.0, round(100 * float((people.labels != people.truth).mean()), 1)}
    for group in ("Asian", "Black"):
        missed = (people.labels == 0)[obese & (people.groups == group)].mean()
        known.add(round(100 * float(missed), 1))
    assert set(numbers_of(example)) <= known | set(numbers_of(demo))
