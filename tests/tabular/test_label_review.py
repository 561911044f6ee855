"""Rows to check: who is asked about, why, and what the answers are good for."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from tests.support.people import people, write_csv
from typer.testing import CliRunner

from fairsieve import tabular
from fairsieve.cli.app import app
from fairsieve.errors import InvalidInputError
from fairsieve.tabular.label_review import review_labels
from fairsieve.tabular.report.review_files import _review_csv, _review_sheet, write_review
from fairsieve.tabular.request import Asked
from fairsieve.tabular.table_run import train_table

COUNT = 800


@pytest.fixture(scope="module")
def truth():
    """Labels without errors, and the table with some wrong ones; features are the same."""
    right, noisy = people(COUNT, wrong=0.0), people(COUNT, wrong=0.15)
    assert right["age"] == noisy["age"]
    return right["income"], {"name": [f"=p{i}" for i in range(COUNT)], **noisy}


@pytest.fixture(scope="module")
def data(truth, tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("review") / "people.csv", truth[1])


@pytest.fixture(scope="module")
def review(data):
    return review_labels(Asked(data, "income", ["sex"]), 80, id_column="name")


def answer(review, truth, path):
    """Fill in the file as somebody would who knows the truth; leave the last row open."""
    lines = list(csv.DictReader(_review_csv(review).splitlines()))
    for line in lines[:-1]:
        line["verified_label"] = truth[0][int(line["row"]) - 2]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def test_rows_are_described_in_plain_words(review, truth):
    assert len({one.row for one in review.rows}) == 80
    for one in review.rows:
        place = one.row - 2
        assert one.identifier == truth[1]["name"][place]
        assert one.given == truth[1]["income"][place]
        assert {name: truth[1][name][place] for name in one.values} == {
            name: text or ("?" if name == "age" else "") for name, text in one.values.items()
        }
        assert not {"income", "name"} & set(one.values)
        assert (one.suggested == one.given) == one.reasons[0].startswith("Nothing speaks clearly against")
        assert any("A linear model that did not see this row" in reason for reason in one.reasons)
        assert any("most similar rows" in reason for reason in one.reasons)
    assert review.columns[0] in ("age", "hours", "job")
    assert list(review.frame.columns[:3]) == ["row", "given_label", "suggested_label"]


def test_rows_are_drawn_with_known_chances(review):
    """Labels in doubt are drawn more often, and weigh less."""
    weights = np.array([one.weight for one in review.rows])
    assert weights.mean() == pytest.approx(1)
    doubted = np.array([one.suggested != one.given for one in review.rows])
    assert doubted.sum() >= 5
    assert weights[doubted].mean() < weights[~doubted].mean()


def test_the_file_for_spreadsheets_has_a_column_to_fill_in(review):
    lines = list(csv.reader(_review_csv(review).splitlines()))
    assert lines[0] == ["row", "id", "given_label", "verified_label", "sampling_weight", "row_checksum"]
    assert {line[3] for line in lines[1:]} == {""}
    assert all(line[1].startswith("'=p") for line in lines[1:])  # no formula


def test_the_page_writes_the_same_file(review):
    sheet = _review_sheet(review, "review.csv")
    text = "\n".join([sheet.header, *(item.before + item.after for item in sheet.items), ""])
    assert text == _review_csv(review)


def test_answers_are_used_and_what_they_changed_is_told(review, truth, data, tmp_path):
    path = answer(review, truth, tmp_path / "review.csv")
    asked = Asked(data, "income", ["sex"], verified=(path,), epochs=12)
    run = train_table(asked)
    found = run.verified
    wrong = [one.given != truth[0][one.row - 2] for one in review.rows[:-1]]
    assert found.wrong == (sum(wrong), 79)
    assert sum(share.total for share in found.by_group.values()) == 79
    assert found.unanswered == 1
    low, high = found.share_wrong.interval
    everywhere = np.mean([a != b for a, b in zip(*(truth[0], truth[1]["income"]), strict=True)])
    assert low <= everywhere <= high  # although labels in doubt were drawn more often
    assert run.notes[0].startswith(f"Of 79 checked labels {sum(wrong)} are wrong")
    assert "1 without an answer" in run.notes[0]
    assert "without the answers" in run.notes[1]
    assert run.estimate.verified is not None
    checked = {one.row: truth[0][one.row - 2] for one in review.rows[:-1]}
    test = run.problem.test
    measured = [row for row in test.rows.tolist() if row in checked]
    assert found.in_test == len(measured) > 0
    given = dict(zip(test.rows.tolist(), test.labels.tolist(), strict=True))
    assert all(given[row] == checked[row] for row in measured)

    again = review_labels(asked, 30)
    assert not {one.row for one in again.rows} & set(checked)
    with pytest.raises(
        InvalidInputError, match=r"--verified says how many labels are right; got --clean-ratio 0.9"
    ):
        Asked(data, "income", ["sex"], verified=(path,), clean_ratio=0.9)


def test_a_table_of_few_rows_is_asked_about_whole(truth, tmp_path):
    small = write_csv(tmp_path / "small.csv", {name: column[:80] for name, column in truth[1].items()})
    found = review_labels(Asked(small, "income", ["sex"]), 500)
    assert len(found.rows) == 80
    with pytest.raises(InvalidInputError, match="--rows must be a whole number of at least 1"):
        review_labels(Asked(small, "income", ["sex"]), 0)
    with pytest.raises(
        InvalidInputError, match=r"--id must be a column of small.csv; got 'nmae'. Did you mean 'name'"
    ):
        review_labels(Asked(small, "income", ["sex"]), 5, id_column="nmae")


def test_the_page_holds_no_code_of_the_table(review, tmp_path):
    write_review(review, tmp_path / "check.html")
    assert (tmp_path / "check.csv").read_text(encoding="utf-8") == _review_csv(review)
    page = (tmp_path / "check.html").read_text(encoding="utf-8")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["file_name"] == "check.csv"
    assert len(data["items"]) == 80


def test_from_python_with_a_data_frame(review, truth, tmp_path):
    """The same rows as from a file; the answers can be a data frame too."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(truth[1]).replace({"age": {"?": None}, "job": {"": None}}).astype({"age": float})
    found = tabular.review(frame, label="income", sensitive="sex", rows=12, id_column="name")
    assert len(found.rows) == 12
    answers = pandas.read_csv(found.save(tmp_path / "review.html"))
    with pytest.raises(InvalidInputError, match=r"--out must be a new file|--force"):
        found.save(tmp_path / "review.html")
    answers["verified_label"] = [truth[0][row] for row in answers["row"]]
    result = tabular.train(frame, label="income", sensitive="sex", verified=answers, epochs=8)
    assert result.metrics["verified"]["wrong"]["total"] == 12
    folder = result.save(tmp_path / "run")
    again = tabular.review(frame, run=folder, rows=3)
    assert again.review.asked.label == "income"
    assert all("The model in run" in one.reasons[-1] for one in again.review.rows)
    with pytest.raises(InvalidInputError, match="--sensitive must name a column; got none"):
        tabular.review(frame, label="income")


