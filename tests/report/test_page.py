"""Documents as pages, tables and text: what cannot be drawn is refused, text stays text, and everything is inside."""

import csv
import html
import io
import json
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sample_document import by_rate, sample_document, trade_off

from fairsieve.errors import InvalidInputError
from fairsieve.report import page as doc
from fairsieve.report.text import FORMULA_STARTS, csv_text, markdown

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
    cell = doc.Cell(text, 1.0, "r" + text, 2.5, "best", "n" + text)
    table = doc.Table("t", text, [doc.Column(text)], [[cell]])
    series = doc.Series(text, ["c" + text], [1.0], labels=[text])
    figure = doc.Figure("f", text, [doc.Panel(text, text, "y" + text, [series])])
    verdict, facts = doc.Verdict(text, "s" + text, None, text), doc.Facts(text, {text: text})
    blocks = [doc.Text(text), verdict, table, figure, facts]
    return doc.Document(text, text, [doc.Section("s", text, blocks)])


def rendered(text):
    """The page, less the library that it carries."""
    return re.sub(r'(id="plotly"[^>]*>)[^<]*', r"\1", doc.render_page(document_of(text)))


@settings(max_examples=60)
@given(WORDS)
def test_no_text_makes_a_tag_or_an_attribute(text):
    shown = rendered(text)
    page = Outline(shown)
    assert page.tags == Outline(rendered("x")).tags
    for tag in ("title", "h1", "figcaption", "dt", "dd"):
        assert page.texts[tag] == [text]
    chart = re.search(r'<script type="application/json" class="chart">(.*?)</script>', shown)[1]
    assert not set(chart) & set("<>&'")
    assert not set(json.dumps(json.loads(chart), ensure_ascii=False)) & set("<>")  # nor in what Plotly reads
    assert html.unescape(json.loads(chart)["names"][0]).split() == html.unescape(html.escape(text)).split()


@pytest.fixture(scope="module")
def sample():
    return doc.render_page(sample_document())


def test_the_page_is_small_and_asks_for_nothing(sample):
    assert len(sample.encode()) < 3e6
    outside = re.findall(
        r"""(?:src|href|action)\s*=\s*["']?(?!#|data:,)[^\s>"']+""", sample.split('id="plotly"')[0]
    )
    assert outside == []


def test_the_same_document_has_the_same_bytes(sample):
    assert doc.render_page(sample_document()) == sample


def test_the_policy_allows_our_script_and_no_other(sample):
    content = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', sample)[1]
    script = re.search(r"<script>(.*?)</script>\s*</body>", sample, flags=re.DOTALL)[1]
    assert doc.script_hash(script) in content
    assert content.startswith("default-src &#39;none&#39;")
    assert "unsafe-inline" not in content.split("script-src")[1].split(";")[0]


def test_without_figures_there_is_no_library():
    assert len(doc.render_page(doc.Document("t", "l", [doc.Section("s", "S", [doc.Text("words")])]))) < 40_000


def test_claims_are_told_in_words_and_not_by_colour_alone(sample):
    for words in ("✓</span> Holds", "✗</span> Does not hold", "?</span> Cannot tell"):
        assert words in sample


def test_ids_are_unique_and_links_lead_to_them(sample):
    ids = re.findall(r'\sid="([^"]+)"', sample)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]*)"|aria-labelledby="([^"]*)"', sample):
        assert "".join(target) in ids


@pytest.mark.parametrize("rest", ["Short.", "And the numbers follow. " * 10])
def test_long_evidence_is_folded_after_its_first_sentence_and_nothing_is_lost(rest):
    verdict = doc.Verdict("claim", "source", True, f"It was found. {rest}")
    page = doc.render_page(doc.Document("t", "l", [doc.Section("s", "S", [verdict])]))
    assert ('class="rest"' in page) == (len(rest) > 100)
    shown = re.sub(r"<[^>]+>|The numbers", " ", page.partition('class="evidence"')[2].partition("</li>")[0])
    assert " ".join(shown.replace(">", " ", 1).split()) == f"It was found. {rest}".strip()


@pytest.mark.parametrize(
    ("apart", "level"),
    [(None, None), (float("nan"), None), (-1, 0), (1.01, 1), (2, 1), (-2.5, 2), (3.1, 3), (float("inf"), 3)],
)
def test_shades_go_by_standard_deviations(apart, level):
    table = doc.Table("t", "T", [doc.Column("a")], [[doc.Cell("1", apart=apart)]])
    page = doc.render_page(doc.Document("t", "l", [doc.Section("s", "S", [table])]))
    found = re.search(r'<th data-title="a"[^>]*apart-(\d)', page)
    assert (None if found is None else int(found[1])) == level


def test_an_unwritable_path_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"in a folder that exists; .*page\.html"):
        doc.write_page(doc.Document("t", "l"), tmp_path / "nowhere" / "page.html")


# ---- Charts

numbers = st.floats() | st.integers(-(10**12), 10**12)


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=5), st.text(max_size=5))
def test_charts_are_strict_json(points, name):
    x, y, deviation = ([point[i] for point in points] for i in range(3))
    figure = doc.Figure("f", "", [doc.Panel(name, name, name, [doc.Series(name, x, y, deviation=deviation)])])
    chart = json.loads(json.dumps(doc.chart_data(figure), allow_nan=False))
    (panel,), names = chart["panels"], chart["names"]
    assert not set(names[0]) & set("<>\n")
    assert len(doc.data_tables(figure)[0].rows) == len(points)
    for told, value in zip(panel["series"][0]["y"], y, strict=True):
        assert told is None if not math.isfinite(value) else math.isclose(told, value, rel_tol=1e-5)


