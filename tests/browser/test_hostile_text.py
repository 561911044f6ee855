"""Text stays text, wherever it stands and whatever it says."""

from __future__ import annotations

import pytest

from fairsieve.report.document import (
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Panel,
    Section,
    Series,
    Table,
    Text,
    Verdict,
)

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "\"><b id=made>bold</b> ' onmouseover=alert(3)",
    "&lt;b&gt; %{x} &#60;i> $x$ {{ 7 * 7 }}",
    "<a href='javascript:alert(4)'>link</a><br>",
)


def hostile_document() -> Document:
    """The same words in every place that takes words."""
    words = " ".join(HOSTILE)
    table = Table("one", words, [Column(text, note=text) for text in HOSTILE],
                  [[Cell(text, reference=text, note=text, apart=2.5, mark="best") for text in HOSTILE]],
                  filterable=True, reference_title=words)  # fmt: skip
    lines = [
        Series(text, list(HOSTILE), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], deviation=[0.1] * 6, labels=list(HOSTILE))
        for text in HOSTILE
    ]
    figure = Figure("one", words, [Panel(words, words, words, lines)])
    blocks = [Text(words), Verdict(words, words, True, words), table, figure, Facts(words, {words: words})]
    return Document(words, words, [Section("one", words, blocks)])


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
