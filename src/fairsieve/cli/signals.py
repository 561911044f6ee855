"""End at Ctrl-C or SIGTERM: at once before the work has begun and after it has ended, with a clean-up in between.

Only the standard library is imported here, so that a signal is answered from the first moment on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any

WATCHED = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}

_received: int = 0


def watch_signals() -> None:
    """Leave at once at a signal, until :func:`begin_work`; one that is ignored, as under nohup, stays ignored."""
    for number, default in WATCHED.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _leave)


def begin_work() -> None:
    """Raise KeyboardInterrupt at a signal from now on, so that the work can clean up."""
    for number in WATCHED:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _interrupt)


def end_work() -> None:
    """Leave at once at a signal from now on: what is left is Python's own end, which would print a traceback."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            stream.flush()
    # Python forgets the status where the signal came inside exec(), as when a dataclass is made.
    if _received:
        os._exit(stop_status())
    for number in WATCHED:
        if signal.getsignal(number) in (_leave, _interrupt):
            signal.signal(number, _leave_quietly)


def stop_status() -> int:
    """Return the exit status that a shell expects of a program that a signal ended: 130 or 143."""
    return 128 + (_received or signal.SIGINT)


def _leave(number: int, _: Any) -> None:
    """End at once: nothing has begun, and half-done imports would complain of an exception."""
    os.write(2, b"Stopped before anything was begun.\n")
    os._exit(128 + number)


def _leave_quietly(number: int, _: Any) -> None:
    """End at once, with nothing to say: all work is done, and what it printed is flushed."""
    os._exit(128 + number)


def _interrupt(number: int, _: Any) -> None:
    """Raise KeyboardInterrupt in the main thread."""
    global _received
    _received = number
    raise KeyboardInterrupt