def test_tables_beside_charts_have_a_row_for_each_point():
    first = doc.data_tables(by_rate())[0]
    assert [cell.text for cell in first.rows[0]] == ["LR", "0.1", "0.7 ± 0.01"]
    assert [cell.text for cell in first.rows[6]] == ["LR (dashed)", "0.1", "0.71"]
    points, cells = doc.data_tables(trade_off())
    assert [cell.text for cell in points.rows[0]] == ["LR", "five seeds", "0.578 ± 0.012", "0.663 ± 0.008"]
    assert [cell.text for cell in cells.rows[4]] == ["kept", "woman, 0", "600 ± 20"]


def dumbbells():
    """Two groups, each before and after."""
    names, ends = ("men", "women"), {"labels": ("plain", "fair"), "x_interval": [(0.1, 0.4)] * 2}
    places = [([0.2 + i / 10, 0.4], [i, i], "dumbbell") for i in range(2)]
    series = [doc.Series(name, *place, **ends) for name, place in zip(names, places, strict=True)]
    return doc.Figure("f", "Rates", [doc.Panel("Rate", "share", "group", series, (0, 1), names)])


def test_dumbbells_stand_in_a_table_with_both_ends():
    (table,) = doc.data_tables(dumbbells())
    assert [column.title for column in table.columns] == ["series", "point", "share"]
    assert [cell.text for cell in table.rows[2]] == ["women", "plain", "0.3 [0.1, 0.4]"]
    panel = doc.chart_data(dumbbells())["panels"][0]
    assert panel["x_range"] == (0, 1)
    assert panel["y_names"] == ["men", "women"]


def test_groups_span_all_columns():
    heads = [doc.Column(name, group=group) for name, group in (("a", ""), *zip("bcd", "ggh", strict=True))]
    assert doc.Table("t", "", heads, []).groups() == [("", 1), ("g", 2), ("h", 1)]
    assert doc.Table("t", "", heads[:1], []).groups() == []
    assert [column.full_title for column in heads] == ["a", "g: b", "g: c", "h: d"]


# ---- Text

words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
hostile = st.one_of(
    words,
    st.sampled_from(["=1+1", "@x", "-2+3", "|", "a|b", "\\", "$x$", "<b>", "a\nb", "a\rb", "[x]", "**"]),
)


def csv_field(value):
    """One value as it is read back from CSV."""
    ((read, _),) = csv.reader(io.StringIO(csv_text([[value, ""]]), newline=""))
    return read


@given(st.one_of(st.text(max_size=8), st.sampled_from(["\t=1", "-1e5", "-1_0", "+-1", "－1", "-1 ± 2"])))
def test_no_text_begins_a_formula_but_a_number(text):
    shown = csv_field(text)
    assert shown.replace("'", "") == text.replace("'", "").replace("\r\n", "\n").replace("\r", "\n")
    if shown.startswith(FORMULA_STARTS[:4]):
        assert re.fullmatch(r"[+-](\d+\.?\d*|\.\d+)(e[+-]?\d+)?", shown, flags=re.IGNORECASE)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_left_alone(number):
    assert csv_field(number) == csv_field(repr(number)) == repr(number)


@given(st.lists(st.tuples(hostile, hostile), min_size=1, max_size=4))
def test_markdown_keeps_rows_and_columns(rows):
    heads = [doc.Column("a"), doc.Column("b", numeric=True)]
    table = doc.Table("one", "One", heads, [[doc.Cell(x), doc.Cell(y)] for x, y in rows])
    lines = doc.table_markdown(table).splitlines()[2:]
    assert len(lines) == len(rows) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@given(hostile)
def test_markdown_escapes_give_the_text_back(text):
    plain = re.sub(r"\\(.)", r"\1", markdown(text)).replace("&amp;", "&")
    assert plain == " ".join(text.split())
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>*`|]", markdown(text))
