"""The rounds of a sieve around any classifier: fit → judge → ratios → what is believed → weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.label_noise.true_counts import true_sums
from fairsieve.label_noise.weighting import Belief, by_cell
from fairsieve.metrics import accuracy_of, count_table, disparity_of, grouped_part
from fairsieve.selection.batches import sample_weights
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import SignalName, comparisons, fairness_name
from fairsieve.selection.ratios import initial_ratios, move_ratios

__all__ = ["Round", "Rule", "best_of", "run_rounds"]

Floats = NDArray[np.float64]


class Rule(NamedTuple):
    """What is compared between groups, and how far the ratios move."""

    fairness: str
    signal: SignalName
    step_size: float
    tolerance: float
    pos_label: Any | None


class Round(NamedTuple):
    """A model's weights, and how it did out of fold."""

    weights: Floats | None  # None trains plainly
    ratios: Floats
    kept: NDArray[np.bool_]
    probabilities: Floats
    accuracy: float
    disparity: float


def run_rounds(
    ask: Callable[[Floats | None], Floats],
    believe: Callable[[Floats, Floats], Belief],
    cells: Cells,
    rule: Rule,
    rounds: int,
    report: Callable[[int], None] = lambda done: None,
) -> list[Round]:
    """A plain round, then ``rounds`` sieved ones; fewer, where the weights no longer change.

    Each step of the ratios starts at the best round so far, and is half as far where the last was no better.

    Parameters
    ----------
    ask : callable
        Training weights → out-of-fold probabilities.
    believe : callable
        Probabilities and ratios → what is believed of the labels.
    """
    probabilities = ask(None)
    belief = believe(probabilities, initial_ratios(cells))
    plain = _judge(probabilities, cells, belief, rule)
    done = [Round(None, initial_ratios(cells), np.ones(len(cells), bool), probabilities, *plain)]
    ratios, step = belief.ratios.copy(), rule.step_size
    for number in range(rounds):
        report(number + 1)
        sums: Any = by_cell(belief.mass, cells)
        weights = belief.mass * sample_weights(np.arange(len(cells)), cells.codes, ratios, sums)
        if done[-1].weights is not None and np.array_equal(weights, done[-1].weights):
            break
        probabilities = ask(weights)
        scores = _judge(probabilities, cells, belief, rule)
        done.append(Round(weights, ratios, belief.kept, probabilities, *scores))
        best = best_of(done[1:], rule.tolerance) + 1
        step = step if best == len(done) - 1 else step / 2
        ratios = _moved(done[best], cells, belief, rule, step)
        belief = believe(probabilities, ratios)
    return done


def best_of(rounds: list[Round], tolerance: float) -> int:
    """The fairest round among those whose accuracy is within ``tolerance`` of the best."""
    enough = max(each.accuracy for each in rounds) - tolerance
    candidates = [number for number, each in enumerate(rounds) if each.accuracy >= enough]
    return min(candidates, key=lambda number: (rounds[number].disparity, -rounds[number].accuracy))


def _judge(probabilities: Floats, cells: Cells, belief: Belief, rule: Rule) -> tuple[float, float]:
    """Accuracy and disparity on the true labels, as far as belief goes."""
    predictions = probabilities.argmax(axis=1)
    observed = count_table(cells.label_codes, cells.group_codes, predictions, *cells.shape, belief.judged)
    table = true_sums(observed, belief.table)
    name = fairness_name(rule.fairness)
    positive = cells.class_index(rule.pos_label) if name == "equal_opportunity" else -1
    disparity = disparity_of(grouped_part(table, cells.groups), name, positive=positive)
    return float(accuracy_of(table)), float(disparity)


def _moved(start: Round, cells: Cells, belief: Belief, rule: Rule, step: float) -> Floats:
    """The ratios after a step, the further the wider the disparity, judged on the true labels."""
    ratios = start.ratios.copy()
    compared = comparisons(rule.fairness, cells, rule.pos_label)
    costs = _costs_of(start.probabilities, rule.signal) * belief.judged[:, None]
    observed = np.stack([by_cell(column, cells) for column in costs.T], axis=-1)
    sums = true_sums(observed, belief.table)
    own = np.diagonal(sums, axis1=0, axis2=2).T  # each class by its own cost
    wanted = np.array([own if target < 0 else sums[:, :, target] for target in compared.targets])
    counts: Any = true_sums(by_cell(belief.judged, cells), belief.table)
    if cells.has_ungrouped:
        counts[:, -1] = 0.0  # no samples, no comparison
    amount = min(1.0, step * start.disparity)
    rows, by_group = compared.rows, compared.by_group
    move_ratios(ratios, wanted.reshape(len(wanted), -1), counts.reshape(-1), rows, by_group, amount)
    return ratios


def _costs_of(probabilities: Floats, signal: SignalName) -> Floats:
    """What it costs if each class were the true one, (n, classes): a loss, or 1 for an error."""
    if signal == "loss":
        return np.asarray(-np.log(np.maximum(probabilities, 1e-12)))
    return np.asarray(1.0 - (np.arange(probabilities.shape[1]) == probabilities.argmax(axis=1)[:, None]))
