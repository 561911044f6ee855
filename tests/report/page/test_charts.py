"""What charts are drawn from: valid, escaped, and the same numbers as in the tables beside them."""

from __future__ import annotations

import html
import json
import math

from hypothesis import given
from hypothesis import strategies as st
from tests.support.sample_document import by_epoch, by_rate, trade_off

from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.page.charts import _plain_number, _plotly_text, chart_data, data_tables

numbers = st.floats() | st.integers(-(10**12), 10**12)


@given(st.text())
def test_text_for_plotly_holds_no_tag_and_reads_the_same(text):
    escaped = _plotly_text(text)
    assert not set(escaped) & set("<>\n")
    assert html.unescape(escaped).split() == html.unescape(html.escape(text)).split()


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=5), st.text(max_size=5))
def test_charts_are_strict_json(points, name):
    x, y, deviation = ([point[i] for point in points] for i in range(3))
    figure = Figure("f", "", [Panel(name, name, name, [Series(name, x, y, deviation=deviation)])])
    json.dumps(chart_data(figure), allow_nan=False)
    assert len(data_tables(figure)[0].rows) == len(points)


@given(numbers)
def test_numbers_are_kept_to_six_digits(number):
    plain = _plain_number(number)
    if math.isfinite(number):
        assert plain is not None
        assert math.isclose(plain, number, rel_tol=1e-5)
    else:
        assert plain is None


def test_a_name_has_one_number_in_all_panels():
    chart = chart_data(by_epoch())
    assert chart["names"] == ["LR", "ITLM", "FB", "fairsieve"]
    for panel in chart["panels"]:
        assert [series["name"] for series in panel["series"]] == [0, 1, 2, 3]


def test_tables_beside_charts_have_a_row_for_each_point():
    first = data_tables(by_rate())[0]
    assert [cell.text for cell in first.rows[0]] == ["LR", "0.1", "0.7 ± 0.01"]
    assert [cell.text for cell in first.rows[6]] == ["LR (dashed)", "0.1", "0.71"]
    points, cells = data_tables(trade_off())
    assert [cell.text for cell in points.rows[0]] == ["LR", "five seeds", "0.578 ± 0.012", "0.663 ± 0.008"]
    assert [cell.text for cell in cells.rows[4]] == ["kept", "woman, 0", "600 ± 20"]


def dumbbells():
    """Two groups, each before and after."""
    series = [
        Series(
            name,
            [0.2 + i / 10, 0.4],
            [i, i],
            "dumbbell",
            labels=("plain", "fair"),
            x_interval=[(0.1, 0.4)] * 2,
        )
        for i, name in enumerate(("men", "women"))
    ]
    return Figure("f", "Rates", [Panel("Rate", "share", "group", series, (0, 1), None, ("men", "women"))])


def test_dumbbells_stand_in_a_table_with_both_ends():
    (table,) = data_tables(dumbbells())
    assert [column.title for column in table.columns] == ["series", "point", "share"]
    assert [cell.text for cell in table.rows[2]] == ["women", "plain", "0.3 [0.1, 0.4]"]
    panel = chart_data(dumbbells())["panels"][0]
    assert panel["x_range"] == (0, 1)
    assert panel["y_names"] == ["men", "women"]
