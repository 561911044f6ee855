"""Word what was decided: sentences are macros of Jinja templates, and code fills in names and numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fairsieve.report.number_format import interval, number, percent, points, points_interval

__all__ = ["Sentences", "environment", "load_sentences", "upper"]


def upper(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def environment(package: str, folder: str = "") -> Any:
    """Load the templates of a package; what ends in ``.html`` escapes every value."""
    import jinja2  # late: most commands and estimators write no sentence

    found = jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    ours = (number, percent, points, interval, points_interval, upper)
    found.filters |= {one.__name__: one for one in ours} | {"counted": "{:,}".format}
    return found


@functools.cache
def load_sentences(package: str, name: str) -> Any:
    """Load the macros of a template in a package as functions that return text.

    Values are put in as they are: whoever shows the text escapes it.

    Examples
    --------
    >>> load_sentences("fairsieve.tabular", "templates/review.j2").similar(20, "high", 3, "low", 17)
    'Of the 20 most similar rows, 3 are labelled high and 17 low.'
    """
    return environment(package).get_template(name).module


class Sentences:
    """The templates of a package, by which it says what it found.

    Parameters
    ----------
    package : str
        Its folder ``templates`` holds the files.
    **filters : callables
        More filters than those of numbers: number, percent, points, interval, points_interval, counted and upper.
    """

    def __init__(self, package: str, **filters: Callable[..., Any]) -> None:
        self.package = package
        self.filters = filters

    @functools.cached_property
    def _environment(self) -> Any:
        found = environment(self.package, "templates")
        found.filters |= self.filters
        return found

    @functools.cache  # noqa: B019 - there are a few of these, and they live as long as the program
    def _module(self, template: str, in_python: bool) -> Any:
        option = _parameter if in_python else _flag
        return self._environment.get_template(template).make_module(
            {"option": option, "in_python": in_python}
        )

    def say(
        self, template: str, name: str, facts: dict[str, Any] | None = None, *, in_python: bool = False
    ) -> str:
        """Word one sentence or a few: the macro ``name`` of a template, in one line.

        With ``in_python``, advice names parameters instead of options of the command line.
        """
        text = getattr(self._module(template, in_python), name)(**(facts or {}))
        return " ".join(str(text).split())

    def write(self, template: str, **facts: Any) -> str:
        """Write a whole file."""
        return str(self._environment.get_template(template).render(facts))


def _flag(name: str, value: Any = None) -> str:
    """Name a setting as an option of the command line."""
    return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")


def _parameter(name: str, value: Any = None) -> str:
    """Name a setting as a parameter of a function."""
    return f"{name}=" + ("" if value is None else repr(value))
