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

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.optional import require
from fairsieve.paper.methods.contract import Trained, TrainFunction, TrainingInput, trained_by_scores
from fairsieve.paper.methods.selection import loop_trainer
from fairsieve.samples import Samples
from fairsieve.training.settings import Settings
from fairsieve.validation import check_at_least, check_share

__all__ = ["clean_with_itlm", "fr_train_trainer"]

HIDDEN, LEAK = 16, 0.2
COIN = 2 * math.log(2.0)  # loss of a robustness discriminator that cannot tell anything
UPDATE_EVERY, WEIGH_EVERY = 5, 100
PRETRAIN_EPOCHS, PRETRAIN_SHARE = 500, 0.1
CLASSIFIER_RATE = 0.001
BATCH_LIMIT = 2_000  # an update looks at all samples, or at parts of a shuffle of this size in turn

Floats = NDArray[np.float64]


class _Rows(NamedTuple):
    """Features without most of their zeros: every row has as many entries as the fullest one."""

    columns: NDArray[np.int64]  # (n, width)
    values: Floats  # (n, width)


class _Game(NamedTuple):
    """The samples, the settings, and the players' parameters, which are changed in place."""

    features: _Rows  # of n samples, what the classifier sees
    inputs: _Rows  # what the robustness discriminator sees beside a label; the last is 1, for a bias
    labels: Floats  # (n,) −1 or 1
    groups: Floats  # (n,) 0 or 1
    counted: Floats  # (n,) 1 where the notion of fairness looks at a sample, else 0
    real: _Rows  # the inputs of m samples with right labels
    real_labels: Floats  # (m,) −1 or 1
    published: bool
    sees_label: bool  # whether the fairness discriminator does
    fairness_weight: float
    robustness_weight: float
    rate: float  # of the discriminators
    classifier: Floats  # (d + 1,)
    fair: Floats  # (3,): of the output, of the label, bias
    entry: Floats  # (k + 1, HIDDEN): of the inputs, of the label
    exit: Floats  # (HIDDEN + 1,)


def _evaluate(label: float, entry: Any, exit_: Any, hidden: Any) -> Any:
    """Compute the robustness discriminator's logit of "real"; ``hidden`` holds the units without the label."""
    of_label, logit = entry[entry.shape[0] - 1], exit_[HIDDEN]
    for h in range(HIDDEN):
        value = hidden[h] + label * of_label[h]
        logit += exit_[h] * (value if value > 0 else LEAK * value)
    return logit


def _fill(i: int, rows: Any, entry: Any, hidden: Any) -> None:
    """Compute the hidden units of a sample, without its label."""
    for h in range(HIDDEN):
        hidden[h] = 0.0
    for j in range(rows.columns.shape[1]):
        weights, value = entry[rows.columns[i, j]], rows.values[i, j]
        for h in range(HIDDEN):
            hidden[h] += value * weights[h]


def _add_slope(
    label: float,
    pull: float,
    entry: Any,
    exit_: Any,
    hidden: Any,
    back: Any,
    label_slope: Any,
    exit_slope: Any,
) -> None:
    """Add a sample's part of the robustness discriminator's gradient; ``back`` collects that of its hidden units."""
    of_label = entry[entry.shape[0] - 1]
    for h in range(HIDDEN):
        value = hidden[h] + label * of_label[h]
        bend = 1.0 if value > 0 else LEAK
        exit_slope[h] += pull * bend * value
        change = pull * bend * exit_[h]
        label_slope[h] += change * label
        back[h] += change
    exit_slope[HIDDEN] += pull


def _add_inputs(i: int, rows: Any, back: Any, slope: Any) -> None:
    """Add the part of the weights of a sample's inputs."""
    for j in range(rows.columns.shape[1]):
        own, value = slope[rows.columns[i, j]], rows.values[i, j]
        for h in range(HIDDEN):
            own[h] += value * back[h]


