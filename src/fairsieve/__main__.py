"""``fairsieve`` and ``python -m fairsieve``: stop quietly at Ctrl-C or SIGTERM, from the first import on."""

from __future__ import annotations

import os
import signal
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Import the command line and run it."""
    # A signal that is ignored, as under nohup, stays ignored.
    handled = [
        number
        for number, default in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.SIG_DFL),
        )
        if signal.getsignal(number) is default
    ]
    for number in handled:
        signal.signal(number, leave)
    from fairsieve.cli.app import main as run

    run(handled)


def leave(number: int, _: Any) -> None:
    """End at once: nothing has begun, and half-done imports would complain of an exception."""
    os.write(2, b"Stopped before anything was begun.\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
