"""A table → a plain and a fair model, what they are worth, and the labels to check."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairsieve.errors import CollapseWarning, FairsieveWarning, InvalidInputError
from fairsieve.estimators.classifier import FairRobustClassifier, auto_batch_size, model_of
from fairsieve.inputs import dense
from fairsieve.label_noise.collapse import Collapse
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.optional import check_packages
from fairsieve.samples import Samples
from fairsieve.selection.batches import batch_count
from fairsieve.selection.cells import Cells
from fairsieve.tabular.bootstrap import Score, scores_of
from fairsieve.tabular.dropped import DroppedCell, dropped_cells
from fairsieve.tabular.evaluation import Measure, measure_groups
from fairsieve.tabular.preparation import Problem, read_problem
from fairsieve.tabular.reading.features import new_categories, notes_on_new, preparation
from fairsieve.tabular.request import Asked
from fairsieve.tabular.saved_model import between, pipeline_of
from fairsieve.training.fit import fit
from fairsieve.training.history import History

__all__ = ["STAGES", "TableRun", "train"]

STAGES = ("reading the table", "training the plain model", "training the fair model", "measuring")
ALONG_THE_WAY = (0.0, 0.25, 0.5, 0.75, 1.0)
VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch")


@dataclass(frozen=True, eq=False)
class TableRun:
    """What came of a table.

    Attributes
    ----------
    problem : Problem
        The table, in its roles.
    model : Pipeline
        The fair model, of scikit-learn's own parts; the plain one where the fair one collapsed.
    scores : list of dicts
        Accuracy and disparity on the test part of the plain model, of those on the way to the fair
        one, and of the fair one; ``along`` says how far each is.
    change : dict
        Fair less plain.
    measures : list of Measure
        Group by group, on the test part.
    test_groups : list
        The groups that the measures are of; a last None, people without a group.
    dropped : list of DroppedCell
    suspects : dict of arrays
        Columns of a table: the training rows whose labels look wrong, the highest loss first.
    history : History
    clean_ratio : float
    estimate : CleanRatioEstimate or None
    collapse : Collapse or None
    notes : list of str
    seconds : float
    versions : dict
    """

    problem: Problem
    model: Pipeline
    along: tuple[float, ...]
    scores: list[dict[str, Score]]
    change: dict[str, Score]
    measures: list[Measure]
    test_groups: list[Any]
    dropped: list[DroppedCell]
    suspects: dict[str, NDArray[Any]]
    history: History
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    collapse: Collapse | None
    notes: list[str]
    seconds: float
    versions: dict[str, str]

    @property
    def asked(self) -> Asked:
        """What was asked for."""
        return self.problem.asked


def train(
    asked: Asked,
    report: Callable[[str], None] | None = None,
    *,
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
) -> TableRun:
    """Train a plain and a fair model on a table, and measure both on rows set aside.

    Nothing but checkpoints is written; :func:`fairsieve.tabular.report.folder.write_run` does that.

    Parameters
    ----------
    asked : Asked
    report : callable, optional
        Told what begins, one of :data:`STAGES`.
    checkpoint_dir, checkpoint_every
        As :func:`~fairsieve.training.fit.fit` takes them; what was stopped goes on.
    """
    started = time.perf_counter()
    tell = report or (lambda stage: None)
    keep = _Keep(checkpoint_dir, checkpoint_every)
    check_packages()
    tell(STAGES[0])
    problem = read_problem(asked)
    _check_positive(asked, problem)
    prepared = preparation(problem.features)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories", category=UserWarning)
        features = dense(prepared.fit_transform(problem.train.frame))
        tell(STAGES[1])
        plain = _train_plain(features, problem, keep)
        tell(STAGES[2])
        model, notes = _train_fair(features, problem, keep)
        tell(STAGES[3])
        ends = [
            pipeline_of(prepared, module, model.classes_, asked.epochs) for module in (plain, model.module_)
        ]
        return _measured_run(problem, ends, model, notes, started)


def _check_positive(asked: Asked, problem: Problem) -> None:
    """One notion is of one label."""
    if asked.fairness == "equal_opportunity" and problem.labels.positive is None:
        raise InvalidInputError(
            f"--positive must be given for equal opportunity with {len(problem.labels.classes)} labels; they are "
            f"{', '.join(problem.labels.classes)}"
        )


class _Keep(NamedTuple):
    """Where and how often to keep checkpoints."""

    folder: Path | None
    every: int | None

    def below(self, name: str) -> dict[str, Any]:
        """The options that keep those of one model."""
        folder = None if self.folder is None else self.folder / name
        return {"checkpoint_dir": folder, "checkpoint_every": self.every}


def _train_plain(features: NDArray[np.float64], problem: Problem, keep: _Keep) -> Any:
    """The same model, trained on everything as it is."""
    asked, train_part = problem.asked, problem.train
    data = Samples(features, train_part.labels, train_part.groups, missing="own")
    batch_size = auto_batch_size(len(data))
    fitted = fit(
        model_of(None, data, asked.seed),
        data,
        "lr",
        seed=asked.seed,
        watched=False,
        fairness=asked.fairness,
        epochs=asked.epochs,
        warmup_epochs=asked.epochs // 4,
        batch_size=batch_size,
        learning_rate=0.01 / batch_count(len(data), batch_size),
        pos_label=problem.labels.positive,
        **keep.below("plain"),
    )
    if fitted.interrupted:
        raise KeyboardInterrupt
    return fitted.model


def _train_fair(
    features: NDArray[np.float64], problem: Problem, keep: _Keep
) -> tuple[FairRobustClassifier, list[str]]:
    """The fair and robust model, and what it warned of; the plain one takes its place if it collapsed."""
    asked = problem.asked
    model = FairRobustClassifier(
        asked.fairness,
        asked.clean_ratio,
        epochs=asked.epochs,
        warmup_epochs=asked.epochs // 4,
        random_state=asked.seed,
        on_collapse="fallback",
        pos_label=problem.labels.positive,
        **keep.below("fair"),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairsieveWarning)
        model.fit(features, problem.train.labels, sensitive_features=problem.train.groups)
    if model.interrupted_:
        raise KeyboardInterrupt
    ours = [one for one in caught if issubclass(one.category, FairsieveWarning)]
    return model, [str(one.message) for one in ours if not issubclass(one.category, CollapseWarning)]


def _measured_run(
    problem: Problem, ends: list[Pipeline], model: FairRobustClassifier, notes: list[str], started: float
) -> TableRun:
    """Everything that is told of a run."""
    asked, test, labels = problem.asked, problem.test, problem.labels
    along = (0.0,) if model.collapse_ is not None else ALONG_THE_WAY
    models = [between(ends[0], ends[1], share) for share in along]
    codes = [np.searchsorted(labels.classes, one.predict(test.frame)) for one in models]
    cells = Cells.of(test.labels, test.groups, classes=labels.classes, missing="own")
    positive = -1 if labels.positive is None else labels.classes.index(labels.positive)
    scores, change = scores_of(cells, codes, asked.fairness, positive, asked.seed)
    found = model.suspects()
    wrong = found["label"] != found["suggested"]
    suspects = {name: column[wrong] for name, column in found.items()}
    train_cells = Cells.of(problem.train.labels, problem.train.groups, classes=labels.classes, missing="own")
    noise = None if model.estimate_ is None else model.estimate_.noise
    new = notes_on_new(new_categories(test.frame, models[-1]["prepare"]))
    return TableRun(
        problem,
        models[-1],
        along,
        scores,
        change,
        measure_groups(cells, codes[0], codes[-1], labels),
        cells.groups,
        dropped_cells(train_cells, model.sample_indices_, suspects["row"], noise),
        suspects | {"row": problem.train.rows[suspects["row"]]},
        model.history_,
        model.clean_ratio_,
        model.estimate_,
        model.collapse_,
        [*problem.notes, *(new if asked.test_file else []), *notes],
        time.perf_counter() - started,
        {"python": platform.python_version()} | {name: metadata.version(name) for name in VERSIONS},
    )
