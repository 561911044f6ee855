"""Figures in files: the same bytes each time, and every name in them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from tests.support.sample_document import by_rate, trade_off

from fairsieve.errors import MissingExtraError
from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.figure_files import write_figure_files
from fairsieve.report.looks import THEMES


def drawn(figure, folder):
    """The SVG's texts and its bytes."""
    folder.mkdir(exist_ok=True)
    svg, png = write_figure_files(figure, folder)
    assert png.read_bytes().startswith(b"\x89PNG")
    texts = [
        "".join(element.itertext()) for element in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    ]
    return texts, svg.read_bytes(), png.read_bytes()


def test_the_same_figure_has_the_same_bytes_and_no_date(tmp_path):
    first, again = (drawn(trade_off(), tmp_path / name) for name in "ab")
    assert first == again
    assert b"<dc:date>" not in first[1]


def test_every_title_and_name_is_there_once_in_the_legend(tmp_path):
    texts, svg, _ = drawn(by_rate(), tmp_path)
    for name in ("LR", "ITLM", "fairsieve"):
        assert texts.count(name) == 1
    for panel in by_rate().panels:
        assert panel.title in texts
    assert THEMES["light"].hues["blue"].lower().encode() in svg


def test_odd_names_and_numbers_are_drawn_as_they_are(tmp_path):
    names = ["_hidden", "$\\frac{", "<b>&amp;</b>", "\\$", "名"]
    series = [
        Series(names[0], [1, 2, 3], [1, math.nan, 3], deviation=[0.1, math.nan, 0.1]),
        Series(names[1], [1], [2], "points", dashed=True),
        Series(names[2], [1, 2], [2, 1], "bars", dashed=True),
        Series(names[3], [], []),
        Series(names[4], [2], [math.nan], "bars"),
    ]
    categories = Series("c", names, [1, 2, 3, 4, 5], deviation=[0.5] * 5)
    panels = [
        Panel("$a_", "x^2$", "$", series),
        Panel("t", "x", "y", [categories]),
        Panel("none", "x", "y", []),
    ]
    texts, _, _ = drawn(Figure("odd", "", panels), tmp_path)
    assert all(texts.count(name) == 2 for name in names)
    assert "$a_" in texts


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"fairsieve\[plot\]"):
        write_figure_files(by_rate(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_dumbbells_name_their_heights_within_the_fixed_axis(tmp_path):
    series = [
        Series(name, [0.2, 0.4], [i, i], "dumbbell", x_interval=[(0.1, 0.4)] * 2)
        for i, name in enumerate(("men", "$women$"))
    ]
    panel = Panel(
        "Rate", "share", "group", series, x_range=(0, 1), y_range=(0, 1), y_names=("men", "$women$")
    )
    texts, _, _ = drawn(Figure("f", "Rates", [panel]), tmp_path)
    assert texts.count("men") == texts.count("$women$") == 2  # at the axis, and in the legend
    assert "1.0" in texts
    assert "1.2" not in texts
