"""Whether what the estimate of wrong labels claims is true: over tables, kinds of wrong labels and draws.

    python benchmarks/estimate_coverage.py --records coverage.jsonl --seeds 6
    python benchmarks/estimate_coverage.py --records coverage.jsonl --show

A run is recorded as one JSON line as soon as it ends, so that a stopped benchmark continues.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from noisy_tables import TABLES, attacked

from fairsieve import InvalidInputError, Samples, estimate_clean_ratio

KINDS = (
    ("none", 0.0),
    ("uniform", 0.05),
    ("uniform", 0.1),
    ("uniform", 0.2),
    ("uniform", 0.3),
    ("group 0", 0.2),
    ("group 1", 0.2),
    ("cell", 0.35),
    ("label", 0.1),
    ("group-targeted", 0.1),
    ("weak-annotator", 0.08),
    ("weak-annotator", 0.2),
    ("boundary", 0.1),
    ("boundary", 0.2),
    ("feature", 0.08),
    ("feature", 0.2),
)


def flip(train: Samples, noise: str, rate: float, seed: int) -> tuple[Samples, np.ndarray]:
    """Flip labels; ``cell`` means those of one class in one group, which the seed chooses."""
    if noise != "cell":
        return attacked(train, noise, rate, seed)
    from fairsieve.data import flip_uniform

    rates = np.zeros(train.cells.shape)
    rates.flat[seed % rates.size] = rate
    noisy = flip_uniform(train, rates, seed=seed)
    return train.with_labels(noisy.labels), noisy.flipped


def run(table: str, noise: str, rate: float, seed: int) -> dict[str, object]:
    """Make one estimate and compare it with the truth."""
    clean = TABLES[table](seed)
    try:
        train, flipped = flip(clean, noise, rate, seed + 1000)
    except InvalidInputError:  # an annotator that is not wrong so often
        return {"skipped": True}
    started = time.process_time()
    found = estimate_clean_ratio(
        train.features, train.labels, sensitive_features=train.groups, random_state=seed
    )
    seconds = time.process_time() - started
    named = np.ones(len(train), bool)
    named[found.believed] = False
    named &= bool(found.credible)
    return {
        "right": float(1 - flipped.mean()),
        "ratio": found.clean_ratio,
        "interval": [float(end) for end in found.interval],
        "conclusive": bool(found.credible),
        "aimed": found.aimed,
        "flips": bool(found.flip_rates.any()),
        "rates": np.round(found.flip_rates, 4).tolist(),
        "suspects": int(named.sum()),
        "precision": float(flipped[named].mean()) if named.any() else None,
        "predictor": found.predictor.name if found.predictor else None,
        "reason": str(found.credible),
        "seconds": seconds,
    }


def key(record: dict[str, object]) -> tuple[object, ...]:
    return tuple(record[name] for name in ("table", "noise", "rate", "seed"))


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def show(records: list[dict[str, object]]) -> None:
    """Print, for each kind of wrong labels, how often what is claimed is true."""
    print(
        "| wrong labels | runs | conclusive | at most so many right: true | interval: true | suspects | precision |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    by_kind: dict[object, list[dict[str, object]]] = defaultdict(list)
    for one in records:
        if "skipped" not in one:
            by_kind[one["noise"], one["rate"]].append(one)
            by_kind["all", 0.0].append(one)
    for (noise, rate), runs in by_kind.items():
        told = [one for one in runs if one["conclusive"]]
        most = sum(one["right"] <= one["interval"][1] for one in told)
        inside = sum(one["interval"][0] <= one["right"] <= one["interval"][1] for one in told)
        named = [one for one in told if one["suspects"]]
        count = sum(one["suspects"] for one in named)
        hits = sum(one["suspects"] * one["precision"] for one in named)
        precision = f"{hits / count:.3f}" if count else "–"
        print(
            f"| {noise} {rate:.0%} | {len(runs)} | {len(told)} | {most} | {inside} | {count} | {precision} |",
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    done = {key(one) for one in read(asked.records)}
    for number in range(0 if asked.show else asked.seeds):
        for name in asked.tables.split(","):
            for kind in KINDS:
                if (name, *kind, number) not in done:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        record = run(name, *kind, number)
                    record |= {"table": name, "noise": kind[0], "rate": kind[1], "seed": number}
                    with asked.records.open("a") as file:
                        file.write(json.dumps(record) + "\n")
    show(read(asked.records))
