"""Measure time and memory of ``fairsieve train`` and ``audit`` on a large Parquet file.

    python benchmarks/table_speed.py                  # --rows N, --columns N, --out FILE, --keep FOLDER

The file is made here: twelve columns of numbers (two with gaps), five of categories (one with 200 values), an
identifier, a sensitive column of two groups and a label, of which a tenth is wrong. Each command runs in a process
of its own; its wall time, CPU time and peak memory are what the system says of that process. The commands are
measured beside scikit-learn's own preparation and LogisticRegression on the same file, as a ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROLES = ("--label", "income", "--sensitive", "sex")
BASELINE = """
import sys
import pandas
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

frame = pandas.read_parquet(sys.argv[1]).drop(columns=["id", "sex"])
labels = frame.pop("income")
numbers = frame.select_dtypes("number").columns.tolist()
texts = [name for name in frame.columns if name not in numbers]
prepare = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    (OneHotEncoder(max_categories=50, handle_unknown="infrequent_if_exist"), texts),
)
make_pipeline(prepare, LogisticRegression(max_iter=200)).fit(frame, labels)
"""


def make_table(path: Path, rows: int, columns: int = 20, seed: int = 0) -> None:
    """Write a Parquet file with a label that depends on some of its columns, and is wrong in a tenth of the rows."""
    import pyarrow
    import pyarrow.parquet

    random = np.random.default_rng(seed)
    table: dict[str, Any] = {"id": np.arange(rows) + 10**9}
    score = np.zeros(rows)
    texts = {"region": 12, "job": 40, "school": 8, "town": 200, "colour": 4}
    for number in range(max(columns - len(texts) - 3, 1)):
        values = random.normal(50, 12, rows).round(2)
        score += (0.04 if number < 4 else 0.0) * (values - 50)
        if number < 2:
            values[random.random(rows) < 0.05] = np.nan
        table[f"number {number}"] = values
    for name, kinds in texts.items():
        codes = random.integers(0, kinds, rows)
        score += 0.5 * np.sin(codes) if name == "job" else 0.0
        names = pyarrow.array([f"{name} {kind}" for kind in range(kinds)])
        table[name] = pyarrow.DictionaryArray.from_arrays(codes.astype(np.int32), names).cast(
            pyarrow.string()
        )
    woman = random.random(rows) < 0.45
    high = random.random(rows) < 1 / (1 + np.exp(-2 * (score + 0.4 * ~woman - 0.6)))
    high ^= random.random(rows) < 0.1
    table["sex"] = np.where(woman, "woman", "man")
    table["income"] = np.where(high, "high", "low")
    pyarrow.parquet.write_table(pyarrow.table(table), path)


def measure(command: list[str], folder: Path) -> dict[str, float]:
    """Run a command; return its wall seconds, CPU seconds and peak memory in gigabytes."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {error.decode()[-2000:]}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak GB": round(usage.ru_maxrss * 1024 / 1e9, 2),
    }


def main() -> None:
    """Make the table, measure each command, and print the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--out", type=Path, help="a JSON file for the numbers")
    parser.add_argument(
        "--only", nargs="*", default=["train", "train 0.9", "audit", "predict", "scikit-learn"]
    )
    options = parser.parse_args()
    found: dict[str, Any] = {"rows": options.rows, "columns": options.columns}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_table(folder / "people.parquet", options.rows, options.columns)
        print(f"{options.rows:,} rows, {(folder / 'people.parquet').stat().st_size / 1e6:.0f} MB", flush=True)
        fairsieve = [sys.executable, "-m", "fairsieve"]
        commands = {
            "scikit-learn": [sys.executable, "-c", BASELINE, "people.parquet"],
            "train": [*fairsieve, "train", "people.parquet", *ROLES, "-o", "run"],
            "train 0.9": [
                *fairsieve,
                "train",
                "people.parquet",
                *ROLES,
                "--clean-ratio",
                "0.9",
                "-o",
                "given",
            ],
            "audit": [*fairsieve, "audit", "people.parquet", *ROLES, "-o", "suspects.csv"],
            "predict": [*fairsieve, "predict", "run", "people.parquet", "-o", "predicted.csv"],
        }
        for label, command in commands.items():
            if label in options.only:
                found[label] = measure(command, folder)
                print(f"{label:14}", found[label], flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