def _play(game: Any, parts: Any, real_parts: Any, epochs: int) -> None:
    """Run the game, with the parts of the samples in turn; the players' parameters are changed in place."""
    d, k, most = game.classifier.size - 1, game.entry.shape[0] - 1, parts.shape[1]
    features, inputs = game.features, game.inputs
    hidden, back = np.zeros(HIDDEN), np.zeros(HIDDEN)
    entry, exit_ = np.zeros_like(game.entry), np.zeros_like(game.exit)
    out, chance, weights = np.zeros(most), np.zeros(most), np.ones(game.labels.size)
    slope, first, second = np.zeros(d + 1), np.zeros(d + 1), np.zeros(d + 1)
    share = 1.0 - game.fairness_weight - game.robustness_weight
    steps, objective, robust_loss = 0, 1.0, 1.0
    for epoch in range(epochs):
        rows, real = parts[epoch % parts.shape[0]], real_parts[epoch % real_parts.shape[0]]
        n, m = rows.size, real.size
        for r in range(n):
            total = game.classifier[d]
            for j in range(features.columns.shape[1]):
                total += features.values[rows[r], j] * game.classifier[features.columns[rows[r], j]]
            out[r] = total
            chance[r] = 1.0 / (1.0 + math.exp(-2.0 * total))
        pretrain = epoch < PRETRAIN_EPOCHS
        turn = epoch - PRETRAIN_EPOCHS + (0 if game.published else 1)
        measured = epoch % WEIGH_EVERY == 0 if game.published else turn % UPDATE_EVERY == 0
        if game.published or not pretrain:
            # The fairness discriminator takes a step.
            of_output = of_label = of_bias = counted = 0.0
            for r in range(n):
                i = rows[r]
                seen = out[r] if game.published else 2.0 * chance[r] - 1.0
                logit = game.fair[0] * seen + game.fair[1] * game.labels[i] + game.fair[2]
                wrong = game.counted[i] * (1.0 / (1.0 + math.exp(-logit)) - game.groups[i])
                of_output += wrong * seen
                of_label += wrong * game.labels[i]
                of_bias += wrong
                counted += game.counted[i]
            counted = max(counted, 1.0)
            game.fair[0] -= game.rate * of_output / counted
            if game.sees_label:
                game.fair[1] -= game.rate * of_label / counted
            game.fair[2] -= game.rate * of_bias / counted
            # The robustness discriminator takes a step: (input label, its mass) of fakes, then of real samples.
            entry[:] = 0.0
            exit_[:] = 0.0
            half = 0.5 if game.published else 1.0
            loss = 0.0
            for r in range(n):
                _fill(rows[r], inputs, game.entry, hidden)
                back[:] = 0.0
                for side in range(1 if game.published else 2):
                    label = out[r] if game.published else 2.0 * side - 1.0
                    mass = 1.0 if game.published else (chance[r] if side == 1 else 1.0 - chance[r])
                    odds = 1.0 / (1.0 + math.exp(-_evaluate(label, game.entry, game.exit, hidden)))
                    mass *= half / n
                    if measured:
                        loss -= mass * math.log(max(1.0 - odds, 1e-300))
                    _add_slope(label, mass * odds, game.entry, game.exit, hidden, back, entry[k], exit_)
                _add_inputs(rows[r], inputs, back, entry)
            for r in range(m):
                _fill(real[r], game.real, game.entry, hidden)
                back[:] = 0.0
                label = game.real_labels[real[r]]
                odds = 1.0 / (1.0 + math.exp(-_evaluate(label, game.entry, game.exit, hidden)))
                if measured:
                    loss -= half / m * math.log(max(odds, 1e-300))
                pull = half / m * (odds - 1.0)
                _add_slope(label, pull, game.entry, game.exit, hidden, back, entry[k], exit_)
                _add_inputs(real[r], game.real, back, entry)
            game.entry[:] -= game.rate * entry
            game.exit[:] -= game.rate * exit_
            if measured:
                robust_loss = loss
        if not pretrain and turn % UPDATE_EVERY != 0:
            continue
        # The classifier takes a step of Adam.
        slope[:] = 0.0
        blend = 0.0
        if game.published and epoch % WEIGH_EVERY == 0:
            blend = 1.0 / (1.0 + math.exp(3.0 - objective / max(robust_loss, 1e-12)))
        told, mean_weight = 0.0, 0.0
        if not pretrain and not game.published:
            for r in range(n):
                i = rows[r]
                _fill(i, inputs, game.entry, hidden)
                weights[i] = 1.0 / (1.0 + math.exp(-_evaluate(game.labels[i], game.entry, game.exit, hidden)))
                mean_weight += weights[i] / n
        for r in range(n):
            i, y = rows[r], game.labels[rows[r]]
            if pretrain:
                pull = (PRETRAIN_SHARE if game.published else 1.0) * 2.0 * (chance[r] - 0.5 * (y + 1.0))
                told -= PRETRAIN_SHARE * math.log(max(chance[r] if y > 0 else 1.0 - chance[r], 1e-300))
            else:
                _fill(i, inputs, game.entry, hidden)
                seen = out[r] if game.published else 2.0 * chance[r] - 1.0
                logit = game.fair[0] * seen + game.fair[1] * y + game.fair[2]
                guess = 1.0 / (1.0 + math.exp(-logit))
                wrong = game.counted[i] * (guess - game.groups[i])
                if game.published:
                    odds = 1.0 / (1.0 + math.exp(-_evaluate(out[r], game.entry, game.exit, hidden)))
                    if blend > 0:
                        weights[i] = blend * odds + 1.0 - blend
                    through = 0.0
                    for h in range(HIDDEN):
                        value = hidden[h] + out[r] * game.entry[k, h]
                        through += (1.0 if value > 0 else LEAK) * game.exit[h] * game.entry[k, h]
                    missed = 1.0 / (1.0 + math.exp(y * out[r]))
                    pull = -share * weights[i] * y * missed
                    pull -= game.fairness_weight * game.fair[0] * weights[i] * wrong
                    pull -= game.robustness_weight * odds * through
                    right = guess if game.groups[i] > 0 else 1.0 - guess
                    told -= share * weights[i] * math.log(max(1.0 - missed, 1e-300))
                    told += game.fairness_weight * weights[i] * game.counted[i] * math.log(max(right, 1e-300))
                    told += game.robustness_weight * math.log(max(1.0 - odds, 1e-300))
                else:
                    weight = weights[i] / max(mean_weight, 1e-300) if loss < COIN else 1.0
                    gain = math.log1p(math.exp(_evaluate(1.0, game.entry, game.exit, hidden)))
                    gain -= math.log1p(math.exp(_evaluate(-1.0, game.entry, game.exit, hidden)))
                    pull = -game.robustness_weight * gain
                    pull -= game.fairness_weight * 2.0 * game.fair[0] * wrong * n / counted
                    pull *= 2.0 * chance[r] * (1.0 - chance[r])
                    pull += share * weight * 2.0 * (chance[r] - 0.5 * (y + 1.0))
            for j in range(features.columns.shape[1]):
                slope[features.columns[i, j]] += pull * features.values[i, j] / n
            slope[d] += pull / n
        objective = told / n
        steps += 1
        for j in range(d + 1):
            first[j] = 0.9 * first[j] + 0.1 * slope[j]
            second[j] = 0.999 * second[j] + 0.001 * slope[j] ** 2
            size = math.sqrt(second[j] / (1.0 - 0.999**steps)) + 1e-8
            game.classifier[j] -= CLASSIFIER_RATE * first[j] / (1.0 - 0.9**steps) / size


