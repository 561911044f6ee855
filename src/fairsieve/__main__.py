"""``fairsieve`` and ``python -m fairsieve``: stop quietly at Ctrl-C or SIGTERM, from the first import on."""

from __future__ import annotations

from fairsieve.cli.terminal import end_work, watch_signals


def main() -> None:
    """Import the command line and run it."""
    watch_signals()
    from fairsieve.cli.app import main as run

    try:
        run()
    finally:
        end_work()


if __name__ == "__main__":
    main()
