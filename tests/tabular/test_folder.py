"""What a run writes, that it is whole or not there, and that every text in it stays text."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.people import people, write_csv

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._comparison import PlainComparison
from fairsieve.report.page import render_page
from fairsieve.report.text import NUMBER
from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.report.files import columns_csv, model_card, new_folder, suspects_csv, write_run
from fairsieve.tabular.report.metrics import record_json, run_record
from fairsieve.tabular.report.pages import run_document
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table

FILES = {"model.skops", "metrics.json", "rows.csv", "suspects.csv", "report.html", "card.md"}
HOSTILE = "<img src=x onerror=alert(1)>"


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_a_run_is_written_whole(run, tmp_path):
    out = tmp_path / "deep" / "RUN"
    with new_folder(out) as folder:
        assert not out.exists()
        write_run(run, decide_run(run), folder)
    assert names_in(out) == FILES
    assert names_in(out.parent) == {"RUN"}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(run, tmp_path, failure):
    def broken():
        with new_folder(tmp_path / "RUN") as folder:
            (folder / "metrics.json").write_text("half")
            raise failure

    with pytest.raises(failure):
        broken()
    assert names_in(tmp_path) == set()


def test_a_run_is_replaced_only_by_force(run, tmp_path):
    out = tmp_path / "RUN"
    out.mkdir()  # an empty folder may be there
    for _ in range(2):
        with new_folder(out, force=True) as folder:
            write_run(run, decide_run(run), folder)
    (out / "mine.txt").write_text("gone with the run")
    with pytest.raises(InvalidInputError, match="holds a run: add --force to replace it"), new_folder(out):
        pass
    with pytest.raises(ValueError, match="later"), new_folder(out, force=True):
        raise ValueError("later")
    assert names_in(out) == FILES | {"mine.txt"}  # what failed replaced nothing
    assert names_in(tmp_path) == {"RUN"}


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_something_else_is_never_touched(tmp_path, force):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInputError, match="has other files in it"), new_folder(tmp_path, force=force):
        pass
    with (
        pytest.raises(InvalidInputError, match="is a file"),
        new_folder(tmp_path / "thesis.txt", force=force),
    ):
        pass
    with (
        pytest.raises(InvalidInputError, match="--out must be a folder that can be written"),
        new_folder(tmp_path / "thesis.txt" / "x", force=force),
    ):
        pass


def test_numbers_for_programs(run):
    record = json.loads(record_json(run_record(run, decide_run(run))))
    assert record["settings"]["label"] == "income"
    assert record["data"]["train_rows"] + record["data"]["test_rows"] == 600
    assert record["plain"]["accuracy"]["value"] == run.scores[0]["accuracy"].value
    assert record["suspects"] == len(run.suspects["row"])
    assert {rate["group"] for rate in record["rates"]} == {"man", "woman"}


@pytest.mark.parametrize(("accuracy", "outcome"), [(0.4, "do-not-use"), (0.79, "use")])
def test_a_plain_model_is_named_everywhere(run, accuracy, outcome):
    kept = dataclasses.replace(
        run,
        comparison=PlainComparison(accuracy, 0.8, 0.1, 0.1, 0.01, 0.01, 0.1, True, False),
        trade_off=[dataclasses.replace(run.trade_off[0], kept=True)],
    )
    decision = decide_run(kept)
    assert {reason.kind: reason.outcome for reason in decision.findings}[
        "collapse" if outcome == "do-not-use" else "plain_kept"
    ] == outcome
    assert run_record(kept, decision)["model"]["holds"] == "plain model"
    assert "model.skops holds: the plain model" in render_page(run_document(kept, decision))


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """Every name and value is somebody's attack."""
    table = people(400)
    names = {"job": HOSTILE, "sex": "=cmd()|' /C calc'!A0", "income": "</script><script>alert(2)</script>"}
    hostile = {names.get(name, name): values for name, values in table.items()}
    for name, values in {"sex": ("=1+1", "@SUM(1)"), "income": ("+cmd()", "<b>low")}.items():
        old = sorted(set(table[name]))
        hostile[names[name]] = [values[old.index(value)] for value in table[name]]
    path = write_csv(tmp_path_factory.mktemp("hostile") / "people.csv", hostile)
    return train_table(TableSettings(path, names["income"], [names["sex"]], clean_ratio=0.9, max_iter=8))


def test_hostile_names_stay_text_on_the_page(hostile_run):
    page = render_page(run_document(hostile_run, decide_run(hostile_run)))
    assert "<img" not in page
    assert "<b>low" not in page
    assert "<script>alert" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_hostile_values_stay_text_in_the_card(hostile_run):
    card = model_card(hostile_run, decide_run(hostile_run))
    assert "<img" not in card
    assert "<script>" not in card


def test_hostile_values_are_no_formulas(hostile_run):
    rows = list(csv.reader(io.StringIO(suspects_csv(hostile_run.suspects, hostile_run.problem.table))))
    assert rows[0].pop(0) == "holds_personal_data"
    ours = ["row", "label", "suggested_label", "loss", "probability", "group"]
    assert rows[0][:6] == ours
    assert rows[0][6:] == [
        "age",
        "hours",
        HOSTILE,
        "'=cmd()|' /C calc'!A0",
        "</script><script>alert(2)</script>",
    ]
    for row in rows[1:]:
        assert row[2] in ("'+cmd()", "<b>low")
        assert row[6] in ("'=1+1", "'@SUM(1)")


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=5),
    st.text("=+-@;\t\n1a ", max_size=8),
)
def test_no_field_begins_a_formula_wherever_it_is_split(texts, nasty):
    written = columns_csv({"value": [*texts, nasty]})
    read = [row[0] if row else "" for row in csv.reader(io.StringIO(written, newline=""))][1:]
    assert len(read) == len(texts) + 1
    for value in read:
        for separator in (None, ";", "\t", "\n"):
            for field in value.split(separator) if separator else [value]:
                assert not field.lstrip(" ").startswith(("=", "+", "-", "@")) or NUMBER.fullmatch(value)


def test_a_name_taken_meanwhile_is_not_taken_again(run, tmp_path):
    out = tmp_path / "RUN"

    def write_late():
        with new_folder(out) as late:
            with new_folder(out) as early:
                write_run(run, decide_run(run), early)
            (late / "metrics.json").write_text("late")

    with pytest.raises(InvalidInputError, match="holds a run: add --force"):
        write_late()
    assert names_in(out) == FILES
    assert names_in(tmp_path) == {"RUN"}
