"""The functions of ``fairsieve.tabular``, which the command line calls too: train, audit, review and predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from fairsieve.errors import InvalidInputError
from fairsieve.tabular import label_audit, label_review, table_prediction, table_run
from fairsieve.tabular.audit_reasons import decide_audit, decide_predictions
from fairsieve.tabular.model_files import read_model
from fairsieve.tabular.prediction_audit import audit_predictions
from fairsieve.tabular.reading.read import read_data
from fairsieve.tabular.reading.table import Reading
from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.recorded_settings import read_settings
from fairsieve.tabular.request import TableSettings, ask
from fairsieve.tabular.table_results import AuditResult, Predictions, ReviewResult, TrainResult

__all__ = ["audit", "predict", "review", "train"]


def train(
    data: Any,
    *,
    label: str,
    sensitive: str | Sequence[str],
    report: Callable[[str], None] | None = None,
    checkpoint_dir: Path | str | None = None,
    checkpoint_every: int | None = None,
    **settings: Unpack[TableSettings],
) -> TrainResult:
    """Train a plain and a fair model on a table, measure both, and decide whether to use the fair one.

    Parameters
    ----------
    data : path or data frame
        A CSV or Parquet file, or a data frame of pandas or polars.
    label : str
        The column to predict.
    sensitive : str or sequence of str
        The columns whose groups are compared; several are crossed.
    report : callable, optional
        Called with what begins.
    checkpoint_dir, checkpoint_every
        A folder for checkpoints, and how many epochs lie between two; a training that was stopped goes on.
    **settings
        The options of ``fairsieve train``, with underscores: see :class:`fairsieve.tabular.request.Asked`, and
        ``separator``, ``decimal`` and ``missing`` for how a file is read.

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
    run = table_run.train_table(
        ask(data, label, sensitive, settings),
        report,
        checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
        checkpoint_every=checkpoint_every,
    )
    return TrainResult(run, decide_run(run))


def audit(
    data: Any,
    *,
    label: str,
    sensitive: str | Sequence[str],
    prediction: str | None = None,
    score: str | None = None,
    report: Callable[[str], None] | None = None,
    **settings: Unpack[TableSettings],
) -> AuditResult:
    """Estimate which labels of a table are wrong, and decide whether they, or predictions of them, can be used.

    The other parameters are those of :func:`train`.

    Parameters
    ----------
    prediction : str, optional
        A column of labels that some system predicted: the decision is then about these predictions.
    score : str, optional
        A column of that system's probabilities of the positive label.

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
    asked = ask(data, label, sensitive, settings)
    if prediction is not None:
        measured = audit_predictions(asked, prediction, score, report)
        return AuditResult(measured.label_audit, decide_predictions(measured), predictions=measured)
    if score is not None:
        raise InvalidInputError(
            f"--score must go with --prediction; got {score!r} alone: add --prediction COLUMN"
        )
    found = label_audit.audit_table(asked, report)
    return AuditResult(found, decide_audit(found))


def review(
    data: Any,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] | None = None,
    rows: int = 50,
    id_column: str | None = None,
    run: Path | str | None = None,
    report: Callable[[str], None] | None = None,
    **settings: Unpack[TableSettings],
) -> ReviewResult:
    """Choose rows of a table whose labels a person should check, and explain each.

    Parameters
    ----------
    data : path or data frame
    label, sensitive
        As :func:`train` takes them; those of ``run`` where they are not given.
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
        As :func:`train` takes them. Rows that ``verified`` answers are not chosen again.

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
    label, sensitive = label or known.pop("label", None), sensitive or known.pop("sensitive", None)
    if label is None or sensitive is None:
        which = "label" if label is None else "sensitive"
        raise InvalidInputError(
            f"--{which} must name a column; got none: add it, or --run with a run's folder"
        )
    known = {name: value for name, value in known.items() if name in TableSettings.__annotations__}
    asked = ask(data, label, sensitive, cast("TableSettings", known | settings))
    found = label_review.review_labels(
        asked, rows, id_column=id_column, run=None if run is None else Path(run), report=report
    )
    return ReviewResult(found)


def predict(
    run: TrainResult | Path | str, data: Any, reading: Reading | None = None, *, probabilities: bool = False
) -> Predictions:
    """Predict the label of every row of a table.

    Parameters
    ----------
    run : TrainResult or path
        What :func:`train` returned, or a folder that it or ``fairsieve train`` made.
    data : path or data frame
        A table with the columns that the model learnt from.
    reading : Reading, optional
        How a CSV file is read.
    probabilities : bool
        Add the probability of each label, beside that of the predicted one.

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
        model, reading = run.model, reading or Reading()
        table = read_data(data, replace(reading, missing=(*reading.missing, *run.run.asked.reading.missing)))
        found = (table, *table_prediction.predict_rows(model, table, Path("model.skops")))
    else:
        found = table_prediction.predict_table(run, data, reading)
        model = read_model(Path(run)) if probabilities else None
    chances = table_prediction.label_probabilities(model, found[0]) if probabilities else {}
    return Predictions(data, *found, chances)
