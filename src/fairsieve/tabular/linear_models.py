"""Train logistic regression on a table: a plain model, a fair one, and those between the two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from fairsieve.estimators._held_out import predict_held_out
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.inputs import check_samples
from fairsieve.label_noise.suspects import probabilities_of
from fairsieve.selection.cells import Cells
from fairsieve.tabular.fitted_models import FittedModel, TableModels, record_warnings
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.trade_off import HeldOutScores, choose_point, score_held_out, true_chances
from fairsieve.training.history import History
from fairsieve.training.linear_model import LinearModel

__all__ = ["train_linear"]

ALONG_THE_WAY = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_HELD_OUT = 40_000  # rows on which a point of the trade-off is chosen
TOO_FEW = (
    "--max-accuracy-loss could not choose between the models: a label has fewer than 40 rows to learn from, too few "
    "to set half of them aside; the fair model is kept."
)


def train_linear(problem: TableProblem) -> TableModels:
    """Train the fair and robust model, which keeps the plain one beside it.

    The plain model takes the fair one's place if that collapsed. The models between have weights mixed from both.
    """
    asked, part = problem.asked, problem.train
    prepared = Preparation(missing=asked.reading.missing).fit(part.values)
    features = prepared.transform(part.values)
    model = FairRobustClassifier(
        asked.fairness,
        asked.clean_ratio,
        epochs=asked.max_iter,
        random_state=asked.seed,
        on_collapse="fallback",
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
    plain, fair = model.plain_model_, LinearModel(model.coef_, model.intercept_)
    assert isinstance(plain, LinearModel)
    along = (0.0,) if model.collapse_ is not None else ALONG_THE_WAY
    judged: list[HeldOutScores] = []
    if asked.max_accuracy_loss is not None and len(along) > 1:
        judged = _score_between(model, features, problem, along)
        if not judged:
            notes.append(TOO_FEW)
    models = []
    for share, held_out in zip(along, judged or (None,) * len(along), strict=True):
        linear = LinearModel(
            (1 - share) * plain.coef + share * fair.coef,
            (1 - share) * plain.intercept + share * fair.intercept,
        )
        chances = np.zeros((0, 0)) if asked.threshold.is_default else linear.probabilities(features)
        models.append(
            FittedModel(
                title=_title(share),
                prepared=prepared,
                classifier=as_sklearn(linear, problem.labels.classes, len(model.history_)),
                training_scores=chances,
                held_out=held_out,
            )
        )
    return TableModels(
        models=models,
        kept=choose_point(judged, asked.max_accuracy_loss or 0.0) if judged else len(models) - 1,
        suspects=model.suspects(),
        selected=model.sample_indices_,
        history=model.history_,
        clean_ratio=model.clean_ratio_,
        estimate=model.estimate_,
        collapse=model.collapse_,
        notes=notes,
        weights=_effective_weights(model.history_, part.cells),
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


def _effective_weights(history: History, cells: Cells) -> NDArray[np.float64]:
    """Compute each cell's share of the training weight, divided by its share of the rows; NaN where it has none."""
    columns = [
        -1 if group is None else int(group) for group in history.groups
    ]  # those without a group are last
    sizes = cells.counts[np.ix_([int(code) for code in history.classes], columns)]
    counts = history.counts[-1]
    weights = counts.sum(axis=1, keepdims=True) * history.ratios[-1]
    rows = np.where(sizes > 0, sizes / sizes.sum(), np.nan)
    return np.asarray(weights / weights.sum() / rows)


def _title(share: float) -> str:
    """Name the model that is some share of the way."""
    return {0.0: "plain model", 1.0: "fair model"}.get(share, f"{share:.0%} of the way to the fair model")


def _score_between(
    model: FairRobustClassifier, features: NDArray[np.float32], problem: TableProblem, along: Sequence[float]
) -> list[HeldOutScores]:
    """Score the models between on halves of the training rows that they did not see; nothing where that cannot be.

    For each half, a plain and a fair model are trained on the other half, and mixed in the same way.
    """
    asked, part = problem.asked, problem.train
    checked = check_samples(BaseEstimator(), features, part.label_codes, part.group_codes, None)
    found = predict_held_out(model, checked, asked.seed, MOST_HELD_OUT)
    if found is None:
        return []
    cells = checked.data.take(found.rows).cells
    estimate = None if model.estimate_ is None else model.estimate_.take(found.rows, cells)
    chances = true_chances(cells, estimate)
    scores = []
    for share in along:
        logits = (1 - share) * found.plain + share * found.fair
        predicted = probabilities_of(logits[:, 0] if logits.shape[1] == 1 else logits)
        codes = _decide_held_out(predicted, chances, problem)
        positive = -1 if problem.positive_code is None else problem.positive_code
        scores.append(score_held_out(codes, cells, chances, asked.fairness, positive))
    return scores


def _decide_held_out(
    predicted: NDArray[Any], chances: NDArray[Any], problem: TableProblem
) -> NDArray[np.int64]:
    """Decide by the threshold that the rule chooses, or for the likeliest class."""
    rule, positive = problem.asked.threshold, problem.positive_code
    if rule.is_default or positive is None:
        return np.asarray(predicted.argmax(axis=1))
    threshold = rule.choose(predicted[:, positive], chances[:, positive])
    return np.where(predicted[:, positive] >= threshold, positive, 1 - positive)
