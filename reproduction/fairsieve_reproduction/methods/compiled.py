"""The paper's loop for the linear model in compiled code: whole epochs in one call. Needs numba.

A step on a hundred samples is so short that dispatching it is what takes the time. Here an epoch of the synthetic
experiment takes a tenth of a millisecond, and a call releases the interpreter lock, so that seeds train side by side.
The order of an epoch is that of :meth:`~fairsieve.training.trainer.Trainer.run_epoch`, and its parts do what NumPy
does there; sums are taken in another order, so that last digits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import require
from fairsieve.selection.batches import ROUNDS, _mix, batch_count, shuffle_constants, shuffle_shape
from fairsieve.selection.ratios import cell_sizes, rounded, selection_bounds
from fairsieve.selection.search import budget_used
from fairsieve.training.linear_trainer import Adam, adam_step
from fairsieve.training.trainer import Measurement, Recording, count_predictions, record_model, record_plan
from fairsieve_reproduction.methods.loop import LinearProblem, Rows

numba = require("numba", purpose="the compiled loop of the linear model")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

LINE = 16  # numbers of single precision in a line of the cache
DIGIT = 11  # bits of a loss that one pass of the sort looks at


def compiled(function: Function, *, fastmath: bool = False) -> Function:
    """Compile ``function`` to machine code on first use, cached on disk where a folder can be written."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        kernel: Function = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written: compile anew in each process
        kernel = numba.njit(**options)(function)
    return kernel


# Plain functions that are written so that numba can compile them too: what they do is said once.
for _shared in (
    *(batch_count, budget_used, cell_sizes, rounded, selection_bounds),
    *(_mix, shuffle_constants, shuffle_shape, count_predictions, record_model, record_plan, adam_step),
):
    numba.extending.register_jitable(_shared)


@compiled
def _scores(rows: Rows, chosen: Integers, parameters: Floats, out: Floats) -> None:
    """Compute the outputs of the linear layer for the chosen rows, (chosen, outputs)."""
    entries, columns, outputs = rows.entries, rows.columns, out.shape[1]
    d = parameters.size // outputs - 1
    # Rows of a batch lie far apart. A number of every cache line is read first, so that the processor need not wait
    # for memory in the middle of a sum; what is read is overwritten below.
    ahead = 0.0
    for r in range(chosen.size):
        for t in range(0, entries.shape[1], LINE):
            ahead += entries[chosen[r], t] + columns[chosen[r], t]
    out[:1] = ahead
    for k in range(outputs):
        bias = parameters[outputs * d + k]
        for r in range(chosen.size):
            i, total = chosen[r], bias
            for t in range(entries.shape[1]):
                total += entries[i, t] * parameters[k * d + columns[i, t]]
            out[r, k] = total


@compiled
def _cross_entropies(out: Floats, labels: Integers, losses: Floats) -> None:
    """Compute the loss of each row of outputs against its label; one output f stands for σ(2·f)."""
    if out.shape[1] == 1:
        for r in range(losses.size):
            logit = (2.0 - 4.0 * labels[r]) * out[r, 0]
            losses[r] = max(logit, 0.0) + np.log1p(np.exp(-abs(logit)))
        return
    for r in range(losses.size):
        highest = out[r].max()
        losses[r] = highest - out[r, labels[r]] + np.log(np.exp(out[r] - highest).sum())


@compiled
def _predict(rows: Rows, parameters: Floats, out: Floats, predicted: Integers) -> None:
    """Compute outputs and predicted classes of all rows; one output above 0 stands for the second class."""
    _scores(rows, np.arange(predicted.size), parameters, out)
    for r in range(predicted.size):
        predicted[r] = (1 if out[r, 0] > 0 else 0) if out.shape[1] == 1 else out[r].argmax()


@compiled
def _measure(problem: LinearProblem, out: Floats, measured: Measurement) -> None:
    """Compute losses, and what groups are compared by, from the outputs and predictions."""
    losses, signals, _ = measured
    _cross_entropies(out, problem.labels, losses)
    for t in range(problem.targets.size):
        target, labels = problem.targets[t], problem.labels
        if target >= 0:
            labels = np.full(labels.size, target)
        if target >= 0:
            _cross_entropies(out, labels, signals[t])
        else:
            signals[t] = losses


@compiled
def _order(losses: Floats) -> Integers:
    """Sort by loss, equal ones by index: digit after digit of the bits, which order like losses (none is negative)."""
    bits = losses.view(np.uint64)
    order, sorted_order = np.arange(losses.size), np.empty(losses.size, np.int64)
    mask = np.uint64((1 << DIGIT) - 1)
    for shift in range(0, 64, DIGIT):
        starts = np.zeros((1 << DIGIT) + 1, np.int64)
        for pattern in bits:
            starts[((pattern >> np.uint64(shift)) & mask) + np.uint64(1)] += 1
        for digit in range(1 << DIGIT):
            starts[digit + 1] += starts[digit]
        for i in order:
            digit = (bits[i] >> np.uint64(shift)) & mask
            sorted_order[starts[digit]] = i
            starts[digit] += 1
        order, sorted_order = sorted_order, order
    return order


