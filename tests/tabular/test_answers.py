"""Answers of people who checked labels: they must belong to the table, and say one thing about each row."""

import csv
import io

import pandas as pd
import pytest
from tests.support.people import people, write_csv
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.tabular.answers import _stands_out, tell_revealed
from fairsieve.tabular.evaluation import Share

# Filled in with version 0.1 for the table of odd_table().
OLD_SHEET = """\
row,id,given_label,verified_label,sampling_weight,row_checksum
48,00145,0,0,1,rdf07bd810fd6
42,00127,0,1,1,r97cced2320ba
16,00049,0,unsure,1,r5dbaa88ee273
40,00121,0,,1,r480e469b7149
23,00070,0,1,1,r42146873ec48
52,00157,1,1,1,r13dc3de9fabb
45,00136,1,0,1,rd5e3bf8ee0e5
"""


@pytest.fixture
def odd(tmp_path):
    """A CSV file with values of many kinds, and the sheet of version 0.1."""
    count = 60
    columns = {
        "id": [f"{7 + 3 * i:05d}" for i in range(count)],
        "age": ["?" if i % 13 == 5 else str(18 + 7 * i % 50) for i in range(count)],
        "pay": [f"{1000 + 37.5 * (i % 11):.2f}" for i in range(count)],
        "big": [str(2**60 + i) for i in range(count)],
        "city": [("Zürich", "New York, NY", 'the "Hague"', " Łódź ", "NA")[i % 5] for i in range(count)],
        "since": [f"20{i % 20:02d}-0{1 + i % 9}-11" for i in range(count)],
        "member": ["True" if i % 3 else "False" for i in range(count)],
        "sex": ["woman" if i % 2 else "man" for i in range(count)],
        "grade": [str(i * i % 7 % 2) for i in range(count)],
    }
    (tmp_path / "old.csv").write_text(OLD_SHEET, encoding="utf-8")
    return write_csv(tmp_path / "odd.csv", columns), tmp_path / "old.csv"


