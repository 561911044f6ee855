"""The recipes for other libraries run as they are written."""

import json
import re
from pathlib import Path
from unittest.mock import MagicMock

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


class Fitted:
    path_ = pd.DataFrame({"accuracy": [0.8, 0.7], "gap": [0.2, 0.1]})


def some_run(folder):
    """The numbers of a run that the recipe reads."""
    both = {name: {"accuracy": {"value": 0.8}, "disparity": {"value": 0.1}} for name in ("plain", "fair")}
    record = {"settings": {"label": "income", "drop": []}, "decision": "use"}
    (folder / "metrics.json").write_text(json.dumps(record | {"model": {"holds": "fair model"}} | both))


def test_mlflow(tmp_path):
    some_run(tmp_path)
    mlflow, found = MagicMock(), recipe("mlflow")
    found["log_run"](mlflow, tmp_path)
    found["log_path"](mlflow, Fitted)
    mlflow.log_params.assert_called_once_with({"label": "income"})
    mlflow.set_tags.assert_called_once_with({"decision": "use", "holds": "fair model"})
    mlflow.log_metric.assert_any_call("fair_accuracy", 0.8)
    mlflow.log_artifacts.assert_called_once_with(str(tmp_path))
    mlflow.log_metrics.assert_called_with({"accuracy": 0.7, "gap": 0.1}, step=1)


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
