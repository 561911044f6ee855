"""What a run writes, that it is whole or not there, and that every text in it stays text."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve.tabular.run_folder import new_folder

FILES = {"model.skops", "metrics.json", "rows.csv", "suspects.csv", "report.html", "card.md", "settings.toml"}
HOSTILE = "<img src=x onerror=alert(1)>"


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_a_run_is_written_whole_and_replaced_only_by_force(trained, tmp_path, monkeypatch):
    out = tmp_path / "deep" / "RUN"
    trained.save(out)
    assert names_in(out) == FILES
    refused("holds a run: add force=True to replace it", trained.save, out)
    (out / "card.md").write_text("old")
    monkeypatch.setattr("fairsieve.tabular.run_folder.write_run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trained.save(out, force=True)
    assert (out / "card.md").read_text() == "old"  # what failed replaced nothing
    assert names_in(out.parent) == {"RUN"}
    monkeypatch.undo()
    trained.save(out, force=True)
    assert (out / "card.md").read_text() != "old"
    assert names_in(out) == FILES
    assert names_in(out.parent) == {"RUN"}


def contents(folder):
    """Everything in a folder but the files of a run: what files hold and where links lead."""

    def content(path):
        return path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()

    others = [path for path in folder.rglob("*") if path.parent != folder or path.name not in FILES]
    return {str(path.relative_to(folder)): content(path) for path in others}


@given(
    st.dictionaries(
        st.sampled_from(["notes.txt", "review.csv", ".keep", "old", "Metrics.json", "a.part"]),
        st.sampled_from(["file", "folder", "link"]),
    )
)
@settings(max_examples=15, deadline=None)
def test_force_touches_nothing_but_the_files_of_a_run(trained, others):
    with tempfile.TemporaryDirectory() as made:
        out, link = Path(made, "RUN"), Path(made, "LINK")
        trained.save(out)
        link.symlink_to("RUN")
        for name, kind in others.items():
            if kind == "folder":
                (out / name).mkdir()
                (out / name / "card.md").write_text("mine")
            elif kind == "link":
                (out / name).symlink_to("nowhere")
            else:
                (out / name).write_text("mine")
        before = contents(out)
        for folder in (out, link):
            (out / "card.md").unlink()
            trained.save(folder, force=True)
            assert contents(out) == before
            assert names_in(out) == FILES | set(others)
        assert names_in(Path(made)) == {"RUN", "LINK"}
        assert link.is_symlink()


def test_files_of_another_kind_of_run_do_not_stay(trained, tmp_path):
    out = trained.save(tmp_path / "RUN")
    with new_folder(out, force=True) as part:
        (part / "metrics.json").write_text("{}")
    assert names_in(out) == {"metrics.json"}


def test_a_run_that_cannot_be_replaced_stays_whole(trained, tmp_path):
    out = trained.save(tmp_path / "RUN")
    (out / "card.md").unlink()
    (out / "card.md").mkdir()
    before = {name: (out / name).read_bytes() for name in FILES - {"card.md"}}
    refused("the output must be", trained.save, out, force=True)
    assert before == {name: (out / name).read_bytes() for name in FILES - {"card.md"}}
    assert names_in(tmp_path) == {"RUN"}


def test_a_link_to_a_folder_that_is_not_there_yet_stays(trained, tmp_path):
    (tmp_path / "LINK").symlink_to("deep/RUN")
    trained.save(tmp_path / "LINK")
    assert (tmp_path / "LINK").is_symlink()
    assert names_in(tmp_path / "deep" / "RUN") == FILES


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(trained, tmp_path, failure, monkeypatch):
    def broken(run, decision, folder):
        (folder / "metrics.json").write_text("half")
        raise failure

    monkeypatch.setattr("fairsieve.tabular.run_folder.write_run", broken)
    with pytest.raises(failure):
        trained.save(tmp_path / "RUN")
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("name", "message"), [
    ("", "has other files in it"),
    ("thesis.txt", "is a file"),
    ("thesis.txt/x", "path must be a folder that can be written"),
])  # fmt: skip
def test_a_folder_of_something_else_is_never_touched(trained, tmp_path, force, name, message):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(message, trained.save, tmp_path / name, force=force)


def test_a_name_taken_meanwhile_is_not_taken_again(trained, tmp_path, monkeypatch):
    out = tmp_path / "RUN"

    def taken(run, decision, folder):
        monkeypatch.undo()
        trained.save(out)
        (folder / "metrics.json").write_text("late")

    monkeypatch.setattr("fairsieve.tabular.run_folder.write_run", taken)
    refused(r"^path must be a new folder; .* holds a run: add force=True", trained.save, out)
    assert names_in(out) == FILES
    assert names_in(tmp_path) == {"RUN"}
