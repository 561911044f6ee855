"""Every public name is found, and every text is whole."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import fairsieve

SOURCES = Path(fairsieve.__file__).parent


def test_names_that_come_later_are_listed_and_found():
    assert sorted(fairsieve.__all__) == fairsieve.__all__
    assert set(fairsieve.LATER) <= set(fairsieve.__all__) <= set(dir(fairsieve))
    for name in fairsieve.__all__:
        try:
            found = getattr(fairsieve, name)
        except fairsieve.errors.MissingExtraError as error:
            assert importlib.util.find_spec("torch") is None
            assert "needs torch" in str(error)
        else:
            assert found.__name__ == name
    for name in dir(fairsieve):
        if name not in fairsieve.LATER:
            assert getattr(fairsieve, name) is not None
    with pytest.raises(AttributeError, match="module 'fairsieve' has no attribute 'nothing'"):
        _ = fairsieve.nothing


def test_no_text_holds_a_field_that_was_not_filled_in():
    """A part of a text that lacks its ``f`` shows a call in braces to users."""
    for path in SOURCES.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        texts = [text for text in texts if isinstance(text, str)]
        assert not [text for text in texts if re.search(r"\{\w+\(['\"]", text)], path
