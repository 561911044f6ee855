"""The sampler on a deep network: pictures with wrong labels and two kinds of groups, beside its rivals.

    python benchmarks/deep.py --images FOLDER/cifar10-part.npz --out runs.jsonl       # a GPU; --only, --jobs
    python benchmarks/deep.py --report runs.jsonl [--figure deep.svg]                 # the table, and a figure

The file has 32 × 32 pictures as JPEG bytes (``jpeg``, ``offsets``, ``label``, ``is_test``). Groups are a natural
attribute (bluish or not), or a tint that goes with half of the classes in 90 % of the training pictures and with
none of them in the test. Labels are wrong by a weak annotator (a small network that saw a few hundred pictures and
labels some of the others), by classes that people take for each other, uniformly, or in one group. Test labels are
right. Accuracy is given at the shares that the cells have in the training (natural) and at equal shares of the groups
within a class (balanced); rates of cells, and so gaps, are the same at both. ``--batch`` sets the batch size, 8 to 512,
and ``--split`` cuts each group into so many by brightness, for 20 (1) to 500 (25) cells; gaps are those of the two
groups all the same. ``--width 0`` is a network of three convolutions on pictures of half the size, which a processor
trains in half a minute: ``--width 0 --some 8333 --epochs 12 --batch 100 --only confused --device cpu``. Each finished
run is a line of the output, so that little is lost when time is up; runs that are there already are not made again.
NFDS (arXiv 2412.11072) is no rival here: it stands on a zero-shot predictor, a network trained elsewhere that knows the
classes by their names, which none of the others has.
"""

from __future__ import annotations

import argparse
import functools
import io
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F

from fairsieve import FairRobustBatchSampler, SamplingMethod, equalized_odds_disparity

EPOCHS, CLASSES = 20, 10
BATCH = 256  # --batch sets another
GROUPS = ("tint", "blue")
NOISES = {  # name: (kind, share of wrong labels)
    "annotator 10 %": ("annotator", 0.1),
    "annotator 40 %": ("annotator", 0.4),
    "uniform 10 %": ("uniform", 0.1),
    "uniform 40 %": ("uniform", 0.4),
    "one group 20 %": ("group", 0.2),
    "confused 12 %": ("confused", 0.12),
    "confused 35 %": ("confused", 0.35),
    "right": ("uniform", 0.0),
}
# What people take each class for, the likelier one first, and how often they err, beside the average.
ALIKE = np.array([(8, 2), (9, 8), (0, 6), (5, 6), (7, 2), (3, 7), (2, 3), (4, 5), (0, 9), (1, 8)])
HARD = np.array([0.8, 0.8, 1.2, 1.5, 1.2, 1.3, 0.8, 0.9, 0.7, 0.8])
FIRST = ("annotator 10 %", "annotator 40 %")  # also with the rivals
MAIN = ("plain", "cleaning", "ours")
RIVALS = (
    "ours, cleaning alone",
    "ours, ratio given",
    "ours, observed",
    "equal cells",
    "group DRO",
    "JTT",
    "co-teaching",
    "label smoothing",
    "GCE",
)


class Raw(NamedTuple):
    """Pictures (n, 32, 32, 3) of bytes, on the device, true labels, and which are for the test."""

    pictures: torch.Tensor
    labels: np.ndarray
    is_test: np.ndarray

    __hash__ = object.__hash__  # the same object has the same annotator


class Pictures(NamedTuple):
    """Pictures on the device, with true labels, given labels and groups."""

    images: torch.Tensor  # (n, 3, 32, 32), normalised, channels last
    true: torch.Tensor
    given: torch.Tensor
    groups: torch.Tensor
    parts: torch.Tensor  # the groups that the sampler is given: those above, or finer ones


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.short: nn.Module = nn.Identity()
        if stride > 1 or inside != outside:
            self.short = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm_two(self.two(F.relu(self.norm_one(self.one(x)))))
        return F.relu(inner + self.short(x))


