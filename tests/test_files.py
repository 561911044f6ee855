"""Files and folders that killed processes leave behind are cleared, and those in use are not."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import pytest

from fairsieve.errors import InvalidInputError
from fairsieve.files import clear_stale, hold, write_output
from fairsieve.tabular.report.files import new_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from fairsieve.tabular.report.files import new_folder

with new_folder(Path("run")) as folder:
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9 and locks")
def test_the_next_run_clears_what_a_killed_one_left(tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    (left,) = names(tmp_path)
    assert left.startswith(".run.")
    assert left.endswith(".part")
    monkeypatch.chdir(tmp_path)
    with new_folder(tmp_path / "run") as folder:
        assert names(tmp_path) == [folder.name]
        with new_folder(tmp_path / "run") as other:  # a run beside it leaves it alone
            assert names(tmp_path) == sorted([folder.name, other.name])
            (other / "whole").write_text("whole")
            other.rename(tmp_path / "elsewhere")
            other.mkdir()
        (folder / "whole").write_text("whole")
        (tmp_path / "run").rmdir()
    assert names(tmp_path) == ["elsewhere", "run"]


def test_parts_of_other_names_stay(tmp_path):
    for name in (".a.csv.x1.part", ".b.csv.x1.part", ".a.csv.x1", "a.csv.x1.part"):
        (tmp_path / name).write_text("half")
    held = tmp_path / ".a.csv.held.part"
    held.write_text("half")
    with hold(held):
        clear_stale(tmp_path, "a.csv")
        write_output(tmp_path / "a.csv", b"whole")
        assert names(tmp_path) == [
            ".a.csv.held.part",
            ".a.csv.x1",
            ".b.csv.x1.part",
            "a.csv",
            "a.csv.x1.part",
        ]


def test_a_full_disk_is_named_with_the_file_as_it_would_be_called_and_nothing_is_left(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    told = r"{}a\.csv could not be written: No space left on device\. Make room, or name another place"
    with pytest.raises(InvalidInputError, match=told.format(re.escape(f"{tmp_path}{os.sep}"))):
        write_output(tmp_path / "a.csv", b"content")
    with (
        pytest.raises(InvalidInputError, match=told.format(re.escape(f"{tmp_path / 'run'}{os.sep}"))),
        new_folder(tmp_path / "run") as folder,
    ):
        write_output(folder / "a.csv", b"content")
    assert names(tmp_path) == []
