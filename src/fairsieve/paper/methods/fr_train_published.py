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
from fairsieve.paper.methods.contract import Method, TrainingInput
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.fr_train import check_validation, check_weights
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.selection.ratios import initial_ratios
from fairsieve.training.fit import check_data
from fairsieve.training.history import History, new_recording, record_model, record_plan
from fairsieve.training.linear import new_adam
from fairsieve.training.linear_model import LinearModel
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

    def logits(self, hidden: Floats) -> tuple[Floats, Floats]:
        """Return the logits of "real", and the hidden units after their leaky ReLU."""
        active = np.maximum(hidden, LEAK * hidden)
        return active @ self.exit[:-1] + self.exit[-1], active

    def descend(self, parts: list[tuple[Floats, Floats]], active: Floats, pulls: Floats) -> None:
        """Take a gradient step.

        ``parts`` are inputs and what their hidden units change by, ``pulls`` the derivatives of the loss by the logits.
        """
        slope = sum(inputs.T @ back for inputs, back in parts) * self.exit[:-1]
        self.exit[:-1] -= DISCRIMINATOR_RATE * (pulls @ active)
        self.exit[-1] -= DISCRIMINATOR_RATE * pulls.sum()
        self.entry[...] -= DISCRIMINATOR_RATE * slope


class _Batch(NamedTuple):
    """The samples of an update."""

    rows: Any
    inputs: Floats  # (n, d + 2): features, the classifier's output, 1
    signs: Floats  # labels as ±1
    groups: Floats  # 0 or 1
    counted: Floats  # 1 where the notion of fairness looks at a sample, else 0


def _sigmoid(values: Any) -> Any:
    """Compute 1 / (1 + exp(−x)), in the precision of x."""
    half = np.float32(0.5)
    return half * np.tanh(half * values) + half


