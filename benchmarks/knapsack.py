"""The knapsack of Eq. 7 solved exactly beside greedily: how far apart they are, and which trains better.

    python benchmarks/knapsack.py --draws 3

For each draw of the synthetic data (a tenth of the labels flipped, in general and in a group), the method trains with
the greedy selection of Algorithm 1 and with the optimum of the same integer program. The first table is of selections:
on the way of the greedy training, both are made for the same losses and ratios.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from fairsieve.benchmark.methods import TrainingInput
from fairsieve.benchmark.problems import make_problem, measure, paper_settings
from fairsieve.selection.select import select_cells
from fairsieve.training.linear_trainer import LinearTrainer
from fairsieve.training.trainer import TrainingSpec, selection_method
from fairsieve_reproduction.methods.variants import exact_selection, train_variant

EVERY = 25  # epochs between two selections that are compared


def compare_selections(given: TrainingInput) -> list[tuple[float, int, int]]:
    """Return the greedy's share of the optimal profit, and the sizes of both, along the greedy training."""
    spec = TrainingSpec(
        data=given.data, method=selection_method("sample-selection"), settings=given.settings, seed=given.seed
    )
    trainer, found = LinearTrainer(spec), []
    plan, data, ratio = trainer.plan, given.data, given.settings.clean_ratio
    for epoch in range(given.settings.epochs):
        measured = trainer.measure()
        if not plan.in_warmup:
            plan.update(measured.losses, measured.signals)
            if epoch % EVERY == 0:
                losses = np.asarray(measured.losses, np.float64)
                profits = losses.max() - losses
                greedy = select_cells(losses, data.cells, plan.ratios, ratio).indices
                best = exact_selection(losses, data, plan.ratios, ratio)
                found.append((profits[greedy].sum() / profits[best].sum(), len(greedy), len(best)))
        trainer.train(plan.batches())
        plan.epoch += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=250)
    asked = parser.parse_args()
    for noise in ("label-without-group", "group-targeted-without-group"):
        shares, trained = [], {"greedy": [], "exact": []}
        for seed in range(asked.draws):
            problem = make_problem("synthetic", noise, 0.1, seed)
            settings = paper_settings("synthetic", noise, 0.1, "equalized_odds")
            settings = replace(settings, epochs=asked.epochs)
            given = TrainingInput(data=problem.train, settings=settings, seed=seed)
            shares += compare_selections(given)
            for selector, results in trained.items():
                fitted = train_variant(given, selector=selector)
                found = measure(fitted.predict(problem.test), problem.test)
                results.append((found["accuracy"], found["equalized_odds"], len(fitted.indices)))
                print(noise, seed, selector, [round(float(value), 4) for value in results[-1]], flush=True)
        part, greedy, best = np.mean(shares, axis=0)
        print(
            f"{noise}: the greedy reaches {part:.2%} of the optimum with {greedy:.0f} samples for {best:.0f}"
        )
        for selector, results in trained.items():
            accuracy, disparity, kept = np.mean(results, axis=0)
            print(
                f"{noise}: trained by {selector}: {accuracy:.3f} / {disparity:.3f}, {kept:.0f} samples at the end"
            )


if __name__ == "__main__":
    main()
