"""The paper's loop for its linear model, without torch: gradients in closed form, in double precision.

The reproduction of the paper has the same loop compiled, and with the penalty of Zafar et al. (2017)
(``fairsieve_reproduction.methods.loop``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Floats
from fairsieve.training.linear_model import LinearModel, initial_parameters, likeliest
from fairsieve.training.settings import TrainingSpec
from fairsieve.training.trainer import Measurement, Trainer


class Adam(NamedTuple):
    """The optimiser's state for parameters in one flat array."""

    first: Floats
    second: Floats
    steps: NDArray[np.int64]  # one number

    @classmethod
    def new(cls, size: int) -> Adam:
        """Return the state before the first step."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(1, np.int64))


def adam_step(parameters: Floats, slope: Floats, adam: Adam, learning_rate: float) -> None:
    """Take one step of Adam with torch's defaults."""
    adam.steps[0] += 1
    unbias_first = 1 - 0.9 ** adam.steps[0]
    unbias_second = np.sqrt(1 - 0.999 ** adam.steps[0])
    first, second = adam.first, adam.second
    first += 0.1 * (slope - first)
    second[:] = 0.999 * second + 0.001 * slope * slope
    parameters -= learning_rate / unbias_first * first / (np.sqrt(second) / unbias_second + 1e-8)


class LinearTrainer(Trainer):
    """Trains the paper's logistic regression."""

    def __init__(self, spec: TrainingSpec) -> None:
        super().__init__(spec)
        self.features = np.asarray(spec.data.features, np.float64)
        if self.features.ndim != 2:
            raise InvalidInputError(
                f"features must have the shape (n, d) for the linear model; got {self.features.shape}: pass a module "
                "that takes them"
            )
        self.labels = self.plan.cells.label_codes
        classes = self.plan.cells.shape[0]
        self.outputs = 1 if classes <= 2 else classes
        self.parameters = initial_parameters(self.features.shape[1], classes, spec.seed)
        self.adam = Adam.new(self.parameters.size)
        # The parameters as each epoch began.
        self.begun = np.zeros((self.settings.epochs, self.parameters.size))

    def run_epoch(self) -> None:
        self.begun[self.done] = self.parameters
        super().run_epoch()

    def measure(self) -> Measurement:
        with np.errstate(all="ignore"):  # what diverges is noticed by its losses
            out = linear_scores(self.features, self.parameters, self.outputs)
            predicted = _decide(out)
            signals: list[NDArray[Any]] = []
            for target in self.plan.comparisons.targets:
                labels = self.labels if target < 0 else np.full(len(out), target)
                by_error = self.plan.signal == "error"
                signals.append((predicted != labels) * 1.0 if by_error else _cross_entropies(out, labels))
            return Measurement(_cross_entropies(out, self.labels), np.stack(signals), predicted)

    def predict_evaluation(self) -> NDArray[np.int64]:
        assert self.spec.evaluation is not None
        return _decide(linear_scores(self.spec.evaluation.features, self.parameters, self.outputs))

    def train(self, batches: NDArray[np.int64]) -> None:
        with np.errstate(all="ignore"):
            for batch in batches:
                adam_step(self.parameters, self.gradient(batch), self.adam, self.settings.learning_rate)

    def gradient(self, batch: NDArray[np.int64]) -> Floats:
        """Compute the gradient of the batch's mean cross-entropy, each sample's times its weight."""
        features, labels = self.features[batch], self.labels[batch]
        out = linear_scores(features, self.parameters, self.outputs)
        if self.outputs == 1:
            pulls = np.tanh(out) + 1 - 2.0 * labels[:, None]  # 2 (σ(2f) − y)
        else:
            odds = np.exp(out - out.max(axis=1, keepdims=True))
            pulls = odds / odds.sum(axis=1, keepdims=True) - (labels[:, None] == np.arange(self.outputs))
        pulls /= len(batch)
        if self.spec.weights is not None:
            pulls *= self.spec.weights[batch][:, None]
        return np.concatenate([(pulls.T @ features).reshape(-1), pulls.sum(axis=0)])

    def finish(self, *, interrupted: bool) -> LinearModel:
        first, done = self.plan.warmup_epochs, self.done
        if interrupted and first < done:
            parameters = self.begun[first + int(self.merits(first, done).argmax())]
        else:  # averaging the parameters of a linear model is averaging its decisions
            ends = np.concatenate([self.begun[1:done], self.parameters[None]])
            parameters = ends[-self.settings.average_last :].mean(axis=0)
        return LinearModel.from_parameters(parameters, self.outputs)


def linear_scores(features: NDArray[Any], parameters: Floats, outputs: int) -> Floats:
    """Compute the outputs of the linear layer, (n, outputs)."""
    return np.asarray(features @ parameters[:-outputs].reshape(outputs, -1).T + parameters[-outputs:])


def _decide(out: Floats) -> NDArray[np.int64]:
    return likeliest(out[:, 0] if out.shape[1] == 1 else out)


def _cross_entropies(out: Floats, labels: NDArray[np.int64]) -> Floats:
    """Compute the loss of each row of outputs against its label; one output f stands for σ(2·f)."""
    if out.shape[1] == 1:
        return np.logaddexp(0.0, (2.0 - 4.0 * labels) * out[:, 0])
    highest = out.max(axis=1, keepdims=True)
    own = np.take_along_axis(out, labels[:, None], axis=1)
    return np.asarray((highest - own)[:, 0] + np.log(np.exp(out - highest).sum(axis=1)))