def resnet(width: int = 64) -> nn.Module:
    """ResNet-18 for small pictures."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    for level in range(4):
        inside, outside = width << max(0, level - 1), width << level
        layers += [Block(inside, outside, 2 if level else 1), Block(outside, outside, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width << 3, CLASSES))


def small_network() -> nn.Module:
    """Return a network of three convolutions for pictures of 16 × 16."""
    layers: list[nn.Module] = []
    for inside, outside in ((3, 32), (32, 64), (64, 96)):
        layers += [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(96 * 4, CLASSES))


def read(path: Path, some: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pictures (n, 32, 32, 3), labels, and which are for the test."""
    from PIL import Image

    part = np.load(path)
    count = len(part["label"])
    which = range(count) if some is None else range(0, count, max(1, count // some))
    data, offsets = part["jpeg"], part["offsets"]
    pictures = [
        np.asarray(Image.open(io.BytesIO(data[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB"))
        for i in which
    ]
    rows = list(which)
    return np.stack(pictures), part["label"][rows].astype(np.int64), part["is_test"][rows].astype(bool)


@functools.cache
def weak_labels(raw: Raw) -> np.ndarray:
    """Return the labels of an annotator who saw forty pictures of each class."""
    torch.manual_seed(99)
    rng = np.random.default_rng(99)
    labels, device = raw.labels, raw.pictures.device
    seen = np.concatenate(
        [rng.choice(np.flatnonzero(labels == y), min(40, (labels == y).sum()), False) for y in range(CLASSES)]
    )
    x = normalised(raw.pictures)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, CLASSES),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    own, targets = x[torch.from_numpy(seen).to(device)], torch.from_numpy(labels[seen]).to(device)
    for _ in range(150):
        loss = F.cross_entropy(model(own), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = torch.cat([model(part).float().cpu() for part in x.split(2048)])
    return torch.multinomial(logits.softmax(1), 1)[:, 0].numpy()  # as people do: not always the same mistake


def normalised(pictures: torch.Tensor) -> torch.Tensor:
    """Return pictures as a network takes them, from numbers between 0 and 255."""
    x = ((pictures.float() / 255 - 0.47) / 0.25).permute(0, 3, 1, 2)
    return x.contiguous(memory_format=torch.channels_last)


def prepare(
    raw: Raw, groups: str, noise: str, seed: int, split: int = 1, *, half: bool = False
) -> tuple[Pictures, Pictures]:
    """Return training and test pictures of a scenario, of half the size where that is asked for."""
    pictures, labels, is_test = raw
    brightness = pictures.float().mean(dim=(1, 2, 3)).cpu().numpy().argsort().argsort()
    device = pictures.device
    rng = np.random.default_rng(seed)
    if groups == "blue":
        means = pictures.float().mean(dim=(1, 2)).cpu().numpy() / 255
        column = (means[:, 2] > means[:, 0] - 0.02).astype(np.int64)
    else:
        chance = np.where(is_test, 0.5, np.where(labels < CLASSES // 2, 0.9, 0.1))
        column = (rng.random(len(labels)) < chance).astype(np.int64)
        tint = torch.ones(len(labels), 1, 1, 3, device=device)
        tint[torch.from_numpy(column == 1).to(device), ..., 1:] = 0.75
        pictures = pictures * tint
    kind, share = NOISES[noise]
    given, train = labels.copy(), np.flatnonzero(~is_test)
    wrong, count = (labels + rng.integers(1, CLASSES, len(labels))) % CLASSES, round(share * len(train))
    if kind == "annotator":  # who labels so many pictures that the wanted share is wrong
        wrong = weak_labels(raw)
        mistaken = train[wrong[train] != labels[train]]
        flipped = rng.choice(mistaken, min(count, len(mistaken)), replace=False)
    elif kind == "confused":
        chosen = np.where(rng.random(len(labels)) < 0.7, ALIKE[labels, 0], ALIKE[labels, 1])
        wrong = np.where(rng.random(len(labels)) < 0.8, chosen, wrong)
        flipped = train[rng.random(len(train)) < share * HARD[labels[train]]]
    elif kind == "uniform":
        flipped = rng.choice(train, count, replace=False)
    else:  # in group 1 alone, at most half of it
        inside = train[column[train] == 1]
        flipped = rng.choice(inside, min(count, len(inside) // 2), replace=False)
    given[flipped] = wrong[flipped]
    x = normalised(pictures)
    x = F.avg_pool2d(x, 2) if half else x
    parts = column * split + brightness * split // len(labels)
    arrays = [torch.from_numpy(each).to(device) for each in (labels, given, column, parts)]
    found = []
    for rows in (~is_test, is_test):
        where = torch.from_numpy(np.flatnonzero(rows)).to(device)
        found.append(Pictures(x[where], *(each[where] for each in arrays)))
    return found[0], found[1]


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shift by up to four places and mirror half of the pictures, on their device."""
    n, device = len(images), images.device
    padded = F.pad(images, (4, 4, 4, 4), mode="reflect")
    top, left = (torch.randint(0, 9, (n, 1), generator=generator, device=device) for _ in range(2))
    place = torch.arange(images.shape[-1], device=device)
    columns = left + place
    mirrored = torch.rand(n, 1, generator=generator, device=device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    rows, number = top + place, torch.arange(n, device=device)[:, None, None]
    cut = padded.permute(0, 2, 3, 1)[number, rows[:, :, None], columns[:, None, :]]
    return cut.permute(0, 3, 1, 2)


class Training:
    """A network, its optimizer and schedule, and steps on batches of indices."""

    def __init__(self, data: Pictures, seed: int, epochs: int, width: int, batch: int = BATCH) -> None:
        torch.manual_seed(seed)
        self.batch = batch
        device = data.images.device
        self.data, self.device = data, device
        self.model = (resnet(width) if width else small_network()).to(
            device, memory_format=torch.channels_last
        )
        self.epochs, self.part = epochs, 0.0  # the part of the training that is over
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
        )
        self.generator = torch.Generator(device).manual_seed(seed)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            return self.model(images).float()

    def outputs(self, batch: torch.Tensor) -> torch.Tensor:
        """Return outputs for augmented training pictures."""
        self.model.train()
        return self.forward(augment(self.data.images[batch], self.generator))

    def step(self, loss: torch.Tensor) -> None:
        """Take one step; the rate rises for a fifth of the training, then falls."""
        part = self.part
        rate = 0.1 * (0.1 + 0.9 * part / 0.2 if part < 0.2 else max(0.01, (1 - part) / 0.8))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def one_epoch(self, batches: Any) -> Iterator[torch.Tensor]:
        """Go through the batches of an epoch, which counts for as much of the schedule however many they are."""
        for batch in batches:
            yield batch.to(self.device)
            self.part += 1 / (self.epochs * len(batches))

    @torch.no_grad()
    def predict(self, images: torch.Tensor) -> torch.Tensor:
        """Return outputs in evaluation mode."""
        self.model.eval()
        return torch.cat([self.forward(part) for part in images.split(4096)])


def shuffled(training: Training) -> torch.Tensor:
    """Batches of a plain pass."""
    n, size = len(training.data.given), training.batch
    order = torch.randperm(n, generator=training.generator, device=training.device)
    return order[: n // size * size].view(-1, size) if n >= size else order[None]


Method = Callable[..., dict[str, Any]]


def generalised(outputs: torch.Tensor, targets: torch.Tensor, power: float = 0.7) -> torch.Tensor:
    """Return the generalised cross-entropy (Zhang and Sabuncu 2018), which wrong labels pull less."""
    chance = outputs.softmax(1).gather(1, targets[:, None])[:, 0].clamp_min(1e-6)
    return ((1 - chance**power) / power).mean()


def plain(
    training: Training, epochs: int, loss: Callable[..., torch.Tensor] = F.cross_entropy, **_: Any
) -> dict[str, Any]:
    data = training.data
    for _epoch in range(epochs):
        for batch in training.one_epoch(shuffled(training)):
            training.step(loss(training.outputs(batch), data.given[batch]))
    return {}


def sampled(
    training: Training, epochs: int, seed: int, *, observe: bool = False, **options: Any
) -> dict[str, Any]:
    """Train with the sampler, from a pass over all pictures before each epoch, or from the batches themselves."""
    data = training.data
    sampler = FairRobustBatchSampler(
        data.given, data.parts, training.batch, epochs=epochs, seed=seed, **options
    )
    for _epoch in range(epochs):
        if not observe:
            sampler.update(training.predict(data.images))
        else:
            sampler.refresh(training.model, data.images, chunk_size=4096)
            sampler.update()
        for batch in training.one_epoch([*sampler.batches()]):
            outputs = training.outputs(batch)
            if observe:
                sampler.observe(batch, outputs.detach())
            training.step(F.cross_entropy(outputs, data.given[batch]))
    kept = torch.as_tensor(sampler.indices, device=training.device)
    wrong = (data.given[kept] != data.true[kept]).float().mean()
    left_out = torch.ones(len(data.given), dtype=torch.bool, device=training.device)
    left_out[kept] = False
    lost = (data.given == data.true)[left_out].sum() / (data.given == data.true).sum()
    ratios = sampler.clean_ratios
    return {
        "kept": len(kept) / len(data.given),
        "wrong among kept": float(wrong),
        "right left out": float(lost),
        "clean ratios": None if ratios is None else np.round(ratios, 3).tolist(),
    }


def cleaning(training: Training, epochs: int, seed: int, share: float) -> dict[str, Any]:
    """ITLM: the lowest losses, with the share of wrong labels known."""
    method = SamplingMethod.paper(constrained=False, weighted=False, batching="even")
    return sampled(training, epochs, seed, clean_ratio=1 - share, fairness=None, method=method)


def equal_cells(training: Training, epochs: int, **_: Any) -> dict[str, Any]:
    data = training.data
    cell = data.given * 2 + data.groups
    members = [torch.nonzero(cell == c).squeeze(1) for c in range(2 * CLASSES)]
    members = [own for own in members if len(own)]
    each = -(-training.batch // len(members))
    for _epoch in range(epochs):
        steps = len(data.given) // training.batch
        drawn = [
            own[torch.randint(len(own), (steps, each), generator=training.generator, device=training.device)]
            for own in members
        ]
        for batch in training.one_epoch(torch.cat(drawn, dim=1)):
            training.step(F.cross_entropy(training.outputs(batch), data.given[batch]))
    return {}


def group_dro(training: Training, epochs: int, rate: float = 0.01, **_: Any) -> dict[str, Any]:
    data = training.data
    cell = data.given * 2 + data.groups
    weights = torch.full((2 * CLASSES,), 0.5 / CLASSES, device=training.device)
    for _epoch in range(epochs):
        for batch in training.one_epoch(shuffled(training)):
            losses = F.cross_entropy(training.outputs(batch), data.given[batch], reduction="none")
            one_hot = F.one_hot(cell[batch], 2 * CLASSES).float()
            means = one_hot.T @ losses / one_hot.sum(0).clamp(min=1)
            weights = weights * torch.exp(rate * means.detach())
            weights /= weights.sum()
            training.step((weights * means).sum())
    return {}


def jtt(training: Training, epochs: int, seed: int, width: int, times: int = 5, **_: Any) -> dict[str, Any]:
    """Just train twice: pictures that a short training gets wrong count five times in the second one."""
    data, first = (
        training.data,
        Training(training.data, seed + 100, max(1, epochs // 4), width, training.batch),
    )
    plain(first, max(1, epochs // 4))
    wrong = first.predict(data.images).argmax(1) != data.given
    rows = torch.cat(
        [torch.arange(len(wrong), device=wrong.device), torch.nonzero(wrong).squeeze(1).repeat(times - 1)]
    )
    for _epoch in range(epochs):
        order = rows[torch.randperm(len(rows), generator=training.generator, device=training.device)]
        size = training.batch
        for batch in training.one_epoch(order[: len(wrong) // size * size].view(-1, size)):
            training.step(F.cross_entropy(training.outputs(batch), data.given[batch]))
    return {}


def co_teaching(training: Training, epochs: int, seed: int, width: int, share: float) -> dict[str, Any]:
    """Two networks; each takes the other's lowest losses of a batch. The share of wrong labels is known."""
    data, other = training.data, Training(training.data, seed + 100, epochs, width, training.batch)
    for epoch in range(epochs):
        keep = round(training.batch * (1 - share * min(1, epoch / max(1, epochs // 4))))
        for batch in training.one_epoch(shuffled(training)):
            losses = [
                F.cross_entropy(each.outputs(batch), data.given[batch], reduction="none")
                for each in (training, other)
            ]
            lowest = [loss.detach().topk(min(keep, len(batch)), largest=False).indices for loss in losses]
            other.part = training.part
            training.step(losses[0][lowest[1]].mean())
            other.step(losses[1][lowest[0]].mean())
    return {}


def run(raw: Raw, task: tuple[str, str, str, int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one method on one scenario and test it."""
    groups, noise, method, seed = task
    epochs, width = arguments.epochs, arguments.width
    train, test = prepare(raw, groups, noise, seed, arguments.split, half=width == 0)
    share = float((train.given != train.true).float().mean())
    training = Training(train, seed, epochs, width, arguments.batch)
    common: dict[str, Any] = {"seed": seed}
    methods: dict[str, Callable[[], dict[str, Any]]] = {
        "plain": lambda: plain(training, epochs),
        "cleaning": lambda: cleaning(training, epochs, seed, share),
        "ours": lambda: sampled(training, epochs, **common),
        "ours, ratio given": lambda: sampled(training, epochs, clean_ratio=1 - share, **common),
        "ours, cleaning alone": lambda: sampled(training, epochs, fairness=None, **common),
        "ours, observed": lambda: sampled(training, epochs, observe=True, **common),
        "equal cells": lambda: equal_cells(training, epochs),
        "group DRO": lambda: group_dro(training, epochs),
        "JTT": lambda: jtt(training, epochs, seed, width),
        "co-teaching": lambda: co_teaching(training, epochs, seed, width, share),
        "label smoothing": lambda: plain(
            training, epochs, functools.partial(F.cross_entropy, label_smoothing=0.1)
        ),
        "GCE": lambda: plain(training, epochs, generalised),
    }
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extra = methods[method]()
    if train.images.is_cuda:
        torch.cuda.synchronize()
    seconds = (time.perf_counter() - started) / epochs
    predicted = training.predict(test.images).argmax(1).cpu().numpy()
    true, column = test.true.cpu().numpy(), test.groups.cpu().numpy()
    cells = [(true == y) & (column == z) for y, z in itertools.product(range(CLASSES), range(2))]
    rates = np.array([(predicted == true)[cell].mean() if cell.any() else np.nan for cell in cells])
    natural = torch.bincount(train.true * 2 + train.groups, minlength=2 * CLASSES).cpu().numpy()
    by_class = rates.reshape(CLASSES, 2)
    return {
        "groups": groups, "noise": noise, "method": method, "seed": seed, "epochs": epochs, "wrong": share,
        "batch": arguments.batch, "split": arguments.split,
        "accuracy": float(np.nansum(rates * natural) / natural[~np.isnan(rates)].sum()),
        "balanced": float(np.nanmean(by_class)),
        "mean gap": float(np.nanmean(np.abs(by_class[:, 0] - by_class[:, 1]))),
        "disparity": float(equalized_odds_disparity(true, predicted, sensitive_features=column)),
        "worst cell": min([float((predicted == true)[c].mean()) for c in cells if c.sum() >= 10], default=float("nan")),
        "seconds an epoch": seconds,
        **extra,
    }  # fmt: skip


def tasks() -> list[tuple[str, str, str, int]]:
    """All runs, the most important first."""
    main = [(g, n, m, s) for s in range(3) for n in FIRST for g in GROUPS for m in MAIN]
    rivals = [(g, n, m, 0) for m in RIVALS for n in FIRST for g in GROUPS]
    others = [(g, n, m, s) for s in range(3) for n in NOISES if n not in FIRST for g in GROUPS for m in MAIN]
    first = len(others) // 3  # those of the first seed
    return main + others[:first] + rivals + others[first:]


def work(raw: Any, queue: Any, out: Path, lock: Any, arguments: argparse.Namespace) -> None:
    """Take runs until none is left, and write each down."""
    torch.backends.cudnn.benchmark = True
    on_device = Raw(torch.from_numpy(raw[0]).to(arguments.device), *raw[1:])
    while not queue.empty():
        try:
            task = queue.get(timeout=2)
        except Exception:
            return
        row = run(on_device, task, arguments)
        with lock, out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        kept = {k: round(v, 4) for k, v in row.items() if isinstance(v, float)}
        print(*task, kept, flush=True)


def report(path: Path, figure: Path | None) -> None:
    """Print a table of means over seeds, and draw accuracy against disparity."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    scenarios = list(dict.fromkeys((row["groups"], row["noise"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    measures = ("accuracy", "balanced", "disparity", "mean gap", "worst cell", "seconds an epoch")
    print(
        "| groups | wrong labels | method | runs | accuracy | balanced | EO disparity | mean gap | worst cell "
        "| s an epoch |"
    )
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    means: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for scenario in scenarios:
        for method in methods:
            found = [r for r in rows if (r["groups"], r["noise"]) == scenario and r["method"] == method]
            if found:
                values = [float(np.mean([row[name] for row in found])) for name in measures]
                means.setdefault(scenario, {})[method] = values[0], values[2]
                texts = [f"{value:.3f}".lstrip("0") for value in values[:-1]] + [f"{values[-1]:.2f}"]
                print(f"| {' | '.join([*scenario, method, str(len(found)), *texts])} |")
    if figure is not None:
        draw(means, figure)


def draw(means: dict[tuple[str, str], dict[str, tuple[float, float]]], path: Path) -> None:
    """Draw a panel for each scenario: up is more accurate, left is fairer."""
    import matplotlib.pyplot as plt

    columns = min(4, len(means))
    lines = -(-len(means) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.2 * columns, 3 * lines), squeeze=False)
    names = list(dict.fromkeys(name for found in means.values() for name in found))
    for axis, (scenario, found) in zip(axes.flat, means.items(), strict=False):
        for name, (accuracy, disparity) in found.items():
            number = names.index(name)
            axis.plot(disparity, accuracy, "o*sD^vP<>"[number % 9], color=f"C{number}", label=name)
        axis.set(title=", ".join(scenario), xlabel="EO disparity", ylabel="accuracy")
    for axis in list(axes.flat)[len(means) :]:
        axis.remove()
    handles = {h.get_label(): h for axis in figure.axes for h in axis.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, frameon=False)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--out", type=Path, default=Path("deep.jsonl"))
    parser.add_argument(
        "--only", nargs="+", default=[], help="parts of 'groups noise method seed' that must occur"
    )
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--split", type=int, default=1, help="groups into which each group is cut")
    parser.add_argument("--width", type=int, default=32, help="64 is ResNet-18, 0 a small network")
    parser.add_argument("--some", type=int, help="take only about so many pictures")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side on the device")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.report:
        report(arguments.report, arguments.figure)
        return
    raw = read(arguments.images, arguments.some)
    wanted = tasks()
    if arguments.only:
        wanted = [task for task in wanted if all(part in " ".join(map(str, task)) for part in arguments.only)]
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    done = {tuple(json.loads(line)[k] for k in ("groups", "noise", "method", "seed")) for line in lines}
    context = mp.get_context("spawn")
    queue, lock = context.Queue(), context.Lock()
    for task in wanted:
        if task not in done:
            queue.put(task)
    time.sleep(0.5)
    workers = [
        context.Process(target=work, args=(raw, queue, arguments.out, lock, arguments))
        for _ in range(arguments.jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
