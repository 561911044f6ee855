"""The recipes for other libraries run as they are written."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
pytestmark = pytest.mark.skipif(not HOW_TO.is_dir(), reason="the pages are not here")


def recipe(name):
    """What the blocks of Python on a page define."""
    blocks = re.findall(r"```python\n(.*?)```", (HOW_TO / f"{name}.md").read_text("utf-8"), flags=re.DOTALL)
    namespace = {}
    exec(compile("\n".join(blocks), f"{name}.md", "exec"), namespace)
    return namespace


def test_skorch(capsys):
    pytest.importorskip("skorch")
    found = recipe("skorch")
    assert "right, by what was measured: 0." in capsys.readouterr().out
    sampler, net = found["sampler"], found["net"]
    assert sampler.plan.epoch == 20
    assert len(net.history) == 20
    assert len(net.history[-1]["batches"]) == len(sampler)


class Recorder:
    """Stands for the module mlflow, and keeps what it is told."""

    def __init__(self):
        self.told = {}

    def start_run(self, run_name):
        self.told["run"] = run_name
        return nullcontext()

    def log_params(self, values):
        self.told["params"] = values

    def set_tags(self, values):
        self.told["tags"] = values

    def log_metric(self, name, value):
        self.told[name] = value

    def log_metrics(self, values, step):
        self.told[step] = values

    def log_artifacts(self, folder):
        self.told["folder"] = folder


class Fitted:
    path_ = pd.DataFrame({"accuracy": [0.8, 0.7], "gap": [0.2, 0.1]})


def some_run(folder):
    """The numbers of a run that the recipe reads."""
    both = {name: {"accuracy": {"value": 0.8}, "disparity": {"value": 0.1}} for name in ("plain", "fair")}
    record = {
        "settings": {"label": "income", "drop": []},
        "decision": "use",
        "model": {"holds": "fair model"},
    }
    (folder / "metrics.json").write_text(json.dumps(record | both))


def test_mlflow(tmp_path):
    some_run(tmp_path)
    mlflow, found = Recorder(), recipe("mlflow")
    found["log_run"](mlflow, tmp_path)
    found["log_path"](mlflow, Fitted)
    assert mlflow.told["params"] == {"label": "income"}
    assert mlflow.told["tags"] == {"decision": "use", "holds": "fair model"}
    assert mlflow.told["fair_accuracy"] == 0.8
    assert mlflow.told["folder"] == str(tmp_path)
    assert mlflow.told[1] == {"accuracy": 0.7, "gap": 0.1}


@pytest.mark.filterwarnings("ignore")  # of what MLflow imports
def test_mlflow_itself(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    folder = tmp_path / "run"
    folder.mkdir()
    some_run(folder)
    recipe("mlflow")["log_run"](mlflow, folder)
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics["fair_disparity"] == 0.1
    assert run.data.tags["decision"] == "use"
