"""The benchmarks of networks that want a GPU run on a processor too, if on little."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_every_method_of_the_deep_benchmark_trains_and_is_measured(monkeypatch):
    deep = load("deep", monkeypatch)
    rng = np.random.default_rng(0)
    pictures, labels = rng.integers(0, 256, (70, 32, 32, 3)), np.arange(70) % deep.CLASSES
    raw = deep.Raw(torch.from_numpy(pictures.astype(np.uint8)), labels, np.arange(70) >= 40)
    asked = argparse.Namespace(epochs=6, width=1, batch=20, split=2)
    methods = [*deep.MAIN, *deep.RIVALS]
    rows = [deep.run(raw, ("tint", "uniform 40 %", method, 0), asked) for method in methods]
    rows.append(deep.run(raw, ("blue", "one group 20 %", "ours", 0), asked))
    asked.width = 0
    rows.append(deep.run(raw, ("blue", "confused 35 %", "plain", 0), asked))
    for row in rows:
        assert 0 <= row["accuracy"] <= 1
        assert 0 <= row["mean gap"] <= row["disparity"] + 1e-9
        json.dumps(row)
    kept = {row["method"]: row["kept"] for row in rows[:-2] if "kept" in row}
    assert kept.keys() == {method for method in methods if method.startswith("ours")} | {"cleaning"}
    assert 0.55 < kept["ours, ratio given"] <= 0.6


def test_plans_on_a_device_are_compared_with_those_of_the_host(monkeypatch):
    epoch_gpu = load("epoch_gpu", monkeypatch)
    assert epoch_gpu.check(2, "cpu", 500) == 2
    (row,) = epoch_gpu.measure([500], 1, "cpu")["milliseconds"]
    assert {"epoch", "doubts", "selection", "batches"} < row.keys()
