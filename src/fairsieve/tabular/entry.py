"""The functions of ``fairsieve.tabular``, which the command line calls too, and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import check_new, write_output
from fairsieve.notebook import Bar, cells_html, table_html
from fairsieve.progress import Report, log_stage
from fairsieve.report.text import percent
from fairsieve.tabular import audits, label_review, run_folder, table_run
from fairsieve.tabular.audits import Audit, PredictionAudit, audit_predictions, find_impact_ratios, impact_csv
from fairsieve.tabular.decision import Decision, decide_audit, decide_predictions, decide_run, say
from fairsieve.tabular.label_review import LabelReview, write_review
from fairsieve.tabular.model_files import ARCHIVE, read_model
from fairsieve.tabular.partitions.source import find_source
from fairsieve.tabular.predictions import PartPredictions, Predictions, Predictor
from fairsieve.tabular.reading.columns import FRAME_NAME, InputTable, Reading
from fairsieve.tabular.reading.read import open_pipe, with_columns
from fairsieve.tabular.settings import (
    AuditArguments,
    PredictArguments,
    ReviewArguments,
    TableSettings,
    TrainArguments,
    check_place,
    read_settings,
    takes_settings,
)
from fairsieve.tabular.table_run import TableRun
from fairsieve.validation import as_path, as_text, check_choice, check_kind, check_truth


@takes_settings("train")
def train(data: Any, *, report: Report | None = None, **settings: Unpack[TrainArguments]) -> TrainResult:
    """Train a plain and a fair model on a table, measure both on rows that they did not see, and decide which to use.

    Parameters
    ----------
    data : path or data frame
        A CSV, Parquet or Excel file, or a data frame of pandas, polars or Arrow. A folder or a glob of CSV or Parquet
        files, or a data frame of dask, is read in parts where it does not fit into memory.
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
    >>> result.decision.outcome in ("use-fair", "keep-plain", "your-call", "cannot-tell")
    True
    >>> sorted(result.metrics["fair"])
    ['accuracy', 'disparity', 'on_given_labels']
    """
    run = table_run.train_table(TableSettings(data, **settings), _reporter(report))
    return TrainResult(run, decide_run(run))


@takes_settings("audit")
def audit(
    data: Any,
    *,
    prediction: str | None = None,
    score: str | None = None,
    format: str | None = None,
    report: Report | None = None,
    **settings: Unpack[AuditArguments],
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
    format : {"ll144"}, optional
        Add the selection rates and impact ratios that New York City's Local Law 144 asks for: of the predictions or,
        without them, of the labels.
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
    asked, report = TableSettings(data, **settings), _reporter(report)
    if format is not None:
        check_choice("--format", format, ("ll144",))
    if prediction is not None:
        prediction = as_text("--prediction", prediction)
        score = None if score is None else as_text("--score", score)
        measured = audit_predictions(asked, prediction, score, report)
        if format is not None:
            measured = replace(measured, impact=find_impact_ratios(measured, prediction, score))
        return AuditResult(measured, decide_predictions(measured))
    if score is not None:
        raise InvalidInputError(
            f"{spell('--score')} needs {spell('--prediction')}; got {score!r} alone: add it"
        )
    audited = audits.audit_table(asked, report)
    if format is not None:
        audited = replace(audited, impact=find_impact_ratios(audited))
    return AuditResult(audited, decide_audit(audited))


@takes_settings("review", optional=("label", "sensitive"))
def review(
    data: Any,
    *,
    rows: int = 50,
    id_column: str | None = None,
    run: Path | str | None = None,
    report: Report | None = None,
    **settings: Unpack[ReviewArguments],
) -> ReviewResult:
    """Choose rows of a table whose labels a person should check, and explain each.

    Parameters
    ----------
    data : path or data frame
        As :func:`train` takes it.
    rows : int, default=50
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
    folder = None if run is None else as_path("--run", run, "the folder of a run")
    known = {} if folder is None else read_settings(folder)
    known |= {name: value for name, value in settings.items() if value is not None}
    for name in ("label", "sensitive"):
        if name not in known:
            raise InvalidInputError(
                f"{spell(f'--{name}')} must name a column; got none: add it, or {spell('--run')}"
            )
    asked = TableSettings(data, **known)
    id_column = None if id_column is None else as_text("--id", id_column)
    return ReviewResult(label_review.review_labels(asked, rows, id_column, folder, _reporter(report)))