def _bends(hidden: Floats) -> Floats:
    """Return the derivatives of the leaky ReLU."""
    return np.where(hidden > 0, np.float32(1), LEAK)


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

    def batch(self, rows: NDArray[np.int64] | slice) -> _Batch:
        """Gather the samples of an update."""
        x = self.x[rows]
        inputs = np.column_stack([x, np.zeros((len(x), 1)), np.ones((len(x), 1))]).astype(np.float32)
        return _Batch(rows, inputs, self.signs[rows], self.groups[rows], self.counted[rows])

    def real_inputs(self, rows: NDArray[np.int64] | slice) -> Floats:
        """Gather samples with right labels: features, label, 1."""
        real = self.real[rows]
        return np.column_stack([real, np.ones(len(real), np.float32)])

    def outputs(self, x: Floats) -> Floats:
        return np.asarray(x @ self.parameters[:-1] + self.parameters[-1])

    def run_epoch(self, epoch: int, batch: _Batch, real: Floats) -> None:
        """Update the discriminators, and in some epochs the classifier."""
        x, signs = batch.inputs[:, :-2], batch.signs
        outputs = batch.inputs[:, -2] = self.outputs(x)
        self._update_fairness(outputs, batch)
        self._update_robustness(batch.inputs, real, measured=epoch % WEIGH_EVERY == 0)
        if epoch < PRETRAIN_EPOCHS:
            margins = np.float32(2) * signs * outputs
            self.objective = float(-PRETRAIN_SHARE * log_expit(margins).mean())
            self._step(x, -PRETRAIN_SHARE * 2 * signs * _sigmoid(-margins) / len(x))
        elif epoch % UPDATE_EVERY == 0:
            self._update_classifier(epoch, x, outputs, batch)

    def _fair_logits(self, outputs: Floats, signs: Floats) -> Floats:
        logits = self.fair[0] * outputs + self.fair[-1]
        return np.asarray(logits + self.fair[1] * signs if self.sees_label else logits)

    def _update_fairness(self, outputs: Floats, batch: _Batch) -> None:
        wrong = _sigmoid(self._fair_logits(outputs, batch.signs)) - batch.groups
        wrong *= batch.counted / max(batch.counted.sum(), 1)
        slopes = [wrong @ outputs, *([wrong @ batch.signs] if self.sees_label else []), wrong.sum()]
        self.fair -= DISCRIMINATOR_RATE * np.array(slopes, dtype=np.float32)

    def _update_robustness(self, inputs: Floats, real: Floats, *, measured: bool) -> None:
        """Take a step of the robustness discriminator; compute its loss where that is asked for."""
        n, m = len(inputs), len(real)
        hidden = np.empty((n + m, HIDDEN), np.float32)
        np.dot(inputs, self.robust.entry, out=hidden[:n])
        np.dot(real, self.robust.entry, out=hidden[n:])
        logits, active = self.robust.logits(hidden)
        if measured:
            self.robust_loss = float(-0.5 * (log_expit(-logits[:n]).mean() + log_expit(logits[n:]).mean()))
        pulls = _sigmoid(logits)
        pulls[n:] -= 1
        pulls[:n] /= np.float32(2 * n)
        pulls[n:] /= np.float32(2 * m)
        back = _bends(hidden)
        back *= pulls[:, None]
        self.robust.descend([(inputs, back[:n]), (real, back[n:])], active, pulls)

    def _update_classifier(self, epoch: int, x: Floats, outputs: Floats, batch: _Batch) -> None:
        hidden = batch.inputs @ self.robust.entry
        fake, _ = self.robust.logits(hidden)
        odds = _sigmoid(fake)
        if epoch % WEIGH_EVERY == 0:
            share = expit(self.objective / max(self.robust_loss, 1e-12) - 3)
            self.sample_weights[batch.rows] = share * odds + (1 - share)
        weights, signs = self.sample_weights[batch.rows], batch.signs
        margins, fair_logits = signs * outputs, self._fair_logits(outputs, signs)
        share = 1 - self.fair_weight - self.robust_weight
        if (epoch + UPDATE_EVERY) % WEIGH_EVERY == 0:  # it is asked for when samples are weighed next
            told = log_expit(np.where(batch.groups > 0, fair_logits, -fair_logits))
            self.objective = float(
                -share * (weights * log_expit(margins)).mean()
                + self.fair_weight * (weights * batch.counted * told).mean()
                + self.robust_weight * log_expit(-fake).mean()
            )
        through = _bends(hidden) @ (self.robust.exit[:-1] * self.robust.entry[-2])
        pulls = -share * weights * signs * _sigmoid(-margins)
        pulls -= (
            self.fair_weight * self.fair[0] * weights * batch.counted * (_sigmoid(fair_logits) - batch.groups)
        )
        pulls -= self.robust_weight * odds * through
        self._step(x, pulls / np.float32(len(x)))

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
    given: TrainingInput,
    *,
    fairness_weight: float = 0.3,
    robustness_weight: float = 0.4,
    epochs: int = 10_000,
    batch_limit: int = 5_000,
    **hyperparameters: Any,
) -> Fitted:
    """Train the linear model by FR-Train as published: two classes, two groups.

    Of the settings the notion of fairness and the positive label count. The validation set, which says what right
    labels look like, is needed.

    Parameters
    ----------
    fairness_weight, robustness_weight : float
        λf and λr, together at most 1.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data, clean = make_synthetic(300, seed=0), make_synthetic(50, seed=1)
    >>> given = TrainingInput(data=data, settings=Settings(), seed=0, validation=clean)
    >>> fitted = _train_as_published(given, epochs=30)
    >>> fitted.predict(data.features).shape
    (300,)
    """
    own = ("fairness_weight", "robustness_weight", "epochs", "batch_limit")
    settings = settings_with("fr-train-published", given.settings, hyperparameters, own)
    data, validation, seed = given.data, given.validation, given.seed
    check_data(data, given.evaluation)
    FR_TRAIN_PUBLISHED.check(data, settings, validation)
    assert validation is not None
    check_validation(data, validation)
    check_weights(fairness_weight, robustness_weight)
    check_at_least("epochs", epochs, 1)
    check_at_least("batch_limit", batch_limit, 1)
    started = time.perf_counter()
    game = _Game(data, validation, settings.fairness, (fairness_weight, robustness_weight), seed)
    rng = np.random.default_rng([seed, 1])
    rows, real_rows = (_batches(len(part), batch_limit, rng) for part in (data, validation))
    batches, real = [game.batch(each) for each in rows], [game.real_inputs(each) for each in real_rows]
    for epoch in range(epochs):
        game.run_epoch(epoch, batches[epoch % len(batches)], real[epoch % len(real)])
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
    trainer=_train_as_published,
    candidates={"fairness_weight": (0.3, 0.1, 0.5)},
    while_tuning={"epochs": 4_000},
    uses_validation=True,
    most_groups=2,
    most_classes=2,
)
