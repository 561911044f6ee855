"""Commands that need no torch work where it is not installed, and do not import it where it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.people import people, write_csv

PROGRAM = """
import sys

class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hider())
from fairsieve.__main__ import main
main()
"""
ROLES = ("--label", "income", "--sensitive", "sex")


def fairsieve(folder, *arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("without")
    write_csv(path / "people.csv", people(400))
    done = fairsieve(path, "train", "people.csv", *ROLES, "-o", "run")
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "run", "people.csv", "-o", "predicted.csv"),
        ("audit", "people.csv", *ROLES),
        ("demo", "--seeds", "1", "-o", "demo"),
        ("data", "list"),
        ("data", "describe", "synthetic"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_command_works_without_torch(folder, arguments):
    done = fairsieve(folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout
