"""What a classifier answered round after round, kept in checkpoints, so that no round is fitted twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import CheckpointError
from fairsieve.samples import Samples
from fairsieve.training.checkpoint.resume import samples_checksum
from fairsieve.training.checkpoint.store import Checkpoint, Checkpoints

__all__ = ["KeptAnswers", "sieving_of"]

Floats = NDArray[np.float64]
SPARE = 2**20


class KeptAnswers:
    """Weights → out-of-fold probabilities; asked again from the start, those that are kept are given.

    Parameters
    ----------
    ask : callable
        Weights (or None) → probabilities, (samples, classes).
    folder : Path
    sieving : dict
        See :func:`sieving_of`.
    shape : tuple
        Samples and classes.
    rounds : int
        How often it will be asked at most.
    """

    def __init__(
        self,
        ask: Callable[[Floats | None], Floats],
        folder: Path,
        sieving: dict[str, Any],
        shape: tuple[int, int],
        rounds: int,
    ) -> None:
        self.ask, self.shape, self.rounds, self.asked = ask, shape, rounds, 0
        self.kept: dict[str, torch.Tensor] = {}
        self.checkpoints = Checkpoints(folder, sieving, SPARE + rounds * 8 * (shape[0] + shape[0] * shape[1]))
        self.checkpoints.resume(self.take_over)

    def take_over(self, checkpoint: Checkpoint) -> None:
        """Take the answers in a checkpoint, if they could be ours."""
        numbers = range(1, checkpoint.number + 1)
        wanted: dict[str, tuple[int, ...]] = {f"weights.{n}": self.shape[:1] for n in numbers}
        wanted |= {f"answer.{n}": self.shape for n in numbers}
        found = {name: tuple(value.shape) for name, value in checkpoint.tensors.items()}
        numeric = all(value.dtype == torch.float64 for value in checkpoint.tensors.values())
        if checkpoint.number > self.rounds or found != wanted or not numeric:
            raise CheckpointError(
                f"checkpoint {checkpoint.number:06d} must have weights and answers of {self.rounds} rounds at most, "
                f"doubles for {self.shape[0]} samples and {self.shape[1]} classes"
            )
        answers = torch.stack([checkpoint.tensors[f"answer.{n}"] for n in numbers])
        if not ((answers >= 0) & (answers <= 1)).all():
            raise CheckpointError(f"checkpoint {checkpoint.number:06d} must have answers in [0, 1]")
        self.kept = checkpoint.tensors

    def __call__(self, weights: Floats | None) -> Floats:
        self.asked += 1
        number = self.asked
        own = torch.ones(self.shape[0]).double() if weights is None else torch.from_numpy(weights)
        old = self.kept.get(f"weights.{number}")
        if old is not None and torch.equal(old, own):
            return self.kept[f"answer.{number}"].numpy().copy()
        answer = self.ask(weights)
        before = {name: value for name, value in self.kept.items() if int(name.split(".")[1]) < number}
        now = {f"weights.{number}": own, f"answer.{number}": torch.from_numpy(answer)}
        self.kept = before | now
        self.checkpoints.write(number, {}, self.kept)
        return answer


def sieving_of(estimator: Any, X: Any, data: Samples, own: Floats | None, **settings: Any) -> dict[str, Any]:
    """What is fitted, to what and how, in plain values."""
    return settings | {
        "estimator": f"{type(estimator).__qualname__} {joblib.hash(repr(estimator.get_params()))}",
        "X": joblib.hash(X),
        "y": samples_checksum(data),
        "sample_weight": None if own is None else joblib.hash(own),
    }
