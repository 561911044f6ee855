"""Damaged tables: whatever the bytes, only errors of fairsieve come out, and they come soon."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import tabular
from fairsieve.errors import FairsieveError, FairsieveWarning

READINGS = [
    {}, {"separator": ";", "decimal": ","}, {"separator": "tab"}, {"separator": "|", "missing": ["x"]},
    {"separator": " "}, {"separator": "'", "missing": ["?", "-"]},
]  # fmt: skip
TABLES = {  # the last ones were found by a fuzzer
    "ordinary": b"age,sex,pay\n31, F,1\n?,M,0\n",
    "quotes": b'a,b\r\n"x, ""y""",2\r\n,\r\n',
    "a byte order mark": "\ufeffname,größe\nÄ,3.5\n".encode(),
    "UTF-16": "a,b\n1,2\n".encode("utf-16"),
    "Windows": "a,b\né,1e5\n".encode("cp1252"),
    "semicolons": b"a;b\n3,5;x\n",
    "one name twice": b"a,a\n1,2,3\n",
    "odd values": b"a\n\n\n1\n007\n2024-01-02\n",
    "a line end of old in the first row": b"age,sex,\xff\xff\r,0\x1b",
    "a mark of the encoding and nothing else": b"\xef\xbb\xbf",
    "marks of two encodings": b"\xff\xfe\n\x00",
    "a name of 200,000 letters": b"a" * 200_000 + b",b\n1,2\n",
    "a quote that is not closed": b'"a,b\n1,2\n',
    "a quote inside": b'a,b"\r"c\n1,2\n',
}


def audit(path, content, reading):
    """Audit a table; errors of ours are what is expected."""
    path.write_bytes(content)
    names = [name.strip(' "\ufeff') for name in content.decode("utf-8", "replace").split("\n")[0].split(",")]
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        try:
            tabular.audit(path, label=names[0], sensitive=names[-1], small_groups="ignore", **reading)
        except FairsieveError as error:
            assert str(error)


@pytest.mark.parametrize("reading", range(len(READINGS)))
@pytest.mark.parametrize("case", TABLES)
def test_odd_and_damaged_tables_raise_our_own_errors(tmp_path, case, reading):
    audit(tmp_path / "table.csv", TABLES[case], READINGS[reading])


@given(st.sampled_from([one for one in TABLES.values() if len(one) < 1000]), st.data())
@settings(max_examples=100)
def test_cut_and_changed_tables_raise_our_own_errors(tmp_path_factory, table, data):
    place = data.draw(st.integers(0, len(table)))
    end = data.draw(st.integers(place, len(table)))
    changed = table[:place] + data.draw(st.binary(max_size=8)) + table[end:]
    reading = data.draw(st.sampled_from(READINGS))
    audit(tmp_path_factory.getbasetemp() / "changed.csv", changed, reading)
