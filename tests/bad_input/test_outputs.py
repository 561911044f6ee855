"""What is written stays in its folder, follows no link, and is safe to open, whatever the names and values."""

import csv
import json
import os
import re
import sys

import pyarrow
import pyarrow.parquet
import pytest
from tests.support.people import people, write_csv
from tests.support.programs import run_main
from tests.tabular.test_folder import FILES

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

FORMULA = "=HYPERLINK(1)"
NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose names and values are attacks on paths, pages, terminals and spreadsheets, and a run on it."""
    folder = tmp_path_factory.mktemp("hostile")
    table = people(300)
    table["../../escaped"] = [f"../../{value}" if value else "" for value in table.pop("job")]
    table["@SUM(1+1)"] = [{"man": FORMULA, "woman": "+1;=2\r=3"}[value] for value in table.pop("sex")]
    table["\t=cmd|' /C calc'!A0"] = ["-1+cmd()"] * 150 + ["\x1b[2J"] * 150
    write_csv(folder / "=1+1 <img src=x onerror=alert(1)>.csv", table)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_main("train", next(folder.glob("*.csv")), *ROLES, "--out", "RUN", *QUICK) == 0
    return folder


ROLES = ("--label", "income", "--sensitive", "@SUM(1+1)")
QUICK = ("--clean-ratio", "0.7", "--max-iter", "4")


def test_a_run_has_its_five_files_and_nothing_is_outside(folder):
    assert {path.name for path in (folder / "RUN").rglob("*")} == FILES
    assert sorted(path.name for path in folder.iterdir())[1:] == ["RUN"]
    assert not list(folder.parent.glob("escaped*"))


@pytest.mark.parametrize("name", ["report.html", "card.md"])
def test_hostile_names_stay_text(folder, name):
    text = (folder / "RUN" / name).read_text(encoding="utf-8").partition('id="plotly"')[0]
    assert text.count("<img") == text.count("\\<img")  # which Markdown shows as it is
    assert ("&lt;img" if name == "report.html" else "\\<img") in text


def fields_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return [field for row in csv.reader(stream) for field in row]


def test_no_csv_has_a_formula(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    table = next(folder.glob("*.csv"))
    assert run_main("predict", "RUN", table, "-o", "predicted.csv", "--escape-formulas") == 0
    assert run_main("audit", table, *ROLES, "-o", "audit.csv") == 0
    assert "\x1b" not in capsys.readouterr().out
    suspects = folder / "RUN" / "suspects.csv"
    found = [field for name in ("predicted.csv", "audit.csv", suspects) for field in fields_of(folder / name)]
    assert "'" + FORMULA in found
    assert len(fields_of(suspects)) > 70
    for field in found:
        assert "\r" not in field
        for part in re.split(r"[;\t\n]", field):
            assert not part.lstrip().startswith(("=", "+", "-", "@")) or NUMBER.fullmatch(field), field
    for path in (folder / "predicted.csv", folder / "audit.csv"):
        path.unlink()


def test_links_are_replaced_and_not_followed(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, precious = next(folder.glob("*.csv")), tmp_path / "precious.txt"
    precious.write_text("precious")
    link = tmp_path / "predicted.csv"
    link.symlink_to(precious)
    assert run_main("predict", folder / "RUN", table, "-o", link) == 1
    assert run_main("predict", folder / "RUN", table, "-o", link, "--force") == 0
    assert not link.is_symlink()
    dangling = tmp_path / "dangling.csv"
    dangling.symlink_to(tmp_path / "made")
    assert run_main("predict", folder / "RUN", table, "-o", dangling, "--force") == 0
    assert not (tmp_path / "made").exists()
    assert precious.read_text() == "precious"


def test_a_run_keeps_the_link_to_its_folder_and_follows_none_in_it(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    old = tmp_path / "old"
    old.mkdir()
    (old / "metrics.json").write_text((folder / "RUN" / "metrics.json").read_text())
    (old / "report.html").symlink_to(precious)
    (tmp_path / "run").symlink_to(old)
    table = next(folder.glob("*.csv"))
    for out in ("run", "old"):  # a link to a run, and a run with a link in it
        assert run_main("train", table, *ROLES, "--out", out, *QUICK, "--force") == 0
        assert {path.name for path in (tmp_path / out).iterdir()} == FILES
        assert (tmp_path / out).is_symlink() == (out == "run")
        assert not (old / "report.html").is_symlink()
    assert precious.read_text() == "precious"


def test_a_parquet_file_of_too_many_values_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr("fairsieve.tabular.reading.read.MOST_VALUES", 10**5)
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": ["x"] * 200_000}), path)
    assert path.stat().st_size < 2000
    with pytest.raises(InvalidInputError, match="it has 200,000 rows of 1 columns, too many"):
        tabular.audit(path, label="a", sensitive="a b")


def test_a_parquet_file_with_a_pickled_type_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = b"cos\nmkdir\n(S'ran'\ntR."
    kind = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": pickled}
    field = pyarrow.field("a", pyarrow.string(), metadata=kind)
    table = pyarrow.table([["x", "y"]], schema=pyarrow.schema([field], metadata={"pandas": b"{not json"}))
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    with pytest.raises(InvalidInputError):
        tabular.audit(tmp_path / "people.parquet", label="a", sensitive="b")
    assert not (tmp_path / "ran").exists()


def test_a_hostile_record_is_shown_and_not_obeyed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ("--methods", "plain", "--seeds", "1", "--no-tune", "--jobs", "1")
    assert run_main("compare", *options) == 0
    records = tmp_path / "runs" / "records.jsonl"
    record = json.loads(records.read_text())
    hostile = {"run": record["run"], "settings": record["settings"], "error": "\x1b[2J[red]gone[/nothing]"}
    records.write_text(json.dumps(hostile) + '\n{"run": "x", "settings": [')
    capsys.readouterr()
    assert run_main("compare", *options) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[red]gone[/nothing]" in printed


def test_brackets_in_a_folders_name_are_no_markup(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = "[bold]run[/red]"
    assert run_main("train", next(folder.glob("*.csv")), *ROLES, "--out", out, *QUICK) == 0
    assert f"{out}/report.html" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are not UTF-8")
def test_names_of_files_that_are_not_utf_8_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.csv")
    write_csv(tmp_path / name, people(300) | {"guess": people(300, seed=1)["income"]})
    roles = ("--label", "income", "--sensitive", "sex")
    run = os.fsdecode(b"caf\xe9-run")
    assert run_main("train", name, *roles, *QUICK, "--out", run) == 0
    assert run_main("train", name, *roles, *QUICK, "--test-file", name, "-o", "run", "--model", "auto") == 0
    assert {path.name for path in (tmp_path / run).iterdir()} == FILES
    assert run_main("audit", name, *roles, "--out", "suspects.csv") == 0
    assert run_main("audit", name, *roles, "--prediction", "guess", "--out", "audit") == 0
    for page, status in ((b"caf\xe9.html", 1), (b"caf\xe9-review.html", 0)):
        review = "review", name, *roles, "--run", run, "--out", os.fsdecode(page)
        assert run_main(*review, "--rows", 5) == status
    assert run_main("predict", run, name, "--out", os.fsdecode(b"caf\xe9-new.csv")) == 0
    texts = [(tmp_path / run / file).read_text(encoding="utf-8") for file in ("card.md", "metrics.json")]
    assert "caf?.csv" in "".join(texts)
    capsys.readouterr()
