"""Choose rows of a table whose labels a person should check, explain each, and write a page and a file to answer in."""

from __future__ import annotations

import shlex
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import check_new, clear_stale, hold, move_together, output_errors, write_whole
from fairsieve.progress import Report
from fairsieve.report.page import fill_template
from fairsieve.report.text import csv_text, load_sentences, writable
from fairsieve.selection.cells import Codes, Floats
from fairsieve.tabular.answers import ANSWER_COLUMNS, count_answers, row_checksums, unsure_word
from fairsieve.tabular.audits import STAGES, Audit, audit_table
from fairsieve.tabular.decision import command_words, estimate_sentence, group_name, new_page
from fairsieve.tabular.model_files import ARCHIVE, predict_table, read_model
from fairsieve.tabular.preparation import TablePart
from fairsieve.tabular.reading.columns import as_objects
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.read import free_name
from fairsieve.tabular.settings import TableSettings, data_name
from fairsieve.validation import check_at_least

Numbers = NDArray[np.float32]
REVIEW_STAGES = (*STAGES, "choosing rows to check")


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelReview(Audit):
    """Rows of a table to check, and what is known of its labels.

    Attributes
    ----------
    id_column : str or None
    rows : DataFrame
        For each row its number as in a spreadsheet (``row``), ``id``, ``given_label``, ``suggested_label``, ``group``,
        ``sampling_weight`` (the inverse of its chance to be chosen, up to a factor), ``reasons`` (a list), ``matters``
        (the columns that matter for it, the most first) and ``row_checksum``.
    values : DataFrame
        What stands in the other columns, as texts; those that matter most over all rows first.
    """

    id_column: str | None
    rows: pd.DataFrame
    values: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """The rows to check: what identifies them, the labels, and the original columns."""
        told = self.rows.drop(columns=["id", "matters", "row_checksum"])
        told["reasons"] = told["reasons"].str.join(" ")
        own = self.values.rename(columns=lambda name: free_name(str(name), list(told)))
        return pd.concat([told, own.set_axis(told.index)], axis=1)


def review_labels(
    asked: TableSettings, count: int, id_column: str | None, run: Path | None, report: Report
) -> LabelReview:
    """Choose rows by :meth:`~fairsieve.FairRobustClassifier.next_to_verify`, and explain them.

    Most of the choice is at random, spread over the cells; the rest is where it is least certain whether the label is
    right or, with answers, where a further one would tell most about the other rows. Weights make up for it: answers
    to these rows can be used without bias, answers to the likeliest suspects alone cannot.

    Parameters
    ----------
    asked : TableSettings
        Rows that its ``verified`` files answer are not asked about again.
    count : int
        How many rows.
    id_column : str or None
        A column that identifies the rows to whoever checks them.
    run : Path or None
        A run's folder; what its model predicts is told too.
    report : callable
        Called with what begins, one of :data:`REVIEW_STAGES`.
    """
    check_at_least("--rows", count, 1)
    audit = audit_table(asked, report)
    if id_column is not None:
        audit.table.column(id_column, "--id")
    report(REVIEW_STAGES[2])
    part, estimate = audit.train, audit.estimate
    checked = estimate.verified_codes
    left = len(part) if checked is None else int((checked < 0).sum())
    if not left:
        raise InvalidInputError(
            f"{spell('--verified')} must leave rows to check; every row of the table has an answer"
        )
    places, weights = estimate.next_to_verify(min(count, left), asked.seed)
    # Whoever stops early has then checked a random part of the choice.
    order = np.random.default_rng(asked.seed).permutation(len(places))
    places, weights = places[order], weights[order]
    true_class = estimate.true_class[places] if estimate.credible else None
    part = part if audit.without_leaks.values.empty else audit.without_leaks
    prepared = Preparation().fit(part.values)
    numbers = prepared.encode(part.values)
    explained = explain_labels(part, numbers, prepared.sources, places, true_class, asked.seed)
    suggested, matters, reasons = map(list, zip(*explained, strict=True))
    if run is not None:
        data = asked.data if audit.parts is None else audit.table
        predicted = _predicted(run, asked, data)[np.isin(audit.table.rows, part.rows)]
        reasons = [[*told, predicted[place]] for told, place in zip(reasons, places, strict=True)]
    inside = np.searchsorted(audit.table.rows, part.rows[places])
    chosen = audit.table.take(inside)
    texts = {name: ["" if one is None else str(one) for one in chosen.cells(name)] for name in chosen.columns}
    rows = pd.DataFrame(
        {
            "row": part.rows[places],
            "id": "" if id_column is None else texts.pop(id_column),
            "given_label": part.class_names(part.labels.codes[places]),
            "suggested_label": part.class_names(suggested),
            "group": part.group_names(part.groups.codes[places]),
            "sampling_weight": weights,
            "reasons": reasons,
            "matters": [[*weight] for weight in matters],
            "row_checksum": row_checksums(audit.table, inside),
        }
    )
    # Columns that no model sees come last.
    total = {name: sum(one.get(name, -1.0) for one in matters) for name in texts if name != asked.label}
    values = pd.DataFrame(texts)[sorted(total, key=lambda name: -total[name])]
    return LabelReview(**vars(audit), id_column=id_column, rows=rows, values=values)


