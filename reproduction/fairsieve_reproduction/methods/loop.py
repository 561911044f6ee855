"""The paper's loop for the linear model as its experiments need it: compiled, and with a covariance penalty.

Without numba it runs in NumPy, which takes ten times as long. The order of an epoch is that of
:meth:`~fairsieve.training.trainer.Trainer.run_epoch`.

The penalty of Zafar et al. (2017) is μ · |Cov(z, g)|, added to the loss. For demographic parity g is the decision
value d(x), and the covariance is over all samples in play. For equalized odds it is Zafar's form for disparate
mistreatment: the mean of (z − z̄) · min(0, y·d(x)), with y = ±1, so that only wrong decisions count. There is one term
for the samples of each class (wrong negatives and wrong positives), and for equal opportunity the positive class's
alone. With more than two groups each group's indicator has a covariance of its own; half their sum is taken, which for
two groups is the one covariance. The samples in play are those that the method selected and that have a group. The
decision is the model's output less the mean over classes (for one output, the output). A term is a linear function of
the parameters as long as the same decisions are wrong and the same samples are selected: that function is renewed as
every epoch begins, from the selection before. The warm-up has no penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import comparisons
from fairsieve.training.fit import Fitted, check_data, check_selection, run_training
from fairsieve.training.linear_trainer import LinearTrainer, linear_scores
from fairsieve.training.trainer import Settings, TrainingSpec, selection_method

Floats = NDArray[np.float64]

SLICES = 20  # in which a compiled training can be stopped
EVERYONE = -1
HAS_NUMBA = find_spec("numba") is not None


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperSpec(TrainingSpec):
    """What decides a training, with what only the paper's experiments need.

    Attributes
    ----------
    penalty_weight : float
        μ of the covariance penalty; 0 for none.
    count_offset : int
        Added to a cell's count where its mean loss is taken, in the ratios' step. The paper's text has 0; its authors'
        code has 1 for equalized odds, and agrees with ours at every step where this is 1.
    """

    penalty_weight: float = 0.0
    count_offset: int = 0

    def new_plan(self) -> Plan:
        plan = super().new_plan()
        plan.count_offset = float(self.count_offset)
        return plan


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


class Rules(NamedTuple):
    """What a plan does in every epoch, in a form that compiled code can take; see :class:`Plan`."""

    codes: NDArray[Any]
    rows: NDArray[np.int64]
    by_group: bool
    has_ungrouped: bool
    step_size: float
    budget: int
    constrained: bool
    weighted: bool
    batch_size: int
    seed: int
    warmup_epochs: int
    count_offset: float

    @classmethod
    def of(cls, plan: Plan) -> Rules:
        """Read the rules of a plan."""
        cells = plan.cells
        settings = (getattr(plan, name) for name in cls._fields[4:])
        return cls(cells.codes, plan.rows, plan.comparisons.by_group, cells.has_ungrouped, *settings)


class LinearProblem(NamedTuple):
    """All that does not change while the linear model trains, in a form that compiled code can take."""

    rows: Rows
    columns: int
    labels: NDArray[np.int64]  # class of each sample
    rules: Rules
    directions: Floats  # (terms, parameters): the penalty is Σ |direction · parameters|
    penalty_weight: float
    learning_rate: float
    targets: NDArray[np.int64]  # labels that the groups' losses are measured against, −1: their own


class PaperTrainer(LinearTrainer):
    """Trains the paper's logistic regression, in compiled code where numba is installed.

    Parameters
    ----------
    spec : PaperSpec
    compiled : bool
        Whether to train in compiled code.
    """

    def __init__(self, spec: PaperSpec, *, compiled: bool = HAS_NUMBA) -> None:
        super().__init__(spec)
        self.penalty_weight, settings = spec.penalty_weight, spec.settings
        self.penalised: list[int] = []
        if self.penalty_weight:
            self.penalised = penalised_classes(self.plan.cells, settings.fairness, settings.pos_label)
        self.directions = self.find_directions()
        # Wrong decisions change from epoch to epoch, and so does the selection.
        changes = self.penalised != [EVERYONE] or spec.method.cleans
        self.renews_directions = bool(self.penalised) and changes
        self.problem = self.describe() if compiled else None

    def find_directions(self) -> Floats:
        """Compute what the penalty keeps small."""
        return penalty_directions(
            self.features, self.plan.cells, self.parameters, self.penalised, self.plan.indices
        )

    def run_epoch(self) -> None:
        if self.renews_directions and not self.plan.in_warmup:
            self.directions[...] = self.find_directions()
        if self.problem is None:
            super().run_epoch()
            return
        epochs = self.settings.epochs
        at_once = 1 if self.renews_directions else max(1, epochs // SLICES)
        self.run_compiled(self.problem, min(at_once, epochs - self.done))

    def gradient(self, batch: NDArray[np.int64]) -> Floats:
        slope = super().gradient(batch)
        if not self.plan.in_warmup:
            for direction in self.directions:
                slope += self.penalty_weight * np.sign(direction @ self.parameters) * direction
        return slope

    def describe(self) -> LinearProblem:
        """Describe all that does not change, for compiled code."""
        return LinearProblem(
            rows=Rows.of(self.spec.data.features),
            columns=self.features.shape[1],
            labels=self.labels,
            rules=Rules.of(self.plan),
            directions=self.directions,
            penalty_weight=float(self.penalty_weight),
            learning_rate=float(self.settings.learning_rate),
            targets=np.array(self.plan.comparisons.targets),
        )

    def run_compiled(self, problem: LinearProblem, epochs: int) -> None:
        """Train so many epochs in one compiled call."""
        from fairsieve_reproduction.methods.compiled import train_epochs

        plan, first = self.plan, self.done
        begun = self.begun[first : first + epochs]
        state = (self.parameters, self.adam, plan.ratios, plan.indices, plan.counts)
        selected, finite = train_epochs(problem, *state, first, self.recording, begun)
        if not finite:
            raise self.diverged()
        plan.indices = selected
        self.check_selected()
        plan.epoch = first + epochs
        plan.is_selective = plan.epoch > plan.warmup_epochs


def fit_paper(
    data: Samples,
    method: str = "sample-selection",
    *,
    seed: int = 0,
    compiled: bool = HAS_NUMBA,
    penalty_weight: float = 0.0,
    **settings: Any,
) -> Fitted:
    """Train as :func:`~fairsieve.fit` trains its linear model, in compiled code and with a penalty.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit_paper(make_synthetic(500, seed=0), "lr", epochs=5, compiled=False)
    >>> fitted.history.ratios.shape
    (5, 2, 2)
    """
    chosen, wanted = selection_method(method), Settings.of(settings)
    check_data(data, None)
    check_selection(chosen, wanted, len(data))
    spec = PaperSpec(
        data=data,
        method=chosen,
        settings=wanted,
        seed=seed,
        penalty_weight=penalty_weight,
    )
    return run_training(PaperTrainer(spec, compiled=compiled))


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
    decisions, shares = linear_scores(features, parameters, outputs), np.eye(outputs)
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
