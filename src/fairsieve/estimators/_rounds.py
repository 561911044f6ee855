"""Run the rounds of a sieve around any classifier: fit, measure, move the ratios, update the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.true_counts import true_sums
from fairsieve.label_noise.weighting import LabelWeights, by_cell
from fairsieve.metrics import accuracy_from_table, count_table, disparity_from_table, grouped_part
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import SignalName, comparisons, fairness_name
from fairsieve.selection.ratios import initial_ratios, move_ratios
from fairsieve.thresholds import ThresholdRule

__all__ = ["Round", "RoundSettings", "choose_threshold", "find_best_round", "run_rounds"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RoundSettings:
    """What is compared between groups, and how far the ratios move."""

    fairness: str
    signal: SignalName
    step_size: float
    tolerance: float
    pos_label: Any | None
    threshold: ThresholdRule = field(default=ThresholdRule(), repr=False)


class Round(NamedTuple):
    """The weights of a model, and its results out of fold."""

    weights: Floats | None  # None in the plain round
    ratios: Floats
    kept: NDArray[np.bool_]
    probabilities: Floats
    accuracy: float
    disparity: float


def run_rounds(
    ask: Callable[[Floats | None], Floats],
    weigh_labels: Callable[[Floats, Floats], LabelWeights],
    cells: Cells,
    settings: RoundSettings,
    rounds: int,
    report: Callable[[int], None] = lambda done: None,
) -> list[Round]:
    """Run a plain round, then up to ``rounds`` weighted ones; stop when the weights no longer change.

    Each step of the ratios starts at the best round so far. The step is halved when the last round was not the best.

    Parameters
    ----------
    ask : callable
        Training weights → out-of-fold probabilities.
    weigh_labels : callable
        Probabilities and ratios → what the labels are worth.
    """
    probabilities = ask(None)
    label_weights = weigh_labels(probabilities, initial_ratios(cells))
    plain = _measure(probabilities, cells, label_weights, settings)
    done = [Round(None, initial_ratios(cells), np.ones(len(cells), bool), probabilities, *plain)]
    ratios, step = label_weights.ratios.copy(), settings.step_size
    for number in range(rounds):
        report(number + 1)
        sums: Any = by_cell(label_weights.mass, cells)
        weights = label_weights.mass * sample_weights(np.arange(len(cells)), cells.codes, ratios, sums)
        if done[-1].weights is not None and np.array_equal(weights, done[-1].weights):
            break
        probabilities = ask(weights)
        scores = _measure(probabilities, cells, label_weights, settings)
        done.append(Round(weights, ratios, label_weights.kept, probabilities, *scores))
        best = find_best_round(done[1:], settings.tolerance) + 1
        step = step if best == len(done) - 1 else step / 2
        ratios = _move(done[best], cells, label_weights, settings, step)
        label_weights = weigh_labels(probabilities, ratios)
    return done


def find_best_round(rounds: list[Round], tolerance: float) -> int:
    """Return the number of the fairest round among those whose accuracy is within ``tolerance`` of the best."""
    enough = max(each.accuracy for each in rounds) - tolerance
    candidates = [number for number, each in enumerate(rounds) if each.accuracy >= enough]
    return min(candidates, key=lambda number: (rounds[number].disparity, -rounds[number].accuracy))


def choose_threshold(probabilities: Floats, cells: Cells, settings: RoundSettings) -> float:
    """Choose the threshold of two classes, on out-of-fold probabilities and the labels as they are."""
    positive = cells.class_index(settings.pos_label)
    return settings.threshold.choose(
        probabilities[:, positive], (cells.label_codes == positive).astype(np.float64)
    )


def _decide(probabilities: Floats, cells: Cells, settings: RoundSettings) -> NDArray[np.int64]:
    """Return the predicted class of each sample, as a code."""
    if settings.threshold.is_default:
        return np.asarray(probabilities.argmax(axis=1))
    positive = cells.class_index(settings.pos_label)
    above = probabilities[:, positive] >= choose_threshold(probabilities, cells, settings)
    return np.where(above, positive, 1 - positive)


def _measure(
    probabilities: Floats, cells: Cells, label_weights: LabelWeights, settings: RoundSettings
) -> tuple[float, float]:
    """Estimate accuracy and disparity on the true labels."""
    predictions = _decide(probabilities, cells, settings)
    observed = count_table(
        cells.label_codes, cells.group_codes, predictions, *cells.shape, label_weights.judged
    )
    table = true_sums(observed, label_weights.table)
    name = fairness_name(settings.fairness)
    positive = cells.class_index(settings.pos_label) if name == "equal_opportunity" else -1
    disparity = disparity_from_table(grouped_part(table, cells.groups), name, positive=positive)
    return float(accuracy_from_table(table)), float(disparity)


def _move(
    start: Round, cells: Cells, label_weights: LabelWeights, settings: RoundSettings, step: float
) -> Floats:
    """Move the ratios by a step in proportion to the disparity, which is estimated on the true labels."""
    ratios = start.ratios.copy()
    compared = comparisons(settings.fairness, cells, settings.pos_label)
    costs = _compute_costs(start.probabilities, cells, settings) * label_weights.judged[:, None]
    observed = np.stack([by_cell(column, cells) for column in costs.T], axis=-1)
    sums = true_sums(observed, label_weights.table)
    own = np.diagonal(sums, axis1=0, axis2=2).T  # each class by its own cost
    wanted = np.array([own if target < 0 else sums[:, :, target] for target in compared.targets])
    counts: Any = true_sums(by_cell(label_weights.judged, cells), label_weights.table)
    if cells.has_ungrouped:
        counts[:, -1] = 0.0  # no samples, no comparison
    amount = min(1.0, step * start.disparity)
    rows, by_group = compared.rows, compared.by_group
    move_ratios(ratios, wanted.reshape(len(wanted), -1), counts.reshape(-1), rows, by_group, amount)
    return ratios


def _compute_costs(probabilities: Floats, cells: Cells, settings: RoundSettings) -> Floats:
    """Return the cost of each sample if each class were the true one, (n, classes): a loss, or 1 for an error."""
    if settings.signal == "loss":
        return np.asarray(-np.log(np.maximum(probabilities, 1e-12)))
    predicted = _decide(probabilities, cells, settings)
    return np.asarray(1.0 - (np.arange(probabilities.shape[1]) == predicted[:, None]))
