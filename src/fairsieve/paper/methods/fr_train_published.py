"""FR-Train with the settings that its authors published (Roh et al. 2020), for the linear model.

:mod:`~fairsieve.paper.methods.fr_train` settles by experiment what makes FR-Train strong. This is FR-Train as its
authors published it, so that the paper's numbers can be compared with what they were made by. The differences:

- Both discriminators see the classifier's raw output f(x), and the robustness discriminator tells (x, z, f(x)) from
  (x, z, y) with y = ±1. Features are not scaled for it.
- Discriminators take gradient steps of .001, with the mean of the two losses.
- The first 500 epochs train the classifier by a tenth of the cross-entropy of σ(2f), and the discriminators too.
  After that every fifth epoch updates the classifier, by the cross-entropy of σ(f).
- Every 100 epochs the samples are weighed anew, by a · D(x, z, f(x)) + 1 − a, where a = σ(ratio − 3) and the ratio is
  that of the classifier's last objective to the robustness discriminator's last loss. The weights hold for the
  fairness term too.

The published code is for demographic parity. For equalized odds the fairness discriminator sees the label beside f(x),
as their paper says. All samples are in every update; where there are more than ``batch_limit``, parts of a shuffle in
turn.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from fairsieve.errors import FairsieveError
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.fr_train import check_validation, check_weights
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.selection.ratios import initial_ratios
from fairsieve.training.fit import ModelLike, check_data
from fairsieve.training.history import History, new_recording, record_model, record_plan
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.linear_task import new_adam
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings
from fairsieve.validation import check_at_least

__all__ = ["FR_TRAIN_PUBLISHED"]

Floats = NDArray[np.float32]

HIDDEN, LEAK = 16, np.float32(0.2)
CLASSIFIER_RATE, DISCRIMINATOR_RATE = 0.001, np.float32(0.001)
PRETRAIN_EPOCHS, PRETRAIN_SHARE = 500, np.float32(0.1)
UPDATE_EVERY, WEIGH_EVERY = 5, 100


class _Network(NamedTuple):
    """A discriminator with one hidden layer, its last output a logit; biases are the last rows."""

    entry: Floats  # (inputs + 1, HIDDEN)
    exit: Floats  # (HIDDEN + 1,)

    def hidden(self, inputs: Floats) -> Floats:
        """Return the values of the hidden units before their leaky ReLU."""
        return np.asarray(inputs @ self.entry[:-1] + self.entry[-1])

    def logits(self, hidden: Floats) -> Floats:
        """Return the logits of "real"."""
        return np.asarray(_leaky(hidden) @ self.exit[:-1] + self.exit[-1])

    def descend(self, inputs: Floats, hidden: Floats, pulls: Floats, rate: np.float32) -> None:
        """Take a gradient step; ``pulls`` are the derivatives of the loss by the logits."""
        back = pulls[:, None] * (self.exit[:-1] * np.where(hidden > 0, np.float32(1), LEAK))
        self.exit[:-1] -= rate * (pulls @ _leaky(hidden))
        self.exit[-1] -= rate * pulls.sum()
        self.entry[:-1] -= rate * (inputs.T @ back)
        self.entry[-1] -= rate * back.sum(axis=0)


def _leaky(hidden: Floats) -> Floats:
    return np.asarray(np.maximum(hidden, LEAK * hidden))


class _Game:
    """The classifier, its two discriminators, and the samples."""

    def __init__(
        self, data: Samples, validation: Samples, fairness: str, weights: tuple[float, float], seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        self.x, real = (
            part.features.reshape(len(part), -1).astype(np.float32) for part in (data, validation)
        )
        self.signs = (2 * data.cells.label_codes - 1).astype(np.float32)
        self.groups = (data.cells.group_codes > 0).astype(np.float32)
        self.real = np.column_stack([real, 2 * validation.cells.label_codes - 1]).astype(np.float32)
        self.sees_label = fairness == "equalized_odds"
        self.counted = np.ones(len(data), dtype=np.float32)
        if fairness == "equal_opportunity":
            self.counted = (self.signs > 0).astype(np.float32)
        d = self.x.shape[1]

        def draw(*shape: int) -> Floats:
            return rng.normal(0, 0.2, shape).astype(np.float32)

        self.parameters = np.concatenate([draw(d), np.zeros(1, np.float32)])
        self.adam = new_adam(d + 1)
        self.fair = np.concatenate([draw(2 if self.sees_label else 1), np.zeros(1, np.float32)])
        zeros = np.zeros((1, HIDDEN), np.float32)
        self.robust = _Network(
            np.vstack([draw(d + 1, HIDDEN), zeros]), np.append(draw(HIDDEN), np.float32(0))
        )
        self.fair_weight, self.robust_weight = (np.float32(weight) for weight in weights)
        self.sample_weights = np.ones(len(data), dtype=np.float32)
        self.objective = self.robust_loss = 1.0

    def outputs(self, x: Floats) -> Floats:
        return np.asarray(x @ self.parameters[:-1] + self.parameters[-1])

    def run_epoch(self, epoch: int, rows: NDArray[np.int64] | slice, real: NDArray[np.int64] | slice) -> None:
        """Update the discriminators, and in some epochs the classifier."""
        x, signs, outputs = self.x[rows], self.signs[rows], self.outputs(self.x[rows])
        self._update_fairness(outputs, signs, rows)
        inputs = np.column_stack([x, outputs])
        self._update_robustness(inputs, self.real[real])
        if epoch < PRETRAIN_EPOCHS:
            margins = np.float32(2) * signs * outputs
            self.objective = float(-PRETRAIN_SHARE * log_expit(margins).mean())
            self._step(x, -PRETRAIN_SHARE * 2 * signs * expit(-margins) / len(x))
        elif epoch % UPDATE_EVERY == 0:
            self._update_classifier(epoch, x, inputs, signs, outputs, rows)

    def _fair_logits(self, outputs: Floats, signs: Floats) -> Floats:
        logits = self.fair[0] * outputs + self.fair[-1]
        return np.asarray(logits + self.fair[1] * signs if self.sees_label else logits)

    def _update_fairness(self, outputs: Floats, signs: Floats, rows: Any) -> None:
        counted = self.counted[rows]
        wrong = (
            counted * (expit(self._fair_logits(outputs, signs)) - self.groups[rows]) / max(counted.sum(), 1)
        )
        slopes = [wrong @ outputs, *([wrong @ signs] if self.sees_label else []), wrong.sum()]
        self.fair -= DISCRIMINATOR_RATE * np.array(slopes, dtype=np.float32)

    def _update_robustness(self, inputs: Floats, real: Floats) -> None:
        fake_hidden, real_hidden = self.robust.hidden(inputs), self.robust.hidden(real)
        fake, right = self.robust.logits(fake_hidden), self.robust.logits(real_hidden)
        self.robust_loss = float(-0.5 * (log_expit(-fake).mean() + log_expit(right).mean()))
        pulls = expit(fake) / np.float32(2 * len(fake)), -expit(-right) / np.float32(2 * len(right))
        both = np.vstack([inputs, real]), np.vstack([fake_hidden, real_hidden]), np.concatenate(pulls)
        self.robust.descend(*both, DISCRIMINATOR_RATE)

    def _update_classifier(
        self, epoch: int, x: Floats, inputs: Floats, signs: Floats, outputs: Floats, rows: Any
    ) -> None:
        hidden = self.robust.hidden(inputs)
        fake = self.robust.logits(hidden)
        if epoch % WEIGH_EVERY == 0:
            share = expit(self.objective / max(self.robust_loss, 1e-12) - 3)
            self.sample_weights[rows] = share * expit(fake) + (1 - share)
        weights, counted = self.sample_weights[rows], self.counted[rows]
        n, margins, groups = np.float32(len(x)), signs * outputs, self.groups[rows]
        fair_logits = self._fair_logits(outputs, signs)
        told = np.where(groups > 0, log_expit(fair_logits), log_expit(-fair_logits))
        share = 1 - self.fair_weight - self.robust_weight
        fair_loss = -(weights * counted * told).mean()
        robust_loss = -log_expit(-fake).mean()
        self.objective = float(
            -share * (weights * log_expit(margins)).mean()
            - self.fair_weight * fair_loss
            - self.robust_weight * robust_loss
        )
        through = (self.robust.exit[:-1] * np.where(hidden > 0, np.float32(1), LEAK)) @ self.robust.entry[-2]
        pulls = -share * weights * signs * expit(-margins)
        pulls -= self.fair_weight * weights * counted * (expit(fair_logits) - groups) * self.fair[0]
        pulls -= self.robust_weight * expit(fake) * through
        self._step(x, pulls / n)

    def _step(self, x: Floats, pulls: Floats) -> None:
        """Take a step of Adam; ``pulls`` are the derivatives of the objective by the outputs."""
        slope, adam = np.append(pulls @ x, pulls.sum()), self.adam
        adam.steps[0] += 1
        adam.first[...] = 0.9 * adam.first + 0.1 * slope
        adam.second[...] = 0.999 * adam.second + 0.001 * slope**2
        first = adam.first / (1 - 0.9 ** adam.steps[0])
        second = adam.second / (1 - 0.999 ** adam.steps[0])
        self.parameters -= (CLASSIFIER_RATE * first / (np.sqrt(second) + 1e-8)).astype(np.float32)

    def fitted(self, data: Samples, settings: Settings, epochs: int, seed: int, seconds: float) -> Fitted:
        """Describe the trained classifier; its history is of its end."""
        if not np.isfinite(self.parameters).all():
            raise FairsieveError("training diverged: losses are not numbers. Scale the features")
        cells, everyone = data.cells, np.arange(len(data))
        outputs, recording = self.outputs(self.x), new_recording(1, data.cells)
        losses = -log_expit(np.float32(2) * self.signs * outputs)
        counts = cells.counts.reshape(-1)
        record_model(recording, 0, losses, (outputs > 0).astype(np.int64), cells.codes, everyone, counts)
        record_plan(recording, 0, initial_ratios(cells), everyone, counts, False)
        recording.times_selected[:] = max(epochs - PRETRAIN_EPOCHS, 0)
        history = History.from_recording(
            recording,
            cells,
            np.array([epochs - 1]),
            warmup_epochs=PRETRAIN_EPOCHS,
            evaluated=False,
            positive=cells.class_index(settings.pos_label),
        )
        return Fitted(
            predictor=LinearModel.from_parameters(self.parameters.astype(np.float64), 1),
            history=history,
            indices=everyone,
            ratios=initial_ratios(cells),
            classes=cells.classes,
            method="fr-train-published",
            seed=seed,
            seconds=seconds,
        )


def _train_as_published(
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    model: ModelLike = None,
    validation: Samples | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    fairness_weight: float = 0.3,
    robustness_weight: float = 0.4,
    epochs: int = 10_000,
    batch_limit: int = 5_000,
    **hyperparameters: Any,
) -> Fitted:
    """Train the linear model by FR-Train as published: two classes, two groups.

    Of ``settings`` the notion of fairness and the positive label count.

    Parameters
    ----------
    validation : Samples
        What right labels look like; needed.
    fairness_weight, robustness_weight : float
        λf and λr, together at most 1.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data, clean = make_synthetic(300, seed=0), make_synthetic(50, seed=1)
    >>> fitted = _train_as_published(data, Settings(), seed=0, validation=clean, epochs=30)
    >>> fitted.predict(data.features).shape
    (300,)
    """
    own = ("fairness_weight", "robustness_weight", "epochs", "batch_limit")
    settings = settings_with("fr-train-published", settings, hyperparameters, own)
    check_data(data, evaluation)
    FR_TRAIN_PUBLISHED.check(data, settings, validation)
    assert validation is not None
    check_validation(data, validation)
    check_weights(fairness_weight, robustness_weight)
    check_at_least("epochs", epochs, 1)
    check_at_least("batch_limit", batch_limit, 1)
    started = time.perf_counter()
    game = _Game(data, validation, settings.fairness, (fairness_weight, robustness_weight), seed)
    rng = np.random.default_rng([seed, 1])
    rows, real = (_batches(len(part), batch_limit, rng) for part in (data, validation))
    for epoch in range(epochs):
        game.run_epoch(epoch, rows[epoch % len(rows)], real[epoch % len(real)])
    return game.fitted(data, settings, epochs, seed, time.perf_counter() - started)


def _batches(samples: int, limit: int, rng: np.random.Generator) -> list[Any]:
    """Return the rows of updates in turn: all samples, or equal parts of one shuffle."""
    if samples <= limit:
        return [slice(None)]
    return [np.sort(part) for part in np.array_split(rng.permutation(samples), -(-samples // limit))]


FR_TRAIN_PUBLISHED = Method(
    name="fr-train-published",
    title="FR-Train, as published",
    short="FR-Train (published)",
    look=Look("red", "square"),
    family="fair and robust",
    train=_train_as_published,
    candidates={"fairness_weight": (0.3, 0.1, 0.5)},
    while_tuning={"epochs": 4_000},
    uses_validation=True,
    most_groups=2,
    most_classes=2,
)
