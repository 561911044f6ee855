"""Commands keep what they read, write with the rights that the umask leaves, and end cleanly at a signal.

A stop ends a command with status 130 or 143 and a line on what is kept, never with a traceback.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.people import people, write_csv
from tests.support.programs import run_main, run_python

from fairsieve import tabular

ROLES = ("--label", "income", "--sensitive", "sex")
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "people.csv", people(300))
    return tmp_path


@pytest.fixture
def failed(capsys):
    """A function that returns what a command says that ends with a status, 1 unless told, without a traceback."""

    def said(*arguments, status=1):
        assert run_main(*arguments) == status
        printed = capsys.readouterr().err
        assert "Traceback" not in printed
        return printed.lstrip()  # a progress bar may have begun a line

    return said


@pytest.mark.parametrize("link", ["itself", "symbolic", "hard"])
@pytest.mark.parametrize("command", ["train", "audit", "review", "predict"])
def test_no_command_writes_over_what_it_reads(here, failed, command, link):
    place = "people.html" if command == "review" else "people.csv"
    if link != "itself":
        (here / "links").mkdir()
        make = os.symlink if link == "symbolic" else os.link
        make(here / "people.csv", here / "links" / "people.csv")
        place = f"links/{place}"
    before = (here / "people.csv").read_bytes()
    first = ("predict", "run", "people.csv") if command == "predict" else (command, "people.csv", *ROLES)
    said = failed(*first, "-o", place, "--force")
    assert "--out must not be a file that is read" in said
    assert (here / "people.csv").read_bytes() == before


def test_a_run_does_not_replace_the_folder_of_its_table(here, failed):
    (here / "run").mkdir()
    (here / "people.csv").rename(here / "run" / "people.csv")
    said = failed("train", "run/people.csv", *ROLES, "-o", "run", "--force")
    assert "run has other files in it, which are not touched" in said
    assert (here / "run" / "people.csv").exists()


def test_a_run_does_not_replace_a_file_of_a_run_that_it_reads(here, failed):
    tabular.train("people.csv", label="income", sensitive="sex", clean_ratio=0.9, max_iter=4).save("run")
    before = (here / "run" / "rows.csv").read_bytes()
    said = failed("train", "people.csv", *ROLES, "--verified", "run/rows.csv", "-o", "run", "--force")
    assert "--out must not be a file that is read; got run, which would replace run/rows.csv" in said
    assert (here / "run" / "rows.csv").read_bytes() == before


@pytest.mark.parametrize("width", ["0", "00", "", "1", "-5", "wide"])
def test_errors_and_results_are_printed_in_a_terminal_of_any_width(here, failed, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", width)
    assert "none.csv: No such file" in failed("audit", "none.csv", *ROLES)
    monkeypatch.setenv("COLUMNS", width)
    run_main("audit", "people.csv", *ROLES)
    assert "Next: " in capsys.readouterr().out


def test_a_missing_file_of_answers_is_named(here, failed):
    said = failed("train", "people.csv", *ROLES, "--verified", "none.csv", "-o", "run")
    assert "--verified must be a file that can be read; none.csv: No such file" in said


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_outputs_have_the_rights_that_the_umask_leaves(here):
    result = tabular.train("people.csv", label="income", sensitive="sex", clean_ratio=0.9, max_iter=4)
    for mask in (0o077, 0o022):
        before = os.umask(mask)
        try:
            run = result.save(here / f"run-{mask}")
            new = tabular.predict(run, "people.csv").save(here / f"new-{mask}.csv")
        finally:
            os.umask(before)
        written = [*run.rglob("*"), new]
        assert len(written) > 5
        assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o666 & ~mask}
        assert stat.S_IMODE(run.stat().st_mode) == 0o777 & ~mask


STOPPED = """
import os
import {module} as where
from fairsieve.__main__ import main

inner = where.{function}


def stop(*arguments, **options):
    # As where a class is made: under -m, Python would end by SIGINT, whatever came.
    exec("os.kill(os.getpid(), {number})")
    return inner(*arguments, **options)


