"""Tables 1 and 2 of the paper, recomputed: every method × two attacks × two notions × seeds.

Stands on the records of ``fairsieve compare``: a stopped run continues. Prints Markdown, ours beside
the paper's.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fairsieve.baselines.registry import find_methods
from fairsieve.experiments.compare import Comparison, Row, compare, summarise
from fairsieve.experiments.paper import COLUMNS, PAPER_TABLES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["synthetic", "compas"])
    parser.add_argument("--methods", default="paper")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--arrays", help="folder of the authors' arrays, in place of draws")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    methods = find_methods(arguments.methods)
    started = time.perf_counter()
    columns: list[dict[str, Row]] = []
    for noise, fairness in COLUMNS:
        asked = Comparison(data=arguments.data, noise=noise, fairness=fairness, arrays=arguments.arrays)
        path, records = arguments.out / "records.jsonl", []
        for record in compare(asked, methods, range(arguments.seeds), path, jobs=arguments.jobs):
            records.append(record)
            print(f"\r{noise}, {fairness}: {len(records)}", end="", file=sys.stderr)
        columns.append({row.method.name: row for row in summarise(records, methods, fairness)})
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)
    print(
        "| method | label flips: acc. / EO | label flips: acc. / DP | targeted: acc. / EO | targeted: acc. / DP |"
    )
    print("| --- | --- | --- | --- | --- |")
    for method in methods:
        cells = []
        for i, column in enumerate(columns):
            row, paper = column[method.name], PAPER_TABLES[arguments.data].get(method.name)
            text = f"{row.accuracy[0]:.3f} / {row.disparity[0]:.3f} ± {row.disparity[1]:.3f}".replace(
                "0.", "."
            )
            if paper is not None:
                text += f" ({paper[i][0]:.3f} / {paper[i][2]:.3f})".replace("0.", ".")
            cells.append(text)
        print(f"| {method.title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
