"""Whether the interval of a disparity, and of its change, holds the truth: two to ten groups, 300 to 4,000 rows.

    python benchmarks/largest_difference.py --draws 100

Predictions are drawn from known rates, so that the true disparity is known: 0 to .3 in one group, and none under the
other model. Beside the coverage stands that of the percentiles of the largest difference in draws, which cannot hold 0.
"""

from __future__ import annotations

import argparse

import numpy as np

from fairsieve.label_noise.judgement import judge
from fairsieve.metrics import disparity_from_table
from fairsieve.selection.cells import Cells

NOTION = "equalized_odds"


def run(groups: int, rows: int, gap: float, draws: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    held, percentiles, width = np.zeros(2), np.zeros(2), np.zeros(2)
    for draw in range(draws):
        share, base = rng.dirichlet(np.full(groups, 5.0)), rng.uniform(0.25, 0.6, groups)
        rates = np.array([[np.full(groups, one) for one in (0.15, 0.6)]] * 2)  # (models, labels, groups)
        rates[0, 1, rng.integers(groups)] += gap
        cells = share * np.stack([1 - base, base])
        tables = cells[:, :, None] * np.stack([1 - rates, rates], axis=-1)
        true = disparity_from_table(tables, NOTION)
        group = rng.choice(groups, rows, p=share)
        label = (rng.random(rows) < base[group]).astype(int)
        luck = rng.random(rows)  # mostly the same for both models
        lucks = luck, np.where(rng.random(rows) < 0.8, luck, rng.random(rows))
        codes = [(one < table[label, group]).astype(int) for one, table in zip(lucks, rates, strict=True)]
        given = Cells.of(label, group, classes=[0, 1], group_values=list(range(groups)))
        judged = judge(given, codes, NOTION, positive=1, seed=draw)
        truths = true[0], true[1] - true[0]
        scores = judged.models[0].disparity, judged.change()["disparity"]
        [world] = judged.worlds()
        largest = [np.abs(judged._gaps(*one)[1]).max(axis=1) for one in world]
        naive = [np.quantile(one, [0.025, 0.975]) for one in (largest[0], largest[1] - largest[0])]
        held += [
            one.interval[0] <= value <= one.interval[1] for one, value in zip(scores, truths, strict=True)
        ]
        percentiles += [low <= value <= high for (low, high), value in zip(naive, truths, strict=True)]
        width += [one.interval[1] - one.interval[0] for one in scores]
    parts = [
        f"{one / draws:.2f} ({other / draws:.2f}), {wide / draws:.3f}"
        for one, other, wide in zip(held, percentiles, width, strict=True)
    ]
    return f"| {groups} | {rows} | {gap} | {parts[0]} | {parts[1]} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(
        "| groups | rows | gap | disparity: held (percentiles), width | change: held (percentiles), width |"
    )
    print("| ---: | ---: | ---: | --- | --- |")
    for groups in (2, 5, 10):
        for rows in (300, 1000, 4000):
            for gap in (0.0, 0.01, 0.1, 0.3):
                print(run(groups, rows, gap, asked.draws, asked.seed), flush=True)
