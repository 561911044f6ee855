"""The progress bar that every part of fairsieve shares, and the log of what begins.

The log is Python's own, under the name ``fairsieve``: silent unless somebody sets its level to ``INFO``, as
``--verbose`` does. It then takes the place of the bar.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

logger = logging.getLogger("fairsieve")
LOG_SECONDS = 60.0  # between two lines where there is no terminal to draw on


def log_stage(stage: str) -> None:
    """Log what begins."""
    logger.info(stage)


def time_left(seconds: float, done: float, total: float | None) -> str:
    """Say how long the rest will take if it goes on like this; nothing where that cannot be known.

    Examples
    --------
    >>> time_left(30.0, 1, 5), time_left(90.0, 3, 4), time_left(1.0, 0, 4)
    (', about 2 minutes left', ', about 30 seconds left', '')
    """
    if not done or total is None or done >= total:
        return ""
    left = seconds / done * (total - done)
    count, unit = (left / 60, "minute") if left >= 90 else (left, "second")
    whole = max(round(count), 1)
    return f", about {whole} {unit}{'s' if whole > 1 else ''} left"


class ProgressUpdate(Protocol):
    """A function that moves a progress bar."""

    def __call__(self, done: int, title: str | None = None, *, total: int | None = None) -> None:
        """Set how many steps are done and, where given, what is being done and how many steps there are."""


@contextmanager
def progress_bar(title: str, total: int | None = None, *, shown: bool = True) -> Iterator[ProgressUpdate]:
    """Draw a progress bar on standard error; yield the function that moves it.

    Where standard error is not a terminal, write a line every minute instead.

    Examples
    --------
    >>> with progress_bar("counting", 3, shown=False) as update:
    ...     for done in range(3):
    ...         update(done + 1)
    """
    if not shown or logger.isEnabledFor(logging.INFO):
        yield _logged(title, total) if shown else lambda done, title=None, *, total=None: None
        return
    # Imported here, so that a fit without a progress bar does not import rich.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    idle = not (console.is_interactive or console.is_jupyter)  # rich would write an empty line to a log
    with Progress(*columns, console=console, transient=True, disable=idle) as bar:
        task = bar.add_task(title, total=total)
        started = logged = time.monotonic()

        def update(done: int, title: str | None = None, *, total: int | None = None) -> None:
            nonlocal logged
            bar.update(task, completed=done, description=title, total=total)
            if not bar.console.is_terminal and time.monotonic() - logged > LOG_SECONDS:
                state, logged = bar.tasks[0], time.monotonic()
                bar.console.print(
                    f"{done} of {state.total}: {state.description}{time_left(logged - started, done, state.total)}",
                    highlight=False,
                    markup=False,
                )

        yield update


def _logged(title: str, total: int | None) -> ProgressUpdate:
    """Return an update that logs every new title, how far it has come and what is left."""
    started, last, steps = time.monotonic(), title, total

    def update(done: int, title: str | None = None, *, total: int | None = None) -> None:
        nonlocal last, steps
        steps = steps if total is None else total
        if title is not None and title != last:
            left = time_left(time.monotonic() - started, done, steps)
            log_stage(title if steps is None else f"{title} ({min(done + 1, steps)} of {steps}{left})")
            last = title

    return update
