"""Documents refuse what could not be drawn."""

from __future__ import annotations

import pytest

from fairsieve.errors import InvalidInputError
from fairsieve.report.document import Cell, Column, Document, Figure, Panel, Section, Series, Table


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden", "a/b", "<b>"])
def test_names_are_fit_for_files_and_anchors(name):
    panel = Panel("t", "x", "y", [])
    for make in (
        lambda: Table(name, "", [], []),
        lambda: Figure(name, "", [panel]),
        lambda: Section(name, "", []),
    ):
        with pytest.raises(InvalidInputError, match="must be letters, digits"):
            make()


def test_rows_have_a_cell_for_each_column():
    with pytest.raises(InvalidInputError, match="each of its 1 columns; row 1 has 2"):
        Table("t", "", [Column("a")], [[Cell("1")], [Cell("1"), Cell("2")]])


def test_groups_span_all_columns():
    heads = [Column("a"), Column("b", group="g"), Column("c", group="g"), Column("d", group="h")]
    assert Table("t", "", heads, []).groups() == [("", 1), ("g", 2), ("h", 1)]
    assert Table("t", "", heads[:1], []).groups() == []
    assert [column.full_title for column in heads] == ["a", "g: b", "g: c", "h: d"]


@pytest.mark.parametrize("field", ["y", "deviation", "x_deviation", "labels"])
def test_series_are_as_long_as_x(field):
    values = {"y": [1.0, 2.0]} | {field: [1.0] if field != "labels" else ["a"]}
    with pytest.raises(InvalidInputError, match=f"{field} of series 's' must be as long as x, 2; got 1"):
        Series("s", [0.0, 1.0], **values)


def test_a_figure_has_panels():
    with pytest.raises(InvalidInputError, match="must not be empty"):
        Figure("f", "", [])


def test_names_differ_within_their_kind():
    table = Table("one", "", [], [])
    figure = Figure("one", "", [Panel("t", "x", "y", [])])
    Document("", "", [Section("one", "", [table, figure])])
    with pytest.raises(InvalidInputError, match="table 'one' is there 2 times"):
        Document("", "", [Section("one", "", [table]), Section("two", "", [table])])
