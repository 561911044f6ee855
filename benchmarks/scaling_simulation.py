"""The cost of an epoch's plan over many workers, checked by running the real selection on sampled histograms.

    python benchmarks/scaling_simulation.py

The walk asks only for counts, so it can be run for 10¹² samples that nobody holds: a sample of losses
gives each cell's distribution, and the counts it asks for are that distribution's, times n; equal losses
are spread evenly over the indices. What is real: the walk, its questions, its answer. The first table
sets the simulation beside runs over real losses, where those fit; the second is the model's.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import NamedTuple

import numpy as np

from fairsieve import Cells
from fairsieve.sampling.workers import Workers
from fairsieve.selection.backends.compiled import CompiledBackend
from fairsieve.selection.backends.sharded import DIGIT_WIDTH, ShardedBackend, ShardSelection, own_places
from fairsieve.selection.batches import Draw
from fairsieve.selection.search import KEY, ON_INDEX, PREFIX, SHIFT, WIDTH, advance, fits, new_walk

SHARES = np.array([0.4, 0.2, 0.25, 0.15])  # of the cells, 2 × 2
RATIOS = np.array([[0.6, 0.4], [0.55, 0.45]])
CLEAN_RATIO = 0.9
DRAWS = 5
SLOTS = 72  # numbers in an exact sum

# Assumptions of the second table; the rest is measured here.
LINK = 1.25e9  # bytes a second between two workers (10 Gb/s)
HOP = 2e-5  # seconds until a small message arrives
TRAIN = 1e-6  # seconds that a worker trains on a sample (a small network on a GPU)


class Outcome(NamedTuple):
    """What a search came to."""

    questions: int
    on_index: int  # of them about equal losses
    taken: np.ndarray


def sampled_losses(rng: np.random.Generator, size: int) -> list[np.ndarray]:
    """Losses of each cell, sorted: right labels low, a tenth of wrong ones high."""
    cells = []
    for cell in range(SHARES.size):
        count = max(2, int(size * SHARES[cell]))
        wrong = rng.random(count) < 0.1
        cells.append(
            np.sort(np.where(wrong, rng.gamma(6, 0.5, count), rng.gamma(1 + 0.3 * cell, 0.3, count)))
        )
    return [losses.astype(np.float32) for losses in cells]


def simulated(cells: list[np.ndarray], samples: int, width: int = DIGIT_WIDTH) -> Outcome:
    """The real walk over ``samples`` drawn from the distributions of ``cells``, by counts alone."""
    sizes = np.floor(SHARES * samples).astype(np.int64)
    sizes[0] += samples - sizes.sum()
    low = int(min(losses[0] for losses in cells).view(np.int32))
    span = int(max(losses[-1] for losses in cells).view(np.int32)) - low

    def below(orders: np.ndarray) -> np.ndarray:
        """Samples of each cell whose key is below each of ``orders``; monotone, so that digits nest."""
        bits = np.clip(orders.astype(np.float64) + low, 0, 0x7F7FFFFF).astype(np.int32)
        values = bits.view(np.float32).astype(np.float64)
        rows = []
        for losses, size in zip(cells, sizes, strict=True):
            shares = np.interp(values, losses.astype(np.float64), np.linspace(0, 1, len(losses)))
            rows.append(np.where(orders > span, size, np.floor(shares * size)))
        return np.array(rows).astype(np.int64)

    walk = new_walk(RATIOS, math.floor(CLEAN_RATIO * samples), np.uint64(span), samples, width)
    questions = on_index = 0
    while True:
        window = [int(value) for value in walk.window]
        digits = np.arange((1 << window[WIDTH]) + 1) + (window[PREFIX] << window[WIDTH])
        edges = digits << window[SHIFT]
        if window[ON_INDEX]:
            on_index += 1
            pair = below(np.array([window[KEY], window[KEY] + 1]))
            ties = (pair[:, 1] - pair[:, 0])[:, None]
            own = np.arange(SHARES.size)[:, None]  # a cell's equals have every fourth index, evenly
            slots = (np.minimum(edges, samples)[None] - own + SHARES.size - 1) // SHARES.size
            reached = ties * slots // ((samples - own + SHARES.size - 1) // SHARES.size)
        else:
            reached = below(edges)
        questions += 1
        if advance(walk, np.ascontiguousarray(np.diff(reached, axis=1))):
            return Outcome(questions, on_index, walk.taken)


def drawn(cells: list[np.ndarray], samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Real losses and cells from the same distributions."""
    codes = rng.choice(SHARES.size, samples, p=SHARES).astype(np.uint8)
    losses = np.empty(samples, np.float32)
    for cell, sorted_losses in enumerate(cells):
        inside = codes == cell
        quantiles = rng.random(inside.sum()) * (len(sorted_losses) - 1)
        losses[inside] = np.interp(quantiles, np.arange(len(sorted_losses)), sorted_losses)
    return losses, codes


def extent(values: list[int]) -> str:
    """The smallest and the largest."""
    return f"{min(values)} to {max(values)}"


