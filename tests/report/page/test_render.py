"""The page's HTML: text stays text, and everything is inside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sample_document import sample_document

from fairsieve.errors import InvalidInputError
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
from fairsieve.report.page import plotly_packed, render_page, script_hash, write_page
from fairsieve.report.page.charts import _plotly_text

LEAST_LETTERS = st.text(st.sampled_from("<>&\"'/!-= sctb{}%$;\u2028é"), max_size=12)
WORDS = st.one_of(
    LEAST_LETTERS,
    st.sampled_from(["</script>", "<!--", "]]>", "<img src=x onerror=alert(1)>", "{{ 7 }}", "&lt;"]),
)


class Outline(HTMLParser):
    """Tags with their attributes, and texts by the tag they stand in."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.open = [], {}, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data


def document_of(text):
    table = Table(
        "t", text, [Column(text, note="n" + text)], [[Cell(text, 1.0, "r" + text, 2.5, "best", "n" + text)]]
    )
    series = Series(text, ["c" + text], [1.0], labels=[text])
    figure = Figure("f", text, [Panel(text, text, "y" + text, [series])])
    blocks = [Text(text), Verdict(text, "s" + text, None, text), table, figure, Facts(text, {text: text})]
    return Document(text, text, [Section("s", text, blocks)])


def rendered(text):
    """The page, less the library that it carries."""
    return render_page(document_of(text)).replace(plotly_packed()[0], "")


@settings(max_examples=60)
@given(WORDS)
def test_no_text_makes_a_tag_or_an_attribute(text):
    html = rendered(text)
    page = Outline(html)
    assert page.tags == Outline(rendered("x")).tags
    for tag in ("title", "h1", "figcaption", "dt", "dd"):
        assert page.texts[tag] == [text]
    chart = re.findall(
        r'<script type="application/json" class="chart">(.*?)</script>', html, flags=re.DOTALL
    )[0]
    assert not set(chart) & set("<>&'")
    assert json.loads(chart)["names"] == [_plotly_text(text)]


@pytest.fixture(scope="module")
def sample():
    return render_page(sample_document())


def test_the_page_is_small_and_asks_for_nothing(sample):
    assert len(sample.encode()) < 3e6
    outside = re.findall(
        r"""(?:src|href|action)\s*=\s*["']?(?!#|data:,)[^\s>"']+""", sample.split('id="plotly"')[0]
    )
    assert outside == []


def test_the_same_document_has_the_same_bytes(sample):
    assert render_page(sample_document()) == sample


def test_the_policy_allows_our_script_and_no_other(sample):
    content = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', sample)[1]
    script = re.search(r"<script>(.*?)</script>\s*</body>", sample, flags=re.DOTALL)[1]
    assert script_hash(script) in content
    assert content.startswith("default-src &#39;none&#39;")
    assert "unsafe-inline" not in content.split("script-src")[1].split(";")[0]


def test_without_figures_there_is_no_library():
    assert len(render_page(Document("t", "l", [Section("s", "S", [Text("words")])]))) < 40_000


def test_claims_are_counted_and_told_in_words(sample):
    for words in ("claims hold", "claim does not hold", "claim is inconclusive"):
        assert words in sample
    for words in ("✓</span> Holds", "✗</span> Does not hold", "?</span> Cannot tell"):
        assert words in sample


def test_ids_are_unique_and_links_lead_to_them(sample):
    ids = re.findall(r'\sid="([^"]+)"', sample)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]*)"|aria-labelledby="([^"]*)"', sample):
        assert "".join(target) in ids


@pytest.mark.parametrize("rest", ["Short.", "And the numbers follow. " * 10])
def test_long_evidence_is_folded_after_its_first_sentence_and_nothing_is_lost(rest):
    verdict = Verdict("claim", "source", True, f"It was found. {rest}")
    page = render_page(Document("t", "l", [Section("s", "S", [verdict])]))
    assert ('class="rest"' in page) == (len(rest) > 100)
    shown = re.sub(r"<[^>]+>|The numbers", " ", page.partition('class="evidence"')[2].partition("</li>")[0])
    assert " ".join(shown.replace(">", " ", 1).split()) == f"It was found. {rest}".strip()


@pytest.mark.parametrize(
    ("apart", "level"),
    [
        (None, None),
        (float("nan"), None),
        (-1, 0),
        (1.01, 1),
        (2, 1),
        (-2.5, 2),
        (3.1, 3),
        (float("inf"), 3),
    ],
)
def test_shades_go_by_standard_deviations(apart, level):
    table = Table("t", "T", [Column("a")], [[Cell("1", apart=apart)]])
    page = render_page(Document("t", "l", [Section("s", "S", [table])]))
    found = re.search(r'<th data-title="a"[^>]*apart-(\d)', page)
    assert (None if found is None else int(found[1])) == level


def test_an_unwritable_path_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"in a folder that exists; .*page\.html"):
        write_page(Document("t", "l"), tmp_path / "nowhere" / "page.html")
