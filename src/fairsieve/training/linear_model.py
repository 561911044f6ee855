"""The linear model in NumPy: its weights, its predictions, and the random weights it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Floats

CHUNK = 8192  # rows that are converted to doubles at once
FEW = 16  # torch draws this many numbers, or more, by another algorithm
BITS_32, BITS_53, BITS_24 = 2**32 - 1, 2**53 - 1, 2**24 - 1


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A logistic regression for two classes, or a softmax regression for more.

    Attributes
    ----------
    coef : array of shape (1, d) or (classes, d)
        Weights on the scale of the logits. The paper writes the probability as σ(2·f); the logit is 2·f.
    intercept : array of shape (1,) or (classes,)

    Examples
    --------
    >>> model = LinearModel(np.array([[2.0, 0.0]]), np.array([-1.0]))
    >>> model.decision(np.array([[1.0, 5.0], [0.5, 5.0]]))
    array([1., 0.])
    >>> model.predict_codes(np.array([[1.0, 5.0], [0.5, 5.0]]))
    array([1, 0])
    """

    coef: Floats
    intercept: Floats

    @classmethod
    def from_parameters(cls, parameters: Floats, outputs: int) -> LinearModel:
        """Read the flat parameters of the paper's model: the weights of f, output by output, then its biases."""
        scale = 2.0 if outputs == 1 else 1.0
        weights = parameters[:-outputs].reshape(outputs, -1)
        return cls(scale * weights, scale * parameters[-outputs:])

    def decision(self, features: Any) -> Floats:
        """Compute the logits of dense or scipy-sparse features: (n,) for two classes, else (n, classes)."""
        if np.ndim(features) != 2 or features.shape[1] != self.coef.shape[1]:
            raise InvalidInputError(
                f"features must have the {self.coef.shape[1]} columns that the model was trained on; got the shape "
                f"{np.shape(features)}"
            )
        logits = np.empty((features.shape[0], len(self.intercept)))
        for first in range(0, len(logits), CHUNK):
            rows = slice(first, first + CHUNK)
            logits[rows] = features[rows] @ self.coef.T + self.intercept
        return logits[:, 0] if len(self.intercept) == 1 else logits

    def predict_codes(self, features: Any) -> NDArray[np.int64]:
        """Predict the position of each sample's class."""
        return likeliest(self.decision(features))

    def probabilities(self, features: Any) -> Floats:
        """Compute the probabilities of the classes, (n, classes)."""
        return np.asarray(np.exp(log_probabilities(self.decision(features))))


def likeliest(decision: Floats) -> NDArray[np.int64]:
    """Return the position of the likeliest class; one logit of exactly 0 is the first class."""
    return (decision > 0).astype(np.int64) if decision.ndim == 1 else decision.argmax(axis=1)


def log_probabilities(decision: Floats) -> Floats:
    """Compute the logarithms of the classes' probabilities, of one logit per sample or of one per class.

    >>> np.exp(log_probabilities(np.zeros(1))).round(6).tolist()
    [[0.5, 0.5]]
    """
    if decision.ndim == 1:
        return np.stack([log_expit(-decision), log_expit(decision)], axis=1)
    return np.asarray(log_softmax(decision, axis=1))


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


def _normal_like_torch(count: int, seed: int) -> NDArray[Any]:
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
