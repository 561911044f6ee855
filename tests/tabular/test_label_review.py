"""Rows to check: who is asked about, why, and what the answers are good for."""

import csv
import errno
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pytest
from tests.support.people import people, write_csv
from tests.support.refusals import refused
from typer.testing import CliRunner

from fairsieve import tabular
from fairsieve.cli.app import app
from fairsieve.errors import InvalidInputError
from fairsieve.tabular.answers import tell_revealed

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


ROLES = {"label": "income", "sensitive": "sex"}
OPTIONS = ["--label", "income", "--sensitive", "sex"]


@pytest.fixture(scope="module")
def chosen(data):
    return tabular.review(data, **ROLES, rows=80, id_column="name")


@pytest.fixture(scope="module")
def review(chosen):
    return chosen.review


@pytest.fixture(scope="module")
def sheet(chosen, tmp_path_factory):
    """The file to fill in."""
    return chosen.save(tmp_path_factory.mktemp("sheet") / "review.html")


def read_lines(sheet):
    return list(csv.DictReader(sheet.read_text(encoding="utf-8").splitlines()))


def read_sheet(page):
    """Read the rows that a page has in it."""
    return json.loads(page.read_text("utf-8").partition('id="data">')[2].partition("</script>")[0])


def answer(sheet, truth, path):
    """Fill in the file as somebody would who knows the truth; leave the last row open."""
    lines = read_lines(sheet)
    for line in lines[:-1]:
        line["verified_label"] = truth[0][int(line["row"]) - 2]
    return write_lines(path, lines)


def write_lines(path, lines):
    return write_csv(path, {name: [line[name] for line in lines] for name in lines[0]})


def test_rows_are_described_in_plain_words(review, truth):
    assert review.rows["row"].nunique() == 80
    for one, values in zip(review.rows.itertuples(), review.values.to_dict("records"), strict=True):
        place = one.row - 2
        assert one.id == truth[1]["name"][place]
        assert one.given_label == truth[1]["income"][place]
        gaps = {"age": "?"}
        told = {name: text or gaps.get(name, "") for name, text in values.items()}
        assert {name: truth[1][name][place] for name in values} == told
        assert not {"income", "name"} & set(values)
        kept = one.suggested_label == one.given_label
        assert kept == one.reasons[0].startswith("Nothing speaks clearly against")
        assert any("A linear model that did not see this row" in reason for reason in one.reasons)
        assert any("most similar rows" in reason for reason in one.reasons)
    assert review.values.columns[0] in ("age", "hours", "job")
    assert list(review.frame.columns[:3]) == ["row", "given_label", "suggested_label"]


def test_rows_are_drawn_with_known_chances(review):
    """Labels in doubt are drawn more often, and weigh less."""
    weights = review.rows["sampling_weight"]
    assert weights.mean() == pytest.approx(1)
    doubted = review.rows["suggested_label"] != review.rows["given_label"]
    assert doubted.sum() >= 5
    assert weights[doubted].mean() < weights[~doubted].mean()


def test_the_file_for_spreadsheets_has_a_column_to_fill_in(sheet):
    lines = read_lines(sheet)
    assert list(lines[0]) == ["row", "id", "given_label", "verified_label", "sampling_weight", "row_checksum"]
    assert {line["verified_label"] for line in lines} == {""}
    assert all(line["id"].startswith("'=p") for line in lines)  # no formula


def test_the_page_writes_the_same_file_and_says_that_it_holds_personal_data(sheet):
    kept, page = read_sheet(sheet.with_suffix(".html")), sheet.with_suffix(".html").read_text("utf-8")
    lines = [kept["header"], *(item["before"] + item["after"] for item in kept["items"]), ""]
    assert "\n".join(lines) == sheet.read_text(encoding="utf-8")
    assert kept["file_name"] == "review.csv"
    assert "This page holds personal data" in page.partition("<header>")[2].partition("</header>")[0]


