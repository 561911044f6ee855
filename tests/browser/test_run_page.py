"""The report of a run as a reader has it, with names that would rather be code."""

import json

import pytest
from tests.browser.conftest import Page
from tests.support.people import people, write_csv

from fairsieve import tabular

HOSTILE = "<img src=x onerror=alert(1)>"
GROUPS = {"man": "&lt;b&gt; %{x} &#60;i> $x$ man"}
GROUPS["woman"] = "<a href='javascript:alert(5)'>woman</a><br>\"><b id=made>' onmouseover=alert(6)"
FILE = "people \"'><img src=x onerror=alert(2)><script>alert(3)<!-- {{ 7 * 7 }} &lt;b>.csv"


@pytest.fixture(scope="module")
def page(driver, tmp_path_factory):
    table = people(400)
    table[HOSTILE] = [f"</script><script>alert(4)</script>{value}" for value in table.pop("job")]
    table["<b>sex</b>"] = [GROUPS[value] for value in table.pop("sex")]
    folder = tmp_path_factory.mktemp("run")
    path = write_csv(folder / FILE, table)
    settings = {"label": "income", "sensitive": "<b>sex</b>", "clean_ratio": 0.85, "tolerance": 0.02}
    run = tabular.train(path, test_file=path, **settings).save(folder / "run")
    return Page(driver, run / "report.html").open()


def test_it_loads_in_silence_and_alone(page):
    assert page.console() == []
    assert page.requests() == []


def test_hostile_names_stay_text(page):
    assert FILE in page.run("return document.querySelector('.lead').textContent")
    assert FILE in page.run("return document.querySelector('#settings').textContent")
    scripts = "return [...document.scripts].filter((script) => script.textContent.startsWith('alert')).length"
    assert page.run(scripts) == 0
    assert page.run("return document.images.length") == 0
    assert page.run("return document.getElementById('made')") is None
    assert page.run("return document.querySelectorAll('main b, main i, a:not([href^=\"#\"])').length") == 0
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = true))")
    assert HOSTILE in page.column("columns", 0)
    assert set(page.column("groups", 0)) == set(GROUPS.values())
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = false))")
    ticks = page.texts("#figure-rates .ytick text")
    assert set(GROUPS.values()) <= set(ticks)
    for curve, group in ((1, "man"), (4, "woman")):
        point = f"[{{curveNumber: {curve}, pointNumber: 0}}]"
        page.run(f"Plotly.Fx.hover(document.querySelector('#figure-rates .plot'), {point})")
        told = "document.querySelector('#figure-rates .hoverlayer').textContent"
        page.wait_for(f"return {told}.startsWith({json.dumps(GROUPS[group])})")
    assert page.run("return document.querySelectorAll('.plot image, .hoverlayer a').length") == 0


def test_the_first_screen_has_the_decision_the_chart_and_the_next_step(page):
    page.show(width=1280, scheme="light")
    for place in (".decision .gist", ".decision .line", "#figure-rates .plot"):
        box = page.find(place).rect
        box = box["y"], box["y"] + box["height"]
        assert 0 <= box[0] < box[1] <= 800
    lines = page.texts(".decision .line")
    assert lines[0] in ("model.skops holds: the fair model.", "model.skops holds: the plain model.")
    assert lines[1].startswith("Next: ")


def test_the_page_is_short(page):
    page.show(width=1280, scheme="light")
    assert len(page.run("return document.body.innerText").split()) <= 1500
    assert page.run("return document.documentElement.scrollHeight") <= 6000


def test_folded_charts_are_drawn_when_they_open(page):
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = true))")
    drawn = "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.trace'))"
    page.wait_for(f"return {drawn}")
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = false))")


def test_suspects_are_row_numbers_that_come_in_pages(page):
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = true))")
    heads = page.texts("#table-suspects thead button")
    assert heads == ["row", "chance of another label"]
    shown = "return [...document.querySelectorAll('#table-suspects tbody tr')].filter((row) => !row.hidden).length"
    assert page.run(shown) == 20
    page.run("document.querySelectorAll('.folded').forEach((one) => (one.open = false))")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out(page, width, scheme):
    page.show(width=width, scheme=scheme)
    assert page.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert page.console() == []


def test_groups_look_the_same_in_every_figure(page):
    hues = page.run(
        "return [...document.querySelectorAll('figure .chart')].map((data) => JSON.parse(data.textContent))"
        ".flatMap(({names, panels}) => panels.flatMap(({series}) => series.map(({name, hue}) => [names[name], hue])))"
    )
    names = {name for name, _ in hues}
    assert len({(name, hue) for name, hue in hues}) == len(names)
