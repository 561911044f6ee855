"""The sampler on small networks, on a CPU: six kinds of data, five kinds of labels, beside plain training.

    python benchmarks/small_networks.py --out runs.jsonl [--jobs 2] [--only NAME …] [--methods NAME …] [--seeds 0 1 2]
    python benchmarks/small_networks.py --report runs.jsonl

Data: COMPAS and Adult (sex), Adult with 5 % of the second class, handwritten digits (a part of them turned by a
quarter), texts made of words of two dialects, and small pictures of shapes whose brightness goes with the class.
Labels: right, a fifth wrong at random, two fifths wrong in the small group, two fifths wrong in one cell of it, and a
fifth from an annotator who has seen little. Test labels are right, and the test has the groups' shares of the training;
accuracy and gaps over equally large cells stand beside them. Networks that differ by method and seed alone are trained
side by side. Each run is a line of the output; runs that are there are not made again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional as F

from fairsieve import FairRobustBatchSampler, SamplingMethod
from fairsieve.data import load_adult, load_compas

NOISES = ("right", "uniform", "small group", "one cell", "annotator")
SEEDS = (0, 1, 2)


class Data(NamedTuple):
    """Features, true labels and groups; group 1 is the small one."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray


class Problem(NamedTuple):
    """What a training is given, and what it is measured on."""

    train: Data
    given: np.ndarray
    test: Data
    epochs: int
    batch_size: int
    rate: float
    network: Callable[[int, int], nn.Module]


