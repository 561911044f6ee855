"""Sentences of pages and of the terminal: macros of Jinja templates, called as functions."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from fairsieve.report.number_format import number, percent, points

__all__ = ["load_sentences"]


@cache
def load_sentences(package: str, name: str) -> Any:
    """Load the macros of a template in a package as functions that return text.

    Values are put in as they are: whoever shows the text escapes it.

    Examples
    --------
    >>> load_sentences("fairsieve.tabular", "review.jinja").similar(20, "high", 3, "low", 17)
    'Of the 20 most similar rows, 3 are labelled high and 17 low.'
    """
    loader = jinja2.PackageLoader(package, "")
    # No value is HTML here, and the page that shows the sentences escapes them.
    environment = jinja2.Environment(loader=loader, autoescape=False, undefined=jinja2.StrictUndefined)
    environment.filters |= {"number": number, "percent": percent, "points": points, "counted": "{:,}".format}
    return environment.get_template(name).module