@compiled
def _select(losses: Floats, codes: NDArray[Any], bounds: Floats, constrained: bool, budget: int) -> Any:
    """Select by Algorithm 1, as it is written: walk up the losses, refuse what would break a budget of Eq. 7.

    Returns the selected samples, ascending, and their counts by cell.
    """
    classes, groups = bounds.shape
    taken, of_class = np.zeros(bounds.size, np.int64), np.zeros(classes, np.int64)
    chosen, total = np.zeros(losses.size, np.bool_), 0
    for i in _order(losses):
        if total == budget:
            break
        cell = codes[i]
        taken[cell] += 1
        of_class[cell // groups] += 1
        fits, bound = True, budget + max(1e-9, 8.9e-16 * (total + 1))
        if constrained and 2 * (total + 1) > budget:  # before that no budget can be broken
            for label in range(classes):
                for group in range(groups):
                    count = taken[label * groups + group]
                    used = budget_used(total + 1, count, bounds[label, group], of_class[label])
                    fits = fits and used <= bound
        if fits:
            chosen[i], total = True, total + 1
        else:
            taken[cell] -= 1
            of_class[cell // groups] -= 1
    return np.flatnonzero(chosen), taken


@compiled
def _shuffle(size: int, seed: int, epoch: int, cell: int, lap: int, wanted: int) -> NDArray[np.uint64]:
    """Return the first places of a cell's shuffled order; see :mod:`fairsieve.selection.batches`."""
    constants = shuffle_constants(seed, epoch, cell, lap)
    constants[::2] |= np.uint64(1)
    (mask, half), places = shuffle_shape(size), np.empty(wanted, np.uint64)
    for j in range(wanted):
        value, beyond = np.uint64(j), True
        while beyond:
            for i in range(0, 2 * ROUNDS, 2):
                value = (value * constants[i] + constants[i + 1]) & np.uint64(mask)
                value ^= value >> np.uint64(half)
            beyond = bool(value >= np.uint64(size))
        places[j] = value
    return places


@compiled
def _move_ratios(ratios: Floats, sums: Floats, sizes: Floats, rules: Any) -> None:
    """Move the ratios one step, as :func:`~fairsieve.selection.ratios.move_ratios` does by the widest gap."""
    rows, groups = rules.rows, ratios.shape[1]
    group_sizes = sizes.reshape(ratios.shape).sum(axis=0)
    widest, label, rising, falling = 0.0, -1, -1, -1
    for row in range(rows.shape[0]):
        target, of_class, sign = rows[row]
        highest, lowest, top, bottom = -np.inf, np.inf, -1, -1
        for group in range(groups - 1 if rules.has_ungrouped else groups):
            cell = of_class * groups + group
            if sizes[cell] == 0:
                continue
            size = group_sizes[group] if rules.by_group else sizes[cell]
            value = rounded(float(sign * sums[target, cell]) / float(size))
            if value > highest:
                highest, top = value, group
            if value < lowest:
                lowest, bottom = value, group
        if top >= 0 and rounded(highest - lowest) > widest:
            widest, label, rising, falling = rounded(highest - lowest), of_class, top, bottom
    if label >= 0:
        amount = min(rules.step_size, ratios[label, falling], 1 - ratios[label, rising])
        ratios[label, rising] = min(1.0, ratios[label, rising] + amount)
        ratios[label, falling] = max(0.0, ratios[label, falling] - amount)


@compiled
def _batch_shares(ratios: Floats, counts: Integers, batch_size: int) -> Integers:
    """Return the cells' places in every batch, as :func:`~fairsieve.selection.batches.batch_shares` does."""
    classes, groups = ratios.shape
    quotas = np.zeros(counts.size)
    for label in range(classes):
        cells = range(label * groups, (label + 1) * groups)
        of_class, present = 0, 0.0
        for cell in cells:
            of_class += counts[cell]
            present += ratios[label, cell - label * groups] if counts[cell] > 0 else 0.0
        for cell in cells:
            if counts[cell] > 0:
                ratio = ratios[label, cell - label * groups]
                share = ratio / present if present > 0 else counts[cell] / of_class
                quotas[cell] = share * batch_size * of_class / counts.sum()
    shares = np.floor(quotas + 1e-9).astype(np.int64)
    remainders = quotas - shares
    for _ in range(batch_size - shares.sum()):
        cell = int(remainders.argmax())
        shares[cell] += 1
        remainders[cell] = -1.0
    return shares


@compiled
def _draw(problem: LinearProblem, epoch: int, ratios: Floats, selected: Integers, counts: Integers) -> Any:
    """Draw the epoch's batches, as :meth:`~fairsieve.selection.epoch.Plan.batches` does."""
    rules = problem.rules
    size, batches = min(rules.batch_size, selected.size), batch_count(selected.size, rules.batch_size)
    by_cell = rules.weighted and epoch >= rules.warmup_epochs and selected.size > 0
    members, sizes, shares = selected, np.full(1, selected.size), np.full(1, size)
    if by_cell:
        sizes, shares = counts, _batch_shares(ratios, counts, size)
        members, filled = np.empty_like(selected), np.cumsum(counts) - counts
        for i in selected:
            members[filled[rules.codes[i]]] = i
            filled[rules.codes[i]] += 1
    drawn = np.empty((batches, shares.sum()), np.int64)
    column, start = 0, 0
    for cell in range(sizes.size):
        size, share, row, k = sizes[cell], shares[cell], 0, 0
        # A cell is gone through again when it is used up.
        for first in range(0, batches * share, max(size, 1)):
            wanted = min(size, batches * share - first)
            for place in _shuffle(size, rules.seed, epoch, cell, first // size, wanted):
                drawn[row, column + k] = members[start + place]
                k += 1
                if k == share:
                    row, k = row + 1, 0
        column, start = column + share, start + size
    return drawn


@compiled
def _gradient(
    problem: LinearProblem, parameters: Floats, batch: Integers, out: Floats, slope: Floats
) -> None:
    """Compute the gradient of the batch's mean cross-entropy."""
    entries, columns, outputs = problem.rows.entries, problem.rows.columns, out.shape[1]
    d = parameters.size // outputs - 1
    _scores(problem.rows, batch, parameters, out)
    slope[:] = 0.0
    for r in range(batch.size):
        i = batch[r]
        if outputs == 1:
            out[r, 0] = np.tanh(out[r, 0]) + 1.0 - 2.0 * problem.labels[i]
        else:
            odds = np.exp(out[r] - out[r].max())
            out[r] = odds / odds.sum()
            out[r, problem.labels[i]] -= 1.0
        for k in range(outputs):
            pull = out[r, k] / batch.size
            slope[outputs * d + k] += pull
            for t in range(entries.shape[1]):
                slope[k * d + columns[i, t]] += pull * entries[i, t]


@compiled
def _train(
    problem: LinearProblem, parameters: Floats, adam: Adam, batches: Integers, penalised: bool
) -> None:
    """Take one step for each batch."""
    slope = np.empty(parameters.size)
    out = np.empty((batches.shape[1], parameters.size // (problem.columns + 1)))
    for b in range(batches.shape[0]):
        _gradient(problem, parameters, batches[b], out, slope)
        if penalised:
            for direction in problem.directions:
                slope += problem.penalty_weight * np.sign((direction * parameters).sum()) * direction
        adam_step(parameters, slope, adam, problem.learning_rate)


@compiled
def train_epochs(
    problem: LinearProblem,
    parameters: Floats,
    adam: Adam,
    ratios: Floats,
    selected: Integers,
    counts: Integers,
    first: int,
    recording: Recording,
    parameters_by_epoch: Floats,
) -> Any:
    """Train as many epochs as ``parameters_by_epoch`` has room for, from epoch ``first`` on.

    ``parameters``, ``adam``, ``ratios``, ``recording`` and ``parameters_by_epoch`` (the parameters as each epoch
    begins) are updated in place. Returns the last selection, and whether all losses were numbers: training ends at an
    epoch that begins with one that is not.
    """
    rules, n, outputs = problem.rules, problem.labels.size, parameters.size // (problem.columns + 1)
    out, predicted, losses = np.empty((n, outputs)), np.empty(n, np.int64), np.empty(n)
    signals = np.empty((problem.targets.size, n))
    measured = Measurement(losses, signals, predicted)
    for epoch in range(first, first + len(parameters_by_epoch)):
        parameters_by_epoch[epoch - first] = parameters
        _predict(problem.rows, parameters, out, predicted)
        _measure(problem, out, measured)
        if np.isnan(losses.sum()):
            return selected, False
        record_model(recording, epoch, measured, rules.codes, selected, counts)
        selective = epoch >= rules.warmup_epochs
        if selective:
            if rules.rows.shape[0] > 0:
                sums = np.zeros((problem.targets.size, ratios.size))
                for t in range(problem.targets.size):
                    for i in selected:
                        sums[t, rules.codes[i]] += signals[t, i]
                sizes = cell_sizes(counts, rules.by_group, rules.count_offset)
                _move_ratios(ratios, sums, sizes, rules)
            bounds = selection_bounds(ratios, rules.has_ungrouped)
        if selective and (rules.constrained or rules.budget < n):
            selected, counts = _select(losses, rules.codes, bounds, rules.constrained, rules.budget)
        record_plan(recording, epoch, ratios, counts)
        _train(problem, parameters, adam, _draw(problem, epoch, ratios, selected, counts), selective)
    return selected, True
