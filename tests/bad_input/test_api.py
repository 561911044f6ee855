"""Every bad input to the public API gives the error that the catalogue says, and leaves nothing behind."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.bad_input import api_core, api_data, api_learning
from tests.bad_input.page import PAGE, page_text

ENTRIES = [*api_core.ENTRIES, *api_learning.ENTRIES, *api_data.ENTRIES]


@pytest.mark.parametrize("bad", ENTRIES, ids=lambda bad: bad.name)
def test_it_is_told(bad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bad.error) as caught:
        bad.call()
    message = str(caught.value)
    assert bad.lacks(message) == [], message
    assert not re.search(r"np\.\w+\(|numpy\.\w+\(", message), message  # NumPy's names say nothing to a user
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path.parent / "x").exists()


def test_there_are_many_and_no_two_alike():
    assert len(ENTRIES) >= 40
    assert max(Counter(bad.name for bad in ENTRIES).values()) == 1
    assert all(part for bad in ENTRIES for part in bad.parts)


def test_the_page_says_what_the_catalogue_says():
    assert PAGE.read_text(encoding="utf-8") == page_text(), "write it anew: python -m tests.bad_input.page"
