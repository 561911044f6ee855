"""Write the reference of the command line from the commands themselves."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

PAGE = "reference/command-line.md"


def _option_text(parameter: Any) -> str:
    """Return how an option is written, such as ``--out``, ``-o`` *PATH*."""
    names = ", ".join(
        f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts]
    )
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    kind = (
        ""
        if getattr(parameter, "is_flag", False)
        else f" *{parameter.metavar or parameter.name.upper()}*"
    )
    return f"{names}{kind}"


def _meaning(parameter: Any) -> str:
    """Return what an option means, whether it is required, and its default."""
    text = (getattr(parameter, "help", None) or "").strip()
    if parameter.required:
        text += " Required."
    elif getattr(parameter, "multiple", False):
        text += " May be repeated."
    elif (
        getattr(parameter, "show_default", False)
        and parameter.default not in (None, False, "")
        and not callable(parameter.default)
    ):
        text += f" Default: `{parameter.default}`."
    return text.strip().replace("|", "\\|").replace("<", "&lt;")


def _command_text(path: str, command: Any, level: int) -> list[str]:
    """Describe one command, and the commands below it."""
    lines = [f"{'#' * level} {path}", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        example = paragraph.removeprefix("Example: ")
        lines += (
            [paragraph, ""]
            if example == paragraph
            else ["```console", f"$ {example}", "```", ""]
        )
    rows = [
        found
        for found in command.params
        if not getattr(found, "hidden", False) and found.name != "help"
    ]
    panels = dict.fromkeys(getattr(found, "rich_help_panel", None) for found in rows)
    for panel in panels:
        lines += [f"**{panel}**", ""] if panel else []
        lines += ["| option | meaning |", "| --- | --- |"]
        shown = [
            found for found in rows if getattr(found, "rich_help_panel", None) == panel
        ]
        lines += [f"| {_option_text(found)} | {_meaning(found)} |" for found in shown]
        lines += [""]
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            lines += _command_text(f"{path} {name}", below, level + 1)
    return lines


def page_text() -> str:
    """Return the page."""
    from typer.main import get_command

    from fairsieve.cli.app import app

    lines = _command_text("fairsieve", get_command(app), 2)
    head = [
        "# Command line",
        "",
        "Every command and option, generated from the program; `fairsieve COMMAND --help` prints the same.",
        "Messages go to the error output, results to the output. The exit status is 0 when all went well, 1 after",
        "an error that a message explains, 2 for a wrong option, 3 where `--fail-on` says so, 130 after Ctrl-C and",
        "143 after SIGTERM.",
        "",
    ]
    return "\n".join(head + lines).rstrip() + "\n"


def _write(app: Any) -> None:
    """Write the page if it changed, so that nothing is built anew without need."""
    path, text = Path(app.srcdir) / PAGE, page_text()
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the hook."""
    app.connect("config-inited", lambda app, config: _write(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