def left(data, *sheets, label="income", rows=1000):
    """The rows that nobody answered, as the next review chooses them."""
    found = tabular.review(data, label=label, sensitive="sex", rows=rows, verified=sheets)
    return set(found.rows["row"].tolist())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of sixty people, with the sheet of all its rows."""
    path = write_csv(tmp_path_factory.mktemp("answers") / "people.csv", people(80))
    sheet = tabular.review(path, label="income", sensitive="sex", rows=80).save(path.with_name("review.html"))
    lines = csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8")))
    return path, {int(line["row"]): line for line in lines}


@pytest.fixture
def write(table, tmp_path):
    """Write answers to the first rows of the table, with some fields changed."""

    def make(verified, *, separator=",", name="review.csv", **changes):
        rows = []
        for i, text in enumerate(verified):
            line = table[1][i + 2] | {"verified_label": text, "sampling_weight": "1.5"}
            rows.append(line | {key: value[i] for key, value in changes.items() if i in value})
        if separator == ";":
            rows = [line | {"sampling_weight": line["sampling_weight"].replace(".", ",")} for line in rows]
        columns = {key: [line[key] for line in rows] for key in rows[0]}
        return write_csv(tmp_path / name, columns, separator)

    return make


@pytest.mark.parametrize("separator", [",", ";"])
def test_answers_are_read_as_a_spreadsheet_saves_them(table, write, separator):
    sheet = write(["high", "LOW", "", "unsure", "'low"], separator=separator)
    assert left(table[0], sheet) == set(range(2, 82)) - {2, 3, 6}


def test_answers_of_several_files_are_put_together(table, write):
    first, second = write(["high"], name="a.csv"), write(["high", "low"], name="b.csv")
    assert left(table[0], first, second) == set(range(4, 82))


@pytest.mark.parametrize(("verified", "changes", "message"), [
    (["high", "?"], {"row_checksum": {1: "rother"}}, r"1 of the 2 rows of review.csv .* \(the first: row 3\)"),
    (["high"], {"row": {0: "two"}, "row_checksum": {0: "rother"}},
     "are not in it or say something else there .the first: row without a number"),
    (["hihg"], {}, "must be one of high, low, empty, or unsure; got 'hihg' for row 2. Did you mean 'high'"),
    (["", "unsure", ""], {}, "2 empty and 1 unsure ones and no other: answer some rows first"),
    (["high"], {"sampling_weight": {0: "-1"}}, "review.csv must be a number above 0 and at most 80, the number"),
    (["high"], {"sampling_weight": {0: "1e300"}}, "must be a number above 0 and at most 80.*got '1e300' for row 2"),
    (["high"], {"given_label": {0: "neither"}}, "put corrections into verified_label"),
])  # fmt: skip
def test_a_wrong_answer_is_an_error_that_names_it(table, write, verified, changes, message):
    refused(message, left, table[0], write(verified, **changes))


@pytest.mark.parametrize(("verified", "changes", "message"), [
    (["low"], {}, "row 2 of people.csv is 'high' in a.csv and 'low' in b.csv"),
    (["high"], {"sampling_weight": {0: "2"}},
     "give each row one sampling_weight; row 2 of people.csv is 1.5 in a.csv and 2.0 in b.csv: keep one"),
])  # fmt: skip
def test_answers_that_contradict_those_of_another_file_are_refused(table, write, verified, changes, message):
    first, second = write(["high"], name="a.csv"), write(verified, name="b.csv", **changes)
    refused(message, left, table[0], first, second)
    assert 2 not in left(table[0], first, first)


def test_another_kind_of_file_is_refused(table, tmp_path):
    path = write_csv(tmp_path / "other.csv", {"row": ["2"], "answer": ["high"]})
    refused(r"other.csv has no verified_label", left, table[0], path)


def test_answers_from_another_table_are_refused(write, tmp_path):
    other = write_csv(tmp_path / "other.csv", people(80, seed=1))
    refused(r"3 of the 3 rows of review.csv are not in it", left, other, write(["high", "low", "high"]))


def test_answers_that_were_filled_in_for_version_0_1_are_read(odd):
    assert left(*odd, label="grade") == set(range(2, 62)) - {48, 42, 23, 52, 45}


def test_answers_follow_their_rows_from_a_file_to_a_data_frame_and_back(odd, tmp_path):
    data, sheet = odd
    frame = pd.read_csv(data)
    assert left(frame, sheet, label="grade") == set(range(60)) - {46, 40, 21, 50, 43}
    own = tabular.review(frame, label="grade", sensitive="sex", rows=4).save(tmp_path / "frame.html")
    answers = pd.read_csv(own, dtype=str).assign(verified_label="1")
    assert left(data, answers, label="grade") == set(range(2, 62)) - set(answers["row"].astype(int) + 2)


def test_answers_follow_their_rows_into_another_order(table, write):
    """Equal rows are taken one after the other."""
    frame = pd.read_csv(table[0])
    twice = pd.concat([frame.iloc[5:], frame.iloc[:5], frame.iloc[:1]], ignore_index=True)
    assert left(twice, write(["high", "low"])) == set(range(81)) - {75, 76}


def test_a_label_may_be_called_unsure(tmp_path):
    table = people(80)
    table["income"] = ["UNSURE" if value == "low" else value for value in table["income"]]
    data = write_csv(tmp_path / "people.csv", table)
    sheet = tabular.review(data, label="income", sensitive="sex", rows=3).save(tmp_path / "review.html")
    answers = pd.read_csv(sheet, dtype=str).assign(verified_label=["unsure", "(unsure)", ""])
    assert len(left(data, answers)) == 79


@pytest.mark.parametrize(("black", "others", "told"), [
    ((10, 44), (0, 156), "Of the checked labels, 10 of 44 of Black are wrong, and 0 of 156 of all others."),
    ((4, 44), (9, 156), "13 of 200 checked labels are wrong."),
    ((1, 44), (0, 156), "1 of 200 checked labels is wrong."),
])  # fmt: skip
def test_what_checks_reveal_names_a_group_only_where_that_is_sure(black, others, told):
    by_group = {"Black": Share(*black), "White": Share(*others)}
    wrong = Share(black[0] + others[0], black[1] + others[1])
    assert tell_revealed({"wrong": wrong, "stands_out": _stands_out(by_group)}) == told
