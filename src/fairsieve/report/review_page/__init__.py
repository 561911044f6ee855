"""The page on which labels are checked: a template, a style sheet and a script in one file that works offline."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from fairsieve.report.looks import THEMES
from fairsieve.report.page import colour_variables, content_policy, script_hash
from fairsieve.report.text import environment

__all__ = ["render_review"]


def render_review(sheet: Mapping[str, Any]) -> str:
    """Render the page as HTML; all text in it is shown as text, whatever it says.

    Parameters
    ----------
    sheet : mapping
        ``label``, ``data`` and ``estimate``
            What the page says of the table; no estimate where the data cannot say which labels are wrong.
        ``key``
            What the answers are kept under in the browser; another sheet needs another key.
        ``choices``, ``fields``
            The labels, and how they and the word for "unsure" are written into the saved file.
        ``columns``
            Those of the table view, those that matter first.
        ``header``, ``file_name``
            The first line of the saved file, and what it is called.
        ``items``
            Rows to judge, each with a ``title``, ``details`` that identify it, ``given`` and ``suggested`` places in
            ``choices``, ``reasons``, ``values`` by column, and what stands ``before`` and ``after`` the answer in the
            saved file.
    """
    files = resources.files(__package__)
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("review.css", "review.js"))
    templates = environment(__package__)
    templates.filters["variables"] = colour_variables
    return str(
        templates.get_template("review.html").render(
            sheet=sheet,
            rows=sheet["items"],
            themes=THEMES,
            style=style,
            script=script,
            policy=content_policy(script_hash(script)),
        )
    )