def answered(data, sheet, answers):
    """Audit with answers: a dictionary of right labels by row."""
    lines = [line for line in read_lines(sheet) if int(line["row"]) in answers]
    lines = [line | {"verified_label": answers[int(line["row"])]} for line in lines]
    return tabular.audit(data, **ROLES, verified=write_lines(sheet.with_name("answered.csv"), lines))


def test_labels_of_which_no_checked_one_is_wrong_are_not_condemned(data, sheet):
    right = {int(line["row"]): line["given_label"] for line in read_lines(sheet)[:10]}
    found = answered(data, sheet, right)
    assert found.audit.estimate.share_wrong >= 0.01
    assert (found.audit.estimate.interval[1], found.decision.outcome) == (1.0, "cannot-tell")


def test_answers_are_used_and_what_they_say_is_told(sheet, truth, data, tmp_path):
    path = answer(sheet, truth, tmp_path / "review.csv")
    result = tabular.train(data, **ROLES, verified=path, max_iter=8)
    run = result.run
    found = run.verified
    checked = {int(line["row"]): line["given_label"] for line in read_lines(sheet)[:-1]}
    wrong = [label != truth[0][row - 2] for row, label in checked.items()]
    assert found["wrong"] == (sum(wrong), 79)
    assert sum(share.total for share in found["by_group"].values()) == 79
    assert found["unanswered"] == 1
    low, high = found["share_wrong"].interval
    everywhere = np.mean([a != b for a, b in zip(truth[0], truth[1]["income"], strict=True)])
    # Although labels in doubt were drawn more often; one interval in twenty misses by a little.
    assert low - 0.02 <= everywhere <= high + 0.02
    assert result.decision.sentence.startswith(tell_revealed(found))
    assert run.notes[0].startswith(f"Of 79 checked labels {sum(wrong)} are wrong")
    assert "1 without an answer" in run.notes[0]
    # Two shares on one page, each of what it is.
    assert "of the labels of the whole table are wrong" in run.notes[0]
    card = (result.save(tmp_path / "run") / "card.md").read_text(encoding="utf-8")
    assert "of the labels trained on are wrong" in card
    metrics = result.metrics
    assert metrics["labels_judged_by"] == "verified labels"
    for name in ("plain", "fair"):
        accuracy = metrics[name]["accuracy"]
        low, high = accuracy["interval"]
        assert low <= accuracy["value"] <= high
        assert high - low > 0.05  # few rows were checked
        assert accuracy != metrics[name]["on_given_labels"]["accuracy"]
    assert len(run.measured.part) == len(run.problem.whole)
    assert any(note.startswith("Share of wrong labels by true label and group") for note in run.notes)

    again = tabular.review(data, **ROLES, rows=30, verified=path)
    assert not set(again.rows["row"]) & set(checked)
    told = r"verified says how many labels are right; got clean_ratio 0.9"
    refused(told, tabular.train, data, **ROLES, verified=path, clean_ratio=0.9)


def test_a_table_of_few_rows_is_asked_about_whole(truth, tmp_path):
    small = write_csv(tmp_path / "small.csv", {name: column[:80] for name, column in truth[1].items()})
    found = tabular.review(small, **ROLES, rows=500)
    assert len(found.rows) == 80
    assert not found.rows["reasons"].str.contains("did not see this row").any()
    refused("rows must be a whole number of at least 1", tabular.review, small, **ROLES, rows=0)
    told = r"id_column must be a column of small.csv; got 'nmae'. Did you mean 'name'"
    refused(told, tabular.review, small, **ROLES, rows=5, id_column="nmae")


