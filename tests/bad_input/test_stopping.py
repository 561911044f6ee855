"""Ctrl-C ends a command with status 130 and a line on what is kept, never with a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from tests.support.people import people, write_csv

from fairsieve.cli import app as cli
from fairsieve.cli.terminal import stoppable
from fairsieve.data import export, fetch
from fairsieve.paper import demo, run
from fairsieve.paper.reproduce import runner
from fairsieve.tabular import entry, label_review, table_run

ROLES = ("--label", "income", "--sensitive", "sex")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_csv(tmp_path / "people.csv", people(300))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    return tmp_path


def stopped(monkeypatch, capsys, *arguments):
    """What a command that was stopped says."""
    monkeypatch.setattr(sys, "argv", ["fairsieve", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.err.lstrip()  # a progress bar may have begun a line


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("module", "function", "arguments", "message"),
    [
        (table_run, "train_table", ("train", "people.csv", *ROLES, "--out", "run"), "Nothing was written."),
        (entry, "read_model", ("predict", "run", "people.csv", "-o", "new.csv"), "Nothing was written."),
        (label_review, "audit_table", ("audit", "people.csv", *ROLES), "Nothing was written."),
        (run, "compare", ("compare", "--out", "new"), "What is finished is in new/records.jsonl: give"),
        (runner, "reproduce", ("reproduce", "table4", "--out", "new"), "What is finished is in new"),
        (fetch, "fetch", ("data", "fetch", "adult"), "Nothing was left half-written."),
        (export, "export_csv", ("data", "export", "adult", "new.csv"), "Nothing was left half-written."),
        (demo, "run_demo", ("demo", "--out", "new"), "No figure was drawn."),
    ],
)  # fmt: skip
def test_every_command_says_what_is_left(folder, monkeypatch, capsys, module, function, arguments, message):
    monkeypatch.setattr(module, function, interrupt)
    assert stopped(monkeypatch, capsys, *arguments).startswith(f"Stopped. {message}")
    assert not [path for path in folder.rglob("*") if path.is_file() and path.name != "people.csv"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at what a process has loaded")
@pytest.mark.parametrize("loaded", ["_multiarray_umath", "_sparsetools"])
def test_while_it_is_imported(tmp_path, loaded):
    program = Path(sys.executable).parent / "fairsieve"
    started = subprocess.Popen(
        [program, "demo"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while loaded not in Path(f"/proc/{started.pid}/maps").read_text() and time.monotonic() < until:
        time.sleep(0.005)
    started.send_signal(signal.SIGINT)
    out, said = started.communicate(timeout=60)
    assert (started.returncode, out, said) == (130, b"", b"Stopped before anything was begun.\n")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_inside_another_error_is_still_a_stop(capsys):
    def broken():
        with stoppable("Nothing was written."):
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as stop:
                raise SystemError("a result with an exception set") from stop

    with pytest.raises(typer.Exit) as caught:
        broken()
    assert caught.value.exit_code == 130
    assert capsys.readouterr().err == "Stopped. Nothing was written.\n"
    with pytest.raises(ValueError, match="other"), stoppable(""):
        raise ValueError("other")


PROGRAM = """
import sys, time
from fairsieve.tabular import table_run

def wait(*_, **__):
    print("begun", flush=True)
    time.sleep(60)

table_run.train_table = wait
from fairsieve.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_cleans_up_like_ctrl_c(tmp_path, number):
    write_csv(tmp_path / "people.csv", people(300))
    command = [sys.executable, "-c", PROGRAM, "train", "people.csv", *ROLES, "--out", "run"]
    started = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout.readline() == b"begun\n"
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    started.send_signal(number)
    _, said = started.communicate(timeout=20)
    assert started.returncode == 128 + number
    assert b"Stopped. Nothing was written" in said
    assert b"Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


ENDING = """
import threading, time
from fairsieve.__main__ import main

threading.Thread(target=time.sleep, args=(60,)).start()  # Python waits for it when all else is done
main()
"""


def test_a_signal_while_python_ends_prints_no_traceback(tmp_path):
    write_csv(tmp_path / "people.csv", people(300))
    command = [sys.executable, "-c", ENDING, "audit", "people.csv", *ROLES]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    started = subprocess.Popen(command, cwd=tmp_path, **pipes)
    assert started.stdout.readline()  # what is printed is flushed when the work is done
    time.sleep(0.2)
    started.send_signal(signal.SIGTERM)
    _, said = started.communicate(timeout=20)
    assert started.returncode == 143
    assert said in (b"", b"\n")  # a progress bar may have ended a line