@takes_settings("predict")
def predict(
    run: TrainResult | Path | str,
    data: Any,
    *,
    probabilities: bool = False,
    **settings: Unpack[PredictArguments],
) -> Predictions | PartPredictions:
    """Predict the label of every row of a table.

    A folder, a glob, a dask data frame or a file that is larger than the memory is predicted part by part, when what is
    returned is saved.

    Parameters
    ----------
    run : TrainResult or path
        What :func:`train` returned, or a folder that it or ``fairsieve train`` made.
    data : path or data frame
        A table with the columns that the model learnt from.
    probabilities : bool, default=False
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
    data = open_pipe(data)
    check_truth("--probabilities", probabilities)
    backend = settings.get("backend", "local")
    memory = check_place(backend, settings.get("memory"))
    reading = Reading(
        settings.get("separator", "auto"), settings.get("decimal", "auto"), settings.get("missing", ())
    )
    if isinstance(run, TrainResult):
        model, origin = run.model, Path(ARCHIVE)
    else:
        folder = as_path("RUN", run, "what train returned, or the folder of a run")
        model, origin = read_model(folder), folder / ARCHIVE
    predictor = Predictor(model, reading, origin, probabilities)
    source = find_source(data, memory)
    if source is None:
        return predictor.predict(data)
    return PartPredictions(source, predictor, backend, memory, [source.note] if source.note else [])


def _reporter(report: Any) -> Report:
    """Return what reports what begins; None logs it, which is silent unless somebody asks for it."""
    check_kind("report", report, (Callable, type(None)), "a function that takes a sentence")
    return report or log_stage


@dataclass(frozen=True, eq=False, repr=False)
class TrainResult:
    """What training on a table gives.

    Attributes
    ----------
    decision : Decision
        Which model to use, why, and what to do next.
    metrics : dict
        Every number, as in ``metrics.json``.
    suspects : data frame
        The rows whose labels to check, the likeliest wrong first: the original columns, and what the model says of
        each. Of polars where the table was, else of pandas.
    model : Pipeline
        The stored model, which follows the decision: a pipeline of a preparation and a classifier of scikit-learn's.
    plain_model : Pipeline
        The plain one, to compare with or to use.
    run : TableRun
        Everything else.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> result = tabular.train(people, label="label", sensitive="group", clean_ratio=0.95)
    >>> type(result.model).__name__, "label" in result.suspects, len(result.plain_model.predict(people))
    ('Pipeline', True, 1000)
    """

    run: TableRun
    decision: Decision

    @property
    def model(self) -> Pipeline:
        """The stored model."""
        return self.run.model

    @property
    def plain_model(self) -> Pipeline:
        """The plain model, which the fair one is compared with."""
        return self.run.trained.plain.model

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Every number, as in ``metrics.json``."""
        return run_folder.run_record(self.run, self.decision)

    @cached_property
    def suspects(self) -> Any:
        """The rows whose labels to check, with their original columns."""
        return _suspects_frame(self.run.asked.data, self.run.suspects_table, self.run.suspects)

    def save(self, folder: Path | str, *, force: bool = False) -> Path:
        """Write the page, the card, the numbers, the suspects and the model to a folder; return where.

        A run that is there is replaced with ``force`` only.
        """
        folder = as_path("--out", folder)
        with run_folder.new_folder(folder, force=force) as part:
            run_folder.write_run(self.run, self.decision, part)
        return folder

    def __repr__(self) -> str:
        return f"<TrainResult: {self.decision.sentence}>"

    def _repr_html_(self) -> str:
        rate, rates = self.decision.facts["rate"], self.decision.facts["rates"]
        heads = [] if rate is None else ["group", f"{rate.title}: plain model", "fair model"]
        rows = [[group, *(Bar(one.value, percent(one.value)) for one in scores)] for group, *scores in rates]
        lines = [say("stored", {"run": self.run}), *self.decision.lines]
        return table_html(self.decision.sentence, heads, rows, lines)


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit of a table's labels gives.

    Attributes
    ----------
    decision : Decision
        Whether the labels can be used as they are.
    metrics : dict
        Every number of the audit.
    suspects : data frame
        The rows whose labels are more likely wrong than right, the surest first, with their original columns.
    model : None
        An audit keeps none.
    audit : Audit
        Everything else about the labels.
    predictions : PredictionAudit or None
        What the predictions in the table are worth, where a column of them was named; the decision is then about them.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> found = tabular.audit(people, label="label", sensitive="group")
    >>> found.decision.outcome in ("use", "cannot-tell", "do-not-use")
    True
    """

    audit: Audit
    decision: Decision
    model: None = None

    @property
    def predictions(self) -> PredictionAudit | None:
        """What the predictions in the table are worth."""
        return self.audit if isinstance(self.audit, PredictionAudit) else None

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Every number of the audit."""
        return run_folder.audit_record(self.audit, self.decision)

    @cached_property
    def suspects(self) -> Any:
        """The rows whose labels to check, with their original columns."""
        return _suspects_frame(self.audit.asked.data, self.audit.suspects_table, self.audit.suspects)

    def __repr__(self) -> str:
        return f"<AuditResult: {self.decision.sentence}>"

    def _repr_html_(self) -> str:
        cells, noise = self.audit.estimate.cells, self.audit.estimate.told_noise
        titles = ("people", "estimated wrong labels")
        return cells_html(self.decision.sentence, cells, noise, titles, self.decision.lines)

    def save(self, path: Path | str, *, force: bool = False) -> Path:
        """Write all suspects, or the impact ratios that were asked for, to a CSV file; return where.

        A file that is there is replaced with ``force`` only.

        An audit of predictions is a folder, with a page and the numbers beside the suspects.
        """
        path = as_path("--out", path)
        if self.predictions is not None:
            with run_folder.new_folder(path, force=force) as part:
                run_folder.write_prediction_audit(self.predictions, self.decision, part)
        else:
            check_new("--out", path, force=force)
            audit = self.audit
            suspects = run_folder.suspects_csv(audit.suspects, audit.suspects_table)
            write_output(path, (suspects if audit.impact is None else impact_csv(audit.impact)).encode())
        return path


