"""Files as people have them are read, or refused in words that help."""

import bz2
import csv
import gzip
import io
import lzma
import os
import threading
import zipfile

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.people import people, write_csv
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

MISSING = (
    "", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "<NA>", "k.A.", "k. A.", "k.\u00a0A.",
    "–", "—",
)  # fmt: skip


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A function that returns a table as it is read, by a model that looks at its column ``a``."""
    folder = tmp_path_factory.mktemp("reading")
    table = {"a": ["x", "y", "z"] * 30, "sex": ["m", "w"] * 45, "income": ["low", "low", "high"] * 30}
    asked = {"label": "income", "sensitive": "sex", "categories": "a", "clean_ratio": 0.9, "test": 0.3}
    model = tabular.train(pandas.DataFrame(table), **asked)

    def read_back(data, name="table.csv", **reading):
        if isinstance(data, str | bytes):
            (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
            data = folder / name
        return tabular.predict(model, data, **reading).table

    return read_back


@pytest.mark.parametrize(("content", "note"), [
    ("\ufeffa,b\n1,é\n".encode(), None),
    ("a,b\n1,é\n".encode("cp1252"), "Windows-1252"),
    ("a,b\n1,é\n".encode("utf-16"), "UTF-16"),
    ("a,b\n1,é\n".encode("utf-32"), "UTF-32"),
    ("\ufeffa,b\n1,é\n".encode("utf-32-be"), "UTF-32"),
    (b"a,b\r\n1,\xc3\xa9\r\n", None),
])  # fmt: skip
def test_encodings_and_line_ends(read, content, note):
    table = read(content)
    assert table.columns == ["a", "b"]
    assert table.cells("b") == ["é"]
    assert table.notes == [] if note is None else note in table.notes[0]


def test_short_rows_have_gaps_and_unnamed_columns_are_told(read):
    table = read(",a,b\n0,1,2\n1,3\n")
    assert table.columns == ["a", "b"]
    assert table.cells("b") == ["2", None]
    assert "fewer fields than the first row has names" in table.notes[0]
    assert "1 (spreadsheet row 3)" in table.notes[0]
    assert table.notes[1] == "1 column has no name and is left out."
    whole = read('a,b\n"x, y\nz",1\n"two ""2""",\n5" pipe,3\n')
    assert whole.cells("a") == ["x, y\nz", 'two "2"', '5" pipe']
    assert whole.notes == []


@pytest.mark.parametrize(("content", "message"), [
    (" \n \n", "is empty"),
    ("a\tb\n1\t2\t3\n", "seems to have a tab between its columns, not a comma: add separator='tab'"),
    ("a,b\n1,x\ry\n2,z\n", "has a carriage return within spreadsheet row 2, which would cut it in two: take it out"),
    (b"\x1f\x8b\x08rest", "table.csv cannot be unpacked"),
    (b"PK\x03\x04rest", "looks like a workbook that cannot be read"),
    (b"\x28\xb5\x2f\xfdrest", "is neither text nor Parquet: unpack it"),
])  # fmt: skip
def test_broken_files_are_refused_in_words(read, content, message):
    """More of them are in the catalogue of bad input."""
    refused(message, read, content)


