"""Play FR-Train with few checked rows as its clean set, all games at once on a GPU, for ``verified_labels.py``.

The games are those of ``verified_labels.py methods --method fr-train`` with FR-Train's full 10,000 epochs. Three steps,
so that the second can run on a machine that has torch and a GPU and nothing else of ours::

    python benchmarks/fr_train_checked_rows.py gather games
    python benchmarks/fr_train_checked_rows.py play games     # twelve batches, a minute each on one GPU
    python benchmarks/fr_train_checked_rows.py record games RECORDS.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from fr_train_stack import Stack

EPOCHS = 10_000
FAIRNESS_WEIGHT = 0.4  # the method's default
SEEDS = range(10)


def gather(folder: Path) -> None:
    """Write the data and the games into ``folder``."""
    from fr_train_games import first_weights, save_problem
    from verified_labels import COUNTS, corrected, problem
    from verified_labels_tables import DATA, NOISES

    from fairsieve.training.settings import Settings

    folder.mkdir(parents=True, exist_ok=True)
    problems = 0
    for data in DATA:
        games: dict[int, list[dict[str, Any]]] = {count: [] for count in COUNTS}
        for noise, rate in NOISES:
            for seed in SEEDS:
                clean, noisy, _ = problem(data, noise, rate, seed)
                for count in COUNTS:
                    rows = np.random.default_rng(seed).permutation(len(clean))[:count]
                    train, checked = noisy.with_labels(corrected(noisy, rows, clean)), clean.take(rows)
                    save_problem(folder / f"problem-{problems}.npz", train, checked)
                    first = first_weights("fr-train", train, checked, Settings(), seed)
                    games[count].append(
                        {
                            "key": {"data": data, "noise": noise, "rate": rate, "seed": seed, "count": count},
                            "problem": problems,
                            "fairness_weight": FAIRNESS_WEIGHT,
                            "sees_label": True,
                            **{name: np.asarray(part, np.float32).tolist() for name, part in first.items()},
                        }
                    )
                    problems += 1
        for count, listed in games.items():
            (folder / f"games-{data}-{count}.json").write_text(json.dumps(listed))


def play(folder: Path, device: str, epochs: int) -> None:
    """Play all games, and write the classifiers' last weights into ``folder``/played."""
    import torch

    (folder / "played").mkdir(exist_ok=True)
    for path in sorted(folder.glob("games-*.json")):
        listed, started = json.loads(path.read_text()), time.perf_counter()
        stack = Stack(folder, listed, "fr-train", torch.device(device))
        np.save(folder / "played" / f"{path.stem}.npy", stack.play(epochs))
        print(path.stem, len(listed), "games", f"{time.perf_counter() - started:.1f} s", flush=True)


def record(folder: Path, records: Path) -> None:
    """Measure the classifiers on clean test data, and append the records."""
    from verified_labels import measure, problem
    from verified_labels_tables import Records

    known, test_part = Records(records), lru_cache(None)(lambda *key: problem(*key)[2])
    for path in sorted(folder.glob("games-*.json")):
        games = json.loads(path.read_text())
        for game, row in zip(games, np.load(folder / "played" / f"{path.stem}.npy"), strict=True):
            key = game["key"] | {"method": "fr-train"}
            if key in known:
                continue
            test = test_part(key["data"], key["noise"], key["rate"], key["seed"])
            weights = row.astype(np.float64)
            chosen = (test.features @ weights[:-1] + weights[-1] > 0).astype(int)
            accuracy, disparity = measure(np.array(test.cells.classes)[chosen], test, "equalized_odds")
            known.add(key | {"accuracy": accuracy, "disparity": disparity, "seconds": 0.0, "epochs": EPOCHS})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("step", choices=("gather", "play", "record"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("records", type=Path, nargs="?")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    if asked.step == "gather":
        gather(asked.folder)
    elif asked.step == "play":
        play(asked.folder, asked.device, asked.epochs)
    else:
        record(asked.folder, asked.records)


if __name__ == "__main__":
    main()
