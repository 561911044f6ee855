"""The command line, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.people import people, write_csv
from tests.support.programs import run_main, run_python
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.errors import FairsieveError

COMMANDS = ("train", "predict", "audit", "compare", "reproduce", "demo", "data")
SUBCOMMANDS = {"data": [f"data {name}" for name in ("fetch", "list", "describe", "export")]}
TRAIN = ("train", "x.csv", "--label", "y", "--sensitive", "z", "-o", "run")
FAIRSIEVE = Path(sys.executable).parent / "fairsieve"


@pytest.fixture
def call(capsys):
    """Run a command in this process: what it prints, and its exit status, without the seconds of a start."""

    def called(*arguments):
        status, said = run_main(*arguments), capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, said.out, said.err)

    return called


SYNTHETIC = ("--data", "synthetic", "--fairness", "demographic-parity", "--rate", "0")
NHANES = "plain", "cleaning alone", "fairness alone", "fairsieve (both)", "Asian found"
SHOWN = {
    (): (*NHANES, "Of 100 Asian people who are obese"),
    SYNTHETIC: ("LR", "ITLM", "FairBatch", "Sample selection", "accuracy", "EO disparity"),
}


@pytest.mark.parametrize("options", SHOWN, ids=["nhanes", "synthetic"])
def test_demo_prints_a_table_and_saves_a_figure(tmp_path, call, options):
    done = call("demo", *options, "--seeds", "1", "--out", str(tmp_path / "new" / "folder"))
    assert done.returncode == 0, done.stderr
    for name in SHOWN[options]:
        assert name in done.stdout
    figure = tmp_path / "new" / "folder" / "demo.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size > 50_000


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_an_example(call, command):
    for words in SUBCOMMANDS.get(command, [command]):
        done = call(*words.split(), "-h")
        assert done.returncode == 0
        assert f"Example: fairsieve {words} " in " ".join([*done.stdout.split(), ""])
        if "--out" in done.stdout:
            assert "-o, --out" in done.stdout
        assert "<bool>" not in done.stdout


def test_data_without_a_command_prints_its_help(call):
    done = call("data")
    assert (done.returncode, done.stderr) == (0, "")
    assert "describe" in done.stdout


def test_compare_lists_every_method(call):
    said = call("compare", "--methods", "list").stdout
    for name in ("plain", "fairsieve", "reweighing", "sample-selection", "fr-train"):
        assert f"\n{name}: " in f"\n{said}"


def test_completion_offers_commands_and_values():
    shell = {"_FAIRSIEVE_COMPLETE": "complete_bash"}
    begun = {"tr": "train", "train a.csv --small-groups m": "merge", "compare --methods fairs": "fairsieve"}
    for words, expected in begun.items():
        asked = {"COMP_WORDS": f"fairsieve {words}", "COMP_CWORD": str(len(words.split()))}
        assert run_python(FAIRSIEVE, env=shell | asked).stdout.split() == [expected]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_that_is_not_utf_8_replaces_what_it_cannot_show(tmp_path, encoding):
    table = people(120)
    table["sex"] = ["żona" if value == "woman" else "mąż" for value in table["sex"]]
    write_csv(tmp_path / "people.csv", table)
    variables = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    arguments = ["audit", "people.csv", "--label", "income", "--sensitive", "sex"]
    done = run_python(FAIRSIEVE, *arguments, env=variables, cwd=tmp_path, encoding=encoding)
    assert "?ona" in done.stdout


@pytest.mark.parametrize(("arguments", "offered"), [
    (("data", "fetch", "complas"), "compas"),
    (("data", "export", "adlt", "x.csv"), "adult"),
    (("data", "describe", "germn"), "german"),
    (("compare", "--data", "complas"), "compas"),
    (("compare", "--data", "compas", "--methods", "lr,fairsive"), "fairsieve"),
    (("compare", "--data", "compas", "--noise", "lable"), "label"),
    (("compare", "--data", "compas", "--fairness", "equal-oportunity"), "equal-opportunity"),
    (("reproduce", "tabel1"), "table1"),
    ((*TRAIN, "--model", "lightgmb"), "lightgbm"),
    ((*TRAIN, "--threshold", "balancd"), "balanced"),
    ((*TRAIN, "--clean-ratio", "aut"), "auto"),
    ((*TRAIN, "--fail-on", "do-not-us"), "do-not-use"),
])  # fmt: skip
def test_a_misspelt_choice_is_offered_its_closest(arguments, offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    said = str(result.exception) if isinstance(result.exception, FairsieveError) else result.output
    assert result.exit_code == 1
    assert f"Did you mean {offered}?" in " ".join(said.replace("'", "").split())
    assert not list(tmp_path.iterdir())


# ---- The command line answers at once, without importing anything heavy

HEAVY = {"numpy", "scipy", "sklearn", "numba", "torch", "pandas", "joblib", "matplotlib", "plotly", "skops"}

LOOK = """
import json, sys
sys.argv = ["fairsieve", *json.loads(sys.argv[1])]
from fairsieve.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], [], ["train", "-h"], ["compare", "--help"], ["data", "--help"]]
)
def test_help_and_version_import_nothing_heavy(arguments):
    done = run_python("-c", LOOK, json.dumps(arguments))
    assert "fairsieve 0." in done.stdout or "Usage: fairsieve" in done.stdout
    assert HEAVY & set(json.loads(done.stderr.splitlines()[-1])) == set()