where.{function} = stop
main()
"""


@pytest.mark.parametrize(("module", "function", "number"), [
    ("fairsieve.tabular.table_run", "fit_models", signal.SIGINT),
    ("fairsieve.estimators.classifier", "estimate_with_rule", signal.SIGTERM),
    ("fairsieve.tabular.table_run", "evaluate", signal.SIGTERM),
    ("fairsieve.tabular.run_folder", "write_model", signal.SIGTERM),
])  # fmt: skip
def test_a_training_that_is_stopped_says_so_and_writes_nothing(here, module, function, number):
    code = STOPPED.format(module=module, function=function, number=int(number))
    (here / "program.py").write_text(code)
    arguments = ("train", "people.csv", *ROLES, "--max-iter", "1", "--test", "0.3", "-o", "run")
    done = run_python("-B", "-m", "program", *arguments, status=128 + number)
    assert "Stopped. Nothing was written." in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["people.csv", "program.py"]


def interrupt(*_, **__):
    raise KeyboardInterrupt


def interrupt_inside(*_, **__):
    """Compiled code may hand a stop on inside an error of its own."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as stop:
        raise SystemError("a result with an exception set") from stop


@pytest.mark.parametrize(("function", "command", "message"), [
    ("tabular.table_run.train_table", "train people.csv --label income --sensitive sex -o run", "Nothing was w"),
    ("tabular.entry.read_model", "predict run people.csv -o new.csv", "Nothing was written."),
    ("tabular.audits.audit_table", "audit people.csv --label income --sensitive sex", "Nothing was w"),
    ("benchmark.run.compare", "compare --out new", "What is finished is in new/records.jsonl: give"),
    ("fairsieve_reproduction.request.reproduce", "reproduce table4 --out new", "This sitting made 0 of 0 records"),
    ("data.sources.fetch", "data fetch adult", "Nothing was left half-written."),
    ("data.catalogue.export_csv", "data export adult new.csv", "Nothing was left half-written."),
    ("demo.run_demo", "demo --out new", "No figure was drawn."),
    ("fairsieve_reproduction.demo.run_demo", "demo --data synthetic --out new", "No figure was drawn."),
])  # fmt: skip
@pytest.mark.parametrize("stop", [interrupt, interrupt_inside])
def test_every_command_says_what_is_left(here, monkeypatch, failed, function, command, message, stop):
    monkeypatch.setattr(function if function.startswith("fairsieve") else f"fairsieve.{function}", stop)
    assert failed(*command.split(), status=130).startswith(f"Stopped. {message}")
    files = {path.name for path in here.rglob("*") if path.is_file()}
    assert files <= {"people.csv", "settings.toml", "sittings.jsonl"}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at what a process has loaded")
def test_while_it_is_imported(tmp_path):
    program = Path(sys.executable).parent / "fairsieve"
    started = subprocess.Popen([program, "demo"], cwd=tmp_path, **PIPES)
    until = time.monotonic() + 60
    maps = Path(f"/proc/{started.pid}/maps")  # NumPy is the first large import
    while "_multiarray_umath" not in maps.read_text() and time.monotonic() < until:
        time.sleep(0.005)
    started.send_signal(signal.SIGINT)
    out, said = started.communicate(timeout=60)
    assert (started.returncode, out, said) == (130, b"", b"Stopped before anything was begun.\n")
    assert not list(tmp_path.iterdir())


ENDING = """
import threading, time
from fairsieve.__main__ import main

threading.Thread(target=time.sleep, args=(60,)).start()  # Python waits for it when all else is done
main()
"""


def test_a_signal_while_python_ends_prints_no_traceback(here):
    command = [sys.executable, "-c", ENDING, "audit", "people.csv", *ROLES]
    started = subprocess.Popen(command, **PIPES, bufsize=0)
    assert started.stdout.readline()  # what is printed is flushed when the work is done
    time.sleep(0.2)
    started.send_signal(signal.SIGTERM)
    _, said = started.communicate(timeout=20)
    assert started.returncode == 143
    assert said in (b"", b"\n")  # a progress bar may have ended a line