@cache
def _compiled() -> Any:
    """Compile the game; it is cached on disk where the package's folder can be written."""
    numba = require("numba", extra="reproduce", purpose="FR-Train")
    compile_one = numba.njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
    for name in ("_evaluate", "_fill", "_add_slope", "_add_inputs", "_play"):
        globals()[name] = compile_one(globals()[name])
    return globals()["_play"]


def fr_train_trainer(setting: str) -> TrainFunction:
    """Make the train function of FR-Train with ``"ours"`` or ``"published"`` settings."""
    published = setting == "published"

    def train(
        given: TrainingInput,
        fairness_weight: float = 0.3 if published else 0.4,
        robustness_weight: float = 0.4,
        game_epochs: int = 10_000,
    ) -> Trained:
        check_share("fairness_weight", fairness_weight)
        check_share("robustness_weight", robustness_weight)
        check_at_least("game_epochs", game_epochs, 1)
        if fairness_weight + robustness_weight > 1 + 1e-9:
            raise InvalidInputError(
                f"fairness_weight and robustness_weight must sum to at most 1; got {fairness_weight} and "
                f"{robustness_weight}"
            )
        play = _compiled()
        game = _new_game(given, published, float(fairness_weight), float(robustness_weight))
        rng = np.random.default_rng([given.seed, 1])
        play(game, *(_parts(len(part), rng) for part in (game.labels, game.real_labels)), game_epochs)
        found = game.classifier
        if not np.isfinite(found).all():
            raise FairsieveError("training diverged: losses are not numbers. Scale the features")
        return trained_by_scores(lambda x: x @ found[:-1] + found[-1], given.data, epochs=game_epochs)

    return train


