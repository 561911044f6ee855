"""The functions of ``fairsieve.tabular``, which the command line calls too: train, audit, review and predict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.tabular import label_review, predictions, table_run
from fairsieve.tabular.model_files import ARCHIVE, read_model
from fairsieve.tabular.prediction_audit import audit_predictions
from fairsieve.tabular.reading.columns import Reading
from fairsieve.tabular.reasons import decide_audit, decide_predictions, decide_run
from fairsieve.tabular.settings import TableSettings, read_settings, takes_settings
from fairsieve.tabular.table_results import AuditResult, Predictions, ReviewResult, TrainResult


@takes_settings("train")
def train(data: Any, *, report: Callable[[str], None] | None = None, **settings: Any) -> TrainResult:
    """Train a plain and a fair model on a table, measure both, and decide whether to use the fair one.

    Parameters
    ----------
    data : path or data frame
        A CSV, Parquet or Excel file, or a data frame of pandas, polars or Arrow.
    report : callable, optional
        Called with what begins.
    **settings

    Returns
    -------
    TrainResult
        With ``decision``, ``metrics``, ``suspects``, ``model`` and ``save(folder)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> result = tabular.train(people, label="label", sensitive="group", clean_ratio=0.95)
    >>> result.decision.outcome in ("use", "inconclusive", "do-not-use")
    True
    >>> sorted(result.metrics["fair"])
    ['accuracy', 'disparity']
    """
    run = table_run.train_table(TableSettings(data, **settings), report)
    return TrainResult(run, decide_run(run))


@takes_settings("audit")
def audit(
    data: Any,
    *,
    prediction: str | None = None,
    score: str | None = None,
    report: Callable[[str], None] | None = None,
    **settings: Any,
) -> AuditResult:
    """Estimate which labels of a table are wrong, and decide whether they, or predictions of them, can be used.

    Parameters
    ----------
    data : path or data frame
        As :func:`train` takes it.
    prediction : str, optional
        A column of labels that some system predicted: the decision is then about these predictions.
    score : str, optional
        A column of that system's probabilities of the positive label.
    report : callable, optional
        Called with what begins.
    **settings

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> found = tabular.audit(people, label="label", sensitive="group")
    >>> found.metrics["data"]["rows"], found.model is None
    (1000, True)
    """
    asked = TableSettings(data, **settings)
    if prediction is not None:
        measured = audit_predictions(asked, prediction, score, report)
        return AuditResult(measured.label_audit, decide_predictions(measured), predictions=measured)
    if score is not None:
        raise InvalidInputError(
            f"--score must go with --prediction; got {score!r} alone: add --prediction COLUMN"
        )
    found = label_review.audit_table(asked, report)
    return AuditResult(found, decide_audit(found))


@takes_settings("review", optional=("label", "sensitive"))
def review(
    data: Any,
    *,
    rows: int = 50,
    id_column: str | None = None,
    run: Path | str | None = None,
    report: Callable[[str], None] | None = None,
    **settings: Any,
) -> ReviewResult:
    """Choose rows of a table whose labels a person should check, and explain each.

    Parameters
    ----------
    data : path or data frame
        As :func:`train` takes it.
    rows : int
        How many rows to choose.
    id_column : str, optional
        A column that identifies the rows to whoever checks them.
    run : path, optional
        A folder that ``fairsieve train`` made: its settings are taken where none are given, and what its model
        predicts is told.
    report : callable, optional
        Called with what begins.
    **settings

    Returns
    -------
    ReviewResult
        With ``rows``, a data frame, and ``save(page)``. :func:`train` takes the answers as ``verified``.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> chosen = tabular.review(people, label="label", sensitive="group", rows=20)
    >>> len(chosen.rows), "given_label" in chosen.rows
    (20, True)
    """
    known = {} if run is None else read_settings(Path(run))
    known |= {name: value for name, value in settings.items() if value is not None}
    for name in ("label", "sensitive"):
        if not known.get(name):
            raise InvalidInputError(
                f"--{name} must name a column; got none: add it, or --run with a run's folder"
            )
    asked = TableSettings(data, **known)
    found = label_review.review_labels(
        asked, rows, id_column=id_column, run=None if run is None else Path(run), report=report
    )
    return ReviewResult(found)


@takes_settings("predict")
def predict(
    run: TrainResult | Path | str, data: Any, *, probabilities: bool = False, **settings: Any
) -> Predictions:
    """Predict the label of every row of a table.

    Parameters
    ----------
    run : TrainResult or path
        What :func:`train` returned, or a folder that it or ``fairsieve train`` made.
    data : path or data frame
        A table with the columns that the model learnt from.
    probabilities : bool
        Add the probability of each label, beside that of the predicted one.
    **settings

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> result = tabular.train(people, label="label", sensitive="group", clean_ratio=0.95)
    >>> predictions = tabular.predict(result, people.head(5))
    >>> len(predictions.predicted), list(predictions.frame.columns[-2:])
    (5, ['predicted', 'probability'])
    """
    data = Path(data) if isinstance(data, str) else data
    if isinstance(run, TrainResult):
        model, origin = run.model, Path(ARCHIVE)
    else:
        model, origin = read_model(Path(run)), Path(run) / ARCHIVE
    table, codes, chances, notes = predictions.predict_table(model, data, Reading(**settings), origin)
    of_labels = dict(zip(map(str, model.classes_), chances.T, strict=True)) if probabilities else {}
    own = chances[np.arange(len(codes)), codes]
    return Predictions(data, table, model.classes_[codes], own, notes, of_labels)
