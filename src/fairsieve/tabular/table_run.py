"""Train a plain and a fair model on a table, measure them, and find the labels to check."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError
from fairsieve.estimators.classifier import PlainComparison
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.tabular.evaluation import (
    DroppedCell,
    Measure,
    Score,
    dropped_cells,
    measure_groups,
    score_models,
)
from fairsieve.tabular.model_files import decide, probabilities
from fairsieve.tabular.models import (
    ModelChoice,
    TableModels,
    TradeOffPoint,
    choose_model,
    train_linear,
    train_trees,
)
from fairsieve.tabular.preparation import TableProblem, named_estimate, read_problem
from fairsieve.tabular.quality import (
    Calibration,
    ModelOutput,
    Quality,
    measure_calibration,
    measure_quality,
)
from fairsieve.tabular.reading.columns import as_objects
from fairsieve.tabular.reading.encoding import Feature, new_categories, notes_on_new
from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.verified_change import VerifiedChange, compare_with_answers

WITHOUT_ANSWERS = "training without the answers, to compare"
STAGES = ("reading the table", "training both models", "measuring")
VERSIONS = ("fairsieve", "numpy", "pandas", "scikit-learn", "skops", "torch", "lightgbm")


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRun:
    """The result of training on a table.

    Attributes
    ----------
    problem : TableProblem
        The table, in its roles.
    model : Pipeline
        The fair model, a pipeline of scikit-learn's; the plain one where that is kept.
    model_name : str
        Its kind: "logistic", "lightgbm" or "hist-gradient-boosting".
    choice : ModelChoice or None
        How that was chosen, where it was.
    scores : list of dicts
        Accuracy and disparity on the test part, of the plain model and of the one that is kept.
    trade_off : list of TradeOffPoint
        The plain model, those on the way to the fairest, and the fairest.
    change : dict
        Fair less plain.
    measures : list of Measure
        Group by group, on the test part.
    quality : list of Quality
        How well the models tell labels apart, group by group, on the test part.
    calibration : list of Calibration
        Whether probabilities mean what they say, group by group, on the test part.
    test_groups : list
        The groups that the measures are of; a last None, people without a group.
    dropped : list of DroppedCell
    suspects : dict of arrays
        Columns of a table: the training rows whose labels look wrong, the highest loss first.
    clean_ratio : float
    estimate : CleanRatioEstimate or None
    comparison : PlainComparison or None
        The fair model beside the plain one, on the rows that training judges by.
    notes : list of str
    seconds : float
    versions : dict
    verified : VerifiedChange or None
        What answers of people who checked labels changed.
    """

    problem: TableProblem
    model: Pipeline
    model_name: str
    choice: ModelChoice | None
    scores: list[dict[str, Score]]
    trade_off: list[TradeOffPoint]
    change: dict[str, Score]
    measures: list[Measure]
    quality: list[Quality]
    calibration: list[Calibration]
    test_groups: list[Any]
    dropped: list[DroppedCell]
    suspects: dict[str, NDArray[Any]]
    clean_ratio: float
    estimate: CleanRatioEstimate | None
    comparison: PlainComparison | None
    notes: list[str]
    seconds: float
    versions: dict[str, str]
    verified: VerifiedChange | None = None

    @property
    def asked(self) -> TableSettings:
        """What was asked for."""
        return self.problem.asked

    @property
    def kept(self) -> TradeOffPoint:
        """The model that is kept."""
        return next(point for point in self.trade_off if point.kept)

    @property
    def keeps_plain(self) -> bool:
        """Whether the kept model is the plain one."""
        return self.trade_off[0].kept

    @property
    def is_inconclusive(self) -> bool:
        """Whether the data could not tell which labels are wrong."""
        return self.estimate is not None and not self.estimate.credible

    def treatment(self, feature: Feature) -> str:
        """Say what was made of a column."""
        return feature.treatment if self.model_name == "logistic" else feature.tree_treatment


def train_table(asked: TableSettings, report: Callable[[str], None] | None = None) -> TableRun:
    """Train a plain and a fair model on a table, and measure both on rows set aside.

    Nothing is written; :func:`fairsieve.tabular.report.files.write_run` does that.

    Parameters
    ----------
    asked : TableSettings
    report : callable, optional
        Called with what begins, one of :data:`STAGES`.
    """
    tell = report or (lambda stage: None)
    run = _train_once(asked, tell)
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


def _train_once(asked: TableSettings, tell: Callable[[str], None]) -> TableRun:
    """Read the table, train both models and measure them."""
    started = time.perf_counter()
    tell(STAGES[0])
    problem = read_problem(asked)
    _check_labels(asked, problem)
    tell(STAGES[1])
    choice = choose_model(problem) if asked.model == "auto" else None
    name = asked.model if choice is None else choice.name
    models = train_linear(problem) if name == "logistic" else train_trees(problem, name)
    tell(STAGES[2])
    return _measured_run(problem, models, name, choice, started)


def _check_labels(asked: TableSettings, problem: TableProblem) -> None:
    """Refuse equal opportunity without a positive label, and a threshold for more than two labels."""
    if not asked.threshold.is_default and len(problem.labels.classes) > 2:
        raise InvalidInputError(
            f"--threshold must be 0.5 for more than two labels, of which the likeliest is predicted; got "
            f"{asked.threshold} with {len(problem.labels.classes)} labels: leave it out, or make two labels of them"
        )
    if asked.fairness == "equal_opportunity" and problem.labels.positive is None:
        raise InvalidInputError(
            f"--positive must be given for equal opportunity with {len(problem.labels.classes)} labels; they are "
            f"{', '.join(problem.labels.classes)}"
        )


def _measured_run(
    problem: TableProblem, fitted: TableModels, name: str, choice: ModelChoice | None, started: float
) -> TableRun:
    """Measure the models on the test part, and collect everything that is reported of a run."""
    asked, test, labels = problem.asked, problem.test, problem.labels
    pipelines = [one.model for one in fitted.models]
    predicted = probabilities(pipelines, test.values)
    outputs = [ModelOutput(*pair) for pair in zip(predicted, map(decide, pipelines, predicted), strict=True)]
    positive = -1 if problem.positive_code is None else problem.positive_code
    codes = [one.codes for one in outputs]
    scores, change = score_models(test.cells, codes, asked.fairness, positive, asked.seed, fitted.kept)
    plain, kept = outputs[0], outputs[fitted.kept]
    suspects = _named_suspects(fitted.suspects, problem)
    estimate = None if fitted.estimate is None else named_estimate(fitted.estimate, problem.train)
    noise = None if estimate is None else _noise_by_cell(estimate, problem)
    model = pipelines[fitted.kept]
    unseen = new_categories(test.values, model["prepare"]) if asked.test_file is not None else {}
    new = notes_on_new(unseen, quoted=False)  # the page of a run names nobody
    chosen = [] if choice is None else [choice.note]
    return TableRun(
        problem=problem,
        model=model,
        model_name=name,
        choice=choice,
        scores=[scores[0], scores[fitted.kept]],
        trade_off=[
            replace(one, scores=scores[place], kept=place == fitted.kept)
            for place, one in enumerate(fitted.models)
        ],
        change=change,
        measures=measure_groups(test.cells, plain.codes, kept.codes, labels),
        quality=measure_quality(test.cells, plain, kept, labels),
        calibration=measure_calibration(test.cells, plain, kept, labels),
        test_groups=test.cells.groups,
        dropped=dropped_cells(problem.train.cells, fitted.selected, suspects["row"], noise, fitted.weights),
        suspects=suspects | {"row": problem.train.rows[suspects["row"]]},
        clean_ratio=fitted.clean_ratio,
        estimate=estimate,
        comparison=fitted.comparison,
        notes=[*problem.notes, *new, *chosen, *fitted.notes],
        seconds=time.perf_counter() - started,
        versions=_versions(),
    )


def _named_suspects(found: dict[str, NDArray[Any]], problem: TableProblem) -> dict[str, NDArray[Any]]:
    """Select the rows whose labels look wrong, and name their labels and groups."""
    wrong = found["label"] != found["suggested"]
    suspects = {name: column[wrong] for name, column in found.items()}
    part, rows = problem.train, suspects["row"]
    for name in ("label", "suggested"):
        suspects[name] = as_objects(part.class_names(suspects[name]))
    suspects["group"] = as_objects(part.group_names(part.groups.codes[rows]))
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
