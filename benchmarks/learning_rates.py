"""What cross-validation on noisy labels can tell of a learning rate on Adult, beside right labels.

    python benchmarks/learning_rates.py --methods sample-selection

For each column of Table 7 and each rate, accuracy and disparity

- on the noisy held-out halves that ``reproduce`` chooses by;
- on the same, with batches of half the size: training on half of the rows then makes as many updates as on all;
- on right labels of rows set aside, after training on all.

The split is the one that ``reproduce`` tunes on, and no result is reported on it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from fairsieve.benchmark.problems import measure
from fairsieve.benchmark.run import fold_scores
from fairsieve_reproduction.experiments import TUNING, Scope, column_experiment
from fairsieve_reproduction.methods.registry import METHODS, RATES
from fairsieve_reproduction.published import paper_tables
from fairsieve_reproduction.tables import column_title


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="sample-selection")
    asked = parser.parse_args()
    (seed, *_), folds = TUNING["adult"]
    columns = (*paper_tables()["table7"].columns, *paper_tables()["table7-women"].columns)
    print("| method | column | rate | noisy halves | as many updates | right labels |\n" + "| --- " * 6 + "|")
    for name in asked.methods.split(","):
        method = METHODS[name]
        for column in columns:
            comparison = Scope().comparison(column_experiment(name, column))
            given, test = comparison.training_input(method, seed), comparison.problem(seed).test
            size = given.settings.batch_size
            short = replace(given, settings=replace(given.settings, batch_size=size // folds))
            for rate in RATES["learning_rate"]:
                values = method.options()[0] | {"learning_rate": rate}
                told = [
                    fold_scores(method, each, folds, [values]).mean(axis=(1, 2)) for each in (given, short)
                ]
                right = measure(method.fit(given, values).predict(test), test)
                told.append((right["accuracy"], right[column.fairness]))
                cells = (f"{accuracy:.3f} / {apart:.3f}" for accuracy, apart in told)
                print(
                    f"| {method.short} | {column_title(column)} | {rate} | {' | '.join(cells)} |", flush=True
                )


if __name__ == "__main__":
    main()
