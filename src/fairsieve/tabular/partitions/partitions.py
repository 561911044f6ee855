"""All rows of a table in pieces: read in the roles that a sample shows, encoded, and asked where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError, require, spell
from fairsieve.estimators._parts import PartTable, list_doubted, own_chances
from fairsieve.label_noise.estimate import Rule
from fairsieve.samples import check_samples
from fairsieve.selection.cells import Flags, Integers, Keys
from fairsieve.tabular.partitions.source import (
    Piece,
    Sample,
    Source,
    Surveyed,
    content_keys,
    join_tables,
    merge_samples,
    number_rows,
    parse_memory,
    release_memory,
    survey_piece,
    take_used,
)
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.columns import ColumnFormat, InputTable, Reading, as_objects
from fairsieve.tabular.reading.encoding import Preparation, feature_values, find_formats, hash_rows
from fairsieve.tabular.reading.read import FIRST_ROW
from fairsieve.tabular.reading.roles import Groups, Labels
from fairsieve.tabular.settings import data_name
from fairsieve.training.newton import LinearModel
from fairsieve.training.parts import Chances, DaskEngine, Engine, LocalEngine, Part, PartRows, View

if TYPE_CHECKING:
    from fairsieve.tabular.preparation import TablePart, TableProblem
    from fairsieve.tabular.settings import TableSettings

KEPT = 0.5  # of the memory, for encoded rows; the rest is for reading and for what is computed
CONNECT = 30  # seconds until a scheduler is given up
MOST_SUSPECTS = 10_000  # that are listed
# What parts list comes together from all of them.
COMPACT = {"row": np.uint32, "label": np.uint8, "suggested": np.uint8, "group": np.uint8}
NOBODY = pd.DataFrame(columns=["row", "label", "suggested", "loss", "probability", "group", "doubt", "piece"])


Suspects = tuple[pd.DataFrame, InputTable, list[str]]  # named, with their rows, and how many more there are


class Layout(NamedTuple):
    """What becomes of a piece's rows.

    Attributes
    ----------
    asked : TableSettings
    labels, groups : Labels, Groups
        A group that is not compared has the last code.
    formats : dict of ColumnFormat
    prepared : Preparation
        How columns are encoded.
    shape : (int, int)
        How many classes and groups there are.
    limit : int
        Rows whose key is below it are held out.
    """

    asked: TableSettings
    labels: Labels
    groups: Groups
    formats: dict[str, ColumnFormat]
    prepared: Preparation
    shape: tuple[int, int]
    limit: int


def open_engine(source: Source, backend: str, memory: int) -> Engine:
    """Open what works on the pieces of a table."""
    if backend == "local":
        is_dask = source.pieces[0].frame is not None
        return DaskEngine() if is_dask else LocalEngine(int(KEPT * memory))
    distributed = require("dask.distributed", purpose=spell("--backend", backend))
    address = backend.removeprefix("dask://")
    try:
        return DaskEngine(distributed.Client(f"tcp://{address}", timeout=CONNECT, set_as_default=False))
    except OSError as error:
        raise InvalidInputError(
            f"{spell('--backend')} must be local or the address of a dask scheduler, dask://HOST:PORT; "
            f"{backend!r} does not answer ({error}): start it, or correct the address"
        ) from error


class Partitions:
    """A table in pieces.

    Parameters
    ----------
    source : Source
    asked : TableSettings

    Attributes
    ----------
    sample : Sample
        Rows that stand for all.
    rows : int
        How many rows the pieces have, with a label or without.
    """

    def __init__(self, source: Source, asked: TableSettings) -> None:
        self.source = source
        self.engine = open_engine(source, asked.backend, parse_memory(asked.memory))
        # Frames of dask are arguments of their own, which workers get computed.
        self.frames = [piece.frame for piece in source.pieces]
        self.pieces = [replace(piece, frame=None) for piece in source.pieces]
        reading, size = source.find_reading(asked.reading), 2 * POLICY.measured
        # Workers are told what was asked, not the data themselves.
        alone: dict[str, Any] = {"data": None, "test_file": None, "verified": ()}
        self.asked = replace(asked, separator=reading.separator, decimal=reading.decimal, **alone)
        limit = int(min(1.2 * size / max(source.rows or self._guess_rows(), 1) + 0.001, 1.0) * (2**64 - 1))
        answers = self._ask("survey", survey_piece, self.asked, limit)
        full = [place for place, each in enumerate(answers) if each is not None]
        if not full:
            raise InvalidInputError(
                f"{source.name} must have rows; none of its {len(answers)} parts has one: name another place"
            )
        surveyed: list[Surveyed] = [answers[place] for place in full]
        self.pieces, self.frames = ([each[place] for place in full] for each in (self.pieces, self.frames))
        sizes = [each.rows for each in surveyed]
        self.rows = sum(sizes)
        self.bases = (np.cumsum(sizes) - sizes + FIRST_ROW).tolist()  # the numbers of their first rows
        held = min(POLICY.measured, self.rows // POLICY.folds)
        self.sample: Sample = merge_samples(surveyed, self.bases, source.name, size, held)
        self.numbering = number_rows(surveyed)
        self.parts: list[Any] = []
        self.without_held = False

    def _ask(self, title: str, function: Callable[..., Any], *same: Any) -> list[Any]:
        """Call a function with every piece, its frame, and what is the same for all."""
        return self.engine.ask(title, function, self.pieces, self.frames, *map(repeat, same))

    def _guess_rows(self) -> int:
        """Guess how many rows there are, by the first piece."""
        if self.frames[0] is not None:
            return int(sum(self.engine.ask("count", len, self.frames)))
        table = self.pieces[0].read(self.asked.reading)
        return (1 if table is None else len(table)) * len(self.pieces)

    def only_sample(self) -> InputTable:
        """Return the rows of the sample, and say that there are more."""
        table = self.sample.table.take(self.sample.sampled)
        note = (
            f"{self.source.name} has {self.rows:,} rows; what is said is of {len(table):,} of them, which were chosen "
            "by what they hold."
        )
        return replace(table, notes=[note, *table.notes])

    def narrow(self, problem: TableProblem) -> TableProblem:
        """Take the sample out of a problem that was found with the witnesses, and read all rows in its roles."""
        features = list(problem.features)
        for place, one in enumerate(features):
            if one.column in self.numbering and not one.left_out:
                features[place] = replace(one, left_out="it numbers the rows")
        formats = find_formats(features)
        inside = self.sample.sampled[np.searchsorted(problem.table.rows, problem.whole.rows)]
        part = problem.whole.take(np.flatnonzero(inside))
        part = replace(part, values=part.values[list(formats)])
        self.labels, self.groups, self.formats = problem.labels, problem.groups, formats
        self.witnessed = problem.whole.values[list(formats)]
        self.checked = part.rows[part.verified >= 0]
        self.is_grouped = bool(problem.whole.grouped.all())
        note = (
            f"{self.source.name} was read in {len(self.pieces)} parts, {self.rows:,} rows in all. What looks at single "
            "rows (the estimate, columns that tell too much, what is counted here) looks at "
            f"{len(part):,} of them, which were chosen by what they hold; models and suspects are of all, and what is "
            "measured is of rows that the models do not see."
        )
        notes = [*([self.source.note] if self.source.note else []), note, *problem.notes]
        table = problem.table.take(self.sample.sampled)
        return replace(
            problem,
            features=features,
            whole=part,
            train=part,
            table=replace(table, where=problem.table.where),
            notes=notes,
            parts=self,
        )

    # ---- all rows, encoded

    def encode(self, values: pd.DataFrame, missing: Sequence[str], dates: Sequence[str]) -> None:
        """Learn from the sample how rows are encoded, and encode all of them.

        Categories, and which columns have gaps, are those of the witnesses too: some are in one piece alone.
        """
        self.prepared = Preparation(missing=missing, dates=dates).fit(self.witnessed)
        self.prepared.fit_numbers(values)
        self.shape = len(self.labels.classes), len(self.groups.names) + (not self.is_grouped)
        roles = self.asked, self.labels, self.groups
        layout = Layout(*roles, self.formats, self.prepared, self.shape, self.sample.limit)
        self.parts = self.engine.keep("encoding", encode_piece, self.pieces, self.frames, repeat(layout))
        self.sizes = self.engine.ask("sizes", len, self.parts)
        release_memory()

    def table(self, model: Any, part: TablePart) -> PartTable:
        """Return all rows as a fit takes them, with the rows of the sample that it may look at."""
        features = self.prepared.encode(part.values)
        checked = check_samples(model, features, part.label_codes, part.group_codes)
        groups: list[Any] = [*range(len(self.groups.names)), *([] if self.is_grouped else [None])]
        data = replace(checked.data, classes=list(range(self.shape[0])), group_values=groups)
        rows = PartRows(self.engine, self.parts, self.sizes, self.shape, features[:1])
        table = PartTable(rows.seen(without_held=self.without_held), checked._replace(data=data))
        table.tell(model)
        return table

    def held(self, rows: Integers) -> Flags:
        """Return which rows of the sample are held out."""
        return self.sample.held[np.searchsorted(self.sample.table.rows, rows)]

    def held_out(self) -> Partitions:
        """Return the rows without those that are held out."""
        others = copy(self)
        others.without_held = True
        return others

    @property
    def learnt(self) -> int:
        """How many rows have a label."""
        return sum(self.sizes) if self.parts else self.rows

    def find_seen(self, hashes: Keys, rest: Sequence[str]) -> Keys:
        """Select the hashes that rows of the table have, by what is learnt from and the ``rest`` of its columns."""
        same = self.asked.reading, self.formats, rest, hashes
        return np.concatenate(self._ask("copies", find_hashes, *same))

    def strongest(self, table: PartTable, most: int = MOST_SUSPECTS) -> Suspects:
        """List the rows of all parts whose labels are the likeliest wrong, with what stands in them.

        Returns
        -------
        suspects : DataFrame
        listed : InputTable
            Their rows.
        count : int
            How many there are in all.
        """
        most = min(most, table.most)
        asked = table.view, table.model, most + len(self.checked)
        return self._name(table.parts.call("suspects", list_strongest, *asked), most, table.most)

    def audit(self, table: PartTable, rule: Rule | None) -> Suspects:
        """List as :meth:`strongest` does, by how likely a rule says that labels are wrong; without one, nothing."""
        if rule is None:
            listings: list[Any] = []
        else:
            rows = table.parts.believe(rule)
            listings = rows.call("suspects", list_wrong, MOST_SUSPECTS + len(self.checked))
        told, listed, notes = self._name(listings, MOST_SUSPECTS, table.parts.samples)
        return told.drop(columns="loss"), listed, notes

    def _name(self, listings: Sequence[tuple[int, pd.DataFrame]], most: int, limit: int) -> Suspects:
        """Merge what parts list, without rows that somebody checked, and name rows, labels and groups."""
        frames = [each.assign(piece=place) for place, (_, each) in enumerate(listings)] or [NOBODY]
        surest: Any = {"by": ["doubt", "loss"], "ascending": False, "kind": "stable"}
        doubted = pd.concat(frames, ignore_index=True).sort_values(**surest)
        doubted = doubted[: most + len(self.checked)].sort_values(["piece", "row"])
        listed = self._fetch(doubted)
        doubted = doubted.assign(id=listed.rows).sort_values(**surest)
        checked = doubted["id"].isin(self.checked)
        doubted, names = doubted[~checked][:most], [*self.groups.names, None]
        coded = {"label": self.labels.classes, "suggested": self.labels.classes, "group": names}
        named = {key: as_objects(texts[int(code)] for code in doubted[key]) for key, texts in coded.items()}
        told = doubted.assign(row=doubted["id"], **named).rename(columns={"suggested": "suggested_label"})
        told = told[["row", "label", "suggested_label", "loss", "probability", "group"]]
        count = min(sum(each for each, _ in listings) - int(checked.sum()), limit)
        more = f"{count:,} labels look wrong in all; the {len(told):,} likeliest are listed."
        return told.reset_index(drop=True), listed, [more] if count > len(told) else []

    def _fetch(self, doubted: pd.DataFrame) -> InputTable:
        """Read rows again, as they stand in their files; they are sorted by ``piece`` and ``row``, and get numbers."""
        chosen = {int(place): rows.to_numpy() for place, rows in doubted.groupby("piece")["row"]}
        columns = [[each[place] for place in chosen] for each in (self.pieces, self.frames)]
        same = map(repeat, (self.asked.reading, self.labels))
        read = self.engine.ask("suspects", read_rows, *columns, chosen.values(), *same)
        none = replace(self.sample.table.take(np.zeros(0, int)), notes=[])
        numbers = [rows + self.bases[place] for place, (_, rows) in zip(chosen, read, strict=True)]
        release_memory()
        index = np.concatenate([none.rows, *numbers])
        return join_tables(self.source.name, [none, *(table for table, _ in read)], index)


# ---- what is asked of a piece, where it is


def encode_piece(piece: Piece, frame: Any, layout: Layout) -> Part:
    """Read and encode the rows of a piece that have a label."""
    release_memory()  # of the piece before
    table = piece.read_rows(layout.asked.reading, frame)
    labels, groups = (roles.read(table).codes for roles in (layout.labels, layout.groups))
    groups = np.where(groups < 0, len(layout.groups.names), groups)
    held = content_keys(table, [layout.asked.label]) < np.uint64(layout.limit)
    known = np.flatnonzero(labels >= 0)
    features = layout.prepared.compact(feature_values(table, layout.formats).iloc[known])
    codes = labels[known].astype(np.uint8), groups[known].astype(np.uint8)
    return Part(features, *codes, layout.shape, held=held[known])


def find_hashes(
    piece: Piece,
    frame: Any,
    reading: Reading,
    formats: dict[str, ColumnFormat],
    rest: Sequence[str],
    hashes: Keys,
) -> Keys:
    """Select the hashes that rows of a piece have."""
    table = piece.read_rows(reading, frame)
    return np.intersect1d(hashes, hash_rows(table, feature_values(table, formats), rest))


def list_strongest(
    part: Part, chances: Chances, view: View, model: LinearModel, most: int
) -> tuple[int, pd.DataFrame]:
    """List the rows of a part whose labels are the likeliest wrong, and count all that are suggested another."""
    doubted = list_doubted(part, chances, 0, view, model)
    doubted = doubted[doubted["label"] != doubted["suggested"]]
    few = doubted[:most]
    doubt = few["loss"] if chances is None else 1.0 - own_chances(part, chances)[few["row"]]
    return len(doubted), few.assign(doubt=doubt).astype(COMPACT)


def list_wrong(part: Part, chances: Chances, most: int) -> tuple[int, pd.DataFrame]:
    """List the rows of a part whose labels are more likely wrong than right, and count them."""
    chances = np.eye(part.shape[0], dtype=np.float32)[part.labels] if chances is None else chances
    doubt = 1.0 - own_chances(part, chances)
    rows = np.flatnonzero(doubt > 0.5)
    few = rows[np.argsort(-doubt[rows], kind="stable")][:most]
    told = {"row": few, "label": part.labels[few], "suggested": chances[few].argmax(axis=1)}
    told |= {"group": part.groups[few], "loss": doubt[few], "doubt": doubt[few]}
    listed = pd.DataFrame(told | {"probability": chances[few].max(axis=1).astype(float)})
    return len(rows), listed.astype(COMPACT)


def read_rows(
    piece: Piece, frame: Any, rows: Integers, reading: Reading, labels: Labels
) -> tuple[InputTable, Integers]:
    """Read some of the rows that have a label, and say where they stand in the piece."""
    table = piece.read_rows(reading, frame)
    places = np.flatnonzero(labels.read(table).codes >= 0)[rows]
    return take_used(table, places), places


def refuse_in_parts(asked: TableSettings) -> None:
    """Refuse what needs all rows in memory, each with the way out."""
    ways = {
        "--model": f"leave it out, give {spell('--memory')} for the whole table, or train on some of its files",
        "--test": f"leave it out: rows are measured on that the models do not see; or give {spell('--test-file')}",
    }
    given = {"--model": asked.model != "logistic", "--test": asked.test is not None}
    for option, way in ways.items():
        if given[option]:
            raise InvalidInputError(
                f"{spell(option)} needs all rows in memory, and {data_name(asked.data)} is read in parts: {way}"
            )
