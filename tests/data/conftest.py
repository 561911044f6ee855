"""The real data sets, loaded once; a missing file fails with the command that gets it.

And a stand-in for OpenML.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairsieve import Samples
from fairsieve.data import fetch as fetch_module
from fairsieve.data import load_adult, load_compas, load_german
from fairsieve.data.sources import locate
from fairsieve.errors import MissingDataError


def loaded(load: Callable[[], Samples], *names: str) -> Samples:
    try:
        for name in names:
            locate(name)
    except MissingDataError as error:
        pytest.fail(str(error), pytrace=False)
    return load()


@pytest.fixture(scope="session")
def compas() -> Samples:
    return loaded(load_compas, "compas-scores-two-years.csv")


@pytest.fixture(scope="session")
def adult() -> Samples:
    return loaded(load_adult, "adult.test", "adult.data")


@pytest.fixture(scope="session")
def german() -> Samples:
    return loaded(load_german, "german.data")


@pytest.fixture
def openml_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[dict[str, Any]]]:
    """Have OpenML reply with a bunch or an error; returns the calls made."""

    def install(reply: Any) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def fetch_openml(**options: Any) -> Any:
            calls.append(options)
            if isinstance(reply, Exception):
                raise reply
            return reply

        sklearn_datasets = SimpleNamespace(fetch_openml=fetch_openml)
        monkeypatch.setattr(fetch_module, "import_module", lambda name: sklearn_datasets)
        return calls

    return install


@pytest.fixture
def bunch_of() -> Callable[[list[dict[str, str]], set[str]], Any]:
    """Rows in the form in which scikit-learn's ``fetch_openml(as_frame=False)`` returns them."""
    return as_bunch


def as_bunch(rows: list[dict[str, str]], numeric: set[str]) -> Any:
    """Codes for categories, NaN for missing values, words for the target."""
    names = [name for name in rows[0] if name != "class"]
    columns, categories = [], {}
    for name in names:
        texts = [row[name] for row in rows]
        if name in numeric:
            columns.append(np.array(texts, dtype=float))
            continue
        categories[name] = sorted(set(texts) - {"?"}, reverse=True)
        codes = {text: float(code) for code, text in enumerate(categories[name])}
        columns.append(np.array([codes.get(text, np.nan) for text in texts]))
    bunch = {
        "data": np.column_stack(columns),
        "target": np.array([row["class"] for row in rows], dtype=object),
        "feature_names": names,
        "categories": categories,
    }
    return type("Bunch", (dict,), {"__getattr__": dict.__getitem__})(bunch)
