"""The catalogue as a page: ``python -m tests.bad_input.page`` writes docs/bad-input.md."""

from __future__ import annotations

from pathlib import Path

from tests.bad_input import api_core, api_data, api_learning, commands

from fairsieve.report.table_files import markdown

__all__ = ["PAGE", "page_text"]

PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"

HEAD = """\
# Bad input

What fairsieve is given by mistake, and what it says: which parameter, which rule, which value, and the way out. Errors
of ours are an `InvalidInputError` (a `ValueError`) unless another is named; see `fairsieve.errors`. At the command
line an error is one line on standard error with exit status 1 (2 for what is no command or option, 130 after
Ctrl-C, 143 after SIGTERM), and nothing is left half-written.

This page is made from the tests (`python -m tests.bad_input.page`), which run every line of it.
"""


def page_text() -> str:
    """The whole page."""
    python = [*api_core.ENTRIES, *api_learning.ENTRIES, *api_data.ENTRIES]
    parts = [
        HEAD,
        "## From Python\n",
        table_of(python),
        "## From the command line\n",
        table_of(commands.ENTRIES),
    ]
    return "\n".join(parts)


def table_of(entries) -> str:
    """A row for each."""
    lines = ["| input | parameter | rule | value | way out |", "| --- | --- | --- | --- | --- |"]
    for bad in entries:
        error = getattr(bad, "error", None)
        other = error is not None and error.__name__ != "InvalidInputError"
        name = f"{bad.name} ({error.__name__})" if other else bad.name
        lines.append(f"| {' | '.join(markdown(text) for text in (name, *bad.parts))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
