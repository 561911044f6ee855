"""The probabilities of every round of a ``SieveClassifier``, in checkpoints: no round is fitted twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError
from fairsieve.samples import Samples
from fairsieve.training.checkpoint.resume import samples_checksum
from fairsieve.training.checkpoint.store import Checkpoint, CheckpointFolder

__all__ = ["RoundCheckpoints", "describe_sieve"]

Floats = NDArray[np.float64]
SPARE = 2**20


class RoundCheckpoints:
    """Calls ``estimate`` with the weights of each round, unless a checkpoint holds the result.

    Parameters
    ----------
    estimate : callable
        Weights (or None) → out-of-fold probabilities, (samples, classes).
    folder : Path
    sieve : dict
        See :func:`describe_sieve`.
    shape : tuple
        Samples and classes.
    rounds : int
        The most calls.
    """

    def __init__(
        self,
        estimate: Callable[[Floats | None], Floats],
        folder: Path,
        sieve: dict[str, Any],
        shape: tuple[int, int],
        rounds: int,
    ) -> None:
        self.estimate, self.shape, self.rounds, self.calls = estimate, shape, rounds, 0
        self.saved: dict[str, Floats] = {}
        largest = SPARE + rounds * 8 * (shape[0] + shape[0] * shape[1])
        self.folder = CheckpointFolder(folder, sieve, largest)
        self.folder.resume(self.restore)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take the results in a checkpoint, if they fit the samples."""
        numbers = range(1, checkpoint.number + 1)
        wanted: dict[str, tuple[int, ...]] = {f"weights.{n}": self.shape[:1] for n in numbers}
        wanted |= {f"answer.{n}": self.shape for n in numbers}
        found = {name: value.shape for name, value in checkpoint.arrays.items()}
        numeric = all(value.dtype == np.float64 for value in checkpoint.arrays.values())
        if checkpoint.number > self.rounds or found != wanted or not numeric:
            raise CheckpointError(
                f"it must have weights and answers of {self.rounds} rounds at most, doubles for {self.shape[0]} "
                f"samples and {self.shape[1]} classes"
            )
        answers = np.stack([checkpoint.arrays[f"answer.{n}"] for n in numbers])
        if not ((answers >= 0) & (answers <= 1)).all():
            raise CheckpointError("it must have answers in [0, 1]")
        self.saved = checkpoint.arrays

    def __call__(self, weights: Floats | None) -> Floats:
        self.calls += 1
        number = self.calls
        own = np.ones(self.shape[0]) if weights is None else weights
        old = self.saved.get(f"weights.{number}")
        if old is not None and np.array_equal(old, own):
            return self.saved[f"answer.{number}"].copy()
        answer = self.estimate(weights)
        before = {name: value for name, value in self.saved.items() if int(name.split(".")[1]) < number}
        self.saved = before | {f"weights.{number}": own, f"answer.{number}": answer}
        self.folder.write(number, {}, self.saved)
        return answer


def describe_sieve(
    estimator: Any, X: Any, data: Samples, weights: Floats | None, **settings: Any
) -> dict[str, Any]:
    """Describe what is fitted, to what and how, in plain values."""
    return settings | {
        "estimator": f"{type(estimator).__qualname__} {joblib.hash(repr(estimator.get_params()))}",
        "X": joblib.hash(X),
        "y": samples_checksum(data),
        "sample_weight": None if weights is None else joblib.hash(weights),
    }
