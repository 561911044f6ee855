"""Programs that a test starts: Python itself, and commands of ours in the process of the test."""

import os
import subprocess
import sys

import pytest

from fairsieve.cli.app import main


def run_python(*arguments, status=0, env=(), **options):
    """Run Python with arguments and further variables, until it ends with the status; return what it printed."""
    pipes = {"capture_output": True, "text": True, "check": False}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, **pipes | options, env=os.environ | dict(env))
    assert done.returncode == status, done.stdout[-4000:] + done.stderr[-6000:]
    return done


def run_main(*arguments):
    """Run a command of ours in this process, as the program does; return its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fairsieve", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0
