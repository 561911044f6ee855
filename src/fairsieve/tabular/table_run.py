"""Train a plain and a fair model on a table, measure them, and find the labels to check."""

from __future__ import annotations

import contextlib
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from fairsieve.errors import CollapseWarning, FairsieveWarning, InvalidInputError
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.label_noise.collapse import Collapse
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.optional import check_packages
from fairsieve.tabular.bootstrap import Score, score_models
from fairsieve.tabular.dropped import DroppedCell, dropped_cells
from fairsieve.tabular.evaluation import Measure, measure_groups
from fairsieve.tabular.preparation import TableProblem, named_estimate, read_problem
from fairsieve.tabular.reading.encoding import encode, fit_preparation, new_categories, notes_on_new
from fairsieve.tabular.request import Asked
from fairsieve.tabular.saved_model import interpolate, make_pipeline
from fairsieve.tabular.verified_change import VerifiedChange, compare_with_answers
from fairsieve.training.history import History
from fairsieve.training.linear_model import LinearModel

__all__ = ["STAGES", "TableRun", "train_table"]

WITHOUT_ANSWERS = "training without the answers, to compare"
STAGES = ("reading the table", "training both models", "measuring")
ALONG_THE_WAY = (0.0, 0.25, 0.5, 0.75, 1.0)
VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch")


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRun:
    """The result of training on a table.

    Attributes
    ----------
    problem : TableProblem
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
    verified : VerifiedChange or None
        What answers of people who checked labels changed.
    """

    problem: TableProblem
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
    verified: VerifiedChange | None = None

    @property
    def asked(self) -> Asked:
        """What was asked for."""
        return self.problem.asked


def train_table(
    asked: Asked,
    report: Callable[[str], None] | None = None,
    *,
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
) -> TableRun:
    """Train a plain and a fair model on a table, and measure both on rows set aside.

    Nothing but checkpoints is written; :func:`fairsieve.tabular.report.folder.write_run` writes the rest.

    Parameters
    ----------
    asked : Asked
    report : callable, optional
        Called with what begins, one of :data:`STAGES`.
    checkpoint_dir, checkpoint_every
        As :func:`~fairsieve.training.fit.fit` takes them; a training that was stopped goes on.
    """
    tell = report or (lambda stage: None)
    run = _train_once(asked, tell, checkpoint_dir, checkpoint_every)
    if not asked.verified:
        return run
    tell(WITHOUT_ANSWERS)
    without = _train_once(replace(asked, verified=()), lambda stage: None)
    changed = compare_with_answers(run, without)
    return replace(
        run,
        verified=changed,
        notes=[*changed.sentences, *run.notes],
        seconds=run.seconds + without.seconds,
    )


def _train_once(
    asked: Asked,
    tell: Callable[[str], None],
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
) -> TableRun:
    """Read the table, train both models and measure them."""
    started = time.perf_counter()
    check_packages()
    tell(STAGES[0])
    problem = read_problem(asked)
    _check_positive(asked, problem)
    prepared = fit_preparation(problem.train.values)
    features = encode(prepared, problem.train.values)
    tell(STAGES[1])
    model, notes = _fit_classifier(features, problem, checkpoint_dir, checkpoint_every)
    del features  # of a million rows, the largest thing in memory
    tell(STAGES[2])
    return _measured_run(problem, prepared, model, notes, started)


def _check_positive(asked: Asked, problem: TableProblem) -> None:
    """Refuse equal opportunity without a positive label."""
    if asked.fairness == "equal_opportunity" and problem.labels.positive is None:
        raise InvalidInputError(
            f"--positive must be given for equal opportunity with {len(problem.labels.classes)} labels; they are "
            f"{', '.join(problem.labels.classes)}"
        )


