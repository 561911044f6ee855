"""The paper's figures, recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.synthetic import make_synthetic
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.published import paper_tables
from fairsieve.paper.reproduce.results import Protocols, Results
from fairsieve.paper.reproduce.targets import (
    CLEAN_RATIOS,
    RATE_METHODS,
    TRADE_OFF,
    TRADE_OFF_METHODS,
    WEIGHTS,
    clean_ratio_experiments,
    compas_rate_experiments,
    noise_rate_experiments,
    plain_compas,
    trade_off_experiments,
)
from fairsieve.paper.reproduce.titles import FLIPS, TITLES, column_title
from fairsieve.report.document import Figure, Panel, Series
from fairsieve.report.front import pareto_front
from fairsieve.report.looks import Look
from fairsieve.selection.fairness import ABBREVIATIONS

__all__ = ["FIGURES", "constraints_figure", "trade_off_figures"]


PROTOCOLS = {"fresh": "fresh draws", "authors'": "the authors' draw"}


def _cells_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 1: the sizes of the cells, and their losses by epoch."""
    histories = [record["history"] for record in protocols.fresh.runs(plain_compas())]
    first = min(histories, key=lambda history: len(history["epochs"]))
    epochs = len(first["epochs"])
    names = [f"y = {label}, {group}" for label in first["classes"] for group in first["groups"]]
    counts = np.mean([np.ravel(history["counts"]) for history in histories], axis=0)
    losses = np.stack([history["cell_losses"][:epochs] for history in histories]).reshape(
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


def _standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean; 0 for a single value."""
    there = values[~np.isnan(values)]
    return float(there.std(ddof=1) / np.sqrt(len(there))) if len(there) > 1 else 0.0


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
                [float(np.nanmean(found)) for found in values],
                deviation=[_standard_error(found) for found in values],
                look=METHODS[method].look,
            )
        )
    return lines


def _compas_rates_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 2: LR and ITLM on COMPAS by noise rate."""
    results = protocols.fresh
    experiments = {method: compas_rate_experiments(method) for method in ("lr", "itlm")}
    return Figure(
        "figure2",
        "Figure 2. COMPAS: logistic regression with and without ITLM by noise rate (label flips); shaded, the "
        "standard error over splits.",
        [
            Panel(title, "labels flipped, %", title, _by_rate(results, experiments, measure))
            for title, measure in (
                ("accuracy", "accuracy"),
                ("EO disparity", "equalized_odds"),
                ("DP disparity", "demographic_parity"),
            )
        ],
    )


def _rates_figure(protocols: Protocols, name: str, fairness: str) -> Figure:
    """Draw Figs. 3 and 6: methods on the synthetic data by noise rate."""
    experiments = {method: noise_rate_experiments(method, fairness) for method in RATE_METHODS}
    short = ABBREVIATIONS[fairness]
    return Figure(
        name,
        f"Figure {name[-1]}. Synthetic data by noise rate (label flips), methods trained for {short}; shaded, the "
        "standard error over draws, or over trainings on the authors' draw.",
        [
            Panel(
                f"{title}, {PROTOCOLS[whose]}",
                "labels flipped, %",
                title,
                _by_rate(results, experiments, measure),
            )
            for whose, results in protocols.each("synthetic")
            for title, measure in (("accuracy", "accuracy"), (f"{short} disparity", fairness))
        ],
    )


def _data_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 4: the samples, one panel for each class, so that no set hides another."""
    samples, panels = make_synthetic(3200, seed=0), []
    for label in (1, 0):
        series = []
        for group in (1, 0):
            mine = samples.features[(samples.labels == label) & (samples.groups == group)]
            x, y = (mine[:, axis].astype(float).round(2).tolist() for axis in (0, 1))
            series.append(Series(f"z = {group}", x, y, "points"))
        panels.append(Panel(f"y = {label}", "x₁", "x₂", series))
    return Figure(
        "figure4", "Figure 4. The synthetic data, a fresh draw, before any label is flipped.", panels
    )


def _curves_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 5: accuracy against disparity as each method is made fairer."""
    panels = []
    for whose, results in protocols.each("synthetic"):
        for noise in ("label", "group-targeted"):
            series = []
            for method, (name, values) in WEIGHTS.items():
                experiments = trade_off_experiments(method, noise)
                labels = [f"{name.replace('_', ' ')} {value:g}" for value in values]
                series.append(
                    _points(results, METHODS[method], experiments, "equalized_odds", labels, "curve")
                )
            panels.append(Panel(f"{FLIPS[noise]}, {PROTOCOLS[whose]}", "EO disparity", "accuracy", series))
    return Figure(
        "figure5",
        "Figure 5. Synthetic data: accuracy against EO disparity. Along a curve the step size of ours grows from 0 to "
        ".002, and FR-Train's weight of fairness from 0 to .6; bars, the standard error over draws or trainings.",
        panels,
    )


def _points(
    results: Results,
    method: Method,
    experiments: Sequence[Experiment],
    fairness: str,
    labels: Sequence[str],
    kind: Literal["points", "curve"] = "points",
) -> Series:
    """Make points of accuracy against disparity from experiments."""
    apart = [results.values(experiment, fairness) for experiment in experiments]
    right = [results.values(experiment, "accuracy") for experiment in experiments]
    return Series(
        method.short,
        [float(np.nanmean(values)) for values in apart],
        [float(np.nanmean(values)) for values in right],
        kind,
        deviation=[_standard_error(values) for values in right],
        x_deviation=[_standard_error(values) for values in apart],
        labels=labels,
        look=method.look,
    )


def trade_off_figures(protocols: Protocols) -> list[Figure]:
    """Draw a figure for each data set: the methods of Table 1, and the front that no method improves on."""
    figures, results = [], protocols.fresh
    for data in ("synthetic", "compas", "adult"):
        panels = []
        for column in TRADE_OFF:
            if column.data != data:
                continue
            experiments = [
                Experiment(method, data, column.noise, column.fairness) for method in TRADE_OFF_METHODS
            ]
            series = [
                _points(
                    results, METHODS[experiment.method], [experiment], column.fairness, [experiment.method]
                )
                for experiment in experiments
                if results.runs(experiment)
            ]
            front = pareto_front([(one.x[0], one.y[0]) for one in series])  # type: ignore[misc]
            line = Series("Pareto front", [x for x, _ in front], [y for _, y in front], dashed=True)
            if series:
                panels.append(
                    Panel(column_title(column), f"{column.short} disparity", "accuracy", [*series, line])
                )
        if panels:
            figures.append(
                Figure(
                    f"trade-off-{data}",
                    f"{TITLES[data]}: accuracy against disparity; better is up and to the left. Bars, the standard "
                    "error; dashed, the front: no other method is both fairer and more accurate.",
                    panels,
                )
            )
    return figures


def constraints_figure(protocols: Protocols) -> Figure:
    """Draw the ablation without constraints at several clean ratios, beside the full method."""
    panels, results = [], protocols.fresh
    for column in paper_tables()[1].columns:
        ablation = clean_ratio_experiments(column)
        full = Experiment("fairsieve", column.data, column.noise, column.fairness)
        for title, measure in (("accuracy", "accuracy"), (f"{column.short} disparity", column.fairness)):
            values = [results.values(experiment, measure) for experiment in ablation]
            whole = results.values(full, measure)
            series = [
                Series(
                    METHODS["fairsieve-no-constraints"].short,
                    list(CLEAN_RATIOS),
                    [float(np.nanmean(found)) for found in values],
                    deviation=[_standard_error(found) for found in values],
                    look=Look("orange", "triangle"),
                ),
                Series(
                    "fairsieve, clean ratio .9",
                    [CLEAN_RATIOS[0], CLEAN_RATIOS[-1]],
                    [float(np.nanmean(whole))] * 2,
                    deviation=[_standard_error(whole)] * 2,
                    look=Look("blue"),
                ),
            ]
            panels.append(Panel(column_title(column), "clean ratio τ", title, series))
    return Figure(
        "constraints",
        "Synthetic data, 10 % flips, fresh draws: the ablation without fairness constraints by the clean ratio it is "
        "told, and the full method, which is told .9; shaded, the standard error.",
        panels,
    )


FIGURES: dict[str, Callable[[Protocols], Figure]] = {
    "figure1": _cells_figure,
    "figure2": _compas_rates_figure,
    "figure3": lambda protocols: _rates_figure(protocols, "figure3", "demographic_parity"),
    "figure4": _data_figure,
    "figure5": _curves_figure,
    "figure6": lambda protocols: _rates_figure(protocols, "figure6", "equalized_odds"),
}
