"""Train boosted trees on a table: a plain model, and one for each round of the sieve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairsieve.estimators._rounds import Round
from fairsieve.estimators.sieve import SieveClassifier
from fairsieve.label_noise.estimate import warn_if_inconclusive
from fairsieve.samples import Samples
from fairsieve.selection.cells import Cells
from fairsieve.tabular.boosted_trees import NativeTrees, named_trees
from fairsieve.tabular.fitted_models import FittedModel, TableModels, record_warnings
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.trade_off import HeldOutScores
from fairsieve.training.history import History, count_predictions, new_recording

__all__ = ["ROUNDS", "train_trees", "weigh_by_trees"]

ROUNDS = 12


def train_trees(problem: TableProblem, model: str) -> TableModels:
    """Train trees in rounds of :class:`~fairsieve.SieveClassifier`, which are the models of the trade-off."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False, missing=asked.reading.missing).fit(part.values)
    matrix = prepared.transform(part.values)
    sieve = SieveClassifier(
        NativeTrees(model, asked.trees, asked.seed, len(prepared.categories_)),
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or ROUNDS,
        threshold=asked.threshold,
        keep_path=True,
        pos_label=problem.positive_code,
        random_state=asked.seed,
    )
    with record_warnings(part) as notes:
        sieve.fit(
            matrix,
            part.label_codes,
            sensitive_features=part.group_codes,
            verified_labels=part.verified_labels,
            verified_weight=None if part.verified_labels is None else part.verified_weight,
        )
        if sieve.estimate_ is not None:
            warn_if_inconclusive(sieve.estimate_)
    cells = Samples(np.zeros((len(part), 1)), part.label_codes, part.group_codes, missing="own").cells
    models: list[FittedModel] = []
    kept = 0
    for number, (one, fitted) in enumerate(zip(sieve.rounds_, sieve.path_models_, strict=True)):
        if len(fitted.classes_) < len(problem.labels.classes):
            continue  # a round that trained on no row of a label
        kept = len(models) if fitted is sieve.estimator_ else kept
        models.append(
            FittedModel(
                title="plain model" if number == 0 else f"round {number}",
                prepared=prepared,
                classifier=named_trees(fitted, problem.labels.classes),
                training_scores=one.probabilities,
                held_out=HeldOutScores(one.accuracy, one.gap),
            )
        )
    return TableModels(
        models=models,
        kept=kept,
        suspects={
            **{name: column.to_numpy() for name, column in sieve.suspects().items()},
            "epochs_kept": np.zeros(len(sieve.suspects()), int),
        },
        selected=np.flatnonzero(sieve.weights_ > 0),
        history=_history(sieve.rounds_, cells, problem.positive_code),
        clean_ratio=sieve.clean_ratio_,
        estimate=sieve.estimate_,
        collapse=sieve.comparison_ if sieve.is_plain_ else None,
        notes=notes,
        weights=_effective_weights(cells, sieve.weights_),
    )


def _effective_weights(cells: Cells, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute each cell's share of the training weight, divided by its share of the rows; NaN where it has none."""
    sums = np.bincount(cells.codes, weights, minlength=cells.counts.size).reshape(cells.shape)
    rows = np.where(cells.counts > 0, cells.counts / len(cells), np.nan)
    return np.asarray(sums / weights.sum() / rows)


def weigh_by_trees(problem: TableProblem, model: str) -> SieveClassifier:
    """Fit trees once and once more under weights, to say which labels are wrong; nothing of them is kept."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(one_hot=False).fit(part.values)
    sieve = SieveClassifier(
        NativeTrees(model, asked.trees, asked.seed, len(prepared.categories_)),
        max_iter=1,
        pos_label=problem.positive_code,
        random_state=asked.seed,
    )
    with record_warnings(part):
        return sieve.fit(
            prepared.transform(part.values), part.label_codes, sensitive_features=part.group_codes
        )


def _history(rounds: list[Round], cells: Cells, positive: int | None) -> History:
    """Record the rounds as a history: what each found out of fold, and the ratios and rows that it weighed."""
    recording = new_recording(len(rounds), cells)
    every = np.arange(len(cells))
    codes = cells.codes.astype(np.int64)
    for number, one in enumerate(rounds):
        chances = one.probabilities[every, cells.label_codes]
        losses = -np.log(np.maximum(chances, 1e-12))
        kept = np.flatnonzero(one.kept)
        counts = np.bincount(codes[kept], minlength=cells.counts.size)
        sums = np.bincount(codes[kept], losses[kept], minlength=cells.counts.size)
        count_predictions(one.probabilities.argmax(axis=1), codes, recording.tables[number])
        recording.cell_losses[number] = sums / np.maximum(counts, 1)
        recording.ratios[number], recording.counts[number] = one.ratios.reshape(-1), counts
        if number:
            recording.times_selected[kept] += 1
    return History.from_recording(
        recording,
        cells,
        np.arange(len(rounds)),
        warmup_epochs=1,
        positive=-1 if positive is None else positive,
    )
