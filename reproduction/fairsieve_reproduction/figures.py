"""The paper's figures, recomputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from fairsieve.data.synthetic import make_synthetic
from fairsieve.notions import DP, EO, NOTIONS
from fairsieve.report.page import Figure, Look, Panel, Series
from fairsieve_reproduction import experiments as sets
from fairsieve_reproduction.experiments import OURS, Experiment, Protocols, Results, column_experiment
from fairsieve_reproduction.methods.registry import METHODS
from fairsieve_reproduction.tables import FLIPS, column_title

PROTOCOLS = {"fresh": ", fresh draws", "authors'": ", the authors' draw", "splits": ""}
Curves = Sequence[Sequence[Experiment]]  # of each method


def _cells_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 1: the sizes of the cells, and their losses by epoch."""
    histories = [record["history"] for record in protocols.fresh.runs(sets.PLAIN_COMPAS)]
    first = histories[0]
    names = [f"y = {label}, {group}" for label in first["classes"] for group in first["groups"]]
    counts = np.mean([np.ravel(history["counts"]) for history in histories], axis=0)
    losses = np.array([history["cell_losses"] for history in histories])
    losses = losses.reshape(len(histories), -1, len(names))
    middle, spread = losses.mean(axis=0).round(5), losses.std(axis=0).round(5)
    sizes, traces = [], []
    for i, name in enumerate(names):
        sizes.append(Series(name, ["share of the samples"], [float(counts[i] / counts.sum())], "bars"))
        traces.append(Series(name, first["epochs"], middle[:, i].tolist(), deviation=spread[:, i].tolist()))
    return Figure(
        "figure1",
        "Figure 1. COMPAS with its own labels: sizes of the sets (label y, sex) in the training part, and their mean "
        "losses while logistic regression trains; shaded, the deviation over splits.",
        [Panel("Sizes", "", "share", sizes), Panel("Losses", "epoch", "mean loss", traces)],
    )


def _title(measure: str) -> str:
    return f"{NOTIONS[measure].short} disparity" if measure in NOTIONS else measure


def _means(
    results: Results, experiments: Sequence[Experiment], measure: str
) -> tuple[list[float], list[float]]:
    """Return the means of some experiments and their standard errors; 0 for a single run."""
    rows = [results.values(experiment, measure) for experiment in experiments]
    there = [row[~np.isnan(row)] for row in rows]
    means = [float(row.mean()) if len(row) else np.nan for row in there]
    return means, [float(row.std(ddof=1) / np.sqrt(len(row))) if len(row) > 1 else 0.0 for row in there]


def _line(results: Results, experiments: Sequence[Experiment], measure: str, x: Sequence[float]) -> Series:
    """Make a line of a method's means."""
    method = METHODS[experiments[0].method]
    means, errors = _means(results, experiments, measure)
    return Series(method.short, list(x), means, "line", deviation=errors, look=method.look)


def _drawn(lines: Sequence[Series]) -> list[Series]:
    """Leave out the lines of methods that were run at one point only."""
    return [line for line in lines if np.isfinite(np.asarray(line.y, float)).sum() > 1 or len(line.y) == 1]


def _rates_figure(
    protocols: Protocols, name: str, curves: Curves, measures: Sequence[str], caption: str
) -> Figure:
    """Draw measures by noise rate, with a line for each method."""
    panels = []
    for whose, results in protocols.each(curves[0][0].data):
        for measure in measures:
            lines = [
                _line(results, each, measure, [round(100 * one.rate, 1) for one in each]) for each in curves
            ]
            title = _title(measure)
            panels.append(Panel(f"{title}{PROTOCOLS[whose]}", "labels flipped, %", title, _drawn(lines)))
    return Figure(name, caption, panels)


def _compas_rates_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 2: LR and ITLM on COMPAS by noise rate."""
    curves = [sets.compas_rate_experiments(method) for method in ("lr", "itlm")]
    measures = ("accuracy", EO, DP)
    caption = "COMPAS: LR with and without ITLM by noise rate; shaded, the standard error over splits."
    return _rates_figure(protocols, "figure2", curves, measures, f"Figure 2. {caption}")


def _synthetic_rates_figure(protocols: Protocols, name: str, fairness: str) -> Figure:
    """Draw Figs. 3 and 6: methods on the synthetic data by noise rate."""
    curves = [sets.rate_experiments(method, fairness) for method in sets.RATE_METHODS]
    caption = (
        f"Figure {name[-1]}. Synthetic data by noise rate (label flips), methods trained for "
        f"{NOTIONS[fairness].short}; shaded, the standard error over draws, or over trainings on the authors' draw. "
        "The authors published flips for 10 % only: above it they are made by our extension of their attack."
    )
    return _rates_figure(protocols, name, curves, ("accuracy", fairness), caption)


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
    caption = "Figure 4. The synthetic data, a fresh draw, before any label is flipped."
    return Figure("figure4", caption, panels)


def _curves_figure(protocols: Protocols) -> Figure:
    """Draw Fig. 5: accuracy against disparity as each method is made fairer."""
    panels = []
    for whose, results in protocols.each("synthetic"):
        for noise in sets.CURVE_FLIPS:
            series = []
            for name, (weight, values) in sets.CURVES.items():
                points, method = sets.curve_experiments(name, noise), METHODS[name]
                x, x_errors = _means(results, points, EO)
                y, errors = _means(results, points, "accuracy")
                labels = [f"{weight.replace('_', ' ')} {value:g}" for value in values]
                series.append(Series(method.short, x, y, "curve", errors, x_errors, labels, look=method.look))
            title = f"{FLIPS[noise]}{PROTOCOLS[whose]}"
            panels.append(Panel(title, "EO disparity", "accuracy", _drawn(series)))
    caption = (
        "Figure 5. Synthetic data: accuracy against EO disparity. Along a curve the method's step size grows from 0 "
        "to .002, and FR-Train's weight of fairness from 0 to .59; bars, the standard error over draws or trainings."
    )
    return Figure("figure5", caption, panels)


def _constraints_figure(protocols: Protocols) -> Figure:
    """Draw the ablation without constraints at several clean ratios, beside the full method."""
    panels, results, ratios = [], protocols.fresh, list(sets.CLEAN_RATIOS)
    for column in sets.TABLE1:
        full = [column_experiment(OURS, column)] * 2
        for measure in ("accuracy", column.fairness):
            ablation = _line(results, sets.clean_ratio_experiments(column), measure, ratios)
            means, errors = _means(results, full, measure)
            ends, name = [ratios[0], ratios[-1]], "the method, clean ratio .9"
            level = Series(name, ends, means, deviation=errors, look=Look("orange"))
            panels.append(Panel(column_title(column), "clean ratio τ", _title(measure), [ablation, level]))
    caption = (
        "Synthetic data, 10 % flips, fresh draws: the ablation without fairness constraints by the clean ratio it is "
        "told, and the full method, which is told .9; shaded, the standard error."
    )
    return Figure("constraints", caption, panels)


FIGURES: dict[str, Callable[[Protocols], Figure]] = {
    "figure1": _cells_figure,
    "figure2": _compas_rates_figure,
    "figure3": partial(_synthetic_rates_figure, name="figure3", fairness=DP),
    "figure4": _data_figure,
    "figure5": _curves_figure,
    "figure6": partial(_synthetic_rates_figure, name="figure6", fairness=EO),
    "constraints": _constraints_figure,
}
