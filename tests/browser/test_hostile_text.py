"""Text stays text, wherever it stands and whatever it says."""

from __future__ import annotations

import pytest
from tests.support.sample_document import HOSTILE, hostile_document


@pytest.fixture(scope="module")
def page(make_page):
    return make_page(hostile_document())


def test_nothing_runs_and_nothing_is_made(page):
    assert page.console() == []
    assert page.requests() == []
    assert page.run("return document.images.length") == 0
    assert page.run("return document.getElementById('made')") is None
    # The script, the chart's data, the themes, the packed library and its unpacked form.
    assert page.run("return document.scripts.length") == 5
    assert page.run("return document.querySelectorAll('a:not([href^=\"#\"])').length") == 0


@pytest.mark.parametrize(
    "selector",
    ["title", "h1", ".lead", "h2[id$=title]", ".text", ".claim", ".evidence", "caption", "figcaption", "dd"],
)
def test_words_are_shown_as_they_are(page, selector):
    shown = page.run("return document.querySelector(arguments[0]).textContent", selector)
    assert shown == " ".join(HOSTILE)


def test_names_are_shown_as_they_are(page):
    labels = page.run(
        "return [...document.querySelectorAll('fieldset label')].map((label) => label.textContent)"
    )
    assert labels == list(HOSTILE)
    assert page.run("return document.querySelector('tbody td').title") == HOSTILE[1]


def test_the_chart_shows_categories_and_names_as_they_are(page):
    ticks = page.run("return [...document.querySelectorAll('.xtick text')].map((text) => text.textContent)")
    assert set(ticks) <= set(HOSTILE)
    assert ticks
    for i, text in enumerate(HOSTILE):
        page.run(
            "Plotly.Fx.hover(document.querySelector('.plot'), [{curveNumber: arguments[0], pointNumber: 0}])",
            2 * i + 1,
        )
        page.wait_for(
            "return document.querySelector('.hoverlayer').textContent.startsWith(arguments[0])".replace(
                "arguments[0]", repr(text) if "'" not in text else f"`{text}`"
            )
        )
    assert page.run("return document.querySelectorAll('.hoverlayer a, .hoverlayer image').length") == 0
