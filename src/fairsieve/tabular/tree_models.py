"""Train boosted trees on a table: a plain model, and one for each round of the sieve."""

from __future__ import annotations

import numpy as np

from fairsieve.estimators.sieve import SieveClassifier
from fairsieve.label_noise.estimate import warn_if_inconclusive
from fairsieve.tabular.boosted_trees import NativeTrees, named_trees
from fairsieve.tabular.fitted_models import FittedModel, TableModels, place_weights, record_warnings
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.trade_off import HeldOutScores

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
        suspects={name: column.to_numpy() for name, column in sieve.suspects().items()},
        selected=np.flatnonzero(sieve.weights_ > 0),
        clean_ratio=sieve.clean_ratio_,
        estimate=sieve.estimate_,
        comparison=sieve.comparison_,
        notes=notes,
        weights=place_weights(sieve, part.cells),
    )


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
