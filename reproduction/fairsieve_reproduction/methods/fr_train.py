"""FR-Train (Roh et al. 2020): a linear classifier that plays against two discriminators; two classes, two groups.

The *fairness* discriminator tells a sample's group from the classifier's output (for equalized odds, with the label as
a second input). The *robustness* discriminator tells training samples with the classifier's output from samples of a
clean validation set with their labels. The classifier minimises (1 − λf − λr)·L₁ − λf·L_fair − λr·L_robust, where L₁
weighs samples by the robustness discriminator.

There are two named settings of the one game. **published** is what its authors published: discriminators see the
raw output f(x) and take steps of .001; every 100 epochs samples are weighed anew by a·D(x, z, f(x)) + 1 − a with a
= σ(ratio of the classifier's objective to the discriminator's loss − 3); the first 500 epochs train the classifier
by a tenth of its loss. With them the paper's numbers are not reached. **ours** settles by experiment what makes FR-
Train strong: the robustness discriminator sees a label that is 1 with the classifier's probability, in expectation
(handing over the probability lets it win by noticing that it is neither 0 nor 1), and scaled features;
discriminators take steps of .05, and samples are weighed by D(x, z, y) once that tells more than a coin.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.benchmark.methods import Trained, TrainingInput
from fairsieve.errors import FairsieveError, require
from fairsieve.notions import EO, EOPP
from fairsieve.samples import Samples
from fairsieve.training.linear_trainer import Adam, adam_step
from fairsieve.training.trainer import Settings
from fairsieve_reproduction.methods.selection import train_loop, trained_linear

HIDDEN, LEAK = 16, 0.2
COIN = 2 * math.log(2.0)  # loss of a robustness discriminator that cannot tell anything
UPDATE_EVERY, WEIGH_EVERY = 5, 100
PRETRAIN_EPOCHS, PRETRAIN_SHARE = 500, 0.1
CLASSIFIER_RATE = 0.001
ROBUSTNESS_WEIGHT = 0.4
BATCH_LIMIT = 2_000  # an update looks at all samples, or at parts of a shuffle of this size in turn

Floats = NDArray[np.float64]


class _Game(NamedTuple):
    """The samples, the settings, and the players' parameters, which are changed in place.

    Samples come in parts of equal size, which take turns; the samples of a part are the last axis, along which all
    loops run, so that the compiler makes several at once.
    """

    features: Floats  # (parts, d, n), what the classifier sees
    inputs: Floats  # (parts, k, n), what the robustness discriminator sees beside a label; the last is 1, for a bias
    labels: Floats  # (parts, n) −1 or 1
    groups: Floats  # (parts, n) 0 or 1
    counted: Floats  # (parts, n) 1 where the notion of fairness looks at a sample, else 0
    real: Floats  # (real parts, k, m), the inputs of samples with right labels
    real_labels: Floats  # (real parts, m) −1 or 1
    published: bool
    sees_label: bool  # whether the fairness discriminator does
    fairness_weight: float
    robustness_weight: float
    rate: float  # of the discriminators
    classifier: Floats  # (d + 1,)
    fair: Floats  # (3,): of the output, of the label, bias
    entry: Floats  # (k + 1, HIDDEN): of the inputs, of the label
    exit: Floats  # (HIDDEN + 1,)


def _evaluate(hidden: Any, labels: Any, entry: Any, exit_: Any, logits: Any) -> None:
    """Compute the robustness discriminator's logits of "real"."""
    logits[:] = exit_[HIDDEN]
    for h in range(HIDDEN):
        of_label, weight = entry[entry.shape[0] - 1, h], exit_[h]
        for r in range(logits.size):
            value = hidden[h, r] + labels[r] * of_label
            logits[r] += weight * max(value, LEAK * value)


