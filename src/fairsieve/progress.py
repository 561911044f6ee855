"""The progress bar that every part of fairsieve shares, and the log of what begins.

The log is Python's own, under the name ``fairsieve``: silent unless somebody sets its level to ``INFO``, as
``--verbose`` does. It then takes the place of the bar.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

logger = logging.getLogger("fairsieve")
Report = Callable[[str], None]  # told what begins
LOG_SECONDS = 60.0  # between two lines where there is no terminal to draw on


def log_stage(stage: str) -> None:
    """Log what begins."""
    logger.info(stage)


def time_left(seconds: float, done: float, total: float | None, left: float | None = None) -> str:
    """Say how long the rest will take if it goes on like this; nothing where that cannot be known.

    ``left`` are the seconds that are left, where the caller knows better than by the number of steps.

    Examples
    --------
    >>> time_left(30.0, 1, 5), time_left(90.0, 3, 4), time_left(1.0, 0, 4)
    (', about 2 minutes left', ', about 30 seconds left', '')
    """
    if not done or total is None or done >= total:
        return ""
    left = seconds / done * (total - done) if left is None else left
    count, unit = (left / 60, "minute") if left >= 90 else (left, "second")
    whole = max(round(count), 1)
    return f", about {whole} {unit}{'s' if whole > 1 else ''} left"


# A function (done, title=None, *, total=None, left=None) that moves a progress bar: how many steps are done and, where
# given, what is being done, how many steps there are, and how many seconds are left.
ProgressUpdate = Callable[..., None]


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
    if not shown:
        yield lambda done, title=None, *, total=None, left=None: None
        return
    if logger.isEnabledFor(logging.INFO):
        yield _write_lines(title, total, log_stage)
        return
    # Imported here, so that a fit without a progress bar does not import rich.
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_interactive or console.is_jupyter):
        write = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        yield _write_lines(title, total, write, seconds=LOG_SECONDS)
        return
    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[left]}"),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task, started = bar.add_task(title, total=total, left=""), time.monotonic()

        def update(
            done: int, title: str | None = None, *, total: int | None = None, left: float | None = None
        ) -> None:
            bar.update(task, completed=done, description=title, total=total)
            told = time_left(time.monotonic() - started, done, bar.tasks[0].total, left)
            bar.update(task, left=told.removeprefix(", "))

        yield update


def _write_lines(
    title: str, steps: int | None, write: Callable[[str], object], *, seconds: float | None = None
) -> ProgressUpdate:
    """Return an update that writes what is being done, how far it is and what is left.

    It writes at every new title or, where ``seconds`` are given, when so many have passed since the last line.
    """
    started = written = time.monotonic()
    current = title

    def update(
        done: int, title: str | None = None, *, total: int | None = None, left: float | None = None
    ) -> None:
        nonlocal current, steps, written
        is_new = title is not None and title != current
        current, now = title or current, time.monotonic()
        steps = steps if total is None else total
        if is_new if seconds is None else now - written > seconds:
            told = time_left(now - started, done, steps, left)
            write(current if steps is None else f"{current} ({min(done + 1, steps)} of {steps}{told})")
            written = now

    return update
