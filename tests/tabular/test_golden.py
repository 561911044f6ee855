"""What is read and typed in odd tables, recorded: a change of how tables are read must not change what is read."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fairsieve import tabular

RECORDS = Path(__file__).with_name("golden.json")
ROWS = 80
SHOWN = 6  # rows of a record


def cycled(columns, separator=",", end="\n", encoding="utf-8", first=b"", last=b""):
    """Write a table of 80 rows whose columns repeat a few values, beside two groups and two labels."""
    lines = [separator.join(["sex", "income", *columns])]
    for row in range(ROWS):
        base = [("F", "M")[row % 2], ("low", "high")[row // 2 % 2]]
        lines.append(separator.join(base + [values[row % len(values)] for values in columns.values()]))
    return first + (end.join(lines) + end).encode(encoding) + last


DAYS = [f"2024-01-{day + 1:02d}" for day in range(20)]
COMMAS = {"pay": ["1.234,5", "20,25", "-3,0", ""], "age": ["31", "47", "25"]}
GAPS = {
    "age": ["31", "?", " NA", "40", "-99", '""'],
    "town": ["Ulm", "N/A", "unknown", "<NA>", "null", "#N/A"],
    "gone": ["", "NaN"],
}
LONG = {
    "account": ["9007199254740993", "9007199254740992", "9007199254740994"],
    "serial": [str(10**18 + row) for row in range(ROWS)],
    "shifted": [str(10**18 + row * row % 61) for row in range(ROWS)],
    "huge": ["12345678901234567890123", "1"],
    "place": [str(row + 5) for row in range(ROWS)],
}
CODES = {
    "zip": ["00501", "10115", "89073"],
    "count": ["1", "1.0", "+1", "1e0", ".5", "2."],
    "flag": ["True", "False"],
    "kind": ["1", "2.0", "3"],
}
DATES = {
    "iso": DAYS,
    "seen": ["2024-02-29 12:00", "1969-12-31", ""],
    "dotted": ["04.03.2026", "1.1.1970"],
    "slashed": ["03/04/2026", "05/06/2026"],
}
QUOTES = {
    "job": ['"cook, chef"', '"said ""no"""', '"two\nlines"', "plain"],
    "": ["1", "2"],
    "  padded ": [" a", "b "],
}
MANY = {
    "town": [f"town {row % 60}" for row in range(ROWS)],
    "name": [f"name {row}" for row in range(ROWS)],
    "same": ["x"],
    "size": ["1,5", "2,25"],
}
AGES = {
    "age": ["30", "30", "40", "60", "20", "", "31", "26"],
    "team": ["a", "b", "c"],
    "region": ["1.0", "1", "2"],
}
BINS = {"sensitive": ["sex", "age"], "bins": ["age=25"], "small_groups": "merge"}
TABLES = {
    "decimal commas": (cycled(COMMAS, ";"), {}),
    "tabs in UTF-16": (cycled({"größe": ["1.5", "2", "3e2"]}, "\t", encoding="utf-16"), {}),
    "Windows-1252": (cycled({"town": ["Köln", "Ulm", "Fürth "]}, end="\r\n", encoding="cp1252"), {}),
    "marks of gaps": (cycled(GAPS), {"missing": ["unknown", "-99"]}),
    "long integers": (cycled(LONG), {}),
    "codes and ways to write a number": (cycled(CODES), {"categories": ["kind"]}),
    "dates": (cycled(DATES), {"dates": ["seen", "dotted"]}),
    "quotes and blank lines": (cycled(QUOTES, first=b"\xef\xbb\xbf\r\n", last=b"\n,,,,\n"), {}),
    "many values": (cycled(MANY, "|"), {"separator": "|", "decimal": "."}),
    "groups of numbers": (cycled(AGES), BINS),
}


def frame():
    rows = range(ROWS)
    return pd.DataFrame(
        {
            "sex": pd.Categorical([("F", "M")[row % 2] for row in rows]),
            "income": [("low", "high")[row // 2 % 2] for row in rows],
            "nullable": pd.array([None if row % 5 == 0 else 2**60 + row % 3 for row in rows], dtype="Int64"),
            "unsigned": pd.Series([2**64 - 1 - row % 2 for row in rows], dtype="uint64"),
            "real": [None if row % 7 == 0 else row / 4 for row in rows],
            "flag": [row % 3 == 0 for row in rows],
            "maybe": pd.array([None if row % 4 == 0 else row % 3 == 0 for row in rows], dtype="boolean"),
            "born": pd.to_datetime([f"1990-01-{row % 28 + 1:02d}" for row in rows]),
            "mixed": [(1, "1", 1.0, " 1 ", None, "?")[row % 6] for row in rows],
            "small": pd.Series([row % 4 for row in rows], dtype="int8"),
        }
    )


def describe(feature):
    known = [feature.column, feature.kind, feature.missing, feature.distinct, bool(feature.left_out)]
    return [*known, "beyond" in feature.hint, feature.format.kind == "dates"]


def show(column):
    """Return values, with gaps as JSON has them."""
    gap = "" if column.dtype == "category" else None
    return [gap if value != value else value for value in column.tolist()]


def record(data, sensitive="sex", **settings):
    """Describe what was read of a table: the kinds of its columns, its first rows, groups and labels."""
    whole = tabular.review(data, label="income", sensitive=sensitive, rows=ROWS, **settings).review
    part = whole.train
    return {
        "rows": [len(part), *part.rows[:SHOWN].tolist(), int(part.rows[-1])],
        "classes": list(whole.labels.classes),
        "groups": list(whole.groups.names),
        "features": [describe(one) for one in whole.features],
        "values": {name: show(column[:SHOWN]) for name, column in part.values.items()},
        "labels": part.class_names(part.label_codes[:SHOWN]),
        "checksums": whole.rows.sort_values("row")["row_checksum"].tolist()[0:4:3],
        "group codes": [None if code != code else int(code) for code in part.group_codes[:SHOWN]],
    }


def made(name, folder):
    """Return one of the odd tables as a file or a frame, and its settings."""
    if name in TABLES:
        content, settings = TABLES[name]
        (folder / "table.csv").write_bytes(content)
        return folder / "table.csv", settings
    if name == "Parquet":
        frame().drop(columns="mixed").to_parquet(folder / "table.parquet")
        return folder / "table.parquet", {"dates": ["born"]}
    if name == "polars":
        polars = pytest.importorskip("polars")
        return polars.from_pandas(frame().drop(columns="mixed")), {"dates": ["born"]}
    return frame(), {"dates": ["born"]}


@pytest.mark.parametrize("name", [*TABLES, "Parquet", "polars", "pandas"])
def test_what_is_read_stays_as_it_is_recorded(name, tmp_path):
    if name == "Parquet":
        pytest.importorskip("pyarrow")
    data, settings = made(name, tmp_path)
    assert json.loads(json.dumps(record(data, **settings))) == json.loads(RECORDS.read_text())[name]
