"""What a run writes, that it is whole or not there, and that every text in it stays text."""

from __future__ import annotations

import csv
import html

import pytest
from tests.support.people import people, write_csv

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

FILES = {"model.skops", "metrics.json", "rows.csv", "suspects.csv", "report.html", "card.md"}
HOSTILE = "<img src=x onerror=alert(1)>"


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_a_run_is_written_whole_and_replaced_only_by_force(trained, tmp_path, monkeypatch):
    out = tmp_path / "deep" / "RUN"
    trained.save(out)
    assert names_in(out) == FILES
    trained.save(out, force=True)
    (out / "mine.txt").write_text("gone with the run")
    with pytest.raises(InvalidInputError, match="holds a run: add --force to replace it"):
        trained.save(out)
    monkeypatch.setattr(type(trained), "write", lambda self, folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained.save(out, force=True)
    assert names_in(out) == FILES | {"mine.txt"}  # what failed replaced nothing
    assert names_in(out.parent) == {"RUN"}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(trained, tmp_path, failure, monkeypatch):
    def broken(self, folder):
        (folder / "metrics.json").write_text("half")
        raise failure

    monkeypatch.setattr(type(trained), "write", broken)
    with pytest.raises(failure):
        trained.save(tmp_path / "RUN")
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "has other files in it"),
        ("thesis.txt", "is a file"),
        ("thesis.txt/x", "--out must be a folder that can be written"),
    ],
)
def test_a_folder_of_something_else_is_never_touched(trained, tmp_path, force, name, message):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInputError, match=message):
        trained.save(tmp_path / name, force=force)


def test_a_name_taken_meanwhile_is_not_taken_again(trained, tmp_path, monkeypatch):
    out, write = tmp_path / "RUN", type(trained).write

    def taken(self, folder):
        monkeypatch.setattr(type(trained), "write", write)
        trained.save(out)
        (folder / "metrics.json").write_text("late")

    monkeypatch.setattr(type(trained), "write", taken)
    with pytest.raises(InvalidInputError, match="holds a run: add --force"):
        trained.save(out)
    assert names_in(out) == FILES
    assert names_in(tmp_path) == {"RUN"}


def test_numbers_for_programs(trained):
    record, run = trained.metrics, trained.run
    assert record["settings"]["label"] == "income"
    assert record["data"]["train_rows"] + record["data"]["test_rows"] == 600
    assert record["plain"]["accuracy"]["value"] == run.scores[0]["accuracy"].value
    assert record["suspects"] == len(run.suspects)
    assert {rate["group"] for rate in record["rates"]} == {"man", "woman"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of a run in which every name and value is somebody's attack."""
    table = people(400)
    names = {"job": HOSTILE, "sex": "=cmd()|' /C calc'!A0", "income": "</script><script>alert(2)</script>"}
    columns = {names.get(name, name): values for name, values in table.items()}
    for name, values in {"sex": ("=1+1", "@SUM(1)"), "income": ("+cmd()", "<b>low")}.items():
        old = sorted(set(table[name]))
        columns[names[name]] = [values[old.index(value)] for value in table[name]]
    folder = tmp_path_factory.mktemp("hostile")
    path = write_csv(folder / "people.csv", columns)
    settings = {"label": names["income"], "sensitive": names["sex"], "clean_ratio": 0.9, "max_iter": 8}
    return tabular.train(path, **settings).save(folder / "RUN")


@pytest.mark.parametrize("name", ["report.html", "card.md"])
def test_hostile_names_stay_text(hostile, name):
    text = (hostile / name).read_text(encoding="utf-8").partition('id="plotly"')[0]
    for attack in ("<img", "<b>low", "<script>alert"):
        assert attack not in text
    if name == "report.html":
        assert html.escape(HOSTILE) in text


def test_hostile_values_are_no_formulas(hostile):
    with (hostile / "suspects.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    ours = ["holds_personal_data", "row", "label", "suggested_label", "loss", "probability", "group"]
    assert rows[0][:7] == ours
    assert rows[0][9:] == [HOSTILE, "'=cmd()|' /C calc'!A0", "</script><script>alert(2)</script>"]
    for row in rows[1:]:
        assert row[2] in ("'+cmd()", "<b>low")
        assert row[6] in ("'=1+1", "'@SUM(1)")
