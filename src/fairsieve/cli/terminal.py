"""Print text as it is, report errors in one line, and end cleanly at Ctrl-C or SIGTERM.

Until the work has begun, and after it has ended, a signal ends the program at once; in between it cleans up first. Only
the standard library is imported at the top, so that a signal is answered from the first moment on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

WATCHED = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}

_phase: Literal["starting", "working", "ending"] = "starting"
_received: int = 0


def watch_signals() -> None:
    """Leave at once at a signal, until :func:`begin_work`; one that is ignored, as under nohup, stays ignored."""
    for number, default in WATCHED.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _stop)


def begin_work() -> None:
    """Raise KeyboardInterrupt at a signal from now on, so that the work can clean up."""
    global _phase
    _phase = "working"


def end_work() -> None:
    """Leave at once at a signal from now on: what is left is Python's own end, which would print a traceback."""
    global _phase
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            stream.flush()
    # Python forgets the status where the signal came inside exec(), as when a dataclass is made.
    if _received:
        os._exit(stop_status())
    _phase = "ending"


def stop_status() -> int:
    """Return the exit status that a shell expects of a program that a signal ended: 130 or 143."""
    return 128 + (_received or signal.SIGINT)


def _stop(number: int, _: Any) -> None:
    """Interrupt the work; before and after it, end at once: half-done imports would complain of an exception."""
    global _received
    if _phase == "working":
        _received = number
        raise KeyboardInterrupt
    if _phase == "starting":
        os.write(2, b"Stopped before anything was begun.\n")
    os._exit(128 + number)


def tolerate_terminals() -> None:
    """Let standard output and error replace what their encoding lacks; take a width of 0 as unknown."""
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # rich would print nothing in it
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def printable(text: str) -> str:
    """Replace the characters that a terminal would obey instead of showing."""
    shown = (sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return "".join(shown)


def say(*lines: str, error: bool = False) -> None:
    """Print lines as they are, whatever is in them."""
    from rich.console import Console

    console = Console(stderr=error)
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def say_error(error: Exception | str) -> None:
    """Print an error as one line on standard error."""
    from rich.console import Console
    from rich.text import Text

    words = Text.assemble(("error: ", "bold red"), printable(" ".join(str(error).split())))
    Console(stderr=True).print(words, soft_wrap=True)


@contextmanager
def stoppable(left: str | Callable[[], str]) -> Iterator[None]:
    """End a command that is stopped with a line that says what is left of its work."""
    begin_work()
    try:
        yield
    except BaseException as error:
        if not _was_stopped(error):
            raise
        _end_workers()
        import typer

        say(f"Stopped. {left if isinstance(left, str) else left()}", error=True)
        raise typer.Exit(stop_status()) from None


@contextmanager
def stages(count: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar of ``count`` stages; yield the function that names the next one."""
    from fairsieve.progress import progress_bar

    with progress_bar("starting", count) as update:
        begun = 0

        def next_stage(stage: str) -> None:
            nonlocal begun
            update(begun, stage)
            begun += 1

        yield next_stage


def _was_stopped(error: BaseException | None) -> bool:
    """Return whether a stop is behind an error: compiled code may hand it on inside one of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _end_workers() -> None:
    """End joblib's worker processes, where there are any: SIGTERM reaches only this process."""
    executor = getattr(sys.modules.get("joblib.externals.loky.reusable_executor"), "_executor", None)
    if executor is not None:
        executor.shutdown(wait=False, kill_workers=True)
