"""FR-Train of the linear model: its gradients and both discriminators' in closed form, compiled.

The discriminators are tiny, so that whole stretches of the game run in one call. What is computed is
what :class:`~fairsieve.paper.methods.fr_train.AutogradGame` computes, in double precision. Loops run
over hidden units where they can: those are independent of each other and become vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.paper.methods.fr_train_options import FRTrainOptions
from fairsieve.training.compiled import adam_step, compiled, exp_negative, log1p_unit, sigmoid
from fairsieve.training.linear import Adam

__all__ = ["HIDDEN", "LEAK", "Discriminators", "GameArrays", "run_epochs"]

HIDDEN = 16
LEAK = 0.2
BLOCK = 64  # samples whose hidden units are in the cache together
COIN = 2 * np.log(2.0)  # loss of a robustness discriminator that cannot tell anything


class GameArrays(NamedTuple):
    """The samples of a game: those trained on and the real, clean ones."""

    features: NDArray[Any]  # (n, d), what the classifier sees
    inputs: NDArray[
        np.float64
    ]  # (n, k), what the robustness discriminator sees beside a label; the last is 1, for a bias
    labels: NDArray[np.int64]  # (n,) 0 or 1
    groups: NDArray[np.int64]  # (n,)
    counted: NDArray[np.float64]  # (n,) 1 where the notion of fairness looks at a sample, else 0
    real_inputs: NDArray[np.float64]  # (m, k)
    real_labels: NDArray[np.float64]  # (m,) 0 or 1


class Discriminators(NamedTuple):
    """Parameters of the two discriminators."""

    fair: NDArray[
        np.float64
    ]  # (groups − 1, 2 or 3): of ŷ, for equalized odds of y, bias; first group: logit 0
    entry: NDArray[np.float64]  # (k + 1, HIDDEN): of the inputs, and of the label as ±1
    exit: NDArray[np.float64]  # (HIDDEN + 1,): of the hidden units, bias


class _Buffers(NamedTuple):
    """Arrays that every update fills anew."""

    chances: NDArray[np.float64]  # (n,) Pr(ŷ = 1)
    real_chances: NDArray[np.float64]  # (m,) the same of the labels of real samples: 0 or 1
    signs: NDArray[np.float64]  # (n,) labels as ±1
    out: NDArray[np.float64]  # (n, 1)
    wrong: NDArray[np.float64]  # (groups − 1, n): probability of a group, less 1 for the sample's own
    highest: NDArray[np.float64]  # (n,)
    inputs: NDArray[np.float64]  # (k, BLOCK): a block's inputs, one row a feature
    hidden: NDArray[np.float64]  # (HIDDEN, BLOCK): before the label is added
    odds: NDArray[np.float64]  # (2, BLOCK): logits of "real", were the label 0 or 1
    belief: NDArray[np.float64]  # the same as probabilities
    losses: NDArray[np.float64]  # log(1 + exp(odds))
    pulls: NDArray[np.float64]  # (2, BLOCK): change of the loss with the logits
    back: NDArray[np.float64]  # (2, BLOCK): change of the loss with a hidden unit, by label
    both: NDArray[np.float64]  # (BLOCK, HIDDEN): the same of every hidden unit, labels together
    entry: NDArray[np.float64]  # (k, HIDDEN): gradient of the inputs' weights; of the others …
    label: NDArray[np.float64]  # (HIDDEN, BLOCK): … apart for each place in a block, …
    exit: NDArray[np.float64]  # (HIDDEN + 1, BLOCK): … since sums within one are slow
    total: NDArray[np.float64]  # (BLOCK,) the loss likewise


@compiled
def _scores(
    features: NDArray[Any], rows: NDArray[np.int64], parameters: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Compute the outputs of the linear layer, (rows, 1)."""
    d = features.shape[1]
    for r in range(rows.size):
        total = parameters[d]
        for j in range(d):
            total += features[rows[r], j] * parameters[j]
        out[r, 0] = total


