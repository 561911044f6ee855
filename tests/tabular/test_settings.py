"""The settings of a table are the same everywhere: options, parameters, the record of a run, and what is read back."""

import inspect
import json
import re
from dataclasses import fields

import pytest
from tests.support.people import people
from tests.support.refusals import refused
from typer.testing import CliRunner

from fairsieve import tabular
from fairsieve.cli.app import app
from fairsieve.tabular import settings
from fairsieve.tabular.settings import TableSettings

OTHER = {  # than the defaults
    "label": "income",
    "sensitive": ["sex", "age"],
    "positive": "low",
    "fairness": "demographic_parity",
    "tolerance": 0.05,
    "model": "hist-gradient-boosting",
    "max_accuracy_loss": 0.03,
    "clean_ratio": 0.95,
    "threshold": "rate:0.4",
    "trees": 3,
    "max_iter": 5,
    "keep_sensitive": True,
    "test": 0.3,
    "seed": 7,
    "bins": ["age=45"],
    "small_groups": "merge",
    "drop": ["job"],
    "categories": ["grade"],
    "dates": ["since"],
    "separator": ";",
    "decimal": ",",
    "missing": ["unknown", "-99"],
    "show_columns": True,
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A table that is read right with these settings only, and a run on it."""
    folder = tmp_path_factory.mktemp("odd")
    table = people(400)
    table["hours"] = [hours.replace(".", ",") for hours in table["hours"]]
    table["age"] = [age.replace("?", "unknown") for age in table["age"]]
    table["grade"] = [str(row % 3) for row in range(400)]
    table["since"] = [f"2020-01-{row % 28 + 1:02d}" for row in range(400)]
    lines = [";".join(table), *(";".join(row) for row in zip(*table.values(), strict=True))]
    path = folder / "people.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    result = tabular.train(path, **OTHER)
    return path, result.save(folder / "run"), result


def settings_of(command):
    """The parameters of a function that are settings of a table."""
    own = {"data", "report", "prediction", "score", "format", "rows", "id_column", "run"}
    return [name for name in inspect.signature(getattr(tabular, command)).parameters if name not in own]


def test_every_recorded_setting_is_taken_back(odd):
    path, run, result = odd
    recorded = json.loads((run / "metrics.json").read_text())["settings"]
    assert set(recorded) == {*settings_of("train"), "data"}
    assert {name: recorded[name] for name in OTHER} == OTHER
    taken = tabular.review(path, run=run, rows=5).review.asked
    for name in set(recorded) - {"data", "test_file", "verified"}:
        assert getattr(taken, name) == getattr(result.run.asked, name), name
    assert (taken.separator, taken.decimal, taken.missing) == (";", ",", ("unknown", "-99"))
    assert tabular.review(path, run=run, rows=5, seed=8).review.asked.seed == 8


@pytest.mark.parametrize("command", ["train", "audit", "review"])
def test_options_and_parameters_are_the_settings(command):
    parameters = inspect.signature(getattr(tabular, command)).parameters
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())
    help_text = CliRunner().invoke(app, [command, "--help"]).output
    assert len(settings_of(command)) > 8
    for name in settings_of(command):
        assert f"--{name.replace('_', '-')} " in help_text.replace("\n", " ")
        assert f"\n{name} : " in getattr(tabular, command).__doc__


def test_help_shows_eight_basic_options_and_groups_the_rest():
    text = CliRunner().invoke(app, ["train", "--help"]).output
    sections = re.split(r"\n(?=\w+:\n)", text)
    titles = [section.partition(":")[0] for section in sections[1:]]
    assert titles == ["Arguments", "Options", "Model", "Reading", "Review", "Output"]
    basic = re.findall(r"^  (?:-\w, )?--[\w-]+", sections[2], re.MULTILINE)
    assert len(basic) == 8


def test_a_run_without_its_roles_is_refused_in_words(odd, tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps({"settings": {"label": "income", "tolerance": 0.1}}))
    told = r"that fairsieve train of this version made; .*: .* train again"
    refused(told, tabular.review, odd[0], run=tmp_path)


@pytest.mark.parametrize("command", ["train", "audit", "review", "predict"])
def test_editors_see_the_settings_of_a_function_by_name_and_type(command):
    told = settings.ARGUMENTS[command]
    wanted = {one.name: one.type for one in fields(TableSettings)}
    taken = list(settings.settings_of(command))
    types = {name: hint.__forward_arg__ for name, hint in told.__annotations__.items()}
    needed = [name for name, kind in types.items() if kind.startswith("Required[")]
    assert needed == (["label", "sensitive"] if command in ("train", "audit") else [])
    types |= {name: types[name].removeprefix("Required[").removesuffix("]") for name in needed}
    assert types == {name: wanted[name] for name in taken}