def _add_slopes(
    inputs: Any, hidden: Any, labels: Any, pull: Any, entry: Any, exit_: Any, slopes: Any, exit_slopes: Any
) -> None:
    """Add the robustness discriminator's gradient; ``pull`` is that of the samples' logits."""
    last, back = entry.shape[0] - 1, np.empty_like(hidden)
    for h in range(HIDDEN):
        of_label, of_exit, by_label = entry[last, h], 0.0, 0.0
        for r in range(pull.size):
            value = hidden[h, r] + labels[r] * of_label
            change = pull[r] * (1.0 if value > 0 else LEAK)
            of_exit += change * value
            by_label += change * labels[r]
            back[h, r] = exit_[h] * change
        exit_slopes[h] += of_exit
        slopes[last, h] += exit_[h] * by_label
    slopes[:last] += np.dot(inputs, back.T)
    exit_slopes[HIDDEN] += pull.sum()


def _play(game: Any, epochs: int) -> None:
    """Run the game; the players' parameters are changed in place."""
    d, n, m = game.classifier.size - 1, game.labels.shape[1], game.real_labels.shape[1]
    last = game.entry.shape[0] - 1
    hidden, real_hidden = np.zeros((HIDDEN, n)), np.zeros((HIDDEN, m))
    logits, pull, shown = np.zeros(n), np.zeros(n), np.zeros(n)
    real_logits, real_pull = np.zeros(m), np.zeros(m)
    slopes, exit_slopes = np.zeros_like(game.entry), np.zeros_like(game.exit)
    out, chance, seen, weights = np.zeros(n), np.zeros(n), np.zeros(n), np.ones_like(game.labels)
    slope, adam = np.zeros(d + 1), Adam(np.zeros(d + 1), np.zeros(d + 1), np.zeros(1, np.int64))
    share = 1.0 - game.fairness_weight - game.robustness_weight
    half = 0.5 if game.published else 1.0
    objective, robust_loss, looked_at = 1.0, 1.0, 1.0
    for epoch in range(epochs):
        part, real_part = epoch % game.labels.shape[0], epoch % game.real_labels.shape[0]
        features, inputs, labels = game.features[part], game.inputs[part], game.labels[part]
        groups, counted, weight = game.groups[part], game.counted[part], weights[part]
        np.dot(game.classifier[:d], features, out)
        for r in range(n):
            out[r] += game.classifier[d]
            chance[r] = 1.0 / (1.0 + math.exp(-2.0 * out[r]))
            seen[r] = out[r] if game.published else 2.0 * chance[r] - 1.0
        pretrain = epoch < PRETRAIN_EPOCHS
        turn = epoch - PRETRAIN_EPOCHS + (0 if game.published else 1)
        measured = epoch % WEIGH_EVERY == 0 if game.published else turn % UPDATE_EVERY == 0
        if game.published or not pretrain:
            # The fairness discriminator takes a step.
            of_output = of_label = of_bias = 0.0
            for r in range(n):
                logit = game.fair[0] * seen[r] + game.fair[1] * labels[r] + game.fair[2]
                wrong = counted[r] * (1.0 / (1.0 + math.exp(-logit)) - groups[r])
                of_output += wrong * seen[r]
                of_label += wrong * labels[r]
                of_bias += wrong
            looked_at = max(counted.sum(), 1.0)
            game.fair[0] -= game.rate * of_output / looked_at
            if game.sees_label:
                game.fair[1] -= game.rate * of_label / looked_at
            game.fair[2] -= game.rate * of_bias / looked_at
            # The robustness discriminator takes a step. Fakes have the classifier's output, or either label by its
            # chance.
            slopes[:] = 0.0
            exit_slopes[:] = 0.0
            loss = 0.0
            np.dot(game.entry[:last].T, inputs, hidden)
            for side in range(1 if game.published else 2):
                for r in range(n):
                    shown[r] = out[r] if game.published else 2.0 * side - 1.0
                _evaluate(hidden, shown, game.entry, game.exit, logits)
                for r in range(n):
                    mass = 1.0 if game.published else (chance[r] if side == 1 else 1.0 - chance[r])
                    odds = 1.0 / (1.0 + math.exp(-logits[r]))
                    pull[r] = half / n * mass * odds
                    if measured:
                        loss -= half / n * mass * math.log(max(1.0 - odds, 1e-300))
                _add_slopes(inputs, hidden, shown, pull, game.entry, game.exit, slopes, exit_slopes)
            real, real_labels = game.real[real_part], game.real_labels[real_part]
            np.dot(game.entry[:last].T, real, real_hidden)
            _evaluate(real_hidden, real_labels, game.entry, game.exit, real_logits)
            for r in range(m):
                odds = 1.0 / (1.0 + math.exp(-real_logits[r]))
                real_pull[r] = half / m * (odds - 1.0)
                if measured:
                    loss -= half / m * math.log(max(odds, 1e-300))
            _add_slopes(real, real_hidden, real_labels, real_pull, game.entry, game.exit, slopes, exit_slopes)
            game.entry[:] -= game.rate * slopes
            game.exit[:] -= game.rate * exit_slopes
            if measured:
                robust_loss = loss
        if not pretrain and turn % UPDATE_EVERY != 0:
            continue
        # The classifier takes a step of Adam; pull is the gradient of its outputs.
        told = 0.0
        if pretrain:
            for r in range(n):
                right = chance[r] if labels[r] > 0 else 1.0 - chance[r]
                pull[r] = (
                    (PRETRAIN_SHARE if game.published else 1.0) * 2.0 * (chance[r] - 0.5 * (labels[r] + 1.0))
                )
                told -= PRETRAIN_SHARE * math.log(max(right, 1e-300))
        else:
            np.dot(game.entry[:last].T, inputs, hidden)
            if game.published:
                blend = 0.0
                if epoch % WEIGH_EVERY == 0:
                    blend = 1.0 / (1.0 + math.exp(3.0 - objective / max(robust_loss, 1e-12)))
                _evaluate(hidden, out, game.entry, game.exit, logits)
            else:
                _evaluate(hidden, labels, game.entry, game.exit, logits)
                for r in range(n):
                    weight[r] = 1.0 / (1.0 + math.exp(-logits[r]))
                weight /= max(weight.mean(), 1e-300)
                # what the discriminator makes of a label of 1, against −1
                _evaluate(hidden, np.ones(n), game.entry, game.exit, logits)
                _evaluate(hidden, -np.ones(n), game.entry, game.exit, shown)
            for r in range(n):
                y = labels[r]
                logit = game.fair[0] * seen[r] + game.fair[1] * y + game.fair[2]
                guess = 1.0 / (1.0 + math.exp(-logit))
                wrong = counted[r] * (guess - groups[r])
                if game.published:
                    odds = 1.0 / (1.0 + math.exp(-logits[r]))
                    if blend > 0:
                        weight[r] = blend * odds + 1.0 - blend
                    through = 0.0
                    for h in range(HIDDEN):
                        value = hidden[h, r] + out[r] * game.entry[last, h]
                        through += (1.0 if value > 0 else LEAK) * game.exit[h] * game.entry[last, h]
                    missed = 1.0 / (1.0 + math.exp(y * out[r]))
                    pull[r] = -share * weight[r] * y * missed
                    pull[r] -= game.fairness_weight * game.fair[0] * weight[r] * wrong
                    pull[r] -= game.robustness_weight * odds * through
                    right = guess if groups[r] > 0 else 1.0 - guess
                    told -= share * weight[r] * math.log(max(1.0 - missed, 1e-300))
                    told += game.fairness_weight * weight[r] * counted[r] * math.log(max(right, 1e-300))
                    told += game.robustness_weight * math.log(max(1.0 - odds, 1e-300))
                else:
                    gain = math.log1p(math.exp(logits[r])) - math.log1p(math.exp(shown[r]))
                    pull[r] = -game.robustness_weight * gain
                    pull[r] -= game.fairness_weight * 2.0 * game.fair[0] * wrong * n / looked_at
                    pull[r] *= 2.0 * chance[r] * (1.0 - chance[r])
                    trust = weight[r] if robust_loss < COIN else 1.0
                    pull[r] += share * trust * 2.0 * (chance[r] - 0.5 * (y + 1.0))
        objective = told / n
        slope[:d] = np.dot(features, pull) / n
        slope[d] = pull.sum() / n
        adam_step(game.classifier, slope, adam, CLASSIFIER_RATE)