@compiled
def _new_buffers(samples: int, real: int, groups: int, inputs: int) -> _Buffers:
    return _Buffers(
        np.empty(samples),
        np.empty(real),
        np.empty(samples),
        np.empty((samples, 1)),
        np.empty((groups - 1, samples)),
        np.empty(samples),
        np.empty((inputs, BLOCK)),
        np.empty((HIDDEN, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((BLOCK, HIDDEN)),
        np.empty((inputs, HIDDEN)),
        np.empty((HIDDEN, BLOCK)),
        np.empty((HIDDEN + 1, BLOCK)),
        np.empty(BLOCK),
    )


@compiled
def _discriminate(
    inputs: NDArray[np.float64],
    rows: NDArray[np.int64],
    entry: NDArray[np.float64],
    exit_: NDArray[np.float64],
    buffers: _Buffers,
) -> None:
    """Evaluate the robustness discriminator on at most BLOCK samples, with either label."""
    size, k = rows.size, inputs.shape[1]
    for r in range(size):
        for j in range(k):
            buffers.inputs[j, r] = inputs[rows[r], j]
    buffers.odds[:] = exit_[HIDDEN]
    for h in range(HIDDEN):
        hidden = buffers.hidden[h]
        hidden[:] = 0.0
        for j in range(k):
            x, weight = buffers.inputs[j], entry[j, h]
            for r in range(size):
                hidden[r] += weight * x[r]
        for label in range(2):
            odds, step, weight = buffers.odds[label], (2.0 * label - 1.0) * entry[k, h], exit_[h]
            for r in range(size):
                value = hidden[r] + step
                odds[r] += weight * (value if value > 0 else LEAK * value)
    for label in range(2):
        odds, belief, losses = buffers.odds[label], buffers.belief[label], buffers.losses[label]
        for r in range(size):
            small = exp_negative(-abs(odds[r]))
            belief[r] = (1.0 if odds[r] >= 0 else small) / (1.0 + small)
            losses[r] = max(odds[r], 0.0) + log1p_unit(small)


@compiled
def _add_block(
    inputs: NDArray[np.float64],
    rows: NDArray[np.int64],
    chances: NDArray[np.float64],
    target: float,
    share: float,
    discriminators: Discriminators,
    buffers: _Buffers,
) -> None:
    """Add a block's part of the robustness discriminator's loss and gradient.

    ``target`` is 1 for real samples. A sample counts ``share`` times the chance of each label: for
    real samples that is 1 for their own.
    """
    size, k = rows.size, inputs.shape[1]
    _discriminate(inputs, rows, discriminators.entry, discriminators.exit, buffers)
    for label in range(2):
        odds, belief, losses, pulls = (
            buffers.odds[label],
            buffers.belief[label],
            buffers.losses[label],
            buffers.pulls[label],
        )
        for r in range(size):
            mass = share * (chances[r] if label == 1 else 1.0 - chances[r])
            buffers.total[r] += mass * (losses[r] - target * odds[r])
            pulls[r] = mass * (belief[r] - target)
        for r in range(size):
            buffers.exit[HIDDEN, r] += pulls[r]
    for h in range(HIDDEN):
        hidden, exit_sum = buffers.hidden[h], buffers.exit[h]
        for label in range(2):
            pulls, back = buffers.pulls[label], buffers.back[label]
            step, weight = (2.0 * label - 1.0) * discriminators.entry[k, h], discriminators.exit[h]
            for r in range(size):
                value = hidden[r] + step
                exit_sum[r] += pulls[r] * (value if value > 0 else LEAK * value)
            for r in range(size):
                value = hidden[r] + step
                back[r] = pulls[r] * (weight if value > 0 else LEAK * weight)
        no, yes, label_sum = buffers.back[0], buffers.back[1], buffers.label[h]
        for r in range(size):
            label_sum[r] += yes[r] - no[r]
        for r in range(size):
            buffers.both[r, h] = yes[r] + no[r]
    _add_outer(inputs, rows, buffers.both, buffers.entry)


@compiled
def _add_outer(
    inputs: NDArray[np.float64],
    rows: NDArray[np.int64],
    back: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Add inputsᵀ · back to ``total``."""
    width = back.shape[1]  # not a constant: as one, the loop is unrolled before it can be vectorised
    for r in range(rows.size):
        i = rows[r]
        for j in range(inputs.shape[1]):
            x = inputs[i, j]
            for h in range(width):
                total[j, h] += x * back[r, h]


@compiled
def _update_robustness(
    arrays: GameArrays,
    rows: NDArray[np.int64],
    real: NDArray[np.int64],
    discriminators: Discriminators,
    rate: float,
    buffers: _Buffers,
) -> float:
    """Take one step of the robustness discriminator; return its loss before the step."""
    for part in (buffers.entry, buffers.label, buffers.exit):
        part[:] = 0.0
    buffers.total[:] = 0.0
    for first in range(0, rows.size, BLOCK):
        block, chances = rows[first : first + BLOCK], buffers.chances[first : first + BLOCK]
        _add_block(arrays.inputs, block, chances, 0.0, 1.0 / rows.size, discriminators, buffers)
    for first in range(0, real.size, BLOCK):
        block, chances = real[first : first + BLOCK], buffers.real_chances[first : first + BLOCK]
        _add_block(arrays.real_inputs, block, chances, 1.0, 1.0 / real.size, discriminators, buffers)
    k = buffers.entry.shape[0]
    discriminators.entry[:k] -= rate * buffers.entry
    for h in range(HIDDEN):
        discriminators.entry[k, h] -= rate * buffers.label[h].sum()
    for h in range(HIDDEN + 1):
        discriminators.exit[h] -= rate * buffers.exit[h].sum()
    return float(buffers.total.sum())


@compiled
def _fairness_errors(
    arrays: GameArrays, rows: NDArray[np.int64], fair: NDArray[np.float64], buffers: _Buffers
) -> None:
    """Compute the gradient of the fairness discriminator's loss in its logits, a row for each group but the first."""
    wrong, highest, chances = buffers.wrong, buffers.highest, buffers.chances
    bias = fair.shape[1] - 1
    highest[:] = 0.0
    for g in range(wrong.shape[0]):
        logits, of_label = wrong[g], fair[g, 1] if bias == 2 else 0.0
        for r in range(rows.size):
            logits[r] = fair[g, 0] * (2.0 * chances[r] - 1.0) + of_label * buffers.signs[r] + fair[g, bias]
        for r in range(rows.size):
            highest[r] = max(highest[r], logits[r])
    for g in range(wrong.shape[0]):
        logits = wrong[g]
        for r in range(rows.size):
            logits[r] = exp_negative(logits[r] - highest[r])
    for r in range(rows.size):
        highest[r] = exp_negative(-highest[r])  # of the first group, whose logit is 0
    for g in range(wrong.shape[0]):
        for r in range(rows.size):
            highest[r] += wrong[g, r]
    for g in range(wrong.shape[0]):
        for r in range(rows.size):
            own = 1.0 if arrays.groups[rows[r]] == g + 1 else 0.0
            wrong[g, r] = arrays.counted[rows[r]] * (wrong[g, r] / highest[r] - own)


@compiled
def _update_fairness(
    arrays: GameArrays,
    rows: NDArray[np.int64],
    discriminators: Discriminators,
    rate: float,
    counted: float,
    buffers: _Buffers,
) -> None:
    """Take one step of the fairness discriminator."""
    fair = discriminators.fair
    bias = fair.shape[1] - 1
    _fairness_errors(arrays, rows, fair, buffers)
    for g in range(fair.shape[0]):
        of_output = of_label = of_bias = 0.0
        for r in range(rows.size):
            wrong = buffers.wrong[g, r]
            of_output += wrong * (2.0 * buffers.chances[r] - 1.0)
            of_label += wrong * buffers.signs[r]
            of_bias += wrong
        fair[g, 0] -= rate * of_output / counted
        if bias == 2:
            fair[g, 1] -= rate * of_label / counted
        fair[g, bias] -= rate * of_bias / counted


@compiled
def _classifier_terms(
    arrays: GameArrays,
    rows: NDArray[np.int64],
    discriminators: Discriminators,
    options: FRTrainOptions,
    counted: float,
    buffers: _Buffers,
    pulls: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Compute the gradient of −λf·L_fair − λr·L_robust in each sample's Pr(ŷ = 1), and each sample's weight."""
    for first in range(0, rows.size, BLOCK):
        block = rows[first : first + BLOCK]
        _discriminate(arrays.inputs, block, discriminators.entry, discriminators.exit, buffers)
        for r in range(block.size):
            gain = buffers.losses[1, r] - buffers.losses[0, r]
            pulls[first + r] = -options.robustness_weight * gain / rows.size
            weights[first + r] = buffers.belief[arrays.labels[block[r]], r]
    weights /= max(weights.mean(), 1e-300)
    _fairness_errors(arrays, rows, discriminators.fair, buffers)
    for g in range(discriminators.fair.shape[0]):
        scale = options.fairness_weight * 2.0 * discriminators.fair[g, 0] / counted
        for r in range(rows.size):
            pulls[r] -= scale * buffers.wrong[g, r]


@compiled
def _classifier_slope(
    arrays: GameArrays,
    rows: NDArray[np.int64],
    share: float,
    buffers: _Buffers,
    pulls: NDArray[np.float64],
    weights: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> None:
    """Compute the gradient of the classifier's objective; ``share`` is the weight of its own loss."""
    d = arrays.features.shape[1]
    slope[:] = 0.0
    for r in range(rows.size):
        i, chance = rows[r], buffers.chances[r]
        step = share * weights[r] * 2.0 * (chance - arrays.labels[i]) / rows.size
        step += pulls[r] * 2.0 * chance * (1.0 - chance)
        for j in range(d):
            slope[j] += step * arrays.features[i, j]
        slope[d] += step


@compiled
def _load_batch(
    arrays: GameArrays, rows: NDArray[np.int64], real: NDArray[np.int64], buffers: _Buffers
) -> float:
    """Gather the labels of a batch; return how many of its samples count for fairness, at least 1."""
    counted = 0.0
    for r in range(rows.size):
        buffers.signs[r] = 2.0 * arrays.labels[rows[r]] - 1.0
        counted += arrays.counted[rows[r]]
    for r in range(real.size):
        buffers.real_chances[r] = arrays.real_labels[real[r]]
    return max(counted, 1.0)


@compiled
def run_epochs(
    arrays: GameArrays,
    options: FRTrainOptions,
    discriminators: Discriminators,
    parameters: NDArray[np.float64],
    adam: Adam,
    batches: NDArray[np.int64],
    real_batches: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Run the epochs from ``first`` up to ``last``, in turn with each of the batches.

    ``discriminators``, ``parameters`` and ``adam`` are updated in place.
    """
    size, rate = batches.shape[1], options.discriminator_rate
    groups, inputs = discriminators.fair.shape[0] + 1, arrays.inputs.shape[1]
    buffers = _new_buffers(size, real_batches.shape[1], groups, inputs)
    pulls, weights, gradient = np.zeros(size), np.ones(size), np.empty(parameters.size)
    for epoch in range(first, last):
        rows = batches[(epoch - first) % batches.shape[0]]
        _scores(arrays.features, rows, parameters, buffers.out)
        for r in range(size):
            buffers.chances[r] = sigmoid(2.0 * buffers.out[r, 0])
        turn = epoch - options.pretrain_epochs + 1
        if turn <= 0:
            _classifier_slope(arrays, rows, 1.0, buffers, pulls, weights, gradient)
            adam_step(parameters, gradient, adam, options.classifier_rate)
            continue
        real = real_batches[(epoch - first) % real_batches.shape[0]]
        counted = _load_batch(arrays, rows, real, buffers)
        _update_fairness(arrays, rows, discriminators, rate, counted, buffers)
        loss = _update_robustness(arrays, rows, real, discriminators, rate, buffers)
        if turn % options.discriminator_updates == 0:
            _classifier_terms(arrays, rows, discriminators, options, counted, buffers, pulls, weights)
            if loss >= COIN:  # it has not learned enough to be asked for weights
                weights[:] = 1.0
            share = 1.0 - options.fairness_weight - options.robustness_weight
            _classifier_slope(arrays, rows, share, buffers, pulls, weights, gradient)
            adam_step(parameters, gradient, adam, options.classifier_rate)
