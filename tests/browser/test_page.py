"""The page as a reader has it: it draws, sorts, filters and hides, and asks nobody for anything."""

import pytest
from tests.support.sample_document import VALUES, results, sample_document, suspects

from fairsieve.report.page import Document, Section


@pytest.fixture(scope="module")
def page(make_page):
    return make_page(sample_document())


def hue(page, scheme, name):
    """A colour of the themes that the page carries."""
    themes = page.run("return JSON.parse(document.getElementById('themes').textContent)")
    return themes[scheme]["hues"][name] if name == "blue" else themes[scheme][name]


def of_each_plot(figure, expression):
    """A script that says something of each plot of a figure."""
    return f"return [...document.querySelectorAll('#figure-{figure} .plot')].map((plot) => {expression})"


def test_it_loads_in_silence_and_alone(page):
    assert page.console() == []
    assert page.requests() == []


def test_every_panel_draws(page):
    for figure, least in (("by-epoch", 8), ("by-rate", 9), ("trade-off", 8)):
        shapes = page.run(of_each_plot(figure, "plot.querySelectorAll('.trace path').length"))
        assert min(shapes) >= least
        assert min(page.run(of_each_plot(figure, "plot.querySelector('.main-svg').clientWidth"))) > 250


def test_hiding_a_method_hides_it_in_all_panels_of_its_figure(page):
    lines = of_each_plot("by-epoch", "plot.querySelectorAll('.js-line').length")
    named = of_each_plot("by-epoch", "plot.data.some((trace) => trace.name === 'ITLM')")
    before, elsewhere = page.run(lines), page.run(of_each_plot("by-rate", "plot.data.length"))
    assert page.run(named) == [True, True]
    box = page.find("#figure-by-epoch [data-series='1']")
    box.send_keys(" ")  # by keyboard
    assert page.run(named) == [False, False]
    assert all(now < then for now, then in zip(page.run(lines), before, strict=True))
    assert page.run(of_each_plot("by-rate", "plot.data.length")) == elsewhere
    box.click()
    assert page.run(named) == [True, True]
    assert page.run(lines) == before


def test_a_zoom_can_be_reset(page):
    reset = page.find("#figure-by-epoch .reset")
    assert not reset.is_displayed()
    page.run("Plotly.relayout(document.querySelector('#figure-by-epoch .plot'), {'xaxis.range': [10, 20]})")
    assert reset.is_displayed()
    reset.click()
    assert min(page.run(of_each_plot("by-epoch", "plot.layout.xaxis.range[1]"))) > 100
    assert not reset.is_displayed()


def test_pointing_tells_name_values_and_deviation(page):
    page.run("document.querySelector('#figure-by-rate').scrollIntoView()")
    point = "[{curveNumber: 1, pointNumber: 2}]"
    page.run(f"Plotly.Fx.hover(document.querySelector('#figure-by-rate .plot'), {point})")
    text = page.wait_for("return document.querySelector('#figure-by-rate .hoverlayer').textContent")
    assert text == "LRshare of flipped labels: 0.14accuracy: 0.664 ± 0.01"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_charts_follow_screen_and_scheme(page, width, scheme):
    page.show(width=width, scheme=scheme)
    page.run("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    background = rgb(hue(page, scheme, "background"))
    assert page.run("return getComputedStyle(document.body).backgroundColor") == background
    muted = rgb(hue(page, scheme, "muted"))
    page.wait_for(f"return getComputedStyle(document.querySelector('.xtick text')).fill === '{muted}'")
    blue = hue(page, scheme, "blue")
    page.wait_for(f"return document.querySelector('.plot').data.at(-1).line.color === '{blue}'")
    fits = "plot.querySelector('.main-svg').clientWidth === plot.clientWidth"
    page.wait_for(f"return [...document.querySelectorAll('.plot')].every((plot) => {fits})")
    assert page.console() == []


def rgb(colour):
    """A colour as the browser says it."""
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_paper_is_light_and_its_charts_fit(page):
    page.show(scheme="dark")
    colours = of_each_plot("by-epoch", "plot.data.at(-1).line.color")
    unfolded = "return [...document.querySelectorAll('.rest')].map((details) => details.open)"
    assert page.run("document.querySelector('.rest').open = false; " + unfolded) == [False]
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(unfolded) == [True]
    assert set(page.run(colours)) == {hue(page, "light", "blue")}
    assert page.run("return document.querySelector('.panels').offsetWidth") == 680
    page.run("dispatchEvent(new Event('afterprint'))")
    assert set(page.run(colours)) == {hue(page, "dark", "blue")}


def test_the_skip_link_comes_first_and_landmarks_are_there(page):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    page.run("document.activeElement.blur(); scrollTo(0, 0)")
    page.driver.get(page.path.as_uri() + "#")
    page.find("body").send_keys(keys.TAB)
    assert page.run("return document.activeElement.textContent") == "Skip to the content"
    assert page.run("return document.activeElement.getBoundingClientRect().left") >= 0
    for landmark in ("header", "nav[aria-label]", "main"):
        assert page.find(landmark)


# ---- Tables on the page sort and filter, by mouse and by keyboard


@pytest.fixture
def tables(make_page):
    return make_page(Document("Tables", "No charts.", [Section("one", "One", [results(), suspects()])]))


def test_numbers_sort_as_numbers_both_ways(tables):
    button = tables.find("#table-suspects thead th:nth-child(1) button")
    numbers = [float(text) for text in tables.column("suspects", 0)]
    assert numbers != sorted(numbers)
    button.click()
    assert [float(text) for text in tables.column("suspects", 0)] == sorted(numbers)
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(text) for text in tables.column("suspects", 0)] == sorted(numbers, reverse=True)
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_values_sort_where_texts_would_not(tables):
    tables.find("#table-table1 thead th:nth-child(2) button").click()
    assert tables.column("table1", 0)[0] == "FB"
    tables.find("#table-table1 thead th:nth-child(1) button").click()
    assert tables.column("table1", 0) == sorted(VALUES, key=str.lower)
    assert len(tables.driver.find_elements("css selector", "#table-table1 [aria-sort]")) == 1


def test_tab_reaches_a_sort_button_and_enter_sorts(tables):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    focus = tables.find("#table-suspects input")
    focus.click()
    for _ in range(5):
        if tables.run("return document.activeElement.matches('thead button')"):
            break
        tables.driver.switch_to.active_element.send_keys(keys.TAB)
    tables.driver.switch_to.active_element.send_keys(keys.ENTER)
    numbers = [float(text) for text in tables.column("suspects", 0)]
    assert numbers == sorted(numbers)


def test_filtering_keeps_the_rows_with_every_word(tables):
    field = tables.find("#table-suspects input")
    field.send_keys("woman <=50K 10.89")
    assert tables.column("suspects", 2) == []
    field.clear()
    field.send_keys("WOMAN 12.00")
    assert tables.column("suspects", 2) == ["12.00"]
    assert tables.find("#table-suspects output").text == "1 of 30 rows"
    field.clear()
    field.send_keys(" ")
    assert len(tables.column("suspects", 0)) == 30


def test_a_tap_on_an_entry_tells_its_note(tables):
    note = tables.find("#table-table1 .note")
    assert not note.is_displayed()
    tables.find("#table-table1 [title]").click()
    assert note.text == "FR-Train: needs a clean validation set"
