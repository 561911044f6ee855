"""The inputs that fuzzing found, and its first inputs: readers raise no exception but those of fairsieve."""

from __future__ import annotations

import json

import pytest
from tests.stress.fuzzing.targets import TARGETS

from fairsieve.errors import InvalidInputError
from fairsieve.paper.records import _read_records, append_record, read_results
from fairsieve.tabular.reading.read import read_table

TABLES = {
    "a line end of old in the first row": b"age,sex,\xff\xff\r,0\x1b",
    "a mark of the encoding and nothing else": b"\xef\xbb\xbf",
    "marks of two encodings": b"\xff\xfe\n\x00",
    "a name of 200,000 letters": b"a" * 200_000 + b",b\n1,2\n",
    "a quote that is not closed": b'"a,b\n1,2\n',
    "a quote inside": b'a,b"\r"c\n1,2\n',
}


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in TARGETS.items()}


@pytest.mark.parametrize("reader", TARGETS)
def test_first_inputs_of_the_fuzzer_are_read(targets, reader):
    """So are truncated copies and copies with a changed byte."""
    target = targets[reader]
    for seed in target.seeds:
        target.run(seed)
        step = max(1, len(seed) // 20)
        for place in range(0, len(seed), step):
            target.run(seed[:place])
            target.run(seed[:place] + bytes([seed[place] ^ 1]) + seed[place + 1 :])
            target.run(seed[:place] + seed[place + step :])


@pytest.mark.parametrize("case", TABLES)
def test_damaged_tables_raise_our_own_errors(targets, case):
    for kind in range(6):
        targets["csv"].run(bytes([kind]) + TABLES[case])


def test_carriage_returns_end_lines(tmp_path):
    (tmp_path / "old.csv").write_bytes(b"age,sex\r31,F\r40,M\r")
    assert read_table(tmp_path / "old.csv").columns["sex"].tolist() == ["F", "M"]


def test_a_file_with_only_a_byte_order_mark_is_empty(tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(InvalidInputError, match=r"empty.csv is empty"):
        read_table(tmp_path / "empty.csv")


DAMAGE = [
    (b'"seconds"', b'"secunds"'),
    (b'"equalized_odds":', b'"equalized_adds":'),
    (b'"metrics"', b'"metrucs"'),
    (b'"method"', b'"methud"'),
    (b'"settings": {', b'"settings": 3, "x": {'),
    (b'"accuracy": 0', b'"accuracy": "0", "x": 0'),
    (b'"accuracy": 0', b'"accuracy": 1' + b"0" * 400 + b', "x": 0'),
]


@pytest.mark.parametrize("number", range(len(DAMAGE)))
def test_a_damaged_record_is_no_result_and_is_replaced(targets, tmp_path, number):
    whole, path = targets["records"].seeds[0], tmp_path / "records.jsonl"
    damaged = whole.replace(*DAMAGE[number])
    assert damaged != whole
    targets["records"].run(damaged)
    path.write_bytes(damaged + b"\n")
    assert not list(read_results(path))
    assert append_record(path, json.loads(whole))  # run again, and kept this time
    assert [record == json.loads(whole) for record in read_results(path)] == [True]
    assert not append_record(path, json.loads(whole))
    assert len(list(_read_records(path))) == 2


def test_a_tuning_record_without_its_choice_is_no_result(targets):
    (choice,) = [seed for seed in targets["records"].seeds if b'"candidates": []' in seed]
    targets["records"].run(choice.replace(b'"hyperparameters"', b'"hyperparametres"'))
