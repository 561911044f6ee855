"""The paper's figures, recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fairsieve.data.synthetic import load_authors_arrays, make_synthetic
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import (
    RATE_METHODS,
    TRADE_OFF,
    WEIGHTS,
    compas_rate_experiments,
    noise_rate_experiments,
    plain_compas,
    trade_off_experiments,
    trade_off_methods,
)
from fairsieve.paper.reproduce.titles import FLIPS, TITLES, column_title
from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.front import pareto_front
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["FIGURES", "trade_off_figures"]


def _cells_figure(results: Results) -> Figure:
    """Draw Fig. 1: the sizes of the cells, and their losses by epoch."""
    histories = [record["history"] for record in results.runs(plain_compas())]
    if not histories:
        return Figure("figure1", "Figure 1: not run yet", [])
    first = histories[0]
    names = [f"y = {label}, {group}" for label in first["classes"] for group in first["groups"]]
    counts = np.mean([np.ravel(history["counts"]) for history in histories], axis=0)
    losses = np.stack([history["cell_losses"] for history in histories]).reshape(
        len(histories), -1, len(names)
    )
    sizes = [
        Series(name, ["share of the samples"], [float(size)], "bars")
        for name, size in zip(names, counts / counts.sum(), strict=True)
    ]
    traces = [
        Series(
            name,
            first["epochs"],
            losses[:, :, i].mean(axis=0).round(5).tolist(),
            deviation=losses[:, :, i].std(axis=0).round(5).tolist(),
        )
        for i, name in enumerate(names)
    ]
    return Figure(
        "figure1",
        "Figure 1. COMPAS with its own labels: sizes of the sets (label y, sex) in the training part, and their mean "
        "losses while logistic regression trains; shaded, the deviation over splits.",
        [Panel("Sizes", "", "share", sizes), Panel("Losses", "epoch", "mean loss", traces)],
    )


def _by_rate(
    results: Results, experiments_by_method: dict[str, list[Experiment]], measure: str
) -> list[Series]:
    """Make a line for each method: a measure by noise rate."""
    lines = []
    for method, experiments in experiments_by_method.items():
        values = [results.values(experiment, measure) for experiment in experiments]
        lines.append(
            Series(
                METHODS[method].short,
                [round(100 * experiment.rate, 1) for experiment in experiments],
                [float(found.mean()) for found in values],
                deviation=[float(found.std()) for found in values],
                look=METHODS[method].look,
            )
        )
    return lines


def _compas_rates_figure(results: Results) -> Figure:
    """Draw Fig. 2: LR and ITLM on COMPAS by noise rate."""
    experiments = {method: compas_rate_experiments(method) for method in ("lr", "itlm")}
    return Figure(
        "figure2",
        "Figure 2. COMPAS: logistic regression with and without ITLM by noise rate (label flips); shaded, the "
        "deviation over splits.",
        [
            Panel(title, "labels flipped, %", title, _by_rate(results, experiments, measure))
            for title, measure in (
                ("accuracy", "accuracy"),
                ("EO disparity", "equalized_odds"),
                ("DP disparity", "demographic_parity"),
            )
        ],
    )


def _rates_figure(results: Results, name: str, fairness: str) -> Figure:
    """Draw Figs. 3 and 6: methods on the synthetic data by noise rate."""
    experiments = {method: noise_rate_experiments(method, fairness) for method in RATE_METHODS}
    short = ABBREVIATIONS[fairness]
    return Figure(
        name,
        f"Figure {name[-1]}. Synthetic data by noise rate (label flips), methods trained for {short}; shaded, the "
        "deviation over draws.",
        [
            Panel("accuracy", "labels flipped, %", "accuracy", _by_rate(results, experiments, "accuracy")),
            Panel(
                f"{short} disparity",
                "labels flipped, %",
                f"{short} disparity",
                _by_rate(results, experiments, fairness),
            ),
        ],
    )


def _data_figure(results: Results) -> Figure:
    """Draw Fig. 4: the samples, one panel for each class, so that no set hides another."""
    if results.scope.arrays is None:
        samples = make_synthetic(3200, seed=0)
    else:
        samples = load_authors_arrays(results.scope.arrays)[0].train
    panels = []
    for label in (1, 0):
        series = []
        for group in (1, 0):
            mine = samples.features[(samples.labels == label) & (samples.groups == group)]
            x, y = (mine[:, axis].astype(float).round(2).tolist() for axis in (0, 1))
            series.append(Series(f"z = {group}", x, y, "points"))
        panels.append(Panel(f"y = {label}", "x₁", "x₂", series))
    return Figure("figure4", "Figure 4. The synthetic data, before any label is flipped.", panels)


def _curves_figure(results: Results) -> Figure:
    """Draw Fig. 5: accuracy against disparity as each method is made fairer."""
    panels = []
    for noise in ("label", "group-targeted"):
        series = []
        for method, (name, values) in WEIGHTS.items():
            experiments = trade_off_experiments(method, noise)
            labels = [f"{name.replace('_', ' ')} {value:g}" for value in values]
            series.append(_points(results, METHODS[method], experiments, "equalized_odds", labels))
        panels.append(Panel(FLIPS[noise], "EO disparity", "accuracy", series))
    return Figure(
        "figure5",
        "Figure 5. Synthetic data: accuracy against EO disparity. Along a curve the step size of ours grows from 0 to "
        ".002, and FR-Train's weight of fairness from 0 to .6; bars, the deviation over draws.",
        panels,
    )


def _points(
    results: Results, method: Method, experiments: Sequence[Experiment], fairness: str, labels: Sequence[str]
) -> Series:
    """Make points of accuracy against disparity from experiments."""
    apart = [results.values(experiment, fairness) for experiment in experiments]
    right = [results.values(experiment, "accuracy") for experiment in experiments]
    return Series(
        method.short,
        [float(values.mean()) for values in apart],
        [float(values.mean()) for values in right],
        "points",
        deviation=[float(values.std()) for values in right],
        x_deviation=[float(values.std()) for values in apart],
        labels=labels,
        look=method.look,
    )


def trade_off_figures(results: Results) -> list[Figure]:
    """Draw a figure for each data set: every method, and the front that no method improves on."""
    figures = []
    for data in ("synthetic", "compas", "adult"):
        panels = []
        for column in TRADE_OFF:
            if column.data != data:
                continue
            experiments = [
                Experiment(method, data, column.noise, column.fairness) for method in trade_off_methods(data)
            ]
            there = [experiment for experiment in experiments if results.has(experiment)]
            series = [
                _points(
                    results, METHODS[experiment.method], [experiment], column.fairness, [experiment.method]
                )
                for experiment in there
            ]
            front = pareto_front([(one.x[0], one.y[0]) for one in series])  # type: ignore[misc]
            line = Series("Pareto front", [x for x, _ in front], [y for _, y in front], dashed=True)
            panels.append(
                Panel(column_title(column), f"{column.short} disparity", "accuracy", [*series, line])
            )
        figures.append(
            Figure(
                f"trade-off-{data}",
                f"{TITLES[data]}: accuracy against disparity of every method; better is up and to the left. Bars, "
                "the deviation over runs; dashed, the front: no other method is both fairer and more accurate.",
                panels,
            )
        )
    return figures


FIGURES: dict[str, Callable[[Results], Figure]] = {
    "figure1": _cells_figure,
    "figure2": _compas_rates_figure,
    "figure3": lambda results: _rates_figure(results, "figure3", "demographic_parity"),
    "figure4": _data_figure,
    "figure5": _curves_figure,
    "figure6": lambda results: _rates_figure(results, "figure6", "equalized_odds"),
}
