"""FR-Train of the linear model: its gradients and both discriminators' in closed form, compiled.

The discriminators are tiny, so that whole stretches of the game run in one call. What is computed is
what :class:`~fairsieve.baselines.fr_train.AutogradGame` computes, in double precision. Loops run
over hidden units where they can: those are independent of each other and become vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.core.compiled import compiled
from fairsieve.core.fastmath import exp_negative, log1p_unit, sigmoid
from fairsieve.training.linear import Adam, adam_step, scores

__all__ = ["HIDDEN", "LEAK", "Board", "Opponents", "Stakes", "play"]

HIDDEN = 16
LEAK = 0.2
BLOCK = 64  # samples whose hidden units are in the cache together
COIN = 2 * np.log(2.0)  # loss of a robustness discriminator that cannot tell anything


class Board(NamedTuple):
    """The samples of a game: those trained on and the real, clean ones."""

    features: NDArray[Any]  # (n, d), what the classifier sees
    inputs: NDArray[np.float64]  # (n, k), what the robustness discriminator sees beside a label
    labels: NDArray[np.int64]  # (n,) 0 or 1
    groups: NDArray[np.int64]  # (n,)
    counted: NDArray[np.float64]  # (n,) 1 where the notion of fairness looks at a sample, else 0
    real_inputs: NDArray[np.float64]  # (m, k)
    real_labels: NDArray[np.float64]  # (m,) 0 or 1


class Opponents(NamedTuple):
    """Parameters of the two discriminators (or their gradients)."""

    fair: NDArray[
        np.float64
    ]  # (groups − 1, 2 or 3): of ŷ, for equalized odds of y, bias; first group: logit 0
    entry: NDArray[np.float64]  # (k + 2, HIDDEN): of the inputs, the label as ±1, bias
    exit: NDArray[np.float64]  # (HIDDEN + 1,): of the hidden units, bias


class Stakes(NamedTuple):
    """What the classifier plays for, and how fast everybody learns."""

    fairness_weight: float
    robustness_weight: float
    classifier_rate: float
    discriminator_rate: float
    discriminator_updates: int  # for one of the classifier
    pretrain_epochs: int


class Room(NamedTuple):
    """Arrays that every update fills anew."""

    chances: NDArray[np.float64]  # (n,) Pr(ŷ = 1)
    out: NDArray[np.float64]  # (n, 1)
    hidden: NDArray[np.float64]  # (BLOCK, HIDDEN): before the label is added
    lanes: NDArray[np.float64]  # (HIDDEN,)
    odds: NDArray[np.float64]  # (2, BLOCK): logits of "real", were the label 0 or 1
    belief: NDArray[np.float64]  # the same as probabilities
    losses: NDArray[np.float64]  # log(1 + exp(odds))


@compiled
def new_room(samples: int) -> Room:
    return Room(
        np.empty(samples),
        np.empty((samples, 1)),
        np.empty((BLOCK, HIDDEN)),
        np.empty(HIDDEN),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
        np.empty((2, BLOCK)),
    )


@compiled
def judge(
    inputs: NDArray[np.float64],
    rows: NDArray[np.int64],
    entry: NDArray[np.float64],
    exit_: NDArray[np.float64],
    room: Room,
) -> None:
    """The robustness discriminator on at most BLOCK samples, with either label."""
    hidden, lanes, size, k = room.hidden, room.lanes, rows.size, inputs.shape[1]
    for r in range(size):
        for h in range(HIDDEN):
            hidden[r, h] = entry[k + 1, h]
        for j in range(k):
            x = inputs[rows[r], j]
            for h in range(HIDDEN):
                hidden[r, h] += x * entry[j, h]
        for label in range(2):
            sign = 2.0 * label - 1.0
            for h in range(HIDDEN):
                value = hidden[r, h] + sign * entry[k, h]
                lanes[h] = (value if value > 0 else LEAK * value) * exit_[h]
            width = HIDDEN // 2
            while width > 0:
                for h in range(width):
                    lanes[h] += lanes[h + width]
                width //= 2
            room.odds[label, r] = lanes[0] + exit_[HIDDEN]
    for label in range(2):
        odds, belief, losses = room.odds[label], room.belief[label], room.losses[label]
        for r in range(size):
            small = exp_negative(-abs(odds[r]))
            belief[r] = (1.0 if odds[r] >= 0 else small) / (1.0 + small)
            losses[r] = max(odds[r], 0.0) + log1p_unit(small)


@compiled
def learn_block(
    inputs: NDArray[np.float64],
    rows: NDArray[np.int64],
    chances: NDArray[np.float64],
    real: bool,
    share: float,
    opponents: Opponents,
    slope: Opponents,
    room: Room,
) -> float:
    """Add a block's part of the gradient of the robustness discriminator; returns its part of the loss.

    A sample counts ``share`` times the chance of each label: for real samples that is 1 for their own.
    """
    entry, exit_, k = opponents.entry, opponents.exit, inputs.shape[1]
    judge(inputs, rows, entry, exit_, room)
    total = 0.0
    for r in range(rows.size):
        lanes = room.lanes
        lanes[:] = 0.0
        for label in range(2):
            sign = 2.0 * label - 1.0
            mass = share * (chances[r] if label == 1 else 1.0 - chances[r])
            total += mass * (room.losses[label, r] - (room.odds[label, r] if real else 0.0))
            pull = mass * (room.belief[label, r] - (1.0 if real else 0.0))
            slope.exit[HIDDEN] += pull
            for h in range(HIDDEN):
                value = room.hidden[r, h] + sign * entry[k, h]
                rise = 1.0 if value > 0 else LEAK
                slope.exit[h] += pull * rise * value
                back = pull * rise * exit_[h]
                lanes[h] += back
                slope.entry[k, h] += sign * back
        for h in range(HIDDEN):
            slope.entry[k + 1, h] += lanes[h]
        for j in range(k):
            x = inputs[rows[r], j]
            for h in range(HIDDEN):
                slope.entry[j, h] += x * lanes[h]
    return total


@compiled
def teach_robust(
    board: Board,
    rows: NDArray[np.int64],
    everyone: NDArray[np.int64],
    opponents: Opponents,
    slope: Opponents,
    rate: float,
    room: Room,
) -> float:
    """One step of the robustness discriminator; returns its loss before the step."""
    slope.entry[:] = 0.0
    slope.exit[:] = 0.0
    total = 0.0
    for first in range(0, rows.size, BLOCK):
        block = rows[first : first + BLOCK]
        chances = room.chances[first : first + BLOCK]
        total += learn_block(board.inputs, block, chances, False, 1.0 / rows.size, opponents, slope, room)
    for first in range(0, everyone.size, BLOCK):
        block = everyone[first : first + BLOCK]
        chances = board.real_labels[first : first + BLOCK]
        total += learn_block(
            board.real_inputs, block, chances, True, 1.0 / everyone.size, opponents, slope, room
        )
    opponents.entry[:] -= rate * slope.entry
    opponents.exit[:] -= rate * slope.exit
    return total


@compiled
def blame(board: Board, i: int, chance: float, fair: NDArray[np.float64], wrong: NDArray[np.float64]) -> None:
    """Probability of each group but the first, less 1 for the sample's own: what softmax's loss falls by."""
    inputs = fair.shape[1] - 1
    highest = 0.0
    for g in range(fair.shape[0]):
        wrong[g] = fair[g, 0] * (2.0 * chance - 1.0) + fair[g, inputs]
        if inputs == 2:
            wrong[g] += fair[g, 1] * (2.0 * board.labels[i] - 1.0)
        highest = max(highest, wrong[g])
    total = exp_negative(-highest)
    for g in range(fair.shape[0]):
        wrong[g] = exp_negative(wrong[g] - highest)
        total += wrong[g]
    for g in range(fair.shape[0]):
        wrong[g] = wrong[g] / total - (1.0 if board.groups[i] == g + 1 else 0.0)


@compiled
def teach_fair(
    board: Board,
    rows: NDArray[np.int64],
    opponents: Opponents,
    slope: Opponents,
    rate: float,
    room: Room,
    wrong: NDArray[np.float64],
) -> None:
    """One step of the fairness discriminator."""
    fair = opponents.fair
    inputs = fair.shape[1] - 1
    slope.fair[:] = 0.0
    total = 0.0
    for r in range(rows.size):
        i = rows[r]
        if board.counted[i] == 0:
            continue
        total += 1.0
        blame(board, i, room.chances[r], fair, wrong)
        for g in range(fair.shape[0]):
            slope.fair[g, 0] += wrong[g] * (2.0 * room.chances[r] - 1.0)
            if inputs == 2:
                slope.fair[g, 1] += wrong[g] * (2.0 * board.labels[i] - 1.0)
            slope.fair[g, inputs] += wrong[g]
    fair[:] -= rate / max(total, 1.0) * slope.fair


@compiled
def objections(
    board: Board,
    rows: NDArray[np.int64],
    opponents: Opponents,
    stakes: Stakes,
    room: Room,
    wrong: NDArray[np.float64],
    pulls: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """How −λf·L_fair − λr·L_robust moves with each sample's Pr(ŷ = 1), and each sample's weight."""
    fair, total = opponents.fair, 0.0
    for r in range(rows.size):
        total += board.counted[rows[r]]
    for first in range(0, rows.size, BLOCK):
        block = rows[first : first + BLOCK]
        judge(board.inputs, block, opponents.entry, opponents.exit, room)
        for r in range(block.size):
            i = block[r]
            gain = room.losses[1, r] - room.losses[0, r]
            pulls[first + r] = -stakes.robustness_weight * gain / rows.size
            weights[first + r] = room.belief[board.labels[i], r]
    for r in range(rows.size):
        i = rows[r]
        if board.counted[i] > 0:
            blame(board, i, room.chances[r], fair, wrong)
            for g in range(fair.shape[0]):
                pulls[r] -= stakes.fairness_weight * 2.0 * wrong[g] * fair[g, 0] / total
    weights /= max(weights.mean(), 1e-300)


@compiled
def classifier_slope(
    board: Board,
    rows: NDArray[np.int64],
    share: float,
    room: Room,
    pulls: NDArray[np.float64],
    weights: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> None:
    """Gradient of the classifier's objective; ``share`` is the weight of its own loss."""
    d = board.features.shape[1]
    slope[:] = 0.0
    for r in range(rows.size):
        i, chance = rows[r], room.chances[r]
        step = share * weights[r] * 2.0 * (chance - board.labels[i]) / rows.size
        step += pulls[r] * 2.0 * chance * (1.0 - chance)
        for j in range(d):
            slope[j] += step * board.features[i, j]
        slope[d] += step