def test_answers_are_never_replaced(data, sheet, truth, tmp_path):
    """The second review needs another name, and its next step uses both files."""
    answers = answer(sheet, truth, tmp_path / "ans.csv")
    before = answers.read_bytes()
    page = tmp_path / "ans.html"
    words = ["review", str(data), *OPTIONS, "--rows", "5", "--verified", str(answers)]
    for force in ([], ["--force"]):
        stopped = CliRunner().invoke(app, [*words, "-o", str(page), *force])
        told = str(stopped.exception)
        assert told.startswith(f"--out must not replace answers; {answers} holds 79: name another page")
        assert "ans-2.html" in told
        assert "--force" not in told
    assert answers.read_bytes() == before
    assert not page.exists()
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "ans-2.html")])
    assert done.exit_code == 0, done.output
    told = "".join(done.output.split())
    assert f"--verified{answers}--verified{tmp_path / 'ans-2.csv'}-orun-2" in told


def test_a_sheet_without_answers_is_replaced_if_asked(chosen, tmp_path):
    chosen.save(tmp_path / "review.html")
    refused(r"path must be a new file", chosen.save, tmp_path / "review.html")
    chosen.save(tmp_path / "review.html", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["review.csv", "review.html"]


@pytest.mark.parametrize("full", ["review.csv", "review.html"])
@pytest.mark.parametrize("before", [None, "old"])
def test_page_and_file_appear_together_or_not_at_all(chosen, tmp_path, monkeypatch, full, before):
    """The disk is full for one of them."""
    for name in ("review.csv", "review.html"):
        if before:
            (tmp_path / name).write_text(before)
    write = os.fsync
    opened = []

    def fail(handle):
        opened.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        if full in opened[-1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(handle)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InvalidInputError, match=r"could not be written: No space left on device\. Make room"):
        chosen.save(tmp_path / "review.html", force=True)
    assert opened
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == (dict.fromkeys(("review.csv", "review.html"), before) if before else {})


def test_two_reviews_of_one_name_leave_one_pair(data, tmp_path):
    reviews = [tabular.review(data, **ROLES, rows=40, seed=seed) for seed in range(2)]
    for attempt in range(5):
        page = tmp_path / f"{attempt}.html"
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda one, page=page: one.save(page, force=True), reviews))
        kept = read_sheet(page)
        rows = [int(item["before"].partition(",")[0]) for item in kept["items"]]
        assert rows == [int(line["row"]) for line in read_lines(page.with_suffix(".csv"))]


def test_a_group_that_nobody_checked_is_called_by_its_name(data, sheet, truth, tmp_path):
    answers = answer(sheet, truth, tmp_path / "review.csv")
    sex = truth[1]["sex"]
    women = [line for line in read_lines(answers) if sex[int(line["row"]) - 2] == "woman"]
    path = write_lines(tmp_path / "women.csv", women)
    told = "verified_labels has no checked row of the group 'man'"
    trained = tabular.train(data, **ROLES, verified=path, test=0.3, max_iter=1)
    for notes in (tabular.audit(data, **ROLES, verified=path).audit.notes, trained.run.notes):
        assert any(told in note for note in notes)


def test_many_rows_are_chosen_in_time_that_does_not_grow_with_their_square(tmp_path):
    """10,000 rows of 100,000 took 46 seconds, and all 100,000 more than 150."""
    path = write_csv(tmp_path / "people.csv", people(10_000))
    seconds = []
    for rows in (10, 10_000):
        start = time.process_time()
        assert len(tabular.review(path, **ROLES, rows=rows).rows) == rows
        seconds.append(time.process_time() - start)
    assert seconds[1] < seconds[0] + 10_000 * 0.0004