@cache
def _compiled() -> Any:
    """Compile the game; it is cached on disk where a folder can be written."""
    require("numba", purpose="FR-Train")
    from fairsieve_reproduction.methods.compiled import compiled

    for name in ("_evaluate", "_add_slopes", "_play"):
        globals()[name] = compiled(globals()[name], fastmath=True)
    return globals()["_play"]


def train_fr_train(
    given: TrainingInput, fairness_weight: float = 0.4, game_epochs: int = 10_000, *, published: bool = False
) -> Trained:
    """Train FR-Train with settings of ours, or the published ones."""
    play = _compiled()
    game = _new_game(given, published, fairness_weight)
    play(game, game_epochs)
    if not np.isfinite(game.classifier).all():
        raise FairsieveError("training diverged: losses are not numbers. Scale the features")
    return trained_linear(game.classifier, given.data, epochs=game_epochs)


def _new_game(given: TrainingInput, published: bool, fairness_weight: float) -> _Game:
    """Prepare the arrays, and draw the players' first parameters."""
    data, validation, settings = given.data, given.validation, given.settings
    assert validation is not None
    rng = np.random.default_rng(given.seed)
    x, real = (part.features.astype(np.float64) for part in (data, validation))
    inputs, real_inputs = x, real
    if not published:  # indicators are not centred
        scale = x.std(axis=0)
        scale[scale == 0] = 1.0
        shift = np.where(((x == 0) | (x == 1)).all(axis=0), 0.0, x.mean(axis=0))
        inputs, real_inputs = (x - shift) / scale, (real - shift) / scale
    inputs, real_inputs = (np.column_stack([part, np.ones(len(part))]) for part in (inputs, real_inputs))
    labels, right = (2.0 * part.cells.label_codes.astype(np.float64) - 1 for part in (data, validation))
    counted = np.ones(len(data))
    if settings.fairness == EOPP:
        counted = (data.cells.label_codes == data.cells.class_index(settings.pos_label)).astype(np.float64)
    k = inputs.shape[1]
    if published:
        entry, exit_ = rng.normal(0, 0.2, (k + 1, HIDDEN)), np.append(rng.normal(0, 0.2, HIDDEN), 0.0)
        entry[k - 1] = 0.0  # the bias
        fair = np.append(rng.normal(0, 0.2, 2), 0.0)
    else:
        reach, reach_out = 1 / np.sqrt(k), 1 / np.sqrt(HIDDEN)
        entry = rng.uniform(-reach, reach, (k + 1, HIDDEN))
        exit_ = rng.uniform(-reach_out, reach_out, HIDDEN + 1)
        fair = np.zeros(3)
    shuffle = np.random.default_rng([given.seed, 1])
    parts, real_parts = _parts(len(data), shuffle), _parts(len(validation), shuffle)
    sees_label = settings.fairness == EO
    fair[1] = fair[1] if sees_label else 0.0
    return _Game(
        _columns(x, parts),
        _columns(inputs, parts),
        labels[parts],
        (data.cells.group_codes > 0).astype(np.float64)[parts],
        counted[parts],
        _columns(real_inputs, real_parts),
        right[real_parts],
        published,
        sees_label,
        fairness_weight,
        ROBUSTNESS_WEIGHT,
        0.001 if published else 0.05,
        np.append(rng.normal(0, 0.2, x.shape[1]), 0.0),
        fair,
        entry,
        exit_,
    )


def _columns(dense: Floats, parts: NDArray[np.int64]) -> Floats:
    """Return the columns of each part, (parts, columns, samples)."""
    return np.ascontiguousarray(dense[parts].transpose(0, 2, 1))


def _parts(samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of updates in turn: all samples, or equal parts of one shuffle."""
    size = min(samples, BATCH_LIMIT)
    return rng.permutation(samples)[: samples // size * size].reshape(-1, size)


def clean_with_itlm(validation: Samples, clean_ratio: float) -> Samples:
    """Return what ITLM selects of a noisy validation set after training on it (Table 3).

    Batches are a twentieth of the set, so that a small one gets as many updates as the paper's 2,000 samples in batches
    of 100.
    """
    batch_size = max(1, len(validation) // 20)
    settings = Settings(clean_ratio=clean_ratio, batch_size=batch_size)
    given = TrainingInput(data=validation, settings=settings, seed=0)
    return validation.take(train_loop(given, "itlm").indices)
