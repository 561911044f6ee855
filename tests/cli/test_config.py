"""Options from a file: a run is repeated by one argument; and what a long command says."""

import json
import logging
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.data import read_nhanes
from fairsieve.errors import InvalidInputError
from fairsieve.progress import progress_bar, time_left
from fairsieve.tabular.settings import TableSettings, write_config

ROLES = {"label": "obese", "sensitive": "sex"}


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    read_nhanes().drop(columns="truth").sample(500, random_state=1).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def silent():
    yield
    logging.getLogger("fairsieve").setLevel(logging.NOTSET)


def numbers(folder):
    found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return {name: found[name] for name in found if name not in ("seconds", "versions")}


def test_a_run_is_repeated_by_one_argument(people, tmp_path):
    first, again = tmp_path / "run", tmp_path / "again"
    options = ["--sensitive", "sex", "--positive", "yes", "--test", "0.3", "--seed", "3", "--max-iter", "4"]
    assert call("train", people, "--label", "obese", *options, "--out", first).exit_code == 0
    config = first / "settings.toml"
    written = tomllib.loads(config.read_text(encoding="utf-8"))
    assert [written.pop(name) for name in ("separator", "decimal")] == [",", "."]
    numbers_asked = {"test": 0.3, "seed": 3, "max_iter": 4}
    assert written == numbers_asked | {"data": str(people), **ROLES, "sensitive": ["sex"], "positive": "yes"}
    repeated = call("train", "--config", config, "--out", again)
    assert repeated.exit_code == 0, repeated.output
    assert numbers(again) == numbers(first)


def test_an_audit_of_predictions_is_repeated_by_one_argument(people, tmp_path):
    first, again = tmp_path / "audit", tmp_path / "again"
    roles = ["--label", "obese", "--sensitive", "sex", "--positive", "yes", "--prediction", "asthma"]
    assert call("audit", people, *roles, "--format", "ll144", "-o", first).exit_code == 0
    repeated = call("audit", "--config", first / "settings.toml", "-o", again)
    assert repeated.exit_code == 0, repeated.output
    assert numbers(again) == numbers(first)
    assert (again / "ll144.csv").read_bytes() == (first / "ll144.csv").read_bytes()


@pytest.mark.parametrize(("command", "options"), [
    ("compare", ["--data", "synthetic", "--methods", "plain", "--seeds", "1", "--no-tune", "--rate", "0.2"]),
    ("reproduce", ["table2", "--quick", "--judge-only", "--seeds", "lr=3", "--selection", "authors"]),
])  # fmt: skip
def test_commands_that_compute_long_are_repeated_by_one_argument(command, options, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
        (folder / "records.jsonl").touch()
    assert call(command, *options, "--out", first).exit_code == 0
    repeated = call(command, "--config", first / "settings.toml", "--out", again)
    assert repeated.exit_code == 0, repeated.output
    texts = [(folder / "settings.toml").read_text(encoding="utf-8") for folder in (first, again)]
    assert texts[0] == texts[1]
    given = sum(one.startswith("--") for one in options) + (command == "reproduce")
    assert texts[0].count(" = ") == given


def test_what_is_given_goes_before_the_file(people, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text('label = "no such column"\nsensitive = ["sex"]\nsmall-groups = "ignore"\n')
    assert call("audit", people, "--config", config, "--label", "obese").exit_code == 0


def test_bad_files_are_named(people, tmp_path):
    config = tmp_path / "mine.toml"
    told = "'labell' .*is none. Did you mean 'label'"
    for text, message in (("labell = 'obese'", told), ("label = ", "TOML")):
        config.write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            raise call("audit", people, "--config", config).exception
    config.write_text("label = 'obese'")
    assert call("audit", people, "--config", config).exit_code == 2  # no sensitive column


def test_verbose_logs_what_begins_and_silence_is_the_default(people, caplog):
    options = ("audit", people, "--label", "obese", "--sensitive", "sex")
    assert call(*options).exit_code == 0
    assert not caplog.messages
    assert call(*options, "--verbose").exit_code == 0
    begun = [message.partition(" (")[0] for message in caplog.messages]
    assert begun == ["reading the table", "estimating how many labels are wrong"]


def test_the_time_left_is_that_of_going_on_like_this(caplog):
    assert time_left(60.0, 10, 20) == ", about 60 seconds left"
    assert time_left(600.0, 1, 2) == ", about 10 minutes left"
    assert time_left(1.0, 4, 4) == time_left(1.0, 1, None) == ""
    caplog.set_level(logging.INFO, "fairsieve")
    with progress_bar("counting", 2) as update:
        update(0, "one")
        update(1, "two")
        update(1, "two")
    assert [message.partition(",")[0] for message in caplog.messages] == ["one (1 of 2)", "two (2 of 2"]


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_any_text_can_be_read_again(text):
    asked = TableSettings("x.csv", label="label", sensitive=["z"], positive=text)
    assert tomllib.loads(write_config(asked))["positive"] == asked.positive


def test_a_log_gets_no_empty_line_from_the_bar(capsys):
    with progress_bar("counting", 2) as update:
        update(1, "one")
    assert capsys.readouterr() == ("", "")
