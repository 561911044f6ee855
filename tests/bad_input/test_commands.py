"""Every bad command leaves with one clear message, no traceback, and the folder as it was."""

import pytest
from tests.bad_input.command_files import make_files
from tests.bad_input.commands import ENTRIES
from tests.support.programs import run_main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad")
    make_files(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        options = ("--label", "income", "--sensitive", "sex", "--clean-ratio", "0.9", "--max-iter", "4")
        assert run_main("train", "people.csv", *options, "--out", "RUN") == 0
    return path


def content(folder):
    """Every file and folder, and what is in it."""
    found = folder.rglob("*")
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in found}


@pytest.mark.parametrize("bad", ENTRIES, ids=lambda bad: bad.name)
def test_it_is_told(bad, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = content(folder)
    assert run_main(*bad.arguments) == 1  # anything but a status would be a traceback
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = [line for line in printed.err.splitlines() if line.strip()]
    assert len(lines) == 1, printed.err
    assert lines[0].startswith("error")
    assert [part for part in bad.parts if part not in lines[0]] == [], lines[0]
    assert content(folder) == before


@pytest.mark.parametrize(("arguments", "message"), [
    (["fly"], "No such command 'fly'"),
    (["train"], "Missing argument"),
    (["train", "people.csv", "--wings", "2"], "No such option"),
    (["demo", "--seeds", "many"], "Invalid value for '--seeds'"),
])  # fmt: skip
def test_what_is_no_command_is_told_with_its_usage(folder, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(folder)
    assert run_main(*arguments) == 2
    printed = capsys.readouterr().err
    assert "Usage: fairsieve" in printed
    assert message in " ".join(printed.replace("│", " ").split())
