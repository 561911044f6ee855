"""The page on which labels are checked: a template, a style sheet and a script in one file."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fairsieve.errors import MissingExtraError
from fairsieve.report.looks import THEMES
from fairsieve.report.page.page_head import colour_variables, content_policy, script_hash

__all__ = ["ReviewItem", "ReviewSheet", "render_review"]


@dataclass(frozen=True, kw_only=True)
class ReviewItem:
    """One row to judge.

    Attributes
    ----------
    title : str
        What the row is called, such as "Row 17".
    details : sequence of str
        What else identifies it: an identifier, a group.
    given, suggested : int
        Places in the sheet's ``choices``.
    reasons : sequence of str
        Sentences that say why the label may be wrong, or that nothing speaks against it.
    values : sequence of (str, str)
        Columns and what stands in them, those that matter first.
    before, after : str
        What stands before and after the answer in the row's line of the saved file, ready for it.
    """

    title: str
    details: Sequence[str]
    given: int
    suggested: int
    reasons: Sequence[str]
    values: Sequence[tuple[str, str]]
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class ReviewSheet:
    """Everything that the page shows and saves.

    Attributes
    ----------
    title, lead : str
    notes : sequence of str
    key : str
        What the answers are kept under in the browser; another sheet needs another key.
    choices : sequence of str
        The labels.
    fields : sequence of str
        The same, and last the word for "unsure", as they are written into the saved file.
    columns : sequence of str
        The columns of the table view, those that matter first.
    header : str
        The first line of the saved file.
    file_name : str
        What the saved file is called.
    items : sequence of ReviewItem
    """

    title: str
    lead: str
    notes: Sequence[str]
    key: str
    choices: Sequence[str]
    fields: Sequence[str]
    columns: Sequence[str]
    header: str
    file_name: str
    items: Sequence[ReviewItem]


def render_review(sheet: ReviewSheet) -> str:
    """Render the page as HTML that works offline; all text in it is shown as text, whatever it says."""
    script = _file("review.js")
    return str(
        _environment()
        .get_template("review.html")
        .render(
            sheet=sheet,
            data=vars(sheet) | {"items": [vars(item) for item in sheet.items]},  # asdict copies each value
            themes=THEMES,
            style=_file("review.css"),
            script=script,
            policy=content_policy(script_hash(script)),
        )
    )


def _file(name: str) -> str:
    """Read a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Any:
    """Load the template, in which every value is escaped."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", extra="report", purpose="writing a page") from None
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("fairsieve.report.review_page", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters["variables"] = colour_variables
    return found
