"""The command line, as a user types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAIRSIEVE = [str(Path(sys.executable).parent / "fairsieve")]


def run(*arguments, **options):
    return subprocess.run(
        [*FAIRSIEVE, *arguments], capture_output=True, text=True, check=False, timeout=200, **options
    )


def test_demo_prints_a_table_and_saves_a_figure(tmp_path):
    done = run("demo", "--seeds", "2", "--out", str(tmp_path / "new" / "folder"))
    assert done.returncode == 0, done.stderr
    for name in ("LR", "ITLM", "FairBatch", "fairsieve", "accuracy", "EO disparity"):
        assert name in done.stdout
    figure = tmp_path / "new" / "folder" / "demo.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size > 50_000


@pytest.mark.parametrize(
    "option", [("--fairness", "demographic-parity"), ("--noise", "uniform"), ("--rate", "0")]
)
def test_demo_options(tmp_path, option):
    done = run("demo", "--seeds", "1", "--out", str(tmp_path), *option)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fairness", "x"), "fairness must be one of equalized_odds"),
        (("--noise", "x"), "--noise must be one of none, label, influence, group-targeted, "),
        (("--rate", "2"), "--rate must be a number in [0, 0.5]; got 2.0: for 2 % pass 0.02"),
        (("--seeds", "0"), "--seeds must be a whole number of at least 1; got 0"),
    ],
)
def test_bad_options_are_one_clear_line(tmp_path, arguments, message):
    done = run("demo", "--out", str(tmp_path), *arguments)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_an_output_that_is_a_file_is_told(tmp_path):
    (tmp_path / "taken").write_text("x")
    done = run("demo", "--out", str(tmp_path / "taken"))
    assert done.returncode == 1
    assert "--out must be a folder that can be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_version_and_help():
    assert run("--version").stdout.startswith("fairsieve 0.")
    assert "demo" in run("--help").stdout


def test_without_matplotlib_the_extra_is_named(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    done = run("demo", "--out", str(tmp_path), env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"})
    assert done.returncode == 1
    assert "pip install 'fairsieve[plot]'" in done.stderr
