"""``fairsieve compare``: records, continuing, attacks, the authors' arrays, and somebody's own table."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest
from tests.data.test_synthetic import write_arrays
from tests.support.people import people, write_csv
from typer.testing import CliRunner

from fairsieve.benchmark import run
from fairsieve.benchmark.problems import make_table_problem, pool_tested, table_source
from fairsieve.benchmark.summary import summarise
from fairsieve.benchmark.workers import read_results
from fairsieve.cli.app import app
from fairsieve.data import synthetic_splits
from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS
from fairsieve.tabular.settings import TableSettings
from fairsieve_reproduction.methods.registry import find_methods

QUICK = ("--no-tune", "--epochs", "4", "--jobs", "1")
ROWS = 160  # too few to estimate how many labels are wrong


def compare(out, *options, width=200):
    """Run the command; return what it printed, and the records."""
    arguments = ["compare", *QUICK, "--out", str(out), *options]
    done = CliRunner(env={"COLUMNS": str(width)}).invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = (out / "records.jsonl").read_text().splitlines()
    return " ".join(done.stdout.split()), [json.loads(line) for line in lines if line.endswith("}")]


def test_runs_are_recorded_and_not_repeated(tmp_path):
    arguments = ("--methods", "lr,sample-selection,itlm-penalty")
    printed, first = compare(tmp_path, *arguments, "--seeds", "1")
    assert "ITLM→Penalty" in printed
    assert "tuning" not in printed  # there was none
    assert "3 records in" in printed
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"run": "half a li')  # and the machine stopped
    again, second = compare(tmp_path, *arguments, "--seeds", "1")
    assert again == printed
    assert second == first
    _, more = compare(tmp_path, *arguments, "--seeds", "2")
    assert more[:3] == first
    assert len({record["run"] for record in more}) == 6


def test_a_record_says_everything(tmp_path):
    _, (record,) = compare(tmp_path, "--methods", "sample-selection", "--seeds", "1")
    assert record["settings"]["method"] == "sample-selection"
    assert record["settings"]["seed"] == 0
    assert record["hyperparameters"] == {"step_size": 0.001}
    assert {"fairsieve", "python"} <= set(record["versions"])
    assert set(record["metrics"]) == {*NOTIONS, "accuracy", "kept", "flips_dropped"}
    assert record["seconds"] > 0
    assert record["rows"] == {"train": 2000, "test": 1000}
    _, records = compare(tmp_path, "--methods", "lr,itlm", "--seeds", "2")
    assert len({one["checksum"] for one in records}) == 2  # of the two draws


def test_other_questions_are_other_runs_and_what_a_method_does_not_use_is_no_question(tmp_path):
    asked = ("--methods", "plain", "--seeds", "1")
    noisy = ("--validation", "noisy")
    reweight = ("--methods", "learning-to-reweight", *noisy)
    questions = (), noisy, ("--rate", "0.2"), ("--noise", "uniform"), reweight
    for options, count in zip(questions, (1, 1, 2, 3, 4), strict=True):
        assert len(compare(tmp_path, *asked, *options)[1]) == count


def test_group_targeted_flips_never_reach_half_of_the_groups_training_labels(tmp_path):
    noise = ("--noise", "group-targeted-without-group")
    _, records = compare(tmp_path, "--methods", "plain", "--seeds", "30", *noise)
    attacked = [group for record in records for group in record["attacked"]]
    assert max(share for record in records for share in record["attacked"].values()) < 0.5
    assert attacked.count("1") >= 28  # the authors' own choice
    named = ("--noise", "group-targeted:0", "--rate", "0.04")
    assert list(compare(tmp_path, "--methods", "plain", "--seeds", "1", *named)[1][-1]["attacked"]) == ["0"]
    with pytest.raises(InvalidInputError, match="noise must attack one of the groups 0, 1; got '2'"):
        compare(tmp_path, "--methods", "plain", "--noise", "group-targeted:2")


def test_the_authors_arrays_stand_in_for_a_draw_and_records_do_not_say_where_they_are(tmp_path):
    parts = synthetic_splits(7)
    noisy = parts.train.labels.copy()
    noisy[:200] = 1 - noisy[:200]
    for place in ("one", "two"):
        folder = tmp_path / place
        folder.mkdir()
        write_arrays(folder, parts, noisy)
        for noise in ("label", "group-targeted"):
            asked = run.Comparison(noise=noise, arrays=str(folder))
            list(run.compare(asked, find_methods("plain"), range(1), tmp_path / "records.jsonl"))
    records = list(read_results(tmp_path / "records.jsonl"))
    assert len(records) == 2  # the second folder gave no others
    groups = parts.train.groups
    shares = {str(z): (noisy != parts.train.labels)[groups == z].mean() for z in (0, 1)}
    for record in records:
        assert record["attacked"] == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize(("options", "message"), [
    (("--label", "income"), "--label must go with --table; got no table: add --table FILE"),
    (("--verified", "a.csv"), "--verified must go with --table"),
    (("--table", "a.csv", "--label", "x"), "--sensitive must name a column with --table; got none"),
    (("--table", "a.csv", "--data", "adult"), "--table and --data must not be given together"),
])  # fmt: skip
def test_bad_options_are_named_before_any_work(tmp_path, options, message):
    with pytest.raises(InvalidInputError, match=message):
        compare(tmp_path / "new", *options)
    assert not (tmp_path / "new").exists()


# Somebody's own table.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a row that lacks its group, and answers to some of its rows."""
    path = tmp_path_factory.mktemp("own")
    table = people(ROWS)
    table["sex"][5] = ""
    write_csv(path / "people.csv", table)
    roles = ["--label", "income", "--sensitive", "sex", "--rows", "60"]
    done = CliRunner().invoke(app, ["review", f"{path}/people.csv", *roles, "-o", f"{path}/review.html"])
    assert done.exit_code == 0, done.output
    lines = list(csv.DictReader((path / "review.csv").read_text(encoding="utf-8").splitlines()))
    for i, line in enumerate(lines):
        line["verified_label"] = "high" if i % 3 else "low"
    write_csv(path / "answers.csv", {name: [line[name] for line in lines] for name in lines[0]})
    return path