def _new_game(
    given: TrainingInput, published: bool, fairness_weight: float, robustness_weight: float
) -> _Game:
    """Prepare the arrays, and draw the players' first parameters."""
    data, validation, settings = given.data, given.validation, given.settings
    assert validation is not None
    rng = np.random.default_rng(given.seed)
    x, real = (part.features.reshape(len(part), -1).astype(np.float64) for part in (data, validation))
    inputs, real_inputs = x, real
    if not published:  # indicators are not centred, so that they stay sparse
        scale = x.std(axis=0)
        scale[scale == 0] = 1.0
        shift = np.where(((x == 0) | (x == 1)).all(axis=0), 0.0, x.mean(axis=0))
        inputs, real_inputs = (x - shift) / scale, (real - shift) / scale
    inputs, real_inputs = (np.column_stack([part, np.ones(len(part))]) for part in (inputs, real_inputs))
    labels, right = (2.0 * part.cells.label_codes.astype(np.float64) - 1 for part in (data, validation))
    counted = np.ones(len(data))
    if settings.fairness == "equal_opportunity":
        counted = (data.cells.label_codes == data.cells.class_index(settings.pos_label)).astype(np.float64)
    k = inputs.shape[1]
    if published:
        entry, exit_ = rng.normal(0, 0.2, (k + 1, HIDDEN)), np.append(rng.normal(0, 0.2, HIDDEN), 0.0)
        entry[k - 1] = 0.0  # the bias
        fair = np.append(rng.normal(0, 0.2, 2), 0.0)
    else:
        reach, reach_out = 1 / np.sqrt(k), 1 / np.sqrt(HIDDEN)
        entry, exit_ = (
            rng.uniform(-reach, reach, (k + 1, HIDDEN)),
            rng.uniform(-reach_out, reach_out, HIDDEN + 1),
        )
        fair = np.zeros(3)
    sees_label = settings.fairness == "equalized_odds"
    fair[1] = fair[1] if sees_label else 0.0
    return _Game(
        _sparse(x),
        _sparse(inputs),
        labels,
        (data.cells.group_codes > 0).astype(np.float64),
        counted,
        _sparse(real_inputs),
        right,
        published,
        sees_label,
        fairness_weight,
        robustness_weight,
        0.001 if published else 0.05,
        np.append(rng.normal(0, 0.2, x.shape[1]), 0.0),
        fair,
        entry,
        exit_,
    )


def _sparse(dense: Floats) -> _Rows:
    """Store rows without their zeros; the last entries of some rows are zeros of some column."""
    width = max(1, int((dense != 0).sum(axis=1).max(initial=1)))
    columns = np.sort(np.argsort(dense == 0, axis=1, kind="stable")[:, :width], axis=1)
    return _Rows(columns, np.take_along_axis(dense, columns, axis=1))


def _parts(samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of updates in turn: all samples, or equal parts of one shuffle."""
    size = min(samples, BATCH_LIMIT)
    return rng.permutation(samples)[: samples // size * size].reshape(-1, size)


def clean_with_itlm(validation: Samples, clean_ratio: float, *, seed: int = 0) -> Samples:
    """Return what ITLM selects of a noisy validation set after training on it (Table 3).

    Batches are a twentieth of the set, so that a small one gets as many updates as the paper's 2,000 samples in batches
    of 100.
    """
    batch_size = max(1, len(validation) // 20)
    settings = Settings(clean_ratio=clean_ratio, batch_size=batch_size)
    given = TrainingInput(data=validation, settings=settings, seed=seed)
    return validation.take(loop_trainer("itlm")(given).indices)
