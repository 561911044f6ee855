"""The report of a run as a reader has it, with names that would rather be code."""

from __future__ import annotations

import pytest
from tests.support.people import people, write_csv

from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.report.story import run_document
from fairsieve.tabular.request import Asked
from fairsieve.tabular.table_run import train_table

HOSTILE = "<img src=x onerror=alert(1)>"
FILE = "people \"'><img src=x onerror=alert(2)><script>alert(3)<!-- {{ 7 * 7 }} &lt;b>.csv"


@pytest.fixture(scope="module")
def page(make_page, tmp_path_factory):
    table = people(400)
    table[HOSTILE] = [f"</script><script>alert(4)</script>{value}" for value in table.pop("job")]
    table["<b>sex</b>"] = [f"<i>{value}" for value in table.pop("sex")]
    path = write_csv(tmp_path_factory.mktemp("run") / FILE, table)
    asked = Asked(path, "income", ["<b>sex</b>"], clean_ratio=0.85, test_file=path, epochs=12)
    run = train_table(asked)
    return make_page(run_document(run, decide_run(run)))


def test_it_loads_in_silence_and_alone(page):
    assert page.console() == []
    assert page.requests() == []


def test_hostile_names_stay_text(page):
    for place in (".lead", "#changed", "#settings"):
        assert FILE in page.run("return document.querySelector(arguments[0]).textContent", place)
    scripts = "return [...document.scripts].filter((script) => script.textContent.startsWith('alert')).length"
    assert page.run(scripts) == 0
    assert page.run("return document.images.length") == 0
    assert page.run("return document.querySelectorAll('main b, main i').length") == 0
    assert HOSTILE in page.column("columns", 0)
    assert set(page.column("groups", 0)) == {"<i>man", "<i>woman"}
    assert page.run("return document.querySelectorAll('.plot image').length") == 0


def test_every_part_is_there_and_drawn(page):
    titles = page.run("return [...document.querySelectorAll('main h2')].map((head) => head.textContent)")
    assert titles == [
        "Decision",
        "What changed",
        "Who was dropped, and why",
        "Labels to check",
        "The trade-off",
        "Details: every rate",
        "Details: telling labels apart",
        "Details: probabilities",
        "Details: epoch by epoch",
        "Details: the table",
        "Details: how this was made",
    ]
    drawn = (
        "return [...document.querySelectorAll('.plot')].map((plot) => plot.querySelectorAll('.trace').length)"
    )
    assert min(page.run(drawn)) >= 2
    bars = page.run("return document.querySelectorAll('#figure-groups .errorbar').length")
    assert bars == 16  # four rates, two models, two groups


def test_error_bars_reach_to_the_ends_of_the_interval(page):
    found = page.run(
        "const plot = document.querySelector('#figure-dropped .plot');"
        "return plot.data.map(({y, error_y}) => y.map((v, i) => [v - error_y.arrayminus[i], v + error_y.array[i]]))"
    )
    table = page.run("return document.querySelector('#figure-dropped .chart').textContent")
    assert all(-1e-9 <= low <= high <= 1 + 1e-9 for trace in found for low, high in trace)
    assert '"interval"' in table


def test_suspects_sort_and_filter(page):
    losses = [float(text) for text in page.column("suspects", 4)]
    assert losses == sorted(losses, reverse=True)
    page.find("#table-suspects thead th:nth-child(5) button").click()
    lowest = [float(text) for text in page.column("suspects", 4)]
    assert lowest == sorted(lowest)
    assert max(lowest) <= min(losses)
    field = page.find("#table-suspects input")
    field.send_keys("<i>woman high")
    groups = page.column("suspects", 5)
    assert groups
    assert set(groups) == {"<i>woman"}
    field.clear()
    field.send_keys(" ")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out(page, width, scheme):
    page.show(width=width, scheme=scheme)
    assert page.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert page.console() == []


def test_suspects_come_in_pages_of_twenty(page):
    shown = "return [...document.querySelectorAll('#table-suspects tbody tr')].filter((row) => !row.hidden).length"
    count = page.run("return document.querySelectorAll('#table-suspects tbody tr').length")
    assert count > 20
    assert page.run(shown) == 20
    page.find("#table-suspects [data-step='1']").click()
    assert page.run(shown) == min(20, count - 20)
    assert "rows 21 to" in page.find("#table-suspects .pager output").text
    page.find("#table-suspects [data-step='-1']").click()
    assert page.run(shown) == 20


def test_groups_look_the_same_in_every_figure(page):
    hues = page.run(
        "return [...document.querySelectorAll('figure .chart')].map((data) => JSON.parse(data.textContent))"
        ".flatMap(({names, panels}) => panels.flatMap(({series}) => series.map(({name, hue}) => [names[name], hue])))"
    )
    for group in ("&lt;i&gt;man", "&lt;i&gt;woman"):
        assert len({hue for name, hue in hues if name == group}) == 1
