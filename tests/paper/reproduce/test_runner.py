"""Reproducing: the paper's numbers, experiments, the engine, and records that continue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import InvalidInputError
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.records import _read_records, fingerprint
from fairsieve.paper.reproduce import experiments
from fairsieve.paper.reproduce import runner as engine
from fairsieve.paper.reproduce.experiments import FR_TRAIN, TUNING_SEEDS, Experiment, Scope
from fairsieve.paper.reproduce.published import Line, Number, _parse_tables, paper_tables
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.runner import _choose_once, _Clock, _Job, _run_jobs, reproduce
from fairsieve.paper.reproduce.targets import ITEMS, collect_experiments, find_items

LOOK = Scope(quick=True)
PAIR = [Experiment("lr", "synthetic"), Experiment("fairsieve", "synthetic"), Experiment("itlm", "synthetic")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


@pytest.fixture
def few_epochs(monkeypatch):
    monkeypatch.setattr(experiments, "QUICK_EPOCHS", dict.fromkeys(experiments.QUICK_EPOCHS, 4))


def test_every_table_is_there_whole():
    tables = paper_tables()
    shapes = {number: (len(table.lines), len(table.columns)) for number, table in tables.items()}
    # FR-Train stands there twice, and Adult with either group attacked
    assert shapes == {1: (8, 4), 2: (8, 4), 3: (7, 2), 4: (3, 2), 5: (4, 4), 6: (6, 4), 7: (8, 6)}
    for number, table in tables.items():
        for cells in table.lines.values():
            assert [len(cell) for cell in cells] == [1 if number == 4 else 2] * len(table.columns)
    assert tables[2].lines[Line("fr-train")][3] == (
        Number(0.597, 0.039, "best"),
        Number(0.045, 0.014, "second"),
    )
    assert tables[3].lines[Line("fr-train", "noisy")][1][1] == Number(0.041, 0.024)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_marks_are_on_the_best_of_the_fair_and_robust(number):
    table = paper_tables()[number]
    for i in range(len(table.columns)):
        for j, sign in ((0, -1), (1, 1)):
            cells = [
                cells[i][j]
                for line, cells in table.lines.items()
                if METHODS[line.method].family == "fair and robust" and line.method != "fr-train"
            ]
            values = sorted({sign * cell.value for cell in cells})
            tied = sum(sign * cell.value == values[0] for cell in cells) > 1
            for cell in cells:
                place = values.index(sign * cell.value)
                assert cell.mark == ("best" if place == 0 else "second" if place == 1 and not tied else "")


def test_repeated_numbers_agree_between_tables():
    tables = paper_tables()
    for line, cells in tables[6].lines.items():
        for one, other in zip(cells, tables[1].lines.get(line, cells), strict=True):
            assert [number.value for number in one] == [number.value for number in other]


@given(
    st.lists(
        st.tuples(st.integers(0, 999), st.integers(0, 99), st.sampled_from(["", "¹", "²"])),
        min_size=2,
        max_size=2,
    )
)
def test_numbers_read_as_they_are_printed(numbers):
    printed = " ".join(f".{value:03}±.{deviation:03}{mark}" for value, deviation, mark in numbers)
    table = _parse_tables(f"table 1 | adult label DP\nlr | {printed}\n")[1]
    for (value, deviation, mark), read in zip(numbers, table.lines[Line("lr")][0], strict=True):
        assert read == Number(value / 1000, deviation / 1000, {"": "", "¹": "best", "²": "second"}[mark])


some_experiments = st.builds(
    Experiment,
    st.sampled_from(["lr", "itlm", "fairbatch", "fr-train", "fairsieve"]),
    st.sampled_from(["synthetic", "adult"]),
    st.sampled_from(["label", "group-targeted"]),
    st.sampled_from(["equalized_odds", "demographic_parity"]),
    st.sampled_from([0.0, 0.1, 0.2]),
    st.sampled_from(["clean", "noisy"]),
)


@given(some_experiments, some_experiments, st.booleans())
def test_trials_are_equal_where_their_runs_are(one, other, quick):
    scope = Scope(quick=quick)
    names = [
        fingerprint(scope.comparison(experiment).run_settings(METHODS[experiment.method], 0))
        for experiment in (one, other)
    ]
    assert (one == other) == (names[0] == names[1])


def test_nothing_is_trained_twice():
    scope = Scope(seeds=5)
    jobs = _run_jobs(collect_experiments(ITEMS.values()), Results([], scope))
    names = [
        fingerprint(job.work.args[0].run_settings(METHODS[job.experiment.method], job.seed)) for job in jobs
    ]
    assert len(set(names)) == len(names)
    plain = [job for job in jobs if (job.experiment.method, job.experiment.data) == ("lr", "adult")]
    assert (
        len(plain) == 3 * 5
    )  # once for both notions of fairness: label flips, and those among women and men


def test_no_result_is_reported_on_what_hyperparameters_were_chosen_on():
    for seeds in (1, 5, 50):
        for experiment in collect_experiments(ITEMS.values()):
            assert not set(Scope(seeds=seeds).seeds_for(experiment)) & set(
                TUNING_SEEDS.get(experiment.data, ())
            )


def test_there_are_enough_draws_and_splits():
    for name in ("table1", "table2", "table5", "table6", "table7"):
        for experiment in ITEMS[name].experiments:
            if experiment.method not in FR_TRAIN:
                enough = {"synthetic": 30, "compas": 20, "adult": 10}[experiment.data]
                assert len(Scope().seeds_for(experiment)) >= enough
            assert len(Scope(seeds=3).seeds_for(experiment)) == 3
            assert len(Scope(arrays="x").seeds_for(experiment)) == 5 or experiment.data != "synthetic"
            assert len(LOOK.seeds_for(experiment)) == 1


def test_the_attack_is_the_authors_unless_it_is_asked_to_see_the_group():
    flips, among = Experiment("lr", "synthetic"), Experiment("lr", "adult", "group-targeted:Female")
    assert [Scope().noise(each) for each in (flips, among)] == [
        "label-without-group",
        "group-targeted-without-group:Female",
    ]
    assert [Scope(attack="with-group").noise(each) for each in (flips, among)] == [flips.noise, among.noise]
    assert [Scope(attack="offset").noise(each) for each in (flips, among)] == [
        "label-without-group-offset",
        "group-targeted-without-group:Female",
    ]
    assert Scope().noise(Experiment("lr", "compas", rate=0)) == "none"


def test_ours_has_the_authors_settings_and_its_ablations_have_what_it_has():
    scope = Scope()
    assert scope.tuned_as(Experiment("fairsieve", "synthetic")) is None
    assert scope.comparison(Experiment("fairsieve", "synthetic")).fixed == {"step_size": 0.001}
    for name in ("fairsieve-no-constraints", "fairsieve-no-weights"):
        assert scope.tuned_as(Experiment(name, "compas")) == Experiment("fairsieve", "compas")


def test_items_by_name():
    assert [item.name for item in find_items("figure5")] == ["figure5"]
    assert len(find_items("all")) == 7 + 6 + 2
    with pytest.raises(
        InvalidInputError, match=r"what must be list, all, or one of table1, .*; got 'table8'"
    ):
        find_items("table8")


def test_a_stopped_run_continues_and_a_finished_one_does_nothing(path, few_epochs):
    steps = reproduce(PAIR, Results.read(path, LOOK), path)
    first = next(steps)
    steps.close()
    assert (first.done, first.total) == (1, 3)
    rest = list(reproduce(PAIR, Results.read(path, LOOK), path))
    assert [(step.done, step.total) for step in rest] == [(1, 2), (2, 2)]
    assert rest[-1].seconds_left == 0
    assert list(reproduce(PAIR, Results.read(path, LOOK), path)) == []
    names = [record["run"] for record in _read_records(path)]
    assert len(names) == len(set(names)) == 3
    assert all(Results.read(path, LOOK).has(experiment) for experiment in PAIR)


def test_what_failed_is_tried_again(path, few_epochs, monkeypatch):
    monkeypatch.setattr(engine, "run_one", failing_run)
    assert len(list(reproduce(PAIR[:1], Results.read(path, LOOK), path))) == 1
    assert not Results.read(path, LOOK).has(PAIR[0])
    monkeypatch.undo()
    monkeypatch.setattr(experiments, "QUICK_EPOCHS", {"synthetic": 4})
    assert len(list(reproduce(PAIR[:1], Results.read(path, LOOK), path))) == 1
    assert Results.read(path, LOOK).has(PAIR[0])


def failing_run(comparison, name, seed):
    settings = comparison.run_settings(METHODS[name], seed)
    return {"run": fingerprint(settings), "settings": settings, "error": "no luck"}


def test_hyperparameters_are_chosen_once_and_used_by_all_seeds(path, monkeypatch):
    monkeypatch.setattr(experiments, "TUNING_SEEDS", {"synthetic": (1000,)})
    monkeypatch.setattr(experiments, "TUNING_FOLDS", 2)
    scope, experiment = Scope(seeds=2), Experiment("fairbatch", "synthetic", rate=0.2)
    steps = list(reproduce([experiment], Results.read(path, scope), path))
    assert [step.latest for step in steps] == [
        "synthetic, FB, choosing hyperparameters",
        "synthetic, FB, seed 0",
        "synthetic, FB, seed 1",
    ]
    chosen, *runs = _read_records(path)
    assert chosen["settings"]["tuning"]["rate"] == 0.1
    assert [candidate["step_size"] for candidate in chosen["candidates"]] == [0.001, 0.0005, 0.0001]
    assert [run["hyperparameters"] for run in runs] == [chosen["hyperparameters"]] * 2
    again = _choose_once(Experiment("fairbatch", "synthetic"), scope)
    assert again["hyperparameters"] == chosen["hyperparameters"]
    assert again["run"] == chosen["run"]


def test_histories_are_recorded_where_they_are_drawn(path, few_epochs):
    list(
        reproduce(
            [Experiment("lr", "synthetic", rate=0, traced=True), Experiment("lr", "synthetic")],
            Results.read(path, LOOK),
            path,
        )
    )
    with_history = [record for record in _read_records(path) if "history" in record]
    assert [record["settings"]["noise"] for record in with_history] == ["none"]
    history = with_history[0]["history"]
    assert sum(map(sum, history["counts"])) == 2000
    assert len(history["epochs"]) == len(history["cell_losses"]) == 4


def test_the_clock_expects_what_it_measured():
    jobs = [_Job(Experiment(name, "compas"), seed, dict) for name in ("lr", "fr-train") for seed in range(3)]
    clock = _Clock(workers=2)
    clock.expect(jobs)
    clock.note(jobs[0], 10.0)
    step = clock.note(jobs[1], 20.0)
    guess = 3 * engine.EXPECTED["compas"] * engine.FR_TRAIN_FACTOR
    assert (step.done, step.total) == (2, 6)
    assert step.seconds_left == pytest.approx((15.0 + guess) / 2)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_command_leaves_whole_records(path, stop):
    code = (
        "import sys; from fairsieve.cli.app import main; "
        f"sys.argv = ['fairsieve', 'reproduce', 'table6', '--quick', '--jobs', '1', '--out', {str(path.parent)!r}]; "
        "main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, env=os.environ | {"COLUMNS": "100"}
    )
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(stop)
    _, printed = process.communicate(timeout=30)
    assert process.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    assert b"Traceback" not in printed
    done = len(list(_read_records(path)))
    experiments_left = ITEMS["table6"].experiments
    assert done >= 2
    left = _run_jobs(collect_experiments([ITEMS["table6"]]), Results.read(path, LOOK))
    assert len(left) == len(set(experiments_left)) - done
