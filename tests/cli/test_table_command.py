"""train, predict and audit, as a user types them."""

import csv
import io
import json
import re
import shlex

import pandas
import pytest
from tests.support.people import people, write_csv
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.errors import FairsieveError

ROLES = ("--label", "income", "--sensitive", "sex")
QUICK = ("--clean-ratio", "0.9", "--max-iter", "8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands")
    write_csv(path / "people.csv", people())
    (path / "printed.txt").write_text(train(path, "RUN", "--max-iter", "100"), encoding="utf-8")
    return path


def fairsieve(folder, *arguments):
    """What a command prints; our errors are raised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(app, [str(one) for one in arguments])
    if isinstance(result.exception, FairsieveError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def train(folder, out, *arguments):
    return fairsieve(folder, "train", "people.csv", *ROLES, "--out", out, *QUICK, *arguments)


def test_from_a_table_to_predictions(folder):
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    record = json.loads((folder / "RUN" / "metrics.json").read_text(encoding="utf-8"))
    lines = printed.splitlines()
    # What was made of the table comes first, and then what to do and why.
    assert lines[0].startswith("The positive label is taken to be")
    told = lines[lines.index(record["decision_sentence"]) :]
    assert len(told) <= 8
    assert f"RUN/model.skops holds: the {record['model']['holds']}." in told
    printed = fairsieve(folder, "predict", "RUN", "people.csv", "-o", "out.csv")
    assert printed == "600 rows predicted, in out.csv\n"
    with (folder / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["age", "hours", "job", "sex", "income", "predicted", "probability"]
    right = sum(row["income"] == row["predicted"] for row in rows)
    assert right > 400


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize(("separator", "line_end"), [(",", "\n"), (";", "\r\n")])
def test_predict_writes_values_as_they_were(folder, encoding, separator, line_end):
    fields = [
        ["age", "hours", "job", "id", "note"],
        ["31", "38.5", "nurse", "+", "@a"],
        ["32", "?", "nurse", "=1+1", f"two{line_end}lines, one"],
        ["033 ", "40", "baker", "-", "é "],
        ["34", "41", "", "", ""],
    ]
    lines = [separator.join(row) for row in fields]
    lines[2] = separator.join([*fields[2][:4], f'"{fields[2][4]}"'])
    lines[4] = separator.join(fields[4][:2])  # a row that is cut short
    content = line_end.join([*lines[:3], "", *lines[3:]]) + line_end
    (folder / "raw.csv").write_bytes(content.encode(encoding))
    options = ("--separator", separator, "--force")
    fairsieve(folder, "predict", "RUN", "raw.csv", "-o", "copied.csv", *options)
    written = (folder / "copied.csv").read_bytes().decode(encoding)
    assert written.endswith(line_end)
    found = list(csv.reader(io.StringIO(written, newline=""), delimiter=separator))
    assert [row[:5] for row in found] == fields
    assert found[0][5:] == ["predicted", "probability"]
    for _, chance in (row[5:] for row in found[1:]):
        assert re.fullmatch(r"[01]\.\d{4}", chance)
    fairsieve(folder, "predict", "RUN", "raw.csv", "-o", "copied.csv", *options, "--escape-formulas")
    assert "'=1+1" in (folder / "copied.csv").read_bytes().decode(encoding)


def test_predict_writes_the_values_of_parquet_exactly(folder):
    frame = pandas.DataFrame(people(60)).assign(id=range(10**18, 10**18 + 60), sign="+")
    frame.to_parquet(folder / "people.parquet")
    fairsieve(folder, "predict", "RUN", "people.parquet", "-o", "parquet.csv")
    with (folder / "parquet.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == [str(10**18 + place) for place in range(60)]
    assert {row["sign"] for row in rows} == {"+"}


def test_predict_names_no_option_that_it_lacks(folder):
    table = people(200)
    table["age"][3] = "old"
    write_csv(folder / "mixed.csv", table)
    with pytest.raises(FairsieveError, match="mixes numbers with 1 text ") as caught:
        fairsieve(folder, "predict", "RUN", "mixed.csv", "-o", "none.csv")
    assert "--categories" not in str(caught.value)
    with pytest.raises(FairsieveError, match="or --categories 'age' to take the whole column"):
        fairsieve(folder, "audit", "mixed.csv", *ROLES)


def test_bins_drop_and_separator(folder):
    table = people()
    table["hours"] = [value.replace(".", ",") for value in table["hours"]]
    write_csv(folder / "semicolons.csv", table, ";")
    common = ("train", "semicolons.csv", "--label", "income", "--out", "BINS", *QUICK)
    fairsieve(folder, *common, "--drop", "job", "--sensitive", "age", "--bins", "age=30,50")
    record = json.loads((folder / "BINS" / "metrics.json").read_text())
    assert record["settings"]["bins"] == ["age=30,50"]
    assert (record["settings"]["separator"], record["settings"]["decimal"]) == (";", ",")
    assert record["data"]["groups"] == ["30 to under 50", "50 and over", "under 30"]
    assert "Assumed from the first rows: a semicolon between fields" in " ".join(record["data"]["notes"])
    steps = " ".join(record["next_steps"])
    said = re.search(r"Have \d+ labels checked: fairsieve (.*? review\.html); then", steps)[1]
    assert "--sensitive age --bins age=30,50 --drop job" in said
    printed = fairsieve(folder, *shlex.split(said))  # the command that is suggested can be given as it is
    assert "Then: fairsieve train semicolons.csv --label income --sensitive age --bins age=30,50" in printed


def test_an_audit_prints_and_writes(folder):
    printed = fairsieve(folder, "audit", "people.csv", *ROLES, "-o", "wrong.csv")
    assert "income \\ sex" in printed
    assert "of the labels look wrong (between " in printed
    assert "Have 50 labels checked: fairsieve review people.csv --label income --sensitive sex" in printed
    head = (folder / "wrong.csv").read_text().splitlines()[0]
    assert head.startswith("holds_personal_data,row,label,suggested_label,probability,group,")
    assert not list(folder.glob("*.skops"))


def test_fail_on_sets_the_exit_status(folder, monkeypatch):
    """Status 3 where the decision is as bad as asked, or worse; the run is written all the same."""
    monkeypatch.chdir(folder)
    leak = people() | {"code": ["7" if value == "high" else "3" for value in people()["income"]]}
    write_csv(folder / "leak.csv", leak)
    command = ["train", "leak.csv", *ROLES, "--out", "LEAK", *QUICK]
    result = CliRunner().invoke(app, [*command, "--fail-on", "do-not-use"])
    assert result.exit_code == 3
    assert "But do not use it as it is: column 'code' duplicates the label" in result.stdout
    assert json.loads((folder / "LEAK" / "metrics.json").read_text())["usable"] == "do-not-use"
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
    audit = ["audit", "people.csv", *ROLES, "--fail-on", "cannot-tell"]
    assert CliRunner().invoke(app, audit).exit_code == 3
