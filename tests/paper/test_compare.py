"""Comparing: records, continuing, tuning."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.support.runs import write_many
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve.data import flip_group_targeted, make_synthetic, synthetic_splits
from fairsieve.errors import InvalidInputError, MissingDataError
from fairsieve.paper import run as run_module
from fairsieve.paper.attacks import add_noise
from fairsieve.paper.methods.contract import Method, Trained, TrainingInput
from fairsieve.paper.methods.registry import METHODS, find_methods
from fairsieve.paper.problems import make_problem, paper_settings
from fairsieve.paper.records import _read_records, append_record, fingerprint
from fairsieve.paper.run import Comparison, choose, compare, pick
from fairsieve.report.looks import Look
from fairsieve.training.settings import Settings

QUICK = Comparison(data="synthetic", noise="label", epochs=4, tune=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_runs_are_recorded_and_not_repeated(path, monkeypatch):
    methods = find_methods("lr,sample-selection")
    first = list(compare(QUICK, methods, range(2), path))
    assert len(path.read_text().splitlines()) == 4
    monkeypatch.setattr(run_module, "run_one", None)  # would fail, if it were called
    again = list(compare(QUICK, methods, range(2), path))
    assert sorted(r["run"] for r in again) == sorted(r["run"] for r in first)


def test_a_record_says_everything(path):
    (record,) = compare(QUICK, find_methods("sample-selection"), [3], path)
    assert record["settings"]["method"] == "sample-selection"
    assert record["settings"]["seed"] == 3
    assert record["hyperparameters"] == {"step_size": 0.001}
    assert {"fairsieve", "python"} <= set(record["versions"])
    assert {"accuracy", "equalized_odds", "demographic_parity", "kept", "flips_dropped"} <= set(
        record["metrics"]
    )
    assert record["seconds"] > 0
    assert record == json.loads(path.read_text())
    assert record["checksum"] == make_problem("synthetic", "label", 0.1, 3).checksum
    assert record["checksum"] != make_problem("synthetic", "label", 0.1, 4).checksum


def test_an_interrupted_comparison_continues(path):
    methods = find_methods("lr,itlm")
    runs = compare(QUICK, methods, range(2), path)
    next(runs)
    runs.close()
    done = len(list(_read_records(path)))
    assert 1 <= done < 4
    with path.open("a") as file:
        file.write('{"run": "half a li')  # and the machine stopped
    assert len(list(compare(QUICK, methods, range(2), path))) == 4
    assert len(list(_read_records(path))) == 4


@given(st.lists(st.sampled_from(["whole", "half", "rubbish", "list"]), max_size=8))
def test_only_whole_records_are_read(kinds):
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path, whole = Path(folder) / "records.jsonl", 0
        for kind in kinds:
            if kind == "whole":
                append_record(path, {"run": str(whole)})
                whole += 1
            else:
                with path.open("ab") as file:
                    file.write({"half": b'{"run": "x', "rubbish": b"\xff\xfe\n", "list": b"[1]\n"}[kind])
        assert [r["run"] for r in _read_records(path)] == [str(i) for i in range(whole)]


def test_several_processes_share_a_file(path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(path, name)) for name in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len({r["run"] for r in _read_records(path)}) == 150


def test_equal_settings_have_equal_names():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    one, other = Comparison(rate=0.1), Comparison(rate=0.2)
    lr = METHODS["lr"]
    assert fingerprint(one.run_settings(lr, 0)) != fingerprint(other.run_settings(lr, 0))
    assert one.run_settings(lr, 0) == Comparison(validation="noisy").run_settings(lr, 0)  # lr uses none


def test_a_method_that_cannot_says_so_in_its_record(path, monkeypatch):
    refusing = replace(METHODS["lr"], most_groups=1)
    monkeypatch.setitem(METHODS, "lr", refusing)
    (record,) = compare(QUICK, [refusing], [0], path)
    assert "at most 1 groups" in record["error"]


def test_tuning_takes_the_fairest_of_the_accurate():
    """Three made-up candidates: accurate, fair and close to it, and fair but far off."""
    data = make_synthetic(300, seed=0)

    right = {tuple(f): y for f, y in zip(data.features, data.labels, strict=True)}

    def train(given, *, kind):
        def predict(features, groups):
            truth = np.array([right[tuple(f)] for f in features])
            rng = np.random.default_rng(0)
            if kind == "accurate":  # wrong for group 0 only
                return np.where((features[:, 2] == 0) & (rng.random(len(features)) < 0.1), 1 - truth, truth)
            wrong = rng.random(len(features)) < {"fair": 0.02, "poor": 0.5}[kind]
            return np.where(wrong, 1 - truth, truth)

        return Trained(predict_labels=predict, indices=np.arange(len(given.data)))

    method = Method(
        name="stub",
        title="stub",
        look=Look("grey"),
        family="fair",
        train=train,
        candidates={"kind": ("accurate", "poor", "fair")},
    )
    assert choose(method, TrainingInput(data=data, settings=Settings(), seed=0)) == {"kind": "fair"}


def test_fairness_comes_first_among_those_close_to_the_best_accuracy():
    accuracies = np.array([[0.70, 0.66, 0.60]])
    assert pick(accuracies, np.array([[0.2, 0.1, 0.0]])) == 1  # .1 below the best is too far
    assert pick(accuracies, np.array([[0.1, 0.1, 0.0]])) == 0  # of equally fair ones the default
    assert pick(accuracies[:, ::-1], np.array([[0.0, 0.1, 0.2]])) == 1


def test_problems_flip_training_labels_only():
    problem, parts = make_problem("synthetic", "label", 0.1, 2), synthetic_splits(2)
    assert (problem.train.labels != parts.train.labels).sum() == problem.flipped.sum() == 200
    assert (problem.test.labels == parts.test.labels).all()
    assert (problem.clean_validation.labels == parts.validation.labels).all()
    assert (problem.noisy_validation.labels != parts.validation.labels).sum() == 20


def test_the_authors_arrays_stand_in_for_a_draw(tmp_path):
    parts = synthetic_splits(7)
    for name, part in (("train", parts.train), ("test", parts.test), ("val", parts.validation)):
        np.save(tmp_path / f"xz_{name}.npy", part.features)
        np.save(tmp_path / f"y_{name}.npy", part.labels * 2 - 1)
        np.save(tmp_path / f"z_{name}.npy", part.groups)
    noisy = parts.train.labels.copy()
    noisy[:200] = 1 - noisy[:200]
    for name in ("general", "grouptarget"):
        np.save(tmp_path / f"y_noise_{name}.npy", noisy * 2 - 1)
    for noise in ("label", "group-targeted"):
        problem = make_problem("synthetic", noise, 0.1, 0, arrays=str(tmp_path))
        assert problem.flipped.tolist() == [True] * 200 + [False] * 1800
        assert (problem.test.features == parts.test.features).all()
    assert make_problem("synthetic", "label", 0.2, 0, arrays=str(tmp_path)).flipped.sum() == 400


def test_the_papers_settings():
    assert paper_settings("compas", "label", 0.1, "equalized_odds").batch_size == 200
    assert paper_settings("synthetic", "group-targeted", 0.1, "demographic_parity").epochs == 500
    with pytest.raises(
        InvalidInputError, match="data must be one of synthetic, compas, adult, german; got 'mnist'"
    ):
        paper_settings("mnist", "label", 0.1, "equalized_odds")


def test_the_command(tmp_path):
    arguments = [
        "compare",
        "--methods",
        "lr,sample-selection,itlm-penalty",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--epochs",
        "4",
    ]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(
        app, [*arguments, "--no-tune", "--out", str(tmp_path)], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "Penalty" in done.output
    assert "tuning" in done.output
    assert len(list(_read_records(tmp_path / "records.jsonl"))) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "mnist"], "data must be one of"),
        (["--methods", "magic"], "methods must be default, all"),
        (["--noise", "loud"], "noise must be one of"),
        (["--fairness", "x"], "fairness must be one of"),
    ],
)
def test_bad_options_are_named_before_any_work(tmp_path, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        CliRunner().invoke(
            app, ["compare", *arguments, "--out", str(tmp_path / "new")], catch_exceptions=False
        )
    assert not (tmp_path / "new").exists()


def test_missing_data_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    with pytest.raises(MissingDataError, match="fairsieve data fetch compas"):
        make_problem("compas", "label", 0.1, 0)


@pytest.mark.parametrize("noise", ["label-without-group", "group-targeted-without-group"])
def test_the_authors_attack_is_a_regression_on_train_and_validation_without_the_group(noise):
    parts = synthetic_splits(5)
    found = add_noise(parts.train, noise, 0.1, seed=0, validation=parts.validation)
    features = np.concatenate([parts.train.features, parts.validation.features])[:, :2]  # x₁ and x₂, not z
    labels = np.concatenate([parts.train.labels, parts.validation.labels])
    scores = LogisticRegression(max_iter=1000).fit(features, labels).decision_function(features[:2000])
    margins = np.where(parts.train.labels == 1, scores, -scores)
    targeted = noise.startswith("group-targeted")
    if targeted:  # one group alone
        (group,) = set(parts.train.groups[found.flipped].tolist())
        margins[parts.train.groups != group] = -np.inf
    assert set(np.flatnonzero(found.flipped)) == set(np.argsort(-margins, kind="stable")[:200])
    assert (found.labels != parts.train.labels).tolist() == found.flipped.tolist()
    assert make_problem("synthetic", noise, 0.1, 5).flipped.tolist() == found.flipped.tolist()


def test_group_targeted_flips_never_reach_half_of_the_groups_training_labels():
    attacked = []
    for seed in range(30):
        problem = make_problem("synthetic", "group-targeted-without-group", 0.1, seed)
        assert max(problem.attacked.values()) < 0.5, (seed, problem.attacked)
        attacked += [group for group, share in problem.attacked.items() if share > 0]
    assert attacked.count("1") >= 28  # the authors' own choice
    parts = synthetic_splits(0)
    with pytest.raises(InvalidInputError, match="rate must leave under half of a group's labels flipped"):
        flip_group_targeted(parts.train, 0.1, group=0)


def test_records_do_not_say_where_the_authors_arrays_are():
    lr = METHODS["lr"]
    one, other = (Comparison(arrays=folder).run_settings(lr, 0) for folder in ("here", "/some/where/else"))
    assert one == other
    assert one != Comparison().run_settings(lr, 0)