def zipped(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("people.csv", content)
    return stream.getvalue()


PACKED = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zip": zipped, "nothing": bytes}


@pytest.mark.parametrize("way", PACKED)
def test_compressed_files_are_read(read, way, tmp_path):
    content = "a;b\n1,5;é\n2,25;\n".encode("cp1252")
    expected = read(content)
    path = tmp_path / "table.csv"
    path.write_bytes(PACKED[way](content))
    table = read(path)
    assert table.reading == expected.reading
    assert [table.cells(name) for name in "ab"] == [["1,5", "2,25"], ["é", None]]
    frame = pandas.DataFrame({"a": ["x"], "b": [1]})
    frame.to_parquet(path)
    path.write_bytes(PACKED[way](path.read_bytes()))
    assert read(path).cells("a") == ["x"]


def test_a_file_that_unpacks_to_too_much_is_refused(read, monkeypatch):
    monkeypatch.setattr("fairsieve.tabular.reading.read.MOST_BYTES", 1000)
    for pack in (gzip.compress, bz2.compress, lzma.compress, zipped):
        refused("it unpacks to more than 1,000 bytes", read, pack(b"a\n" + b"1\n" * 1000))


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pipes_are_read_once(tmp_path, pack):
    """By every command, though some of them read a file more than once."""
    content = pack(write_csv(tmp_path / "p.csv", people(300)).read_bytes())
    (tmp_path / "people.csv").write_bytes(content)
    asked = {"label": "income", "sensitive": "sex"}
    calls = {
        "train": lambda data: tabular.train(data, **asked, clean_ratio=0.9, max_iter=4, test=0.3),
        "audit": lambda data: tabular.audit(data, **asked),
        "review": lambda data: tabular.review(data, **asked, rows=5, run=tmp_path / "run"),
        "predict": lambda data: tabular.predict(tmp_path / "run", data).save(tmp_path / "out.csv", force=True),
    }  # fmt: skip
    calls["train"](tmp_path / "people.csv").save(tmp_path / "run")
    for name, call in calls.items():
        fifo = tmp_path / f"{name}.fifo"
        os.mkfifo(fifo)
        writer = threading.Thread(target=fifo.write_bytes, args=(content,), daemon=True)
        writer.start()
        found = call(str(fifo))
        writer.join(10)
        assert not writer.is_alive()
        expected = call(tmp_path / "people.csv")
        if name == "predict":
            assert found.read_bytes() == expected.read_bytes()
        elif name == "review":
            assert found.rows.equals(expected.rows)
        else:
            assert found.decision.sentence == expected.decision.sentence


def test_a_table_without_names_is_recognised(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("39,50000\n1,2\n")
    with pytest.raises(InvalidInputError, match="The first row must hold the columns' names"):
        tabular.audit(path, label="income", sensitive="age")


def test_a_named_index_of_parquet_is_a_column(read, tmp_path):
    pandas.DataFrame({"a": ["x"], "b": [1]}).set_index("a").to_parquet(tmp_path / "indexed.parquet")
    assert read(tmp_path / "indexed.parquet").cells("a") == ["x"]


@pytest.mark.parametrize(("options", "message"), [
    ({"separator": '"'}, "no quote or line end"),
    ({"separator": "\n"}, "no quote or line end"),
    ({"decimal": "x"}, "decimal must be . or ,"),
    ({"separator": ",", "decimal": ","}, "differ from the separator"),
])  # fmt: skip
def test_readings_are_checked(read, options, message):
    refused(message, read, "a\n1\n", **options)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8), st.sampled_from([",", ";", "\t", "|"]))
