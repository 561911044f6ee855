"""Comparing on somebody's own table: splits, flips, verified labels, and what is said of them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from tests.support.people import people, write_csv
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.errors import InvalidInputError
from fairsieve.paper.table_problems import compare_pairs, compare_verified, make_table_problem, table_source
from fairsieve.tabular.label_review import review_labels
from fairsieve.tabular.report.review_files import write_review
from fairsieve.tabular.settings import TableSettings

ROWS = 400
QUICK = ("--methods", "plain,reweighing", "--no-tune", "--epochs", "4", "--jobs", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with rows that lack a group, and answers to some of its rows."""
    path = tmp_path_factory.mktemp("own")
    table = people(ROWS)
    table["sex"][5] = ""
    write_csv(path / "people.csv", table)
    review = review_labels(TableSettings(path / "people.csv", "income", ["sex"]), 60)
    answers = write_review(review, path / "review.html")
    lines = list(csv.DictReader(answers.read_text(encoding="utf-8").splitlines()))
    for i, line in enumerate(lines):
        line["verified_label"] = "high" if i % 3 else "low"
    write_csv(path / "answers.csv", {name: [line[name] for line in lines] for name in lines[0]})
    return path


def compare(folder, *options, out="runs"):
    roles = ("--table", str(folder / "people.csv"), "--label", "income", "--sensitive", "sex")
    result = CliRunner().invoke(app, ["compare", *roles, *QUICK, "--out", str(folder / out), *options])
    if isinstance(result.exception, InvalidInputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in (folder / out / "records.jsonl").read_text().splitlines()]
    return " ".join(result.output.split()), records


def test_the_table_is_compared_on_its_own_labels(folder):
    printed, records = compare(folder, "--seeds", "2")
    assert "people.csv, no flips, 2 splits" in printed
    assert "Measured on the table's own labels of rows set aside." in printed
    assert "(estimated from each training part)" in printed
    assert len(records) == 4
    assert records[0]["settings"]["noise"] == "none"
    assert records[0]["settings"]["table"]["sensitive"] == ["sex"]
    assert records[0]["rows"]["test"] == round(0.2 * (ROWS - 1))
    again, _ = compare(folder, "--seeds", "2")
    assert again == printed
    changed, more = compare(folder, "--seeds", "2", "--drop", "job")
    assert len(more) == 8  # another question, other runs
    assert changed != printed


def test_flips_are_added_to_the_training_part_alone(folder):
    source, whole = table_source(TableSettings(folder / "people.csv", "income", "sex"))
    plain, noisy = (
        make_table_problem(source, *noise, seed=1) for noise in (("none", 0.0), ("uniform", 0.25))
    )
    assert not plain.flipped.any()
    assert noisy.flipped.mean() == pytest.approx(0.25, abs=0.01)
    assert (noisy.test.labels == plain.test.labels).all()
    assert ((noisy.train.labels != plain.train.labels) == noisy.flipped).all()
    printed, _ = compare(folder, "--noise", "uniform", "--rate", "0.25", "--seeds", "1", out="flipped")
    assert "25% flips (uniform), 1 split" in printed
    assert "25% of the training labels were flipped (uniform), beside those that are wrong already" in printed
    assert len(whole.train) == ROWS


def test_the_positive_label_is_the_last(folder):
    first = make_table_problem(
        table_source(TableSettings(folder / "people.csv", "income", ("sex",)))[0], "none", 0.0, 0
    )
    other = make_table_problem(
        table_source(TableSettings(folder / "people.csv", "income", ("sex",), positive="high"))[0],
        "none",
        0.0,
        0,
    )
    assert (first.test.labels == 1 - other.test.labels).all()
    assert other.changes["pos_label"] == 1


def test_verified_labels_are_measured_on_and_never_trained_on(folder):
    source, whole = table_source(
        TableSettings(folder / "people.csv", "income", "sex", verified=str(folder / "answers.csv"))
    )
    problems = [make_table_problem(source, "none", 0.0, seed) for seed in (0, 1)]
    known = whole.train.verified[whole.train.grouped]
    for problem in problems:
        assert problem.test.labels.tolist() == known[known >= 0].tolist()
        assert len(problem.train) + len(problem.test) < ROWS
        assert problem.weights.mean() == pytest.approx(1, abs=0.1)
    assert len(problems[0].train) == len(problems[1].train)
    assert not np.array_equal(problems[0].train.features, problems[1].train.features)
    printed, records = compare(
        folder, "--verified", str(folder / "answers.csv"), "--seeds", "2", out="verified"
    )
    assert "verified labels, which no method trained on" in printed
    predicted = np.array(records[0]["predicted"])
    right = predicted == problems[0].test.labels
    expected = np.average(right, weights=problems[0].weights)
    assert records[0]["metrics"]["accuracy"] == pytest.approx(expected, abs=1e-5)


def test_differences_are_of_the_same_rows(folder):
    source, _ = table_source(
        TableSettings(folder / "people.csv", "income", "sex", verified=str(folder / "answers.csv"))
    )
    problem = make_table_problem(source, "none", 0.0, 0)
    truth = problem.test.labels

    def record(method, predicted):
        return {"settings": {"method": method, "seed": 0}, "metrics": {}, "predicted": predicted.tolist()}

    records = [record("right", truth), record("wrong", 1 - truth), record("same", truth)]
    arguments = {"test": problem.test, "weights": problem.weights}
    found = compare_verified(records, "right", "wrong", "accuracy", **arguments)
    assert (found.value, found.interval) == (1.0, (1.0, 1.0))
    same = compare_verified(records, "same", "right", "equalized_odds", **arguments)
    assert (same.value, same.interval) == (0.0, (0.0, 0.0))
    assert compare_verified(records, "none", "right", "accuracy", **arguments) is None


def test_one_split_has_no_interval():
    records = [
        {
            "settings": {"method": name, "seed": 0},
            "metrics": {"accuracy": value},
            "rows": {"train": 8, "test": 2},
        }
        for name, value in (("a", 0.5), ("b", 0.75))
    ]
    found = compare_pairs(records, "b", "a", "accuracy")
    assert (found.value, found.interval) == (0.25, None)
    assert compare_pairs(records, "c", "a", "accuracy") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label", "income"), "--label must go with --table; got no table: add --table FILE"),
        (("--verified", "a.csv"), "--verified must go with --table"),
        (("--table", "a.csv", "--label", "x"), "--sensitive must name a column with --table; got none"),
        (("--table", "a.csv", "--data", "adult"), "--table and --data must not be given together"),
    ],
)
def test_what_belongs_together_is_told(options, message):
    result = CliRunner().invoke(app, ["compare", *options])
    assert message in str(result.exception)
