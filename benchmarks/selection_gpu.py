"""Selection on a GPU: its answers against the host's, and its time against sorting the same losses.

Times are medians of repeats, host work included: from before the call until the answer is on the device.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fairsieve.selection.backends.torch import select_by_tensors
from fairsieve.selection.select import bit_patterns, budget_of, select, select_codes

FORMATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """Median milliseconds between two events around the call, after two calls that are not counted."""
    call()
    call()
    times = []
    for _ in range(repeats):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        before.record()
        call()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after))
    return statistics.median(times)


def kernels_ms(call: Callable[[], object], repeats: int = 5) -> float:
    """Milliseconds that kernels run in a call, by torch's profiler: what is left without the host."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    return float(sum(event.self_device_time_total for event in profile.key_averages()) / repeats / 1e3)


def problem(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Ugly losses of any format, cells, ratios and a clean ratio."""
    classes, groups = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    kinds = {
        "ordinary": rng.exponential(size=n),
        "signed": rng.normal(size=n),
        "ties": np.round(rng.exponential(size=n), 3),
        "same": np.full(n, 1.5),
        "far apart": rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n),
    }
    losses = kinds[str(rng.choice(list(kinds)))]
    if rng.random() < 0.4:
        losses[rng.integers(0, n, 20)] = rng.choice([np.inf, -np.inf, 0.0, -0.0], 20)
    ratios = rng.dirichlet(np.full(groups, float(rng.choice([10.0, 0.3]))), classes)
    if rng.random() < 0.3:
        ratios = np.eye(groups)[rng.integers(0, groups, classes)]
    with np.errstate(over="ignore"):
        values = torch.from_numpy(losses).to(FORMATS[int(rng.choice(4, p=[0.4, 0.3, 0.15, 0.15]))])
    labels, columns = (torch.from_numpy(rng.integers(0, size, n)) for size in (classes, groups))
    return values, labels, columns, ratios, float(rng.choice([0.9, 0.5, 0.99, 1.0, 1e-6, 0.1]))


def check(problems: int, seed: int = 0) -> int:
    """Compare the device's answers, by kernels and by tensors, with the host's; how many were equal."""
    rng = np.random.default_rng(seed)
    for _ in range(problems):
        losses, labels, groups, ratios, clean_ratio = problem(rng, int(10 ** rng.uniform(4, 6.3)))
        expected = select(losses, labels, groups, torch.from_numpy(ratios), clean_ratio)
        moved = [values.cuda() for values in (losses, labels, groups)]
        found = select(*moved, ratios, clean_ratio)
        codes = (labels * ratios.shape[1] + groups).byte().cuda()
        bits, infinity = bit_patterns(moved[0])
        plain = select_by_tensors(bits, codes, ratios, expected.budget, infinity)
        assert plain is not None
        assert found.indices.is_cuda
        assert torch.equal(found.indices.cpu(), expected.indices)
        assert torch.equal(found.counts.cpu(), expected.counts)
        assert torch.equal(plain[0].cpu(), expected.indices)
    return problems


def measure(sizes: tuple[int, ...] = (10**6, 10**7, 10**8), repeats: int = 15) -> dict[str, Any]:
    """Milliseconds by number of samples, and what the card is."""
    rows = []
    for n in sizes:
        generator = torch.Generator("cuda").manual_seed(n)
        losses = torch.empty(n, device="cuda").exponential_(generator=generator)
        row: dict[str, Any] = {
            "samples": n,
            "read once": median_ms(losses.amax, repeats),
            "torch.sort": median_ms(lambda values=losses: torch.sort(values), repeats),
        }
        for classes, groups in ((2, 2), (2, 8)):
            labels, columns = (
                torch.randint(0, size, (n,), device="cuda", generator=generator) for size in (classes, groups)
            )
            ratios = np.random.default_rng(0).dirichlet(np.full(groups, 10.0), classes)
            small = labels.byte(), columns.byte()
            codes = small[0] * groups + small[1]
            budget = budget_of(0.9, n)
            cells = classes * groups
            row[f"select, {cells} cells, int64 labels"] = median_ms(
                lambda a=losses, b=labels, c=columns, r=ratios: select(a, b, c, r, 0.9), repeats
            )
            row[f"select, {cells} cells, uint8 labels"] = median_ms(
                lambda a=losses, b=small, r=ratios: select(a, *b, r, 0.9), repeats
            )
            known = functools.partial(select_codes, losses, codes, ratios, budget)
            row[f"select, {cells} known cells"] = median_ms(known, repeats)
            row[f"its kernels, {cells} known cells"] = kernels_ms(known)
            bits, infinity = bit_patterns(losses)
            row[f"tensor operations, {cells} known cells"] = median_ms(
                lambda a=bits, b=codes, r=ratios, t=budget, i=infinity: select_by_tensors(a, b, r, t, i),
                max(3, repeats // 3),
            )
        rows.append(row)
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "milliseconds": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU that torch can use")
    print(check(arguments.problems), "problems: the same answers on the host, by kernels and by tensors")
    print(json.dumps(measure(repeats=arguments.repeats), indent=1))


if __name__ == "__main__":
    main()
