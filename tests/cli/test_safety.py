"""Commands keep what they read, write with the rights that the umask leaves, and end cleanly at a signal."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest
from tests.support.people import people, write_csv

from fairsieve.cli import app as cli

ROLES = ("--label", "income", "--sensitive", "sex")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "people.csv", people(300))
    return tmp_path


def failed(monkeypatch, capsys, *arguments):
    """What a command that ends with status 1 says."""
    monkeypatch.setattr(sys, "argv", ["fairsieve", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("link", ["itself", "symbolic", "hard"])
@pytest.mark.parametrize("command", ["train", "audit", "review", "predict"])
def test_no_command_writes_over_what_it_reads(here, monkeypatch, capsys, command, link):
    place = "people.html" if command == "review" else "people.csv"
    if link != "itself":
        (here / "links").mkdir()
        make = os.symlink if link == "symbolic" else os.link
        make(here / "people.csv", here / "links" / "people.csv")
        place = f"links/{place}"
    before = (here / "people.csv").read_bytes()
    first = ("predict", "run", "people.csv") if command == "predict" else (command, "people.csv", *ROLES)
    said = failed(monkeypatch, capsys, *first, "-o", place, "--force")
    assert "--out must not be a file that is read" in said
    assert (here / "people.csv").read_bytes() == before


def test_a_run_does_not_replace_the_folder_of_its_table(here, monkeypatch, capsys):
    (here / "run").mkdir()
    (here / "people.csv").rename(here / "run" / "people.csv")
    said = failed(monkeypatch, capsys, "train", "run/people.csv", *ROLES, "-o", "run", "--force")
    assert "--out must not be the folder of a file that is read" in said


def test_a_missing_file_of_answers_is_named(here, monkeypatch, capsys):
    said = failed(monkeypatch, capsys, "train", "people.csv", *ROLES, "--verified", "none.csv", "-o", "run")
    assert "--verified must be a file that can be read; none.csv: No such file" in said


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_outputs_have_the_rights_that_the_umask_leaves(here, mask):
    code = "import os, sys; os.umask(int(sys.argv.pop(1))); from fairsieve.__main__ import main; main()"
    quick = ("--clean-ratio", "0.9", "--max-iter", "4")
    for arguments in (
        ("train", "people.csv", *ROLES, *quick, "-o", "run"),
        ("predict", "run", "people.csv", "-o", "new.csv"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, str(mask), *arguments], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    written = [*(here / "run").rglob("*"), here / "new.csv"]
    assert len(written) > 5
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((here / "run").stat().st_mode) == 0o777 & ~mask


STOPPED = """
import os, sys, threading
import {module} as where
from fairsieve.__main__ import main
inner = where.{function}
def stop(*arguments, **options):
    os.kill(os.getpid(), {number})
    return inner(*arguments, **options)
where.{function} = stop
main()
"""


@pytest.mark.parametrize(
    ("module", "function", "number"),
    [
        ("fairsieve.tabular.table_run", "train_linear", signal.SIGINT),
        ("fairsieve.estimators.classifier", "estimate_of", signal.SIGTERM),
        ("fairsieve.tabular.table_run", "score_models", signal.SIGTERM),
        ("fairsieve.tabular.report.files", "write_model", signal.SIGTERM),
    ],
)
def test_a_training_that_is_stopped_says_so_and_writes_nothing(here, module, function, number):
    code = STOPPED.format(module=module, function=function, number=int(number))
    arguments = ("train", "people.csv", *ROLES, "--tolerance", "0.02", "-o", "run")
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 128 + number, done.stderr
    assert "Stopped. Nothing was written." in done.stderr
    assert [path.name for path in here.iterdir()] == ["people.csv"]
