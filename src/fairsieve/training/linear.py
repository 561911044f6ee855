"""The paper's loop for its linear model, without torch: gradients in closed form, in double precision.

NumPy does the work, a second or two for the paper's synthetic experiment. With numba the same loop is compiled
(:mod:`~fairsieve.training.compiled`) and takes a twentieth of the time, after half a minute of compiling: what the
reproduction of the paper uses.

The covariance penalty of Zafar et al. (2017) is here too: μ · |Cov(z, g)|, added to the loss. For demographic parity
g is the decision value d(x), and the covariance is over all samples in play. For equalized odds it is Zafar's form for
disparate mistreatment: the mean of (z − z̄) · min(0, y·d(x)), with y = ±1, so that only wrong decisions count. There is
one term for the samples of each class (wrong negatives and wrong positives), and for equal opportunity the positive
class's alone. With more than two groups each group's indicator has a covariance of its own; half their sum is taken,
which for two groups is the one covariance. The samples in play are those that the method selected and that have a
group. The decision is the model's output less the mean over classes (for one output, the output). A term is a linear
function of the parameters as long as the same decisions are wrong and the same samples are selected: that function is
renewed as every epoch begins, from the selection before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Rules
from fairsieve.selection.fairness import comparisons
from fairsieve.training.linear_model import LinearModel, initial_parameters, likeliest
from fairsieve.training.settings import TrainingSpec
from fairsieve.training.trainer import Measurement, Trainer

Floats = NDArray[np.float64]

SLICES = 20  # in which a compiled training can be stopped
EVERYONE = -1


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
        ([[7.0, 0.0], [5.0, 6.0]], [[3, 0], [2, 3]])
        """
        absent = features == 0
        width = int((~absent).sum(axis=1).max(initial=1))
        columns = np.argsort(absent, axis=1, kind="stable")[:, :width].astype(np.int32)
        return cls(np.take_along_axis(features, columns, axis=1), columns)


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
        classes = self.plan.cells.shape[0]
        self.outputs = 1 if classes <= 2 else classes
        self.parameters = initial_parameters(self.features.shape[1], classes, spec.seed)
        self.adam = Adam.new(self.parameters.size)
        # The parameters as each epoch began.
        self.begun = np.zeros((self.settings.epochs, self.parameters.size))
        penalised = self.settings.penalty_weight != 0
        self.penalised: list[int] = []
        if penalised:
            asked = self.settings
            self.penalised = penalised_classes(self.plan.cells, asked.fairness, asked.pos_label)
        self.directions = self.find_directions() if penalised else np.zeros((0, self.parameters.size))
        # Wrong decisions change from epoch to epoch, and so does the selection.
        self.renews_directions = penalised and (self.penalised != [EVERYONE] or spec.method.cleans)
        self.problem = self.describe() if compiled else None

    def find_directions(self) -> Floats:
        """Compute what the penalty keeps small."""
        return penalty_directions(
            self.features, self.plan.cells, self.parameters, self.penalised, self.plan.indices
        )

    def run_epoch(self) -> None:
        if self.renews_directions and not self.plan.in_warmup:
            self.directions[...] = self.find_directions()
        if self.problem is not None:
            epochs = self.settings.epochs
            at_once = 1 if self.renews_directions else max(1, epochs // SLICES)
            self.run_compiled(self.problem, min(at_once, epochs - self.done))
            return
        self.begun[self.done] = self.parameters
        super().run_epoch()

    def measure(self) -> Measurement:
        with np.errstate(all="ignore"):  # what diverges is noticed by its losses
            out = _scores(self.features, self.parameters, self.outputs)
            predicted = _decide(out)
            signals: list[NDArray[Any]] = []
            for target in self.plan.comparisons.targets:
                labels = self.labels if target < 0 else np.full(len(out), target)
                by_error = self.plan.signal == "error"
                signals.append((predicted != labels) * 1.0 if by_error else _cross_entropies(out, labels))
            return Measurement(_cross_entropies(out, self.labels), np.stack(signals), predicted)

    def predict_evaluation(self) -> NDArray[np.int64]:
        assert self.spec.evaluation is not None
        return _decide(_scores(self.spec.evaluation.features, self.parameters, self.outputs))

    def train(self, batches: NDArray[np.int64]) -> None:
        with np.errstate(all="ignore"):
            for batch in batches:
                slope = self.gradient(batch)
                if not self.plan.in_warmup:
                    for direction in self.directions:
                        sign = np.sign(direction @ self.parameters)
                        slope += self.settings.penalty_weight * sign * direction
                adam_step(self.parameters, slope, self.adam, self.settings.learning_rate)

    def gradient(self, batch: NDArray[np.int64]) -> Floats:
        """Compute the gradient of the batch's mean cross-entropy, each sample's times its weight."""
        features, labels = self.features[batch], self.labels[batch]
        out = _scores(features, self.parameters, self.outputs)
        if self.outputs == 1:
            pulls = np.tanh(out) + 1 - 2.0 * labels[:, None]  # 2 (σ(2f) − y)
        else:
            odds = np.exp(out - out.max(axis=1, keepdims=True))
            pulls = odds / odds.sum(axis=1, keepdims=True) - (labels[:, None] == np.arange(self.outputs))
        pulls /= len(batch)
        if self.spec.weights is not None:
            pulls *= self.spec.weights[batch][:, None]
        return np.concatenate([(pulls.T @ features).reshape(-1), pulls.sum(axis=0)])

    def describe(self) -> LinearProblem:
        """Describe all that does not change, for compiled code."""
        spec, plan = self.spec, self.plan
        shown = spec.data.take([]) if spec.evaluation is None else spec.evaluation
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
        from fairsieve.training.compiled import train_epochs

        plan, first = self.plan, self.done
        begun = self.begun[first : first + epochs]
        state = (self.parameters, self.adam, plan.ratios, plan.indices, plan.counts)
        selected, finite = train_epochs(problem, *state, first, self.recording, begun)
        if not finite:
            raise self.diverged()
        plan.indices = selected
        self.check_selected()
        plan.epoch = first + epochs
        plan.is_selective = plan.epoch > plan.rules.warmup_epochs

    def finish(self, *, interrupted: bool) -> LinearModel:
        first, done = self.plan.rules.warmup_epochs, self.done
        if interrupted and first < done:
            parameters = self.begun[first + int(self.merits(first, done).argmax())]
        else:  # averaging the parameters of a linear model is averaging its decisions
            ends = np.concatenate([self.begun[1:done], self.parameters[None]])
            parameters = ends[-self.settings.average_last :].mean(axis=0)
        return LinearModel.from_parameters(parameters, self.outputs)


def _scores(features: NDArray[Any], parameters: Floats, outputs: int) -> Floats:
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


def penalised_classes(cells: Cells, fairness: str, pos_label: Any | None) -> list[int]:
    """List the classes whose wrong decisions are penalised; −1 stands for the decisions of all samples."""
    compared = comparisons(fairness, cells, pos_label)
    return [EVERYONE] if compared.by_group else [label for _, label, _ in compared.rows]


def penalty_directions(
    features: Floats,
    cells: Cells,
    parameters: Floats,
    classes: list[int],
    selected: NDArray[np.int64],
) -> Floats:
    """Compute vectors c, (terms, parameters), such that Σ |c · parameters| is the penalty of a linear model.

    Parameters
    ----------
    parameters : array
        The weights, one row for each output, and then the biases.
    classes : list of int
        See :func:`penalised_classes`.
    selected : array of int
        The samples in play.
    """
    outputs = parameters.size // (features.shape[1] + 1)
    inside = np.zeros(len(cells), dtype=bool)
    inside[selected] = cells.group_codes[selected] < cells.named_groups
    members, many = cells.group_codes[:, None] == np.arange(cells.named_groups), max(int(inside.sum()), 1)
    centred = np.where(inside[:, None], members - members[inside].sum(axis=0) / many, 0.0) / (2 * many)
    decisions, shares = _scores(features, parameters, outputs), np.eye(outputs)
    if outputs > 1:
        decisions, shares = decisions - decisions.mean(axis=1, keepdims=True), shares - 1 / outputs
    rows = []
    for label in classes:
        for output in range(outputs):
            sign, played = 1.0, inside
            if label != EVERYONE:
                sign = 1.0 if label == (output if outputs > 1 else 1) else -1.0
                played = inside & (cells.label_codes == label) & (sign * decisions[:, output] < 0)
            counted = sign * centred[played]  # the wrong decisions are a small part of all
            for slope, constant in zip(counted.T @ features[played], counted.sum(axis=0), strict=True):
                share = shares[output]
                rows.append(np.concatenate([np.outer(share, slope).reshape(-1), share * constant]))
    return np.array(rows).reshape(-1, parameters.size)