def _predicted(run: Path, asked: TableSettings, data: Any) -> NDArray[np.object_]:
    """Say what the model of a run predicts for each row."""
    model = read_model(run)
    _, codes, chances, _ = predict_table(model, data, asked.reading, run / ARCHIVE)
    say = load_sentences("fairsieve.tabular", "sentences.j2").predicted
    pairs = zip(codes, chances, strict=True)
    return as_objects(say(run.name, model.classes_[code], row[code]) for code, row in pairs)


MOST_ROWS = 20_000  # that the model and the neighbours are taken from
MOST_WORK = 2e10  # multiplications spent on neighbours, so that many rows to explain get fewer candidates
NEIGHBOURS = 20
TELLING = 3  # columns that are named


def explain_labels(
    part: TablePart,
    numbers: Numbers,
    columns: Sequence[str],
    places: Codes,
    true_class: Floats | None,
    seed: int,
) -> Iterator[tuple[int, dict[str, float], list[str]]]:
    """Explain the labels of the rows at ``places`` by a model and by similar rows.

    Yields the code of the likeliest label of each, how much each column that a model sees matters (the most first), and
    reasons in words.

    Parameters
    ----------
    part : TablePart
        All rows with a label.
    numbers : array of shape (n, d)
        What a model sees of them.
    columns : d names
        The column of the table that each of these was made of.
    places : integers
        The rows to explain.
    true_class : array of shape (len(places), classes), optional
        Estimated chances of their true labels, where the estimate is conclusive.
    """
    codes, classes = part.label_codes, part.labels.categories.tolist()
    learnt, unseen = _reference_rows(codes, places, seed)
    chances, coef = _fit_model(numbers[learnt], codes[learnt], numbers[places], len(classes))
    given, suggested = codes[places], (chances if true_class is None else true_class).argmax(axis=1)
    other = np.where(np.arange(len(classes)) == given[:, None], -1.0, chances).argmax(axis=1)
    rival = np.where(suggested == given, other, suggested)
    # How columns speak for the rival, the label that the given one is compared with.
    names = list(dict.fromkeys(columns))
    from_mean = numbers[places] - numbers[learnt].mean(axis=0)
    pulls = ((coef[rival] - coef[given]) * from_mean) @ np.equal.outer(columns, names).astype(np.float64)
    order = np.argsort(-np.abs(pulls), axis=1, kind="stable")
    near = _find_neighbours(numbers[learnt], codes[learnt], numbers[places])
    shown = {str(name): column.array[places] for name, column in part.values.items()}
    say = load_sentences("fairsieve.tabular", "sentences.j2")
    for i, (own, another) in enumerate(zip(given, rival, strict=True)):
        pull = {names[place]: float(pulls[i, place]) for place in order[i]}
        reasons = [say.at_random()] if suggested[i] == own else []
        given_label, other_label = classes[own], classes[another]
        reasons.append(say.model(unseen, given_label, chances[i, own], other_label, chances[i, another]))
        same, others = int((near[i] == own).sum()), int((near[i] == another).sum())
        reasons.append(say.similar(near.shape[1], given_label, same, other_label, others))
        least = max(0.1 * max(map(abs, pull.values()), default=0.0), 1e-9)
        telling = [name for name, amount in pull.items() if amount > least][:TELLING]
        if telling:
            values = [(name, _write_value(shown[name][i])) for name in telling]
            reasons.append(say.telling(other_label, values))
        if true_class is not None:
            reasons.append(say.doubt(1 - true_class[i, own]))
        yield int(suggested[i]), {name: abs(amount) for name, amount in pull.items()}, reasons


def _reference_rows(codes: Codes, places: Codes, seed: int) -> tuple[Codes, bool]:
    """Choose the rows to learn from; return whether they are others than those to explain, as far as there are."""
    other = np.setdiff1d(np.arange(len(codes)), places)
    unseen = len(other) >= len(codes) / 2 and len(np.unique(codes[other])) == len(np.unique(codes))
    chosen = np.random.default_rng(seed).permutation(other if unseen else len(codes))[:MOST_ROWS]
    return np.sort(chosen), unseen


