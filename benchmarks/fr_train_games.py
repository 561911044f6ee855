"""Train many games of FR-Train at once on a GPU; their records are those that ``fairsieve reproduce`` looks for.

A game is small, and a reproduction plays some six hundred of them: 10,000 epochs each, which take hours on one core.
Here all games on a data set advance together, as one batch of tensors. What is computed is what
``fairsieve.paper.methods.fr_train`` and ``fr_train_published`` compute, from the same first weights, in single
precision.

Three steps, so that the second can run on a machine that has torch and a GPU and nothing else of ours::

    python benchmarks/fr_train_games.py gather games reproduction/records.jsonl --arrays DIR
    python benchmarks/fr_train_games.py play games
    python benchmarks/fr_train_games.py record games reproduction/records.jsonl --arrays DIR
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


def wanted_runs(records: Path, arrays: str | None) -> list[tuple[Any, Any, int]]:
    """List the games that are not recorded yet: (results, experiment, seed)."""
    from fairsieve.paper.reproduce.experiments import FR_TRAIN, Scope
    from fairsieve.paper.reproduce.results import Results
    from fairsieve.paper.reproduce.targets import ITEMS, collect_experiments

    found = []
    for scope in [Scope(), *([Scope(arrays=arrays)] if arrays else [])]:
        results = Results.read(records, scope)
        for experiment in collect_experiments(ITEMS.values()):
            if experiment.method in FR_TRAIN and (scope.arrays is None or experiment.data == "synthetic"):
                for seed in scope.seeds_for(experiment):
                    if results.run(experiment, seed) is None:
                        found.append((results, experiment, seed))
    found.sort(key=lambda run: (run[1].data, run[1].noise, run[1].rate, run[1].validation, run[2]))
    return list(
        {
            results.name(experiment, seed): (results, experiment, seed) for results, experiment, seed in found
        }.values()
    )


def first_weights(method: str, train: Any, validation: Any, settings: Any, seed: int) -> dict[str, Any]:
    """Return the first weights of a game, as the engines of the package draw them."""
    from fairsieve.paper.methods.fr_train_published import _Game
    from fairsieve.paper.methods.fr_train_training import _make_arrays, _make_discriminators
    from fairsieve.training.linear_model import initial_parameters

    if method == "fr-train-published":
        game = _Game(train, validation, settings.fairness, (0.3, 0.4), seed)
        fair = np.zeros(3, np.float32)
        fair[: len(game.fair) - 1], fair[2] = game.fair[:-1], game.fair[-1]
        return {
            "parameters": game.parameters,
            "fair": fair,
            "entry": game.robust.entry,
            "exit": game.robust.exit,
        }
    arrays = _make_arrays(train, validation, settings)
    drawn = _make_discriminators(arrays, 2, settings.fairness, np.random.default_rng(seed))
    parameters = initial_parameters(train.features.shape[1], 2, seed)
    return {"parameters": parameters, "fair": np.zeros(3), "entry": drawn.entry, "exit": drawn.exit}


def gather(folder: Path, records: Path, arrays: str | None) -> None:
    """Write the data and the games into ``folder``."""
    from fairsieve.paper.methods.registry import METHODS
    from fairsieve.paper.problems import make_problem

    made = lru_cache(maxsize=8)(make_problem)
    folder.mkdir(parents=True, exist_ok=True)
    problems: dict[tuple[Any, ...], int] = {}
    games: dict[str, list[dict[str, Any]]] = {}
    for results, experiment, seed in wanted_runs(records, arrays):
        comparison = results.comparison(experiment)
        drawn = 0 if comparison.arrays else seed  # the arrays are the same for every seed
        key = (
            comparison.data,
            comparison.noise,
            comparison.rate,
            drawn,
            comparison.arrays,
            comparison.validation,
        )
        problem = made(comparison.data, comparison.noise, comparison.rate, drawn, arrays=comparison.arrays)
        validation = comparison.validation_samples(problem, METHODS[experiment.method])
        if key not in problems:
            problems[key] = len(problems)
            save_problem(folder / f"problem-{problems[key]}.npz", problem.train, validation)
        first = first_weights(
            experiment.method, problem.train, validation, comparison.training_settings(), seed
        )
        games.setdefault(f"{experiment.data}-{experiment.method}", []).append(
            {
                "run": results.name(experiment, seed),
                "problem": problems[key],
                "fairness_weight": comparison.fixed["fairness_weight"],
                "sees_label": experiment.fairness == "equalized_odds",
                "seed": seed,
                **{name: np.asarray(value, np.float32).tolist() for name, value in first.items()},
            }
        )
    for name, listed in games.items():
        (folder / f"games-{name}.json").write_text(json.dumps(listed))
        print(name, len(listed), "games")


def save_problem(path: Path, train: Any, validation: Any) -> None:
    """Save features (columns of 0 and 1 as bits), labels and groups."""
    both = np.concatenate([train.features, validation.features]).astype(np.float32)
    binary = np.isin(both, (0, 1)).all(axis=0)
    np.savez_compressed(
        path,
        bits=np.packbits(both[:, binary].astype(bool), axis=1),
        numbers=both[:, ~binary],
        binary=binary,
        labels=np.concatenate([train.cells.label_codes, validation.cells.label_codes]).astype(np.int8),
        groups=np.concatenate([train.cells.group_codes, validation.cells.group_codes]).astype(np.int8),
        trained=len(train),
    )


def play(folder: Path, device: str, epochs: int) -> None:
    """Play all games, and write the classifiers' last weights into ``folder``/played."""
    import torch

    (folder / "played").mkdir(exist_ok=True)
    for path in sorted(folder.glob("games-*.json")):
        data, method = path.stem.removeprefix("games-").split("-", 1)
        listed, started = json.loads(path.read_text()), time.perf_counter()
        most = 60 if data == "adult" else 400
        last = []
        for first in range(0, len(listed), most):
            stack = Stack(folder, listed[first : first + most], method, torch.device(device))
            last.append(stack.play(epochs))
        np.save(folder / "played" / f"{path.stem}.npy", np.concatenate(last))
        print(path.stem, len(listed), "games", f"{time.perf_counter() - started:.1f} s", flush=True)


