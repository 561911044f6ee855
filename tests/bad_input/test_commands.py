"""Every bad command leaves with one clear message, no traceback, and the folder as it was."""

import hashlib
import sys

import pytest
from tests.bad_input.command_files import make_files
from tests.bad_input.commands import ENTRIES

from fairsieve.cli.app import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad")
    make_files(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        options = ("--label", "income", "--sensitive", "sex", "--clean-ratio", "0.9", "--max-iter", "4")
        patch.setattr(sys, "argv", ["fairsieve", "train", "people.csv", *options, "--out", "RUN"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0
    return path


def content(folder):
    """Every file and folder, and what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("bad", ENTRIES, ids=lambda bad: bad.name)
def test_it_is_told(bad, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["fairsieve", *bad.arguments])
    before = content(folder)
    with pytest.raises(SystemExit) as ended:  # anything else would be a traceback
        main()
    printed = capsys.readouterr()
    assert ended.value.code == bad.code
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
    monkeypatch.setattr(sys, "argv", ["fairsieve", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "Usage: fairsieve" in printed
    assert message in " ".join(printed.replace("│", " ").split())
