"""What a run writes, that it is whole or not there, and that every text in it stays text."""

from __future__ import annotations

import pytest

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
    monkeypatch.setattr("fairsieve.tabular.report.files.write_run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained.save(out, force=True)
    assert names_in(out) == FILES | {"mine.txt"}  # what failed replaced nothing
    assert names_in(out.parent) == {"RUN"}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(trained, tmp_path, failure, monkeypatch):
    def broken(run, decision, folder):
        (folder / "metrics.json").write_text("half")
        raise failure

    monkeypatch.setattr("fairsieve.tabular.report.files.write_run", broken)
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
    out = tmp_path / "RUN"

    def taken(run, decision, folder):
        monkeypatch.undo()
        trained.save(out)
        (folder / "metrics.json").write_text("late")

    monkeypatch.setattr("fairsieve.tabular.report.files.write_run", taken)
    with pytest.raises(InvalidInputError, match="holds a run: add --force"):
        trained.save(out)
    assert names_in(out) == FILES
    assert names_in(tmp_path) == {"RUN"}