@compiled
def play(
    board: Board,
    stakes: Stakes,
    opponents: Opponents,
    slope: Opponents,
    parameters: NDArray[np.float64],
    adam: Adam,
    batches: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Play the epochs from ``first`` up to ``last``, in turn with each of the batches.

    ``opponents``, ``parameters`` and ``adam`` are updated in place.
    """
    size = batches.shape[1]
    room, everyone = new_room(size), np.arange(board.real_labels.size)
    wrong, pulls, weights = np.empty(opponents.fair.shape[0]), np.zeros(size), np.ones(size)
    gradient = np.empty(parameters.size)
    for epoch in range(first, last):
        rows = batches[(epoch - first) % batches.shape[0]]
        scores(board.features, rows, parameters, room.out)
        for r in range(size):
            room.chances[r] = sigmoid(2.0 * room.out[r, 0])
        turn = epoch - stakes.pretrain_epochs + 1
        if turn <= 0:
            pulls[:] = 0.0
            weights[:] = 1.0
            classifier_slope(board, rows, 1.0, room, pulls, weights, gradient)
            adam_step(parameters, gradient, adam, stakes.classifier_rate)
            continue
        teach_fair(board, rows, opponents, slope, stakes.discriminator_rate, room, wrong)
        loss = teach_robust(board, rows, everyone, opponents, slope, stakes.discriminator_rate, room)
        if turn % stakes.discriminator_updates == 0:
            objections(board, rows, opponents, stakes, room, wrong, pulls, weights)
            if loss >= COIN:  # it has not learned enough to be asked for weights
                weights[:] = 1.0
            share = 1.0 - stakes.fairness_weight - stakes.robustness_weight
            classifier_slope(board, rows, share, room, pulls, weights, gradient)
            adam_step(parameters, gradient, adam, stakes.classifier_rate)
