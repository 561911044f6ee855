"""Train logistic regression on a table: a plain model, a fair one, and those between the two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairsieve.estimators.classifier import TOLERANCE, FairRobustClassifier
from fairsieve.tabular.fitted_models import FittedModel, TableModels, place_weights, record_warnings
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.trade_off import HeldOutScores, choose_point
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.ratio_search import choose_point as choose_on_path

__all__ = ["train_linear"]


def train_linear(problem: TableProblem) -> TableModels:
    """Train the plain model and the way to the fair one, of which each point is a model between the two."""
    asked, part = problem.asked, problem.train
    prepared = Preparation(missing=asked.reading.missing).fit(part.values)
    features = prepared.transform(part.values)
    model = FairRobustClassifier(
        asked.fairness,
        clean_ratio=asked.clean_ratio,
        tolerance=asked.tolerance,
        max_iter=asked.max_iter or 200,
        random_state=asked.seed,
        pos_label=problem.positive_code,
    )
    with record_warnings(part) as notes:
        model.fit(
            features,
            part.label_codes,
            sensitive_features=part.group_codes,
            verified_labels=part.verified_labels,
            verified_weight=None if part.verified_labels is None else part.verified_weight,
        )
    if model.interrupted_:
        raise KeyboardInterrupt
    scores = [HeldOutScores(*row) for row in model.path_[["accuracy", "gap"]].itertuples(index=False)]
    tolerance = TOLERANCE if asked.tolerance is None else asked.tolerance
    kept = 0 if model.is_plain_ else 1 + choose_on_path(scores, tolerance)
    if asked.max_accuracy_loss is not None:
        kept = 1 + choose_point(scores, asked.max_accuracy_loss)
    linear = [model.plain_model_, *model.path_models_]
    models = [
        FittedModel(
            title="plain model" if number == 0 else "fair model" if number == kept else f"point {number}",
            prepared=prepared,
            classifier=as_sklearn(one, problem.labels.classes, model.n_iter_),
            training_scores=np.zeros((0, 0)) if asked.threshold.is_default else one.probabilities(features),
            held_out=None if number == 0 else scores[number - 1],
        )
        for number, one in enumerate(linear)
    ]
    return TableModels(
        models=models,
        kept=kept,
        suspects={name: column.to_numpy() for name, column in model.suspects().items()},
        selected=model.sample_indices_,
        clean_ratio=model.clean_ratio_,
        estimate=model.estimate_,
        comparison=model.comparison_,
        notes=notes,
        weights=place_weights(model, part.cells),
    )


def as_sklearn(linear: LinearModel, classes: Sequence[str], updates: int) -> LogisticRegression:
    """Make a fitted logistic regression of scikit-learn's from a linear model."""
    model = LogisticRegression()
    model.classes_ = np.asarray(classes, dtype=np.str_)
    model.coef_ = np.array(linear.coef, dtype=np.float64)
    model.intercept_ = np.array(linear.intercept, dtype=np.float64)
    model.n_features_in_ = model.coef_.shape[1]
    model.n_iter_ = np.array([updates], dtype=np.int32)
    return model
