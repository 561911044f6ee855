"""``fairsieve reproduce``: what is written, judged again from the records, and published."""

import csv
import json
import os
import re
import signal
import sys
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import pytest
from joblib.externals.loky import get_reusable_executor
from tests.support.refusals import refused
from typer.testing import CliRunner

from fairsieve.cli.app import app
from fairsieve_reproduction.request import Request, Sitting
from fairsieve_reproduction.statistics import MARGIN

PUBLISHED = Path(__file__).parents[2] / "docs" / "reproduction"
published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the records are in the repository alone")


def reproduce(*arguments):
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_items_are_listed():
    names = [line.partition(":")[0] for line in reproduce("list").splitlines()]
    assert {f"table{n}" for n in range(1, 8)} | {f"figure{n}" for n in range(1, 7)} < set(names)


def test_everything_is_written_and_judged_again_from_the_records(tmp_path, monkeypatch):
    few = dict.fromkeys(["synthetic", "compas", "adult"], 4)
    monkeypatch.setattr("fairsieve_reproduction.experiments.QUICK_EPOCHS", few)
    arguments = ("figure1", "--quick", "--jobs", "1", "--out", tmp_path)
    run = Request.run

    def stopped(request, jobs):
        yield from run(request, jobs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Request, "run", stopped)
        done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code != 0
    assert (tmp_path / "sittings.jsonl").read_text().count("\n") == 1
    took = r"records in [\d.]+ minutes on the clock and [\d.]+ minutes of processor time"
    assert re.search(f"Stopped. This sitting made 1 of 1 {took}.* to go on", done.output)
    told = reproduce(*arguments)
    assert "Of 2 claims" in told
    assert re.search(f"This sitting made 0 of 1 {took}.*All 2 sittings here made 1 of 1 {took}", told)
    assert "All 2 sittings here made 1 of 1" in (tmp_path / "reproduction.html").read_text("utf-8")
    assert (tmp_path / "records.jsonl").read_text().count("\n") == 1
    first = (tmp_path / "claims.csv").read_bytes()
    reproduce(*arguments, "--judge-only")
    assert (tmp_path / "claims.csv").read_bytes() == first
    with (tmp_path / "claims.csv").open(newline="") as lines:
        assert [row["claim"] for row in csv.DictReader(lines)] == ["fig1a-smallest", "fig1b-loss"]
    written = {each.name for each in tmp_path.iterdir()}
    assert {"figure1.svg", "claims.md", "claims.tex", "reproduction.html"} <= written


@pytest.mark.skipif(sys.platform == "win32", reason="kills workers by a signal")
def test_the_time_of_killed_workers_counts(tmp_path):
    """A signal to the whole group of processes ends workers before they are asked to end."""
    sitting = Sitting(SimpleNamespace(out=tmp_path, count=lambda: 3), 1, made=2, left=4)
    workers = get_reusable_executor(max_workers=1)
    workers.submit(sum, range(10**7)).result()
    for worker in active_children():
        os.kill(worker.pid, signal.SIGTERM)
    assert "This sitting made 2 of 7 records in" in sitting.end()
    assert json.loads((tmp_path / "sittings.jsonl").read_text())["processor_minutes"] > 0


@published
def test_without_a_folder_the_published_records_are_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Of 55 claims" in reproduce("figure1", "--judge-only")
    for name in ("claims.csv", "comparisons.csv"):
        assert (tmp_path / "reproduced" / name).read_bytes() == (PUBLISHED / name).read_bytes()
    page = re.sub(r"<[^>]*>|\s+", " ", (tmp_path / "reproduced" / "reproduction.html").read_text("utf-8"))
    with (PUBLISHED / "claims.csv").open(newline="", encoding="utf-8") as lines:
        open_ = [row for row in csv.DictReader(lines) if row["verdict"] == "inconclusive"]
    # What is not comparable is not among them.
    assert re.search(rf"\b{len(open_)} +claims are inconclusive", page)


@pytest.mark.parametrize(("options", "message"), [
    (["all", "--seeds", "many"], "--seeds must be a number of at least 1, or METHOD=N; got 'many'"),
    (["all", "--attacked", "men"], "--attacked must be synthetic=GROUP or compas=GROUP"),
    (["all", "--judge-only"], "--judge-only needs records"),
])  # fmt: skip
def test_bad_options_are_named_before_any_work(tmp_path, options, message):
    refused(message, reproduce, *options, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@published
def test_at_most_a_fifth_of_the_published_choices_sit_at_an_end_of_their_grid():
    """The paper's own three candidates for its method are left out, and rates and lengths: of two, each is an end."""
    lines = (PUBLISHED / "records.jsonl").read_text().splitlines()
    # Whether a choice is at an end, and whether the candidate next to it is clearly less fair.
    ends, unlike = [], []
    for one in (json.loads(line) for line in lines if '"tuning":{' in line):
        chosen, grid = one["hyperparameters"], one["settings"]["grid"]
        if one["settings"]["tuning"]["method"] == "sample-selection":
            continue
        disparity = {tuple(found[name] for name in chosen): found["disparity"] for found in one["candidates"]}
        for name in chosen.keys() - {"learning_rate", "times_as_long"}:
            values = sorted(grid[name])
            beside = {values[0]: values[1], values[-1]: values[-2]}.get(chosen[name])
            ends.append(beside is not None)
            nearest = tuple((chosen | {name: beside}).values())
            unlike.append(ends[-1] and disparity[nearest] > disparity[tuple(chosen.values())] + MARGIN)
    assert len(ends) > 100
    assert sum(ends) <= len(ends) / 5
    assert sum(unlike) <= len(ends) / 8
