"""The paper's loop for its linear model, without torch: gradients in closed form, in double precision.

NumPy does the work, a second or two for the paper's synthetic experiment. With numba the same loop is compiled
(:mod:`~fairsieve.training.compiled`) and takes a twentieth of the time, after half a minute of compiling: what the
reproduction of the paper uses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.epoch import Rules
from fairsieve.training.linear_model import LinearModel, initial_parameters
from fairsieve.training.penalty import penalised_classes, penalty_directions
from fairsieve.training.settings import TrainingSpec
from fairsieve.training.trainer import Measurement, Trainer

__all__ = ["Adam", "LinearProblem", "LinearTrainer", "Rows", "new_adam"]

Floats = NDArray[np.float64]


class Adam(NamedTuple):
    """The optimiser's state for parameters in one flat array."""

    first: Floats
    second: Floats
    steps: NDArray[np.int64]  # one number


def new_adam(parameters: int) -> Adam:
    """Make the state of an optimiser that has taken no step."""
    return Adam(np.zeros(parameters), np.zeros(parameters), np.zeros(1, np.int64))


class Rows(NamedTuple):
    """Features without most of their zeros.

    Every row has as many entries as the fullest one, the last of some rows zeros of some column: loops of one length
    are faster than fewer entries.
    """

    entries: NDArray[Any]  # (n, width)
    columns: NDArray[np.int32]  # (n, width)

    @classmethod
    def of(cls, features: NDArray[Any]) -> Rows:
        """Store features without their zeros.

        Examples
        --------
        >>> rows = Rows.of(np.array([[0.0, 0.0, 0.0, 7.0], [0.0, 0.0, 5.0, 6.0]]))
        >>> rows.entries.tolist(), rows.columns.tolist()
        ([[7.0, 0.0], [5.0, 6.0]], [[3, 1], [2, 3]])
        """
        present = features != 0
        counts = present.sum(axis=1)
        width = int(counts.max(initial=1))
        entries = np.zeros((len(features), width), features.dtype)
        columns = np.tile(np.arange(width, dtype=np.int32), (len(features), 1))
        rows, own = np.nonzero(present)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries[rows, places], columns[rows, places] = features[rows, own], own
        return cls(entries, columns)


class LinearProblem(NamedTuple):
    """All that does not change while the linear model trains, in a form that compiled code can take."""

    rows: Rows
    columns: int
    labels: NDArray[np.int64]  # class of each sample
    rules: Rules  # of the plan
    weights: Floats  # of the samples' losses, with mean 1; none, where all weigh the same
    directions: Floats  # (terms, parameters): the penalty is Σ |direction · parameters|
    penalty_weight: float
    learning_rate: float
    shown: Rows  # the evaluation samples; none, where there is no evaluation
    shown_codes: NDArray[Any]
    targets: NDArray[np.int64]  # labels that the groups' signals are measured against, −1: their own
    by_error: bool  # groups are compared by errors, not losses


