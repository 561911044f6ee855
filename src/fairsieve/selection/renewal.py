"""What compiled code does in an epoch: ratios, selection and batches, for few samples and for many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.backends.compiled import select_bits, select_on_cpu
from fairsieve.selection.backends.halves import both_halves
from fairsieve.selection.backends.jit import compiled
from fairsieve.selection.batches import batch_count, batch_shares, draw_batches
from fairsieve.selection.ratios import exact_sums, move_ratios, rounded_sums, sum_by_cell

__all__ = ["Rules", "bounds_of", "drawing", "epoch_batches", "renew", "renew_many", "step_ratios"]


class Rules(NamedTuple):
    """What does not change from epoch to epoch, in the form compiled code takes."""

    codes: NDArray[Any]  # cell of each sample
    no_codes: NDArray[Any]  # zeros: one cell of everything, where cells do not matter
    rows: NDArray[np.int64]  # comparisons, see fairness.py
    by_group: bool
    step_size: float
    budget: int
    constrained: bool  # the ratios bound the selection (Eq. 2)
    weighted: bool  # the ratios weigh the training (Eq. 3)
    width: int
    batch_size: int
    seed: int
    warmup_epochs: int
    has_ungrouped: bool  # the last column is of samples without a group, which no fairness looks at


@compiled
def step_ratios(
    rules: Rules, sums: NDArray[np.float64], ratios: NDArray[np.float64], counts: NDArray[np.int64]
) -> None:
    """Move the ratios in place, from what the chosen samples of each cell sum to."""
    compared = counts
    if rules.has_ungrouped:  # no samples, no comparison
        compared = counts.copy()
        compared[ratios.shape[1] - 1 :: ratios.shape[1]] = 0
    move_ratios(ratios, sums, compared, rules.rows, rules.by_group, rules.step_size)


@compiled
def bounds_of(rules: Rules, ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratios that bound the selection."""
    if not rules.has_ungrouped:
        return ratios
    bounds = ratios.copy()
    bounds[:, -1] = 1.0  # bounds nothing: Σk + k_c − K_y ≤ Σk
    return bounds


@compiled
def renew(
    rules: Rules,
    bits: NDArray[Any],
    lowest: Any,
    signals: NDArray[Any],
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> Any:
    """Move the ratios in place, judged over the samples chosen before; return the new choice and counts."""
    if rules.rows.shape[0] > 0:
        step_ratios(rules, sum_by_cell(signals, rules.codes, chosen, ratios.size), ratios, counts)
    if rules.constrained:
        bounds = bounds_of(rules, ratios)
        return select_bits(bits, lowest, rules.codes, bounds, rules.budget, rules.width)
    if rules.budget < bits.size:
        chosen, _ = select_bits(bits, lowest, rules.no_codes, np.ones((1, 1)), rules.budget, rules.width)
    counts = np.zeros(ratios.size, np.int64)
    codes = rules.codes
    for i in chosen:
        counts[codes[i]] += 1
    return chosen, counts


@compiled
def epoch_batches(
    rules: Rules,
    epoch: int,
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The batches of an epoch, a function of (seed, epoch), the ratios and the choice."""
    codes, counts, shares, batches = drawing(rules, epoch, ratios, chosen, counts)
    return draw_batches(chosen, codes, counts, shares, batches, rules.seed, epoch)


@compiled
def drawing(
    rules: Rules,
    epoch: int,
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> Any:
    """What an epoch's batches are drawn by: codes, counts of cells, shares of a batch, batches."""
    size = min(rules.batch_size, chosen.size)
    batches = batch_count(chosen.size, rules.batch_size)
    if rules.weighted and epoch >= rules.warmup_epochs and chosen.size > 0:
        return rules.codes, counts, batch_shares(ratios, counts, size), batches
    return rules.no_codes, np.full(1, chosen.size), np.full(1, size), batches


def renew_many(
    rules: Rules,
    bits: NDArray[Any],
    infinity: int,
    signals: NDArray[Any],
    ratios: NDArray[np.float64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """:func:`renew` on two threads."""
    codes = rules.codes
    if rules.rows.shape[0] > 0:
        parts = both_halves(len(chosen), lambda a, b: exact_sums(signals, codes, chosen[a:b], ratios.size))
        step_ratios(rules, rounded_sums(parts[0] + parts[1]), ratios, counts)
    if rules.constrained:
        found = select_on_cpu(bits, codes, bounds_of(rules, ratios), rules.budget, infinity)
    elif rules.budget < bits.size:
        found = select_on_cpu(bits, rules.no_codes, np.ones((1, 1)), rules.budget, infinity)
    else:
        found = chosen, counts
    assert found is not None, "losses were checked for NaN"
    if rules.constrained:
        return found
    return found[0], np.bincount(codes[found[0]], minlength=ratios.size)
