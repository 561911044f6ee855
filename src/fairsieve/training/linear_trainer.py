"""The paper's loop for the linear model without torch: closed gradients, in double precision.

The reproduction of the paper has the same loop compiled, and with the penalty of Zafar et al. (2017)
(``fairsieve_reproduction.methods.loop``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Floats, Integers, Values
from fairsieve.training.newton import LinearModel, likeliest
from fairsieve.training.trainer import Measurement, Trainer, TrainingSpec

FEW = 16  # torch draws this many numbers, or more, by another algorithm
BITS_32, BITS_53, BITS_24 = 2**32 - 1, 2**53 - 1, 2**24 - 1


def initial_parameters(features: int, classes: int, seed: int) -> Floats:
    """Draw the weights that the paper's model starts from: N(0, 0.2²); the biases are 0.

    They are the numbers that ``LogisticRegression`` draws from ``torch.Generator().manual_seed(seed)``,
    so that results with and without torch are the same.

    Examples
    --------
    >>> initial_parameters(3, 2, seed=0).round(3)
    array([ 0.308, -0.059, -0.436,  0.   ])
    """
    outputs = 1 if classes <= 2 else classes
    weights = _normal_like_torch(outputs * features, seed)
    return np.concatenate([weights.astype(np.float32).astype(np.float64), np.zeros(outputs)])


def _normal_like_torch(count: int, seed: int) -> Values:
    """Draw what ``torch.empty(count).normal_(0, 0.2)`` draws on a CPU after ``manual_seed(seed)``.

    torch and NumPy share the generator (MT19937). Below 16 numbers torch applies the Box–Muller transform
    in doubles, from 16 on in single precision, eight pairs at a time; its vectorised logarithm and cosine
    may then differ from NumPy's in the last bit.
    """
    stream = np.random.RandomState(seed & BITS_32)

    def draw(size: int) -> NDArray[np.uint32]:
        return stream.randint(0, 2**32, size=size, dtype=np.uint32)

    def box_muller(uniform: NDArray[np.float32]) -> NDArray[np.float32]:
        first, second = uniform.reshape(-1, 2, 8).swapaxes(0, 1)
        radius, angle = np.sqrt(np.float32(-2) * np.log(1 - first)), np.float32(2 * np.pi) * second
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)

    if count < FEW:
        words = draw(4 * ((count + 1) // 2)).astype(np.uint64).reshape(-1, 2, 2)
        uniform = ((words[..., 0] << np.uint64(32) | words[..., 1]) & np.uint64(BITS_53)) * 2.0**-53
        radius, angle = np.sqrt(-2 * np.log1p(-uniform[:, 1])), 2 * np.pi * uniform[:, 0]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count] * 0.2

    def uniforms(size: int) -> NDArray[np.float32]:
        return (draw(size) & np.uint32(BITS_24)).astype(np.float32) * np.float32(2.0**-24)

    uniform, whole = uniforms(count), count // FEW * FEW
    normal = np.empty(count, np.float32)
    normal[:whole] = box_muller(uniform[:whole])
    if whole < count:  # the last sixteen are drawn anew
        normal[-FEW:] = box_muller(uniforms(FEW))
    return normal * np.float32(0.2)


class Adam(NamedTuple):
    """The optimiser's state for parameters in one flat array."""

    first: Floats
    second: Floats
    steps: Integers  # one number

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
            signals: list[Values] = []
            for target in self.plan.comparisons.targets:
                labels = self.labels if target < 0 else np.full(len(out), target)
                by_error = self.plan.signal == "error"
                signals.append((predicted != labels) * 1.0 if by_error else _cross_entropies(out, labels))
            return Measurement(_cross_entropies(out, self.labels), np.stack(signals), predicted)

    def predict_evaluation(self) -> Integers:
        assert self.spec.evaluation is not None
        return _decide(linear_scores(self.spec.evaluation.features, self.parameters, self.outputs))

    def train(self, batches: Integers) -> None:
        with np.errstate(all="ignore"):
            for batch in batches:
                adam_step(self.parameters, self.gradient(batch), self.adam, self.settings.learning_rate)

    def gradient(self, batch: Integers) -> Floats:
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


def linear_scores(features: Values, parameters: Floats, outputs: int) -> Floats:
    """Compute the outputs of the linear layer, (n, outputs)."""
    return features @ parameters[:-outputs].reshape(outputs, -1).T + parameters[-outputs:]


def _decide(out: Floats) -> Integers:
    return likeliest(out[:, 0] if out.shape[1] == 1 else out)


def _cross_entropies(out: Floats, labels: Integers) -> Floats:
    """Compute the loss of each row of outputs against its label; one output f stands for σ(2·f)."""
    if out.shape[1] == 1:
        return np.logaddexp(0.0, (2.0 - 4.0 * labels) * out[:, 0])
    highest = out.max(axis=1, keepdims=True)
    own = np.take_along_axis(out, labels[:, None], axis=1)
    return np.asarray((highest - own)[:, 0] + np.log(np.exp(out - highest).sum(axis=1)))
