"""``fairsieve data``: what is printed where, and the exit codes."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.cli.options import names_in
from fairsieve.data.catalogue import DATASETS
from fairsieve.errors import FairsieveError

runner = CliRunner()


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    monkeypatch.delenv("FAIRSIEVE_DATA", raising=False)
    monkeypatch.setattr("fairsieve.data.sources.PACKAGE", "fairsieve-test-carrier")
    return tmp_path


def data(*arguments):
    result = runner.invoke(app, ["data", *arguments], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_says_what_is_here(compas):
    line = next(line for line in data("list").splitlines() if "compas" in line)
    assert "yes" in line
    assert "none found" in line


def test_list_says_how_to_get_what_is_not_and_shows_a_damaged_file(empty_cache):
    (empty_cache / "german.data").write_text("torn")
    assert "no: fairsieve data fetch adult" in data("list")
    assert "not usable: fairsieve data describe german" in data("list")


def test_describe(compas):
    told = data("describe", "compas")
    assert "COMPAS recidivism: 5,278 rows, 10 features" in told
    for number in ("658", "2,137", "373", "2,110", "2,795", "2,483", "0.470"):
        assert number in told
    found = json.loads(data("describe", "compas", "--sensitive", "race", "--json"))
    assert found["cells"] == [[1514, 1281], [1661, 822]]


@pytest.mark.parametrize(("arguments", "message"), [
    (["describe", "compas", "--sensitive", "age"], "sensitive must be one of"),
    (["describe", "german"], "fairsieve data fetch german"),
    (["fetch", "compas", "--source", "openml"], "names from openml must be one of adult, german"),
])  # fmt: skip
def test_errors_are_raised_for_the_program_to_print(arguments, message, empty_cache):
    result = runner.invoke(app, ["data", *arguments])
    assert result.stdout == ""
    assert isinstance(result.exception, FairsieveError)
    assert message in str(result.exception)


def test_fetch_prints_paths_and_reports_progress_apart(monkeypatch):
    def fetch(names, *, source, progress):
        progress(f"getting {names} from {source}")
        return [Path("some") / name for name in names]

    monkeypatch.setattr("fairsieve.data.sources.fetch", fetch)
    result = runner.invoke(app, ["data", "fetch", "adult", "german", "--source", "openml"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(Path("some/adult")), str(Path("some/german"))]
    assert result.stderr == "getting ['adult', 'german'] from openml\n"


def export(path, *options):
    data("export", "adult", str(path), "--rows", "500", *options)
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def test_export_writes_the_raw_table_with_as_many_wrong_labels_as_asked(tmp_path):
    right = export(tmp_path / "right.csv")
    changed = export(tmp_path / "wrong.csv", "--wrong", "0.2", "--seed", "3")
    assert right[0][0] == "age"
    assert right[0][-1] == "income"
    assert len(right) == len(changed) == 501
    differing = [(one, other) for one, other in zip(right, changed, strict=True) if one != other]
    assert len(differing) == 100
    assert all(one[:-1] == other[:-1] for one, other in differing)
    assert {row[-1] for row in changed[1:]} == {"<=50K", ">50K"}
    assert export(tmp_path / "again.csv", "--wrong", "0.2", "--seed", "3") == changed


def test_the_names_that_are_offered_are_those_of_the_catalogue():
    registry = "fairsieve.data.catalogue:DATASETS"
    assert names_in(registry)("") == list(DATASETS)
    assert names_in(registry, fits=lambda entry: entry.files)("") == ["compas", "adult", "german"]
    assert names_in(registry)("comp") == ["compas"]
