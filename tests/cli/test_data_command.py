"""``fairsieve data``: what is printed where, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairsieve import Samples
from fairsieve.cli.data_command import app
from fairsieve.data import fetch as fetching
from fairsieve.errors import MissingDataError

runner = CliRunner()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    monkeypatch.delenv("FAIRSIEVE_DATA", raising=False)
    monkeypatch.setattr("fairsieve.data.sources.PACKAGE", "fairsieve-test-carrier")
    return tmp_path


def test_list_says_what_is_here(compas: Samples) -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if "compas" in line)
    assert "yes" in line
    assert "none found" in line


def test_list_says_how_to_get_what_is_not(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "no: fairsieve data fetch adult" in result.stdout


def test_list_shows_a_damaged_file(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (empty_cache / "german.data").write_text("torn")
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "not usable: fairsieve data describe german" in result.stdout


def test_describe(compas: Samples) -> None:
    result = runner.invoke(app, ["describe", "compas"])
    assert result.exit_code == 0
    assert "COMPAS recidivism: 5,278 rows, 10 features" in result.stdout
    for number in ("658", "2,137", "373", "2,110", "2,795", "2,483", "0.470"):
        assert number in result.stdout


def test_describe_as_json(compas: Samples) -> None:
    result = runner.invoke(app, ["describe", "compas", "--sensitive", "race", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["cells"] == [[1514, 1281], [1661, 822]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe", "iris"], "name must be one of"),
        (["describe", "compas", "--sensitive", "age"], "sensitive must be one of"),
        (["describe", "german"], "fairsieve data fetch german"),
        (["fetch", "iris"], "names must be among"),
        (["fetch", "compas", "--source", "openml"], "leave source out"),
    ],
)
def test_errors_are_one_line_on_stderr(arguments: Sequence[str], message: str, empty_cache: Path) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_fetch_prints_paths_and_reports_progress_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(names: list[str], *, source: str, progress: Callable[[str], None]) -> list[Path]:
        progress(f"getting {names} from {source}")
        return [Path("some") / name for name in names]

    monkeypatch.setattr(fetching, "fetch", fetch)
    result = runner.invoke(app, ["fetch", "adult", "german", "--source", "openml"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(Path("some/adult")), str(Path("some/german"))]
    assert result.stderr == "getting ['adult', 'german'] from openml\n"


def test_a_failed_fetch_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*args: Any, **kwargs: Any) -> list[Path]:
        raise MissingDataError("no connection:\n  set FAIRSIEVE_DATA")

    monkeypatch.setattr(fetching, "fetch", fetch)
    result = runner.invoke(app, ["fetch", "adult"])
    assert result.exit_code == 1
    assert result.stderr == "error: no connection: set FAIRSIEVE_DATA\n"
