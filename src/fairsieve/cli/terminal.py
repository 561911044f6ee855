"""What a terminal is told: text as it is, errors in one line, and what is left after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

__all__ = ["printable", "say", "say_error", "stoppable"]

STOPPED = 130  # what a shell expects of a program that Ctrl-C ended


def printable(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def say(*lines: str, error: bool = False) -> None:
    """Print lines as they are, whatever is in them."""
    console = Console(stderr=error)
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def say_error(error: Exception) -> None:
    """One line on standard error."""
    words = Text.assemble(("error ", "bold red"), printable(str(error)))
    Console(stderr=True).print(words, soft_wrap=True)


@contextmanager
def stoppable(left: str | Callable[[], str]) -> Iterator[None]:
    """Ctrl-C ends a command with a line that says what is left of its work."""
    try:
        yield
    except BaseException as error:
        if not _was_stopped(error):
            raise
        say(f"Stopped. {left if isinstance(left, str) else left()}", error=True)
        raise typer.Exit(STOPPED) from None


def _was_stopped(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: compiled code may hand it on inside one of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
