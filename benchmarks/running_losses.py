"""Whether running losses keep accuracy and disparity: beside a full pass of losses every epoch.

    python benchmarks/running_losses.py --data synthetic --seeds 5
    python benchmarks/running_losses.py --data adult --seeds 3

The paper's model and settings, 10 % of the labels flipped, clean test labels; weights averaged over the
last 20 epochs. The share is that of the samples left out which is looked at again every epoch. The last column
is the difference to the full pass, seed by seed, with its standard error.
"""

from __future__ import annotations

import argparse

import joblib
import numpy as np
import torch

from fairsieve import FairRobustBatchSampler
from fairsieve.benchmark.problems import NoisyProblem, make_problem, paper_settings
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.sampling.losses import cross_entropy, predicted_classes
from fairsieve.training.models import LogisticRegression

AVERAGED = 20


def train(
    problem: NoisyProblem, data: str, noise: str, fairness: str, seed: int, share: float | None
) -> tuple:
    """Accuracy and disparity on the test data; ``share`` None is the full pass."""
    settings = paper_settings(data, noise, 0.1, fairness)
    samples = problem.train
    sampler = FairRobustBatchSampler.paper(
        samples.labels,
        samples.groups,
        settings.batch_size,
        fairness=fairness,
        clean_ratio=settings.clean_ratio,
        warmup_epochs=settings.warmup_epochs,
        seed=seed,
    )
    x = torch.from_numpy(np.ascontiguousarray(samples.features)).float()
    y = torch.from_numpy(sampler.plan.cells.label_codes)
    model = LogisticRegression(x.shape[1], generator=torch.Generator().manual_seed(seed))
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    mean = [torch.zeros_like(value) for value in model.parameters()]
    for epoch in range(settings.epochs):
        if sampler.needs_update:
            if share is None:
                with torch.no_grad():
                    sampler.update(model(x))
            else:
                sampler.refresh(model, x, share)
                sampler.update()
        for batch in sampler.batches():
            outputs = model(x[batch])
            if share is not None:
                sampler.observe(batch, outputs)
            optimizer.zero_grad()
            cross_entropy(outputs, y[batch]).mean().backward()
            optimizer.step()
        if epoch >= settings.epochs - AVERAGED:
            for total, value in zip(mean, model.parameters(), strict=True):
                total += value.detach() / AVERAGED
    with torch.no_grad():
        for value, total in zip(model.parameters(), mean, strict=True):
            value.copy_(total)
        outputs = model(torch.from_numpy(np.ascontiguousarray(problem.test.features)).float())
    classes = np.asarray(sampler.plan.cells.classes)
    guessed = classes[predicted_classes(outputs).numpy()]
    table, _, _ = confusion_table(problem.test.labels, guessed, problem.test.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, fairness))


def arms(data: str, noise: str, fairness: str, seed: int, shares: list[float]) -> list[tuple]:
    torch.set_num_threads(1)
    problem = make_problem(data, noise, 0.1, seed)
    return [train(problem, data, noise, fairness, seed, share) for share in (None, *shares)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="synthetic", choices=("synthetic", "compas", "adult"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.2])
    parser.add_argument("--noises", nargs="+", default=["label", "group-targeted"])
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    print("| data | attack | fairness | losses | accuracy | disparity | differences to the full pass |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for noise in arguments.noises:
        for fairness in ("equalized_odds", "demographic_parity"):
            runs = joblib.Parallel(n_jobs=arguments.jobs, backend="multiprocessing")(
                joblib.delayed(arms)(arguments.data, noise, fairness, seed, arguments.shares)
                for seed in range(arguments.seeds)
            )
            table = np.array(runs)  # seeds × arms × (accuracy, disparity)
            for arm, name in enumerate(["full pass", *(f"running, {s:.0%}" for s in arguments.shares)]):
                gaps = table[:, arm] - table[:, 0]
                errors = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else [np.nan] * 2
                told = ", ".join(
                    f"{g:+.3f} ± {e:.3f}" for g, e in zip(gaps.mean(axis=0), errors, strict=True)
                )
                (a, d), (sa, sd) = table[:, arm].mean(axis=0), table[:, arm].std(axis=0)
                print(
                    f"| {arguments.data} | {noise} | {fairness} | {name} | {a:.3f} ± {sa:.3f} | "
                    f"{d:.3f} ± {sd:.3f} | {told if arm else ''} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
