"""Runs that a worker makes: at once, never, or with an error. Workers import this module, so it imports little."""

import os
import signal

from fairsieve.errors import MissingExtraError


def make_run(number):
    return {"run": str(number)}


def kill_worker(marker):
    """Kill the worker; with a marker, only the first time."""
    if marker is None or not marker.exists():
        if marker is not None:
            marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"run": "killed"}


def raise_missing_extra():
    raise MissingExtraError("fairlearn", extra="fairlearn", purpose="a method")
