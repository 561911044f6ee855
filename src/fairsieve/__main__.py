"""``fairsieve`` and ``python -m fairsieve``: Ctrl-C ends it quietly, from the first import on."""

from __future__ import annotations

import os
import signal
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Import the command line, which takes seconds, and run it."""
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is to be ignored
    if handled:
        signal.signal(signal.SIGINT, leave)
    from fairsieve.cli.app import main as run

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def leave(*_: Any) -> None:
    """End at once: nothing has begun, and half-done imports would complain of an exception."""
    os.write(2, b"Stopped before anything was begun.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