class Counted(Workers):
    """One worker that counts what it would have sent."""

    def sum(self, table: np.ndarray) -> np.ndarray:
        self._count(table.nbytes)
        return table


def real(losses: np.ndarray, codes: np.ndarray) -> tuple[int, np.ndarray]:
    """Questions, and counts, of the selection over real losses."""
    workers = Counted()
    backend = ShardedBackend(Cells(codes, [0, 1], [0, 1]), workers, "compiled")
    measured = backend.measure(losses, None)
    _, counts = backend.select(measured, RATIOS, math.floor(CLEAN_RATIO * len(losses)))
    return workers.traffic.messages, counts


def costs() -> dict[str, float]:
    """Seconds of a processor for each sample, for the parts of an epoch."""
    rng = np.random.default_rng(0)
    n = 2 * 10**6
    losses, codes = drawn(sampled_losses(rng, 10**5), n, rng)
    backend = CompiledBackend(Cells(codes, [0, 1], [0, 1]))
    keys = backend.keys(backend.measure(losses, None), by_cell=True)
    walk = new_walk(RATIOS, n, np.uint64(keys.greatest - keys.least), n, DIGIT_WIDTH)
    counts = np.bincount(codes, minlength=4)
    everyone = ShardSelection(np.arange(n), counts, np.zeros(4, np.int64))
    draw = Draw(np.array([400, 200, 250, 150]), n // 1000, 0, 0, True)
    calls = {
        "a count": lambda: keys.count(walk, keys.least),
        "batches": lambda: own_places(everyone, codes, counts, draw),
    }
    found = {}
    for name, call in calls.items():
        call()
        times = []
        for _ in range(5):
            started = time.process_time()
            call()
            times.append(time.process_time() - started)
        found[name] = sorted(times)[2] / n
    return found


def model(samples: int, ranks: int, questions: int, measured: dict[str, float]) -> dict[str, float]:
    """The cost of an epoch on each worker."""
    cells, own = SHARES.size, samples / ranks
    table = cells * 2**DIGIT_WIDTH * 8
    sent = questions * table + cells * SLOTS * 8 + cells * 8 + 100
    rounds = math.ceil(math.log2(ranks)) * 2  # a tree up and down
    messages = questions + 5
    network = messages * rounds * HOP + 2 * sent / LINK + ranks * cells * 8 / LINK
    return {
        "bytes sent": sent,
        "messages": messages,
        "network, s": network,
        "network in a ring, s": messages * 2 * (ranks - 1) * HOP + 2 * sent / LINK,
        "selection, s": own * (questions + 3) * measured["a count"],
        "batches, s": own * CLEAN_RATIO * measured["batches"],
        "training, s": own * CLEAN_RATIO * TRAIN,
        "memory, GB": own * 70 / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=int, default=10**7, help="samples of the largest real run")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    draws = [sampled_losses(rng, 10**5) for _ in range(DRAWS)]
    print(f"Over {DRAWS} draws of the distributions:\n")
    print("| samples | questions, real | simulated | share selected, real | simulated |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    n = 10**4
    while n <= arguments.largest:
        found = [real(*drawn(cells, n, rng)) for cells in draws]
        thought = [simulated(cells, n) for cells in draws]
        shares = [
            np.mean([taken.sum() for taken in each]) / n
            for each in ([taken for _, taken in found], [outcome.taken for outcome in thought])
        ]
        print(
            f"| {n:,} | {extent([asked for asked, _ in found])} | {extent([t.questions for t in thought])} | "
            f"{shares[0]:.4f} | {shares[1]:.4f} |",
            flush=True,
        )
        n *= 10
    measured = costs()
    print(
        "\n" + ", ".join(f"{name}: {1e9 * value:.2f} ns a sample" for name, value in measured.items()) + "\n"
    )
    heads = ("samples", "workers", "questions (ties)", "KB sent", "network, s (ring)", "selection, s")
    print("| " + " | ".join([*heads, "batches, s", "training, s", "memory, GB"]) + " |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for samples in (10**9, 10**10, 10**11, 10**12):
        outcomes = [simulated(cells, samples) for cells in draws]
        assert all(fits(each.taken, RATIOS, math.floor(CLEAN_RATIO * samples)) for each in outcomes)
        outcome = max(outcomes, key=lambda each: each.questions)
        for ranks in (8, 64, 512, 4096):
            cost = model(samples, ranks, outcome.questions, measured)
            print(
                f"| 10^{round(math.log10(samples))} | {ranks:,} | {outcome.questions} ({outcome.on_index}) | "
                f"{cost['bytes sent'] / 1e3:.0f} | {cost['network, s']:.3f} ({cost['network in a ring, s']:.2f}) | "
                f"{cost['selection, s']:.2f} | {cost['batches, s']:.2f} | {cost['training, s']:.0f} | "
                f"{cost['memory, GB']:.1f} |"
            )


if __name__ == "__main__":
    main()
