"""Print text as it is, report errors in one line, and end cleanly at Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from fairsieve.cli.signals import begin_work, stop_status


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
    shown = (one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)
    return "".join(shown)


def say(*lines: str, error: bool = False) -> None:
    """Print lines as they are, whatever is in them."""
    console = Console(stderr=error)
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def say_error(error: Exception | str) -> None:
    """Print an error as one line on standard error."""
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
        say(f"Stopped. {left if isinstance(left, str) else left()}", error=True)
        raise typer.Exit(stop_status()) from None


@contextmanager
def stages(count: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar of ``count`` stages; yield the function that names the next one."""
    from fairsieve.progress import progress_bar

    with progress_bar("starting", count) as update:
        begun = 0

        def tell(stage: str) -> None:
            nonlocal begun
            update(begun, stage)
            begun += 1

        yield tell


def _was_stopped(error: BaseException | None) -> bool:
    """Return whether a stop is behind an error: compiled code may hand it on inside one of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _end_workers() -> None:
    """End joblib's worker processes, where there are any: SIGTERM reaches only this process."""
    executors = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(executors, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=False, kill_workers=True)