def on_table(folder, out, *options):
    roles = ("--table", str(folder / "people.csv"), "--label", "income", "--sensitive", "sex")
    return compare(folder / out, *roles, "--methods", "plain,reweighing", *options)


def test_few_rows_bound_what_wrong_labels_could_change(folder):
    printed, records = on_table(folder, "runs", "--seeds", "2")
    assert "people.csv, no flips, 2 splits" in printed
    assert re.search("Measured on rows set aside. Up to [0-9.]+ % of their labels may be wrong", printed)
    assert "(estimated from each training part)" in printed
    assert len(records) == 4
    assert records[0]["settings"]["noise"] == "none"
    assert records[0]["settings"]["table"]["sensitive"] == ["sex"]
    assert records[0]["rows"]["test"] == round(0.2 * (ROWS - 1))
    assert on_table(folder, "runs", "--seeds", "2")[0] == printed
    changed, more = on_table(folder, "runs", "--seeds", "2", "--drop", "job")
    assert len(more) == 8  # another question, other runs
    assert changed != printed
    for one in records:
        del one["predicted"]  # as older records, by which nothing but the given labels can be judged
    (folder / "old").mkdir()
    (folder / "old" / "records.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    assert "Measured on the table's own labels" in on_table(folder, "old", "--seeds", "2")[0]


def test_methods_are_judged_for_right_labels(tmp_path):
    """A fifth of the labels is wrong: what is said of every method is nearer to the truth than what they show."""
    table = people(4000, wrong=0.0)
    truth = np.array(table["income"]) == "high"
    wrong = np.random.default_rng(1).random(4000) < 0.2
    table["income"] = np.where(truth ^ wrong, "high", "low").tolist()
    write_csv(tmp_path / "people.csv", table)
    roles = ("--table", str(tmp_path / "people.csv"), "--label", "income", "--sensitive", "sex")
    printed, records = compare(tmp_path, *roles, "--methods", "plain,reweighing", "--seeds", "2", width=80)
    assert "Judged for right labels, on rows set aside" in printed
    assert "Reweighing" in printed  # nothing is cut at 80 columns
    source, _ = table_source(TableSettings(tmp_path / "people.csv", label="income", sensitive=("sex",)))
    asked = run.Comparison(data="table", noise="none", rate=0.0, table=source)
    found = summarise(asked, find_methods("plain,reweighing"), records)
    for line in found.lines:
        mine = [one for one in records if one["settings"]["method"] == line.method.name]
        right = []
        for one in mine:
            _, rows = pool_tested(source, [one["settings"]["seed"]])
            right.append(np.mean(np.array(one["predicted"]) == ~truth[rows]))  # low is the positive label
        assert abs(line.values[0] - np.mean(right)) < 0.05 < abs(line.given[0] - np.mean(right))


def test_flips_are_added_to_the_training_part_alone(folder):
    flips = ("--noise", "uniform", "--rate", "0.25", "--seeds", "1")
    printed, records = on_table(folder, "flipped", *flips)
    assert "25 % flips (uniform), 1 split" in printed
    assert "25 % of the training labels were flipped (uniform), beside those that are wrong" in printed
    assert np.mean(list(records[0]["attacked"].values())) == pytest.approx(0.25, abs=0.05)


def test_verified_labels_are_measured_on_and_never_trained_on(folder):
    answers = ("--verified", str(folder / "answers.csv"), "--seeds", "2")
    printed, records = on_table(folder, "verified", *answers)
    assert "verified labels, which no method trained on" in printed
    assert len({record["rows"]["train"] for record in records}) == 1
    for record in records:
        assert record["rows"]["test"] == len(record["predicted"])
        assert record["rows"]["train"] + record["rows"]["test"] < ROWS
    _, (other,) = on_table(folder, "high", *answers[:3], "1", "--methods", "plain", "--positive", "high")
    # By default the last label is the positive one: the codes of the other are turned round.
    assert np.mean(np.array(other["predicted"]) != records[0]["predicted"]) > 0.95


def test_a_method_that_cannot_says_so_in_its_record(folder):
    table = people(ROWS)
    table["income"] = [("low", "high", "middle")[i % 3] for i in range(ROWS)]
    write_csv(folder / "three.csv", table)
    asked = ("--table", str(folder / "three.csv"), "--label", "income", "--sensitive", "sex", "--seeds", "1")
    printed, (record,) = compare(folder / "three", *asked, "--methods", "threshold-optimizer")
    assert "threshold-optimizer is defined for at most 2 classes; data has 3" in record["error"]
    assert record["error"] in printed


def test_copies_of_a_row_are_on_one_side_of_a_split(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=100), "y": rng.choice([*"ny"], 100), "sex": [*"mw"] * 50})
    pd.concat([frame] * 3).to_csv(tmp_path / "copies.csv", index=False)
    source, _ = table_source(TableSettings(data=tmp_path / "copies.csv", label="y", sensitive=("sex",)))
    for seed in range(3):
        problem = make_table_problem(source, "none", 0.0, seed)
        sizes = [set(part.features[:, 0]) for part in (problem.train, problem.test)]
        assert sizes[0].isdisjoint(sizes[1])
        assert len(problem.test) == pytest.approx(60, abs=6)