def test_any_text_comes_back(read, rows, separator):
    """Python's own writer is the oracle; what is lost is space around values, and which gap it was."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    there = [place for place, row in enumerate(rows) if "".join(row).strip()]  # others are blank lines
    if there:
        table = read(stream.getvalue(), separator=separator)
        assert table.rows.tolist() == [place + 2 for place in there]
        for place, name in enumerate("ab"):
            expected = [rows[row][place].strip() for row in there]
            assert table.cells(name) == [None if value in MISSING else value for value in expected]


def test_the_usual_gaps_are_gaps(read):
    assert read("a,b\n" + "".join(f'"{gap}",1\n' for gap in MISSING)).cells("a") == [None] * len(MISSING)
    assert read("a,b\n-,1\nnone,1\n").cells("a") == ["-", "none"]  # which may mean something


def test_frames_of_lists_dicts_and_arrow_are_read(read):
    frame = pandas.DataFrame({"a": [[*"ab"], None, [*"ab"]], "b": [{"k": 1}, {"k": 1}, float("nan")]})
    table = read(frame)
    assert table.cells("a") == ["['a', 'b']", None, "['a', 'b']"]
    assert table.cells("b") == ["{'k': 1}", "{'k': 1}", None]
    pyarrow = pytest.importorskip("pyarrow")
    table = read(pyarrow.table({"a": [2**60, None], "text": ["x", "?"], "list": [[1, 2], None]}))
    assert table.cells("a") == [2**60, None]
    assert table.cells("text") == ["x", None]
    assert table.cells("list") == ["[1, 2]", None]


# ---- What stands between fields, and the decimal mark, are found from the first rows, or not assumed


@pytest.mark.parametrize(("text", "separator", "decimal"), [
    ("a,b\n1.5,2\n", ",", "."),
    ("a;b\n1,5;2\n", ";", ","),
    ("size, cm;a\n1,5;2,5\n3,25;1\n", ";", ","),  # a comma in a name
    ("a\tb\n1,5\t2\n", "\t", ","),
    ("a|b\n1.5|2\n", "|", "."),
    ("a;b\n1,500;x\n12,250;y\n", ";", "."),  # perhaps thousands: not assumed
    ("a;b\n1,5;2.5\n", ";", "."),  # both marks: not assumed
    ("a;b\n1.234,5;2\n", ";", ","),
    ("a;b;c\n1;2;3\n1;2\n1;2;3\n", ";", "."),  # a row that is cut short
    ("a\n1\n2\n", ",", "."),
    ('a;b\n"x, y";2,5\n', ";", ","),
])  # fmt: skip
def test_separator_and_decimal_mark_are_found_together(read, text, separator, decimal):
    table = read(text)
    assert (table.reading.separator, table.reading.decimal) == (separator, decimal)
    told = [note for note in table.notes if note.startswith("Assumed from the first rows: ")]
    assert bool(told) == ((separator, decimal) != (",", "."))
    again = read(text, separator=separator, decimal=decimal)  # what is said is not assumed
    assert (again.reading.separator, again.reading.decimal) == (separator, decimal)
    assert not [note for note in again.notes if note.startswith("Assumed")]


@given(
    st.lists(st.lists(st.text('ab ,;|\t.1"\n', max_size=6), min_size=2, max_size=2), min_size=2, max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
)
@settings(max_examples=40)
def test_a_table_in_quotes_is_split_by_its_own_separator(read, rows, separator):
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows, ["x", "y"]])
    table = read(stream.getvalue())
    assert table.reading.separator == separator
    assert table.columns == ["a", "b"]


# ---- What means missing is compared by its value


@pytest.mark.parametrize("stored", ["frame", "csv", "parquet"])
def test_a_number_that_means_missing_is_compared_by_its_value(tmp_path, stored):
    frame = pandas.DataFrame(
        {
            "size": [-999.0 if row % 10 == 0 else row % 7 + 0.5 for row in range(180)],
            "count": [97 if row % 9 == 0 else row % 4 for row in range(180)],
            "since": [f"1967-04-0{row % 9 + 1}" for row in range(180)],  # -999 days before 1970 among them
            "zip": ["097", "97001", "12"] * 60,
            "sex": [[0.0, 1.0, 9.0][row % 3] for row in range(180)],
            "income": [["low", "high"][row % 5 > 1] for row in range(180)],
        }
    )
    path = tmp_path / f"table.{stored}"
    if stored != "frame":
        frame.to_csv(path, index=False) if stored == "csv" else frame.to_parquet(path)
    data = frame if stored == "frame" else path
    roles = {"label": "income", "sensitive": "sex", "dates": "since", "categories": "zip"}
    asked = {"missing": ["-999", "97.0", "9", "none"], "clean_ratio": 0.9, "max_iter": 1, "test": 0.3}
    result = tabular.train(data, **roles, **asked)
    gaps = {one["name"]: one["missing"] for one in result.metrics["data"]["columns"]}
    assert gaps == {"size": 18, "count": 20, "since": 0, "zip": 0}
    assert result.run.problem.groups.names == ("0", "1")
    (note,) = [note for note in result.run.notes if "that missing names" in note]
    assert note.endswith("has the value 'none' that missing names.")
    named = tabular.predict(result, data)
    assert named.notes == []  # a mark of training need not be in every table
    emptied = frame.astype({"size": object, "count": object}).replace({"size": -999.0, "count": 97}, None)
    assert tabular.predict(result, emptied).probability.tolist() == named.probability.tolist()
    assert result.model.predict(frame).tolist() == named.predicted.tolist()


def test_a_sparse_column_is_read(read):
    assert read(pandas.DataFrame({"a": pandas.arrays.SparseArray([0.5, None])})).cells("a") == [0.5, None]