def test_from_python_with_a_data_frame(truth, tmp_path):
    """The same rows as from a file; the answers can be a data frame too."""
    frame = pandas.DataFrame(truth[1]).replace({"age": {"?": None}, "job": {"": None}}).astype({"age": float})
    named = frame.rename(columns={"age": "row", "hours": "self"})
    assert {"row", "row_", "self"} < {*tabular.review(named, **ROLES, rows=3).rows}
    found = tabular.review(frame, **ROLES, rows=12, id_column="name")
    assert len(found.rows) == 12
    answers = pandas.read_csv(found.save(tmp_path / "review.html"))
    answers["verified_label"] = [truth[0][row] for row in answers["row"]]
    result = tabular.train(frame, **ROLES, verified=answers, max_iter=4, test=0.3)
    assert result.metrics["verified"]["wrong"]["total"] == 12
    folder = result.save(tmp_path / "run")
    again = tabular.review(frame, run=folder, rows=3)
    assert again.review.asked.label == "income"
    assert all("The model in run" in reasons[-1] for reasons in again.review.rows["reasons"])
    refused("sensitive must name a column; got none", tabular.review, frame, label="income")


def test_an_audit_learns_from_answers_and_measures_by_the_true_labels(sheet, truth, data, tmp_path):
    path = answer(sheet, truth, tmp_path / "review.csv")
    given = truth[1]["income"]
    other = dict(zip(sorted(set(given)), sorted(set(given), reverse=True), strict=True))
    guess = [right if place % 10 else other[right] for place, right in enumerate(truth[0])]
    table = write_csv(tmp_path / "guessed.csv", {**truth[1], "guess": guess})
    found = tabular.audit(data, **ROLES, verified=path)
    assert found.audit.estimate.verified.checked.sum() == 79
    told = "Share of wrong labels by true label and group"
    assert found.audit.notes[0].startswith(f"{told}, from the checked rows")
    rates = found.metrics["verified_rates"]
    assert len(rates) == 4
    assert all(one["flip_rate"]["interval"][0] <= one["flip_rate"]["value"] for one in rates)
    assert all(0 < one["narrowed_by_ten_checks"] < 0.2 for one in rates)
    with pytest.raises(InvalidInputError, match=r"verified must hold answers to rows of guessed\.csv"):
        tabular.audit(table, **ROLES, prediction="guess", verified=path)
    own = tabular.review(table, **ROLES, drop=["guess"], rows=80, id_column="name")
    path = answer(own.save(tmp_path / "own.html"), truth, tmp_path / "filled.csv")
    measured = tabular.audit(table, **ROLES, prediction="guess", verified=path, drop=["name"])
    roles = ["--label", "income", "--sensitive", "sex", "--prediction", "guess", "--drop", "name"]
    typed = CliRunner().invoke(app, ["audit", str(table), *roles, "--verified", str(path)])
    assert typed.exit_code == 0, typed.output
    assert told in " ".join(typed.output.split())
    scores = measured.metrics["scores"]
    accuracy = np.mean([a == b for a, b in zip(guess, truth[0], strict=True)])
    low, high = scores["accuracy"]["interval"]
    # Of the true labels, but for the one interval in twenty that misses by a little; on the given ones it is lower.
    assert low - 0.02 <= accuracy <= high + 0.02
    assert scores["on_given_labels"]["accuracy"]["value"] < scores["accuracy"]["value"] - 0.03
    assert measured.metrics["labels_judged_by"] == "verified labels"
    assert measured.metrics["rows_measured"] == COUNT


def test_rows_come_in_random_order(tmp_path):
    """Whoever answers the first forty only has checked a random part of them: of all labels, groups and weights."""
    table = people(1200, wrong=0.2)
    path = write_csv(tmp_path / "people.csv", table)
    drawn = []
    for seed in range(12):
        rows = tabular.review(path, **ROLES, rows=100, seed=seed).review.rows
        first = rows.head(40)
        for name in ("given_label", "suggested_label", "group"):
            common = rows[name].mode()[0]
            drawn.append(float((first[name] == common).mean() - (rows[name] == common).mean()))
        drawn.append(float((first["sampling_weight"].mean() / rows["sampling_weight"].mean()) - 1))
        drawn.append(float((first["row"] < rows["row"].median()).mean() - 0.5))
    assert np.abs(np.reshape(drawn, (12, 5)).mean(axis=0)).max() < 0.08
    assert max(map(abs, drawn)) < 0.3