def mlp(inputs: int, classes: int) -> nn.Module:
    """Return a network for tables and counts of words."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, classes)
    )


def cnn(inputs: int, classes: int) -> nn.Module:
    """Return a network for square pictures of one channel."""
    side = round(inputs**0.5)
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def pictures_in(x: np.ndarray) -> np.ndarray:
    """Return flat pictures as (n, side, side)."""
    side = round(x.shape[1] ** 0.5)
    return x.reshape(-1, side, side)


def table(load: Callable[[], Any], rows: int, rng: np.random.Generator) -> Data:
    """Draw rows of a table, standardised; the small group is women."""
    samples = load()
    some = rng.permutation(len(samples))[:rows]
    x = samples.features[some].astype(np.float32)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-6)
    return Data(x.clip(-5, 5), samples.cells.label_codes[some], 1 - samples.cells.group_codes[some])


def rare(rng: np.random.Generator, share: float = 0.05) -> Data:
    """Draw rows of Adult, of which few are of the second class."""
    data = table(load_adult, 15000, rng)
    of_second = np.flatnonzero(data.y == 1)
    first = np.flatnonzero(data.y == 0)[: round(7000 * (1 - share))]
    some = rng.permutation(np.append(first, of_second[: 7000 - len(first)]))
    return Data(*(part[some] for part in data))


def digits(rng: np.random.Generator) -> Data:
    """Return digits, a quarter of them turned by a quarter."""
    found = load_digits()
    order = rng.permutation(len(found.target))
    x, z = found.images[order] / 16, (rng.random(len(order)) < 0.25).astype(np.int64)
    x = np.where(z[:, None, None] == 1, np.rot90(x, axes=(1, 2)), x)
    return Data(x.reshape(len(x), -1).astype(np.float32), found.target[order], z)


def texts(rng: np.random.Generator, n: int = 3500, classes: int = 4, words: int = 12) -> Data:
    """Return counts of words: each class has words of its own, and a fifth of the texts use those of a dialect."""
    y, z = rng.integers(0, classes, n), (rng.random(n) < 0.2).astype(np.int64)
    common, own = 150, 40
    topic = common + (y * 2 * own)[:, None] + rng.integers(0, own, (n, words))
    in_dialect = (z == 1)[:, None] & (rng.random((n, words)) < 0.7)
    word = np.where(
        rng.random((n, words)) < 0.3, topic + own * in_dialect, rng.integers(0, common, (n, words))
    )
    x = np.zeros((n, common + classes * 2 * own), np.float32)
    np.add.at(x, (np.arange(n)[:, None], word), 1)
    return Data(x, y, z)


def shapes(rng: np.random.Generator, n: int = 3000, classes: int = 4, side: int = 10) -> Data:
    """Return crosses, frames, bars and corners; dark ones are rare, and rarest in the first two classes."""
    y = rng.integers(0, classes, n)
    z = (rng.random(n) < np.where(y < 2, 0.1, 0.4)).astype(np.int64)
    forms = np.zeros((classes, 5, 5), np.float32)
    forms[0, 2, :] = forms[0, :, 2] = 1
    forms[1, [0, -1], :] = forms[1, :, [0, -1]] = 1
    forms[2, [1, 3], :] = 1
    forms[3, :, 0] = forms[3, -1, :] = 1
    x = np.zeros((n, side, side), np.float32)
    for i, (down, right) in enumerate(rng.integers(0, side - 4, (n, 2))):
        x[i, down : down + 5, right : right + 5] = forms[y[i]]
    x = x * np.where(z == 1, 0.45, 1.0)[:, None, None] + rng.normal(0, 0.3, x.shape)
    return Data(x.reshape(n, -1).astype(np.float32), y, z)


DATA: dict[str, Callable[[np.random.Generator], Data]] = {
    "COMPAS": lambda rng: table(load_compas, 5200, rng),
    "Adult": lambda rng: table(load_adult, 7000, rng),
    "rare": rare,
    "digits": digits,
    "texts": texts,
    "shapes": shapes,
}
TABLES = ("COMPAS", "Adult", "rare")
TRAINING = {  # epochs, batch size, learning rate, network
    "COMPAS": (15, 64, 0.003, mlp),
    "Adult": (12, 64, 0.003, mlp),
    "rare": (12, 64, 0.003, mlp),
    "digits": (18, 32, 0.005, cnn),
    "texts": (12, 32, 0.003, mlp),
    "shapes": (12, 48, 0.005, cnn),
}


def given_labels(data: Data, noise: str, rng: np.random.Generator) -> np.ndarray:
    """Make labels wrong."""
    y, classes = data.y, int(data.y.max()) + 1
    other = (y + rng.integers(1, classes, len(y))) % classes
    if noise == "annotator":
        seen = rng.permutation(len(y))[:120]
        some = rng.permutation(data.x.shape[1])[: max(2, data.x.shape[1] // 2)]
        guess = (
            LogisticRegression(C=0.1, max_iter=300)
            .fit(data.x[seen][:, some], y[seen])
            .predict(data.x[:, some])
        )
        wrong = np.flatnonzero(guess != y)
        chosen = rng.permutation(wrong)[: round(0.2 * len(y))]
        return np.where(np.isin(np.arange(len(y)), chosen), guess, y)
    last = data.z == 1
    rates = {
        "right": 0.0,
        "uniform": 0.2,
        "small group": 0.4 * last,
        "one cell": 0.4 * (last & (y == classes - 1)),
    }
    return np.where(rng.random(len(y)) < rates[noise], other, y)


def make_problem(name: str, noise: str, seed: int) -> Problem:
    """Draw the data, cut them into three quarters for training and the test, and make labels wrong."""
    rng = np.random.default_rng([seed, *map(ord, name)])
    data = DATA[name](rng)
    cut = len(data.y) * 3 // 4 if name not in TABLES else len(data.y) * 6 // 10
    train, test = Data(*(part[:cut] for part in data)), Data(*(part[cut:] for part in data))
    return Problem(train, given_labels(train, noise, rng), test, *TRAINING[name])


def plain_batches(n: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Shuffle, and leave the last samples out where they fill no batch."""
    order = torch.randperm(n, generator=generator)
    return order[: n // size * size].view(-1, size)


def train(
    problems: list[Problem], methods: list[dict[str, Any] | None], seeds: list[int]
) -> list[np.ndarray]:
    """Train a network for each problem (they differ by the seed) and method; return predictions on the tests.

    The networks stand side by side in one stack of parameters, so that a step of all costs little more than that of
    one. Each has its own data, batches and first weights; those of one seed are alike.
    """
    first = problems[0]
    runs = [(place, options) for place in range(len(problems)) for options in methods]
    which = torch.tensor([place for place, _ in runs])
    x = torch.stack([torch.from_numpy(each.train.x) for each in problems])
    y = torch.stack([torch.from_numpy(each.given) for each in problems])
    classes = max(int(each.train.y.max()) for each in problems) + 1
    models, samplers, generators = [], [], []
    for place, options in runs:
        torch.manual_seed(seeds[place])
        models.append(first.network(x.shape[2], classes))
        generators.append(torch.Generator().manual_seed(seeds[place]))
        sampler = None
        if options is not None:
            own = {"epochs": first.epochs, "seed": seeds[place], "classes": range(classes)} | options
            sampler = FairRobustBatchSampler(y[place], problems[place].train.z, first.batch_size, **own)
        samplers.append(sampler)
    parameters, _ = torch.func.stack_module_state(models)
    shape = models[0].to("meta")
    forward = torch.vmap(lambda own, some: torch.func.functional_call(shape, own, (some,)))
    optimizer = torch.optim.Adam(list(parameters.values()), first.rate, fused=True)
    for _ in range(first.epochs):
        with torch.no_grad():
            outputs = torch.cat([forward(parameters, part[which]) for part in x.split(512, dim=1)], dim=1)
        epoch = []
        for sampler, generator, own in zip(samplers, generators, outputs, strict=True):
            if sampler is None:
                epoch.append(plain_batches(x.shape[1], first.batch_size, generator))
            else:
                sampler.update(own)
                epoch.append(torch.stack(list(sampler.batches())))
        for batch in torch.stack(epoch, dim=1):
            found = forward(parameters, x[which[:, None], batch])
            targets = y[which[:, None], batch]
            loss = F.cross_entropy(found.flatten(0, 1), targets.flatten(), reduction="sum")
            optimizer.zero_grad()
            (loss / batch.shape[1]).backward()  # each network's gradient is that of its own mean
            optimizer.step()
    tests = torch.stack([torch.from_numpy(each.test.x) for each in problems])
    with torch.no_grad():
        return list(np.asarray(forward(parameters, tests[which]).argmax(2)))


METHODS: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "ours": {},
    "cleaning alone": {"fairness": None},
    "balance alone": {"clean_ratio": 1.0},
} | {f"balance={power:g}": {"method": SamplingMethod(balance=power)} for power in (1, 0.75, 0.5, 0.25, 0)}


