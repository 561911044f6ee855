"""Folders that stopped processes leave behind are cleared, and those in use are not; a full disk is told."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from fairsieve import tabular
from fairsieve.files import make_folder, write_whole
from tests.support.refusals import refused

STOPPED = """
import os, pickle, signal, sys

result = pickle.load(open("result.pickle", "rb"))
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGSTOP)
result.save("run")
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "result.pickle")


@pytest.fixture(scope="module")
def result():
    table = pd.DataFrame({"x": [3, 1, 4, 1] * 20, "label": [0, 1] * 40, "guess": [0, 1, 1, 1] * 20})
    table["group"] = np.repeat(["a", "b"], 40)
    return tabular.audit(table, label="label", sensitive="group", prediction="guess")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and locks")
def test_the_next_run_clears_what_a_killed_one_left_and_leaves_a_running_one_alone(result, tmp_path):
    pd.to_pickle(result, tmp_path / "result.pickle")
    for name in (".other.x1.part", ".run.x1"):
        (tmp_path / name).write_text("half")
    with subprocess.Popen([sys.executable, "-c", STOPPED], cwd=tmp_path) as process:
        while len(names(tmp_path)) < 3:
            time.sleep(0.01)
        result.save(tmp_path / "run")
        (left,) = set(names(tmp_path)) - {".other.x1.part", ".run.x1", "run"}
        assert left.startswith(".run.")
        assert left.endswith(".part")
        process.send_signal(signal.SIGKILL)
    shutil.rmtree(tmp_path / "run")
    result.save(tmp_path / "run")
    assert names(tmp_path) == [".other.x1.part", ".run.x1", "run"]


def test_a_folder_that_another_run_took_for_stale_is_made_again(result, tmp_path, monkeypatch):
    made = []

    def make_and_lose(option, folder):
        make_folder(option, folder)
        made.append(folder)
        if len(made) == 1:
            folder.rmdir()

    monkeypatch.setattr("fairsieve.tabular.run_folder.make_folder", make_and_lose)
    result.save(tmp_path / "run")
    assert len(made) == 2
    assert names(tmp_path) == ["run"]


def test_a_full_disk_is_named_with_the_file_and_nothing_is_left(result, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    place = re.escape(f"{tmp_path / 'run'}{os.sep}")
    told = rf"{place}[\w.]+ could not be written: No space left on device\. Make room, or name another place"
    refused(told, result.save, tmp_path / "run")
    assert names(tmp_path) == []


def test_a_part_that_another_process_took_for_stale_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: cleared.extend(part.unlink() for part in parts()))
    cleared, parts = [], lambda: [] if cleared else list(tmp_path.iterdir())
    write_whole(tmp_path / "a.txt", b"whole")
    assert len(cleared) == 1
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.txt", b"whole")]