def _fit_classifier(
    features: NDArray[np.float32],
    problem: TableProblem,
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
) -> tuple[FairRobustClassifier, list[str]]:
    """Train the fair and robust model, which keeps the plain one beside it; return what it warned of, too.

    The plain model takes the fair one's place if that collapsed.
    """
    asked, part, positive = problem.asked, problem.train, problem.labels.positive
    model = FairRobustClassifier(
        asked.fairness,
        asked.clean_ratio,
        epochs=asked.epochs,
        random_state=asked.seed,
        on_collapse="fallback",
        pos_label=None if positive is None else problem.labels.classes.index(positive),
        checkpoint_dir=checkpoint_dir,
        checkpoint_every=checkpoint_every,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairsieveWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(
            features,
            part.label_codes,
            sensitive_features=part.group_codes,
            verified_labels=part.verified_labels,
            verified_weight=None if part.verified_labels is None else part.verified_weight,
        )
    if model.interrupted_:
        raise KeyboardInterrupt
    ours = [one for one in caught if issubclass(one.category, FairsieveWarning | ConvergenceWarning)]
    return model, [str(one.message) for one in ours if not issubclass(one.category, CollapseWarning)]


def _measured_run(
    problem: TableProblem,
    prepared: ColumnTransformer,
    model: FairRobustClassifier,
    notes: list[str],
    started: float,
) -> TableRun:
    """Measure the models on the test part, and collect everything that is reported of a run."""
    asked, test, labels = problem.asked, problem.test, problem.labels
    plain, fair = model.plain_model_, LinearModel(model.coef_, model.intercept_)
    assert isinstance(plain, LinearModel)
    along = (0.0,) if model.collapse_ is not None else ALONG_THE_WAY
    models = [interpolate(plain, fair, share) for share in along]
    numbers = encode(prepared, test.values)
    codes = [one.predict_codes(numbers) for one in models]
    positive = -1 if labels.positive is None else labels.classes.index(labels.positive)
    scores, change = score_models(test.cells, codes, asked.fairness, positive, asked.seed)
    suspects = _named_suspects(model.suspects(), problem)
    estimate = None if model.estimate_ is None else named_estimate(model.estimate_, problem.train)
    noise = None if estimate is None else _noise_by_cell(estimate, problem)
    history = replace(
        model.history_,
        classes=problem.train.class_names(model.history_.classes),
        groups=problem.train.group_names(model.history_.groups),
    )
    new = notes_on_new(new_categories(test.values, prepared)) if asked.test_file is not None else []
    return TableRun(
        problem=problem,
        model=make_pipeline(prepared, models[-1], labels.classes, len(history)),
        along=along,
        scores=scores,
        change=change,
        measures=measure_groups(test.cells, codes[0], codes[-1], labels),
        test_groups=test.cells.groups,
        dropped=dropped_cells(problem.train.cells, model.sample_indices_, suspects["row"], noise),
        suspects=suspects | {"row": problem.train.rows[suspects["row"]]},
        history=history,
        clean_ratio=model.clean_ratio_,
        estimate=estimate,
        collapse=model.collapse_,
        notes=[*problem.notes, *new, *notes],
        seconds=time.perf_counter() - started,
        versions=_versions(),
    )


def _named_suspects(found: dict[str, NDArray[Any]], problem: TableProblem) -> dict[str, NDArray[Any]]:
    """Select the rows whose labels look wrong, and name their labels and groups."""
    wrong = found["label"] != found["suggested"]
    suspects = {name: column[wrong] for name, column in found.items()}
    classes, rows = problem.train.labels.values, suspects["row"]
    suspects["label"] = classes[suspects["label"].astype(np.int64)]
    suspects["suggested"] = classes[suspects["suggested"].astype(np.int64)]
    suspects["group"] = problem.train.groups.take(rows).objects()
    return suspects


def _noise_by_cell(estimate: CleanRatioEstimate, problem: TableProblem) -> NDArray[np.float64]:
    """Return the estimated share of wrong labels in every cell of the training part; NaN where there is none."""
    cells = problem.train.cells
    noise = np.full(cells.shape, np.nan)
    columns = [cells.groups.index(group) for group in estimate.cells.groups]
    rows = [cells.classes.index(name) for name in estimate.cells.classes]
    noise[np.ix_(rows, columns)] = estimate.noise
    return noise


def _versions() -> dict[str, str]:
    """Name the versions of what a result depends on, where it is installed."""
    found = {"python": platform.python_version()}
    for name in VERSIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