def measure(predicted: np.ndarray, test: Data) -> dict[str, float]:
    """Return accuracy, the largest and the mean gap between the groups' rates, and accuracy over equal cells."""
    classes = int(test.y.max()) + 1
    rates, right = np.full((2, classes, classes), np.nan), []
    for z, y in itertools.product(range(2), range(classes)):
        inside = (test.z == z) & (test.y == y)
        if inside.any():
            rates[z, y] = np.bincount(predicted[inside], minlength=classes) / inside.sum()
            right.append(rates[z, y, y])
    gaps = np.abs(rates[0] - rates[1])
    return {
        "accuracy": float((predicted == test.y).mean()),
        "disparity": float(np.nanmax(gaps)),
        "mean gap": float(np.nanmean(gaps.diagonal())),
        "balanced": float(np.mean(right)),
    }


def work(queue: Any, out: Path, lock: Any) -> None:
    """Make runs from the queue until it is empty."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for name, noise, methods, seeds in iter(queue.get, None):
        problems, started = [make_problem(name, noise, seed) for seed in seeds], time.process_time()
        predicted = train(problems, [METHODS[method] for method in methods], seeds)
        seconds = (time.process_time() - started) / len(predicted)
        lines = []
        for (place, method), guess in zip(
            itertools.product(range(len(seeds)), methods), predicted, strict=True
        ):
            found = measure(guess, problems[place].test)
            line = {"data": name, "labels": noise, "method": method, "seed": seeds[place], **found}
            lines.append(json.dumps(line | {"seconds": seconds}) + "\n")
        with lock, out.open("a") as file:
            file.writelines(lines)


def report(path: Path) -> None:
    """Print a line for each scenario and method, and how often the aims are met."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    table: dict[tuple[str, str], dict[str, dict[int, dict[str, float]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for run in runs:
        table[run["data"], run["labels"]][run["method"]][run["seed"]] = run
    methods = list(dict.fromkeys(run["method"] for run in runs))
    print("accuracy / EO disparity / mean gap; others: accuracy less plain's, ratios to plain's of the gaps")
    totals: dict[str, list[tuple[bool, bool, bool | None, float, float, float]]] = defaultdict(list)
    for (name, noise), by_method in table.items():
        plain = by_method.get("plain", {})
        if not plain:
            continue
        cells = [f"{name:7} {noise:12}"]
        cells.append(" / ".join(f"{np.mean([r[m] for r in plain.values()]):.3f}" for m in MEASURES))
        for method in methods:
            pairs = [(by_method[method][s], plain[s]) for s in plain if s in by_method[method]]
            if method == "plain" or not pairs:
                continue
            change = {m: np.array([a[m] - b[m] for a, b in pairs]) for m in MEASURES}
            error = {
                m: change[m].std(ddof=1) / len(pairs) ** 0.5 if len(pairs) > 1 else 0.0 for m in MEASURES
            }
            ratio = [np.mean([a[m] for a, _ in pairs]) / np.mean([b[m] for _, b in pairs]) for m in MEASURES]
            accuracy, gap = change["accuracy"].mean(), change["mean gap"].mean()
            harm = accuracy < -0.005 - 2 * error["accuracy"]
            raised = gap > 2 * error["mean gap"]
            wide = np.mean([b["mean gap"] for _, b in pairs]) > 0.1
            totals[method].append(
                (harm, raised, ratio[2] <= 0.6 if wide else None, accuracy, ratio[1], ratio[2])
            )
            marks = "!" * bool(harm) + "^" * bool(raised) + "*" * bool(wide and ratio[2] <= 0.6)
            cells.append(f"{accuracy:+.3f} {ratio[1]:.2f} {ratio[2]:.2f} {marks:2}")
        print(" | ".join(cells))
    for method, rows in totals.items():
        harm, raised, halved, accuracy, disparity, gap = zip(*rows, strict=True)
        aims = [each for each in halved if each is not None]
        print(
            f"{method:16} accuracy {np.mean(accuracy):+.4f} (least {min(accuracy):+.3f}), disparity "
            f"{np.exp(np.log(disparity).mean()):.2f}, mean gap {np.exp(np.log(gap).mean()):.2f}; less accurate (!) in "
            f"{sum(harm)}, wider gaps (^) in {sum(raised)} of {len(rows)} scenarios; gap at most .6 (*) in {sum(aims)} "
            f"of {len(aims)} wide ones"
        )


MEASURES = ("accuracy", "disparity", "mean gap")


def main() -> None:
    """Run what is asked for, or print the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--labels", nargs="*", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    arguments = parser.parse_args()
    if arguments.report:
        report(arguments.report)
        return
    done = set()
    if arguments.out.exists():
        runs = map(json.loads, arguments.out.read_text().splitlines())
        done = {(run["data"], run["labels"], run["method"], run["seed"]) for run in runs}
    context = mp.get_context("spawn")
    queue, lock = context.Queue(), context.Lock()
    for name, noise in itertools.product(arguments.only, arguments.labels):
        lacking = [
            (m, s) for m in arguments.methods for s in arguments.seeds if (name, noise, m, s) not in done
        ]
        if lacking:
            methods, seeds = (list(dict.fromkeys(each)) for each in zip(*lacking, strict=True))
            queue.put((name, noise, methods, seeds))
    workers = [context.Process(target=work, args=(queue, arguments.out, lock)) for _ in range(arguments.jobs)]
    for worker in workers:
        queue.put(None)
        worker.start()
    for worker in workers:
        worker.join()
    report(arguments.out)


if __name__ == "__main__":
    main()
