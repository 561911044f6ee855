"""The progress bar that every part of fairsieve shares."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

LOG_SECONDS = 60.0  # between two lines where there is no terminal to draw on


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
    if not shown:
        yield lambda done, title=None, *, total=None: None
        return
    # Imported here, so that a fit without a progress bar does not import rich.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        logged = time.monotonic()

        def update(done: int, title: str | None = None, *, total: int | None = None) -> None:
            nonlocal logged
            bar.update(task, completed=done, description=title, total=total)
            if not bar.console.is_terminal and time.monotonic() - logged > LOG_SECONDS:
                state = bar.tasks[0]
                bar.console.print(
                    f"{done} of {state.total}: {state.description}", highlight=False, markup=False
                )
                logged = time.monotonic()

        yield update