@dataclass(frozen=True, eq=False, repr=False)
class ReviewResult:
    """Rows of a table whose labels a person should check.

    Attributes
    ----------
    rows : data frame
        The rows to check: the labels given and suggested, why, the chance to be chosen, and the original columns.
    review : LabelReview
        Everything else.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairsieve import tabular
    >>> from fairsieve.data import make_synthetic
    >>> drawn = make_synthetic(1000, seed=0)
    >>> people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    >>> people["group"], people["label"] = drawn.groups, drawn.labels
    >>> chosen = tabular.review(people, label="label", sensitive="group", rows=20)
    >>> bool((chosen.rows["sampling_weight"] > 0).all())
    True
    """

    review: LabelReview

    @cached_property
    def rows(self) -> Any:
        """The rows to check, as a data frame."""
        return self.review.frame

    def save(self, page: Path | str, *, force: bool = False) -> Path:
        """Write the page to answer on, and beside it the CSV file to fill in; return where that is.

        Files that are there are replaced with ``force`` only, and answers never.
        """
        return write_review(self.review, as_path("--out", page), force=force)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.review.rows):,} rows to check>"

    def _repr_html_(self) -> str:
        return str(self.rows._repr_html_())


def _suspects_frame(data: Any, table: InputTable, suspects: pd.DataFrame) -> Any:
    """Return the rows of suspects with their original columns, and what is known of each beside them."""
    rows = np.searchsorted(table.rows, suspects["row"])
    known = suspects.drop(columns=["label"] if table.name == FRAME_NAME else ["label", "row"])
    added = {str(name): known[name].to_numpy() for name in known}
    if table.where is not None:
        where = table.where.loc[suspects["row"]]
        added |= {"file": where["file"].to_numpy(), "row_in_file": where["row"].to_numpy()}
    return with_columns(data, table, rows, added)
