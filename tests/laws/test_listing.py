"""The page that lists the laws."""

from __future__ import annotations

from tests.laws.listing import PAGE, listing, page_with, sentences


def test_the_page_lists_every_law():
    text = PAGE.read_text(encoding="utf-8")
    assert page_with(text, listing()) == text, "run python -m tests.laws.listing"


def test_every_law_is_one_sentence():
    laws = [law for _, several in sentences() for law in several]
    assert len(laws) >= 30
    assert len(set(laws)) == len(laws)
    for law in laws:
        assert law.endswith(".")
        assert "\n" not in law