class LinearTrainer(Trainer):
    """Trains the paper's logistic regression.

    Parameters
    ----------
    spec : TrainingSpec
    compiled : bool
        Train in compiled code, which needs numba.
    """

    def __init__(self, spec: TrainingSpec, *, compiled: bool = False) -> None:
        super().__init__(spec)
        self.features = np.asarray(spec.data.features, np.float64)
        if self.features.ndim != 2:
            raise InvalidInputError(
                f"features must have the shape (n, d) for the linear model; got {self.features.shape}: pass a module "
                "that takes them"
            )
        self.labels = self.plan.cells.label_codes
        classes, size = self.plan.cells.shape[0], self.features.shape[1]
        self.outputs = 1 if classes <= 2 else classes
        self.parameters = initial_parameters(size, classes, spec.seed)
        self.adam = new_adam(self.parameters.size)
        self.begun = np.zeros(
            (self.settings.epochs, self.parameters.size)
        )  # the parameters as each epoch began
        self.directions = self.find_directions()
        self.problem: LinearProblem | None = None
        if compiled:
            from fairsieve.training.compiled import train_epochs

            self.train_epochs, self.problem = train_epochs, self.describe()

    def find_directions(self) -> Floats:
        """Compute what the penalty keeps small; nothing without a penalty."""
        if self.settings.penalty_weight == 0:
            return np.zeros((0, self.parameters.size))
        cells = self.plan.cells
        classes = penalised_classes(cells, self.settings.fairness, self.settings.pos_label)
        selected = self.plan.indices if self.plan.is_selective else None
        return penalty_directions(self.features, cells, self.parameters, classes, selected)

    @property
    def renews_directions(self) -> bool:
        """Whether the penalty's directions change from epoch to epoch: with wrong decisions, or with the selection."""
        fixed = self.settings.fairness == "demographic_parity" and not self.spec.method.cleans
        return self.settings.penalty_weight != 0 and not fixed

    def run_epoch(self) -> None:
        if self.renews_directions:
            self.directions[...] = self.find_directions()
        if self.problem is None:
            self.begun[self.done] = self.parameters
            super().run_epoch()
        else:
            self.run_compiled(self.problem, 1)

    def run_epochs(self, epochs: int) -> None:
        if self.problem is None or self.renews_directions:
            super().run_epochs(epochs)
        else:
            self.run_compiled(self.problem, min(epochs, self.settings.epochs - self.done))

    def scores(self, features: Floats) -> Floats:
        """Compute the outputs of the linear layer, (n, outputs)."""
        weights = self.parameters[: -self.outputs].reshape(self.outputs, -1)
        found: Floats = features @ weights.T + self.parameters[-self.outputs :]
        return found

    def measure(self) -> Measurement:
        with np.errstate(all="ignore"):  # what diverges is noticed by its losses
            out = self.scores(self.features)
            predicted = _decide(out)
            losses = _cross_entropies(out, self.labels)
            signals = np.empty((len(self.plan.comparisons.targets), len(losses)))
            for row, target in zip(signals, self.plan.comparisons.targets, strict=True):
                labels = self.labels if target < 0 else np.full(len(losses), target)
                row[...] = (
                    predicted != labels if self.plan.signal == "error" else _cross_entropies(out, labels)
                )
        return Measurement(losses, signals, predicted)

    def predict_evaluation(self) -> NDArray[np.int64]:
        assert self.evaluation is not None
        return _decide(self.scores(self.evaluation.features))

    def train(self, batches: NDArray[np.int64]) -> None:
        with np.errstate(all="ignore"):
            for batch in batches:
                slope = self.gradient(batch)
                if not self.plan.in_warmup:
                    for direction in self.directions:
                        sign = np.sign(direction @ self.parameters)
                        slope += self.settings.penalty_weight * sign * direction
                self.step(slope)

    def gradient(self, batch: NDArray[np.int64]) -> Floats:
        """Compute the gradient of the batch's mean cross-entropy, each sample's times its weight."""
        features, labels = self.features[batch], self.labels[batch]
        out = self.scores(features)
        if self.outputs == 1:
            pulls = np.tanh(out) + 1 - 2.0 * labels[:, None]  # 2 (σ(2f) − y)
        else:
            odds = np.exp(out - out.max(axis=1, keepdims=True))
            pulls = odds / odds.sum(axis=1, keepdims=True) - (labels[:, None] == np.arange(self.outputs))
        pulls /= len(batch)
        if self.spec.weights is not None:
            pulls *= self.spec.weights[batch][:, None]
        return np.concatenate([(pulls.T @ features).reshape(-1), pulls.sum(axis=0)])

    def step(self, slope: Floats) -> None:
        """Take one step of Adam with torch's defaults."""
        first, second, steps = self.adam
        steps += 1
        first += 0.1 * (slope - first)
        second += 0.001 * (slope * slope - second)
        rate = self.settings.learning_rate / (1 - 0.9 ** steps[0])
        self.parameters -= rate * first / (np.sqrt(second / (1 - 0.999 ** steps[0])) + 1e-8)

    def describe(self) -> LinearProblem:
        """Describe all that does not change, for compiled code."""
        spec, plan = self.spec, self.plan
        shown = spec.data.take([]) if self.evaluation is None else self.evaluation
        return LinearProblem(
            rows=Rows.of(spec.data.features),
            columns=self.features.shape[1],
            labels=self.labels,
            rules=plan.rules,
            weights=np.zeros(0) if spec.weights is None else spec.weights,
            directions=self.directions,
            penalty_weight=float(self.settings.penalty_weight),
            learning_rate=float(self.settings.learning_rate),
            shown=Rows.of(shown.features.astype(spec.data.features.dtype)),
            shown_codes=shown.cells.codes,
            targets=np.array(plan.comparisons.targets),
            by_error=plan.signal == "error",
        )

    def run_compiled(self, problem: LinearProblem, epochs: int) -> None:
        """Train so many epochs in one compiled call."""
        plan, first = self.plan, self.done
        selected, _, finite = self.train_epochs(
            problem,
            self.parameters,
            self.adam,
            plan.ratios,
            plan.indices,
            plan.counts,
            first,
            self.recording,
            self.begun[first : first + epochs],
        )
        if not finite:
            raise self.diverged()
        plan.indices = selected
        self.check_selected()
        self.done = plan.epoch = first + epochs
        plan.is_selective = self.done > plan.rules.warmup_epochs

    def finish(self, *, interrupted: bool) -> LinearModel:
        first, done = self.plan.rules.warmup_epochs, self.done
        if interrupted and first < done:
            parameters = self.begun[first + int(self.merits(first, done).argmax())]
        else:  # averaging the parameters of a linear model is averaging its decisions
            ends = np.concatenate([self.begun[1:done], self.parameters[None]])
            parameters = ends[-self.settings.average_last :].mean(axis=0)
        return LinearModel.from_parameters(parameters, self.outputs)


def _decide(out: Floats) -> NDArray[np.int64]:
    """Find the class of the highest output; one output above 0 stands for the second class."""
    return (out[:, 0] > 0).astype(np.int64) if out.shape[1] == 1 else out.argmax(axis=1)


def _cross_entropies(out: Floats, labels: NDArray[np.int64]) -> Floats:
    """Compute the loss of each row of outputs against its label; one output f stands for σ(2·f)."""
    if out.shape[1] == 1:
        return np.logaddexp(0.0, (2.0 - 4.0 * labels) * out[:, 0])
    highest = out.max(axis=1, keepdims=True)
    own = np.take_along_axis(out, labels[:, None], axis=1)
    return np.asarray((highest - own)[:, 0] + np.log(np.exp(out - highest).sum(axis=1)))