def test_an_audit_learns_from_answers_and_measures_predictions_on_the_true_labels(
    review, truth, data, tmp_path
):
    path = answer(review, truth, tmp_path / "review.csv")
    given = truth[1]["income"]
    other = dict(zip(sorted(set(given)), sorted(set(given), reverse=True), strict=True))
    guess = [right if place % 10 else other[right] for place, right in enumerate(truth[0])]
    table = write_csv(tmp_path / "guessed.csv", {**truth[1], "guess": guess})
    found = tabular.audit(data, label="income", sensitive="sex", verified=path)
    assert found.audit.estimate.verified.checked.sum() == 79
    assert found.audit.notes[0].startswith(
        "Share of wrong labels by true label and group, from the checked rows"
    )
    rates = found.metrics["verified_rates"]
    assert len(rates) == 4
    assert all(one["flip_rate"]["interval"][0] <= one["flip_rate"]["value"] for one in rates)
    assert all(0 < one["narrowed_by_ten_checks"] < 0.2 for one in rates)
    with pytest.raises(InvalidInputError, match=r"--verified must hold answers to rows of guessed\.csv"):
        tabular.audit(table, label="income", sensitive="sex", prediction="guess", verified=path)
    own = review_labels(Asked(table, "income", ["sex"], drop=("guess",)), 80, id_column="name")
    path = answer(own, truth, tmp_path / "own.csv")
    measured = tabular.audit(
        table, label="income", sensitive="sex", prediction="guess", verified=path, drop=["name"]
    )
    roles = ["--label", "income", "--sensitive", "sex", "--prediction", "guess", "--drop", "name"]
    typed = CliRunner().invoke(app, ["audit", str(table), *roles, "--verified", str(path)])
    assert typed.exit_code == 0, typed.output
    assert "Estimated for the true labels of 800 rows, 79 of which were checked" in " ".join(
        typed.output.split()
    )
    true = measured.metrics["true_labels"]
    accuracy = np.mean([a == b for a, b in zip(guess, truth[0], strict=True)])
    low, high = true["predictions"]["accuracy"]["interval"]
    assert low <= accuracy <= high  # of the true labels; on the given ones it is lower
    assert measured.metrics["scores"]["accuracy"]["value"] < true["predictions"]["accuracy"]["value"] - 0.03
    assert (true["checked"], true["rows"]) == (79, COUNT)


def test_a_run_with_answers_reports_measures_for_the_true_labels(review, truth, data, tmp_path):
    path = answer(review, truth, tmp_path / "review.csv")
    run = train_table(Asked(data, "income", ["sex"], verified=(path,), epochs=12))
    found = run.verified.true_labels
    assert found.rows == len(run.problem.test)
    assert found.checked == run.verified.in_test
    assert list(found.models) == ["plain model", "fair model"]
    for one in found.models.values():
        assert one.accuracy.low <= one.accuracy.value <= one.accuracy.high
        assert one.accuracy.high - one.accuracy.low > 0.05  # few rows were checked
    assert found.sentence in run.notes
    assert any(note.startswith("Share of wrong labels by true label and group") for note in run.notes)