def _fit_model(numbers: Numbers, codes: Codes, asked: Numbers, classes: int) -> tuple[Floats, Floats]:
    """Fit a logistic regression to given labels; return the chances of the rows ``asked`` about, and coefficients."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        fitted = LogisticRegression(max_iter=200).fit(numbers, codes)
    known, weights = fitted.classes_, fitted.coef_
    chances, coef = np.zeros((len(asked), classes)), np.zeros((classes, numbers.shape[1]))
    chances[:, known] = fitted.predict_proba(asked)
    coef[known] = weights if len(known) > 2 else np.concatenate([0 * weights, weights])
    return chances, coef


def _find_neighbours(numbers: Numbers, codes: Codes, asked: Numbers) -> Codes:
    """Find the labels of the rows most similar to each, among as many as there is time for."""
    # Beside the distance, finding the smallest costs about as much as 50 columns.
    most = int(MOST_WORK / (len(asked) * (numbers.shape[1] + 50)))
    step = -(-len(numbers) // max(most, NEIGHBOURS))
    numbers, codes = numbers[::step], codes[::step]
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(numbers)), algorithm="brute").fit(numbers)
    return np.asarray(codes[near.kneighbors(asked, return_distance=False)])


def _write_value(value: Any) -> str:
    """Write a value as people do."""
    return str(value) if isinstance(value, str) else "missing" if np.isnan(value) else f"{value:.6g}"


# ---- The page, and the file for answers

HEADER = ",".join(ANSWER_COLUMNS)


def check_place(page: Path, *, force: bool = False) -> Path:
    """Check that a page may be written and its file for answers beside it; return where that is.

    Answers that somebody gave are never replaced, not even with ``force``.
    """
    if page.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(
            f"{spell('--out')} must be a page, whose name ends in .html; got {page}: the file for answers gets the "
            "same name with .csv"
        )
    table = page.with_suffix(".csv")
    answers = count_answers(table)
    if answers:
        raise InvalidInputError(
            f"{spell('--out')} must not replace answers; {table} holds {answers:,}: name another page, such as -o "
            f"{new_page(page)}, and add {spell('--verified', str(table))} to use them"
        )
    for path in (page, table):
        check_new("--out", path, force=force)
    return table


def training_step(asked: TableSettings, table: Path) -> str:
    """Write the command that trains with all answers: those used before, and those to be filled into ``table``."""
    folder = next(path for number in count(2) if not (path := Path(f"run-{number}")).exists())
    return shlex.join([*command_words("train", asked, *asked.verified, table), "-o", str(folder)])


def write_review(review: LabelReview, page: Path, *, force: bool) -> Path:
    """Write the page and the CSV file beside it, both or neither; return where that is."""
    table = check_place(page, force=force)
    contents = {table: _review_csv(review).encode(), page: _review_page(review, table.name).encode()}
    with output_errors(page), hold(page.parent, wait=True):  # another review of the same name waits
        clear_stale(page.parent, "review")
        made = tempfile.TemporaryDirectory(dir=page.parent, prefix=".review.", suffix=".part")
        with made as parts, hold(Path(parts)):
            # Both are whole on the disk before either appears under its name.
            for path, content in contents.items():
                write_whole(Path(parts, path.name), content)
            check_place(page, force=force)
            move_together(Path(parts), list(contents))
    return table


def _review_csv(review: LabelReview) -> str:
    """Write the rows to check with an empty column for answers, safe to open in a spreadsheet."""
    return writable("\n".join([HEADER, *("".join(_line(row)) for row in review.rows.itertuples()), ""]))


def _line(row: Any) -> tuple[str, str]:
    """Write what stands before and after the answer in a row's line."""
    before = csv_text([[row.row, row.id, row.given_label, ""]])
    return before.rstrip("\n"), f",{row.sampling_weight:.6g},{row.row_checksum}"


def _review_page(review: LabelReview, file_name: str) -> str:
    """Write the page on which a person answers; all text in it is shown as text, whatever it says."""
    # Another choice of rows from the same table starts with no answers.
    choice = sha256("".join(review.rows["row_checksum"]).encode()).hexdigest()[:16]
    words = (*review.labels.classes, unsure_word(review.labels.classes))
    rows = zip(review.rows.itertuples(), review.values.to_dict("records"), strict=True)
    sheet = {
        "label": review.asked.label,
        "data": data_name(review.asked.data),
        "estimate": estimate_sentence(review.estimate) if review.estimate.credible else None,
        # What the answers are kept under in the browser.
        "key": f"fairsieve-review-{review.asked.label}-{choice}",
        "choices": list(review.labels.classes),
        "fields": [csv_text([[text, ""]]).removesuffix(",\n") for text in words],
        "columns": list(review.values),
        "header": HEADER,
        "file_name": file_name,
        "items": [_item(row, values, review) for row, values in rows],
    }
    return fill_template("review", sheet=sheet, rows=sheet["items"])


def _item(row: Any, values: dict[Any, str], review: LabelReview) -> dict[str, Any]:
    """Lay out one row, with what stands in its other columns."""
    (before, after), classes = _line(row), review.labels.classes
    details = [] if review.id_column is None else [f"{review.id_column} {row.id}"]
    return {
        "title": f"Row {row.row}",
        "details": [*details, group_name(row.group if isinstance(row.group, str) else None)],
        "given": classes.index(row.given_label),
        "suggested": classes.index(row.suggested_label),
        "reasons": row.reasons,
        "values": [(name, values[name]) for name in dict.fromkeys((*row.matters, *values)) if name in values],
        "before": before,
        "after": after,
    }