def record(folder: Path, records: Path, arrays: str | None) -> None:
    """Measure the classifiers on clean test data, and append the records."""
    from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
    from fairsieve.paper.methods.registry import METHODS
    from fairsieve.paper.problems import make_problem
    from fairsieve.paper.records import append_record
    from fairsieve.paper.run import package_versions

    weights = {}
    for path in folder.glob("games-*.json"):
        played = np.load(folder / "played" / f"{path.stem}.npy")
        weights |= {game["run"]: row for game, row in zip(json.loads(path.read_text()), played, strict=True)}
    versions, made = package_versions(), lru_cache(maxsize=8)(make_problem)
    for results, experiment, seed in wanted_runs(records, arrays):
        name, comparison = results.name(experiment, seed), results.comparison(experiment)
        problem = made(comparison.data, comparison.noise, comparison.rate, seed, arrays=comparison.arrays)
        test, row = problem.test, weights[name].astype(np.float64)
        predicted = np.array(test.cells.classes)[(test.features @ row[:-1] + row[-1] > 0).astype(int)]
        table, *_ = confusion_table(test.labels, predicted, test.groups)
        metrics = {"accuracy": float(accuracy_from_table(table))} | {
            fairness: float(disparity_from_table(table, fairness))
            for fairness in ("equalized_odds", "demographic_parity", "equal_opportunity")
        }
        append_record(
            records,
            {
                "run": name,
                "settings": comparison.run_settings(METHODS[experiment.method], seed),
                "versions": versions,
                "checksum": problem.checksum,
                "seconds": 0.0,
                "tuning_seconds": 0.0,
                "together": len(weights),
                "hyperparameters": dict(comparison.fixed or {}),
                "epochs": EPOCHS,
                "metrics": {measure: round(value, 6) for measure, value in metrics.items()},
            },
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("step", choices=("gather", "play", "record"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("records", type=Path, nargs="?")
    parser.add_argument("--arrays")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    if asked.step == "play":
        play(asked.folder, asked.device, asked.epochs)
    elif asked.step == "gather":
        gather(asked.folder, asked.records, asked.arrays)
    else:
        record(asked.folder, asked.records, asked.arrays)


if __name__ == "__main__":
    main()
