"""All rows of a table in pieces: read in the roles that a sample shows, encoded, and asked where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import InvalidInputError, spell
from fairsieve.estimators._parts import PartTable, list_doubted, own_chances
from fairsieve.inputs import check_samples
from fairsieve.label_noise.estimate import Rule
from fairsieve.optional import require
from fairsieve.tabular.partitions.source import (
    Piece,
    Source,
    content_keys,
    parse_memory,
    release_memory,
)
from fairsieve.tabular.partitions.survey import (
    Roles,
    Sample,
    Surveyed,
    join_tables,
    merge_samples,
    number_rows,
    survey_piece,
    take_used,
)
from fairsieve.tabular.policy import POLICY
from fairsieve.tabular.reading.columns import ColumnFormat, InputTable, Reading, as_objects
from fairsieve.tabular.reading.encoding import (
    HUGE,
    Preparation,
    by_appearance,
    feature_values,
    hash_rows,
    scale_of,
)
from fairsieve.tabular.reading.read import FIRST_ROW
from fairsieve.tabular.reading.roles import Groups, Labels
from fairsieve.tabular.settings import data_name
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.parts import Chances, DaskEngine, Engine, LocalEngine, Part, PartRows, View

if TYPE_CHECKING:
    from fairsieve.tabular.preparation import TablePart, TableProblem
    from fairsieve.tabular.settings import TableSettings

Floats = NDArray[np.float64]

BITS, ROUNDS = 12, 6  # 12 bits of a number at a time; six times make more than 64
KEPT = 0.5  # of the memory, for encoded rows; the rest is for reading and for what is computed
CONNECT = 30  # seconds until a scheduler is given up
MOST_SUSPECTS = 10_000  # that are listed
# What parts list comes together from all of them.
COMPACT = {"row": np.uint32, "label": np.uint8, "suggested": np.uint8, "group": np.uint8}
NOBODY = pd.DataFrame(columns=["row", "label", "suggested", "loss", "probability", "group", "doubt", "piece"])


@dataclass(eq=False)
class RawPart:
    """The rows of a piece that have a label, in their roles.

    Attributes
    ----------
    values : DataFrame
        The columns that a model sees.
    labels, groups : integer arrays
        Codes; a group that is not compared has the last.
    held : boolean array
        Which rows are held out.
    """

    values: pd.DataFrame
    labels: NDArray[np.uint8]
    groups: NDArray[np.uint8]
    held: NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.values.memory_usage(index=False).sum()) + 3 * len(self.labels)


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
        self.roles, size = Roles.of(asked, source.find_reading(asked.reading)), 2 * POLICY.measured
        expected = source.rows or self._guess_rows()
        limit = int(min(1.2 * size / max(expected, 1) + 0.001, 1.0) * (2**64 - 1))
        answers = self._ask("survey", survey_piece, self.roles, limit)
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
        table = self.pieces[0].read(self.roles.reading)
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
        features = [
            replace(one, left_out="it numbers the rows")
            if one.column in self.numbering and not one.left_out
            else one
            for one in problem.features
        ]
        formats = {name: one for name, one in problem.formats.items() if name not in self.numbering}
        inside = self.sample.sampled[np.searchsorted(problem.table.rows, problem.whole.rows)]
        part = problem.whole.take(np.flatnonzero(inside))
        part = replace(part, values=part.values[list(formats)])
        self.labels, self.groups, self.formats = problem.labels, problem.groups, formats
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
            formats=formats,
            whole=part,
            train=part,
            table=replace(table, where=problem.table.where),
            notes=notes,
            parts=self,
        )

    # ---- all rows, encoded

    def encode(self, values: pd.DataFrame, missing: Sequence[str], dates: Sequence[str]) -> None:
        """Read all rows, learn how they are encoded, and encode them."""
        same = map(repeat, (self.roles, self.labels, self.groups, self.formats, self.sample.limit))
        raw = self.engine.keep("reading", read_raw, self.pieces, self.frames, *same)
        release_memory()
        self.prepared = self._learn(raw, Preparation(missing=missing, dates=dates).fit(values))
        self.shape = len(self.labels.classes), len(self.groups.names) + (not self.is_grouped)
        self.parts = self.engine.turn("encoding", encode_part, raw, repeat(self.prepared), repeat(self.shape))
        self.sizes = self.engine.ask("sizes", len, self.parts)
        release_memory()

    def _learn(self, raw: list[Any], prepared: Preparation) -> Preparation:
        """Learn medians, means, deviations and categories of all rows; their order is that of the sample."""
        names, texts = prepared.numbers_, list(prepared.categories_)
        answers = self.engine.ask("categories", count_values, raw, repeat(names), repeat(texts))
        counted, sizes, gaps, largest = map(list, zip(*answers, strict=True))
        prepared.categories_, prepared.rest_ = {}, []
        for name in texts:
            merged: dict[str, int] = {}
            for each in counted:
                for text, count in each[name].items():
                    merged[text] = merged.get(text, 0) + count
            prepared.keep_categories(name, merged)
        without, with_gaps = np.sum(gaps, axis=0), np.flatnonzero(np.sum(gaps, axis=0)).tolist()
        prepared.gaps_ = [names[place] for place in with_gaps]
        fill = prepared.fill_.copy()  # of the sample, where no row has a gap
        fill[with_gaps] = self._medians(raw, prepared.gaps_, sum(sizes) - without[with_gaps])
        units = np.max(largest, axis=0, initial=0.0)
        units = np.append(np.where(units > HUGE, units, 1.0), np.ones(len(with_gaps)))
        same = map(repeat, (names, with_gaps, fill, units))
        own, spreads = np.moveaxis(np.array(self.engine.ask("means", measure_numbers, raw, *same)), 1, 0)
        shares = np.array(sizes)[:, None] / sum(sizes)
        means = (shares * own).sum(axis=0)
        squares = (shares * (spreads + (own - means) ** 2)).sum(axis=0)
        prepared.fill_, prepared.mean_ = fill, means * units
        triples = zip(means, np.sqrt(squares), units, strict=True)
        prepared.scale_ = np.array([scale_of(*each) for each in triples])
        return prepared

    def _medians(self, raw: list[Any], names: list[str], counts: NDArray[Any]) -> Floats:
        """Find the medians of columns, exactly: by the bits of the numbers, some at a time."""
        ranks = np.stack([(counts - 1) // 2, counts // 2]).astype(np.int64).T.ravel()
        columns, prefixes = np.repeat(names, 2).tolist(), [0] * len(ranks)
        for turn in range(ROUNDS if len(ranks) else 0):
            answers = self.engine.ask(
                "medians", count_bits, raw, repeat(columns), repeat(list(prefixes)), repeat(turn)
            )
            for place, bins in enumerate(sum(answers)):
                passed = np.cumsum(bins)
                own = int(np.searchsorted(passed, ranks[place], side="right"))
                ranks[place] -= passed[own - 1] if own else 0
                prefixes[place] = prefixes[place] << BITS | own
        pairs = numbers_of(np.array([each >> (ROUNDS * BITS - 64) for each in prefixes], np.uint64)).reshape(
            -1, 2
        )
        return np.where(counts > 0, pairs.mean(axis=1), 0.0) if len(pairs) else np.zeros(0)

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

    def held(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows of the sample are held out."""
        return self.sample.held[np.searchsorted(self.sample.table.rows, rows)]

    def held_out(self) -> Partitions:
        """Return the rows without those that are held out."""
        others = object.__new__(Partitions)
        vars(others).update(vars(self) | {"without_held": True})
        return others

    @property
    def learnt(self) -> int:
        """How many rows have a label."""
        return sum(self.sizes) if self.parts else self.rows

    def find_seen(self, hashes: NDArray[np.uint64], rest: Sequence[str]) -> NDArray[np.uint64]:
        """Select the hashes that rows of the table have, by what is learnt from and the ``rest`` of its columns."""
        same = self.roles.reading, self.formats, rest, hashes
        return np.concatenate(self._ask("copies", find_hashes, *same))

    def strongest(self, table: PartTable, most: int = MOST_SUSPECTS) -> tuple[pd.DataFrame, InputTable, int]:
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
        listings = table.parts.call(
            "suspects", list_strongest, table.view, table.model, most + len(self.checked)
        )
        return self._name(listings, most, table.most)

    def audit(self, table: PartTable, rule: Rule | None) -> tuple[pd.DataFrame, InputTable, int]:
        """List as :meth:`strongest` does, by how likely a rule says that labels are wrong; without one, nothing."""
        if rule is None:
            listings: list[Any] = []
        else:
            rows = table.parts.believe(rule)
            listings = rows.call("suspects", list_wrong, MOST_SUSPECTS + len(self.checked))
        told, listed, count = self._name(listings, MOST_SUSPECTS, table.parts.samples)
        return told.drop(columns="loss"), listed, count

    def _name(
        self, listings: Sequence[tuple[int, pd.DataFrame]], most: int, limit: int
    ) -> tuple[pd.DataFrame, InputTable, int]:
        """Merge what parts list, without rows that somebody checked, and name rows, labels and groups."""
        frames = [each.assign(piece=place) for place, (_, each) in enumerate(listings)] or [NOBODY]
        doubted = pd.concat(frames, ignore_index=True).sort_values(
            ["doubt", "loss"], ascending=False, kind="stable"
        )
        doubted = doubted[: most + len(self.checked)].sort_values(["piece", "row"])
        listed = self._fetch(doubted)
        doubted = doubted.assign(id=listed.rows).sort_values(
            ["doubt", "loss"], ascending=False, kind="stable"
        )
        checked = doubted["id"].isin(self.checked)
        doubted, names = doubted[~checked][:most], [*self.groups.names, None]
        told = pd.DataFrame(
            {
                "row": doubted["id"],
                "label": as_objects(self.labels.classes[int(code)] for code in doubted["label"]),
                "suggested_label": as_objects(
                    self.labels.classes[int(code)] for code in doubted["suggested"]
                ),
                "loss": doubted["loss"],
                "probability": doubted["probability"],
                "group": as_objects(names[int(code)] for code in doubted["group"]),
            }
        )
        count = min(sum(each for each, _ in listings) - int(checked.sum()), limit)
        return told.reset_index(drop=True), listed, count

    def _fetch(self, doubted: pd.DataFrame) -> InputTable:
        """Read rows again, as they stand in their files; they are sorted by ``piece`` and ``row``, and get numbers."""
        chosen = {int(place): rows.to_numpy() for place, rows in doubted.groupby("piece")["row"]}
        columns = [[each[place] for place in chosen] for each in (self.pieces, self.frames)]
        same = map(repeat, (self.roles, self.labels))
        read = self.engine.ask("suspects", read_rows, *columns, chosen.values(), *same)
        none = self.sample.table.take(np.zeros(0, int))
        tables, index = [none], [none.rows]
        where = [pd.DataFrame({"file": as_objects([]), "row": none.rows}, index=none.rows)]
        for place, (table, places) in zip(chosen, read, strict=True):
            tables.append(table)
            index.append(places + self.bases[place])
            where.append(pd.DataFrame({"file": table.name, "row": table.rows}, index=index[-1]))
        release_memory()
        return join_tables(self.source.name, tables, np.concatenate(index), pd.concat(where), [])


# ---- what is asked of a piece, where it is


def read_raw(
    piece: Piece,
    frame: Any,
    roles: Roles,
    labels: Labels,
    groups: Groups,
    formats: dict[str, ColumnFormat],
    limit: int,
) -> RawPart:
    """Read the rows of a piece that have a label."""
    table = piece.read_rows(roles.reading, frame)
    codes = labels.read(table).codes
    known = np.flatnonzero(codes >= 0)
    group_codes = groups.read(table).codes
    group_codes = np.where(group_codes < 0, len(groups.names), group_codes)
    held = content_keys(table, [roles.label]) < np.uint64(limit)
    values = feature_values(table, formats).reset_index(drop=True)
    if len(known) < len(table):
        values, codes, group_codes, held = values.iloc[known], codes[known], group_codes[known], held[known]
    return RawPart(values, codes.astype(np.uint8), group_codes.astype(np.uint8), held)


def find_hashes(
    piece: Piece,
    frame: Any,
    reading: Reading,
    formats: dict[str, ColumnFormat],
    rest: Sequence[str],
    hashes: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Select the hashes that rows of a piece have."""
    table = piece.read_rows(reading, frame)
    return np.intersect1d(hashes, hash_rows(table, feature_values(table, formats), rest))


def encode_part(raw: RawPart, prepared: Preparation, shape: tuple[int, int]) -> Part:
    """Encode rows."""
    release_memory()  # of the part before
    return Part(prepared.compact(raw.values), raw.labels, raw.groups, shape, held=raw.held)


def count_values(
    raw: RawPart, names: Sequence[str], texts: Sequence[str]
) -> tuple[dict[str, dict[str, int]], int, NDArray[Any], Floats]:
    """Count the texts of columns, the rows, and the gaps of columns of numbers; find the largest sizes of these."""
    numbers = raw.values[list(names)].to_numpy(np.float64)
    largest = np.nan_to_num(np.abs(numbers)).max(axis=0, initial=0.0)
    counted = {name: by_appearance(raw.values[name]) for name in texts}
    return counted, len(numbers), np.isnan(numbers).sum(axis=0), largest


def measure_numbers(
    raw: RawPart, names: Sequence[str], with_gaps: Sequence[int], fill: Floats, units: Floats
) -> tuple[Floats, Floats]:
    """Return means and variances of columns whose gaps are filled, and of where those are."""
    numbers = raw.values[list(names)].to_numpy(np.float64)
    gaps = np.isnan(numbers)
    whole = np.concatenate([np.where(gaps, fill, numbers), gaps[:, list(with_gaps)]], axis=1) / units
    if not len(whole):
        return 0 * units, 0 * units
    return whole.mean(axis=0), whole.var(axis=0)


def count_bits(raw: RawPart, columns: Sequence[str], prefixes: Sequence[int], turn: int) -> NDArray[np.int64]:
    """Count numbers by their next bits, of those whose first bits are known."""
    counts = np.zeros((len(columns), 2**BITS), np.int64)
    for place, (name, prefix) in enumerate(zip(columns, prefixes, strict=True)):
        numbers = raw.values[name].to_numpy(np.float64)
        bits = bits_of(numbers[~np.isnan(numbers)])
        shift = 64 - turn * BITS
        if turn:
            bits = bits[bits >> np.uint64(shift) == np.uint64(prefix)]
        rest = shift - BITS
        own = bits >> np.uint64(rest) if rest >= 0 else bits << np.uint64(-rest)
        counts[place] = np.bincount((own & np.uint64(2**BITS - 1)).astype(np.int64), minlength=2**BITS)
    return counts


def bits_of(numbers: Floats) -> NDArray[np.uint64]:
    """Return whole numbers in the order of the numbers.

    >>> bits = bits_of(np.array([-2.0, -0.5, 0.0, 3.0]))
    >>> bool((np.diff(bits.astype(object)) > 0).all()), numbers_of(bits).tolist()
    (True, [-2.0, -0.5, 0.0, 3.0])
    """
    bits, sign = (numbers + 0.0).view(np.uint64), np.uint64(2**63)
    return np.where(bits & sign, ~bits, bits | sign)


def numbers_of(bits: NDArray[np.uint64]) -> Floats:
    """Return the numbers that :func:`bits_of` makes whole numbers of."""
    sign = np.uint64(2**63)
    return np.where(bits & sign, bits ^ sign, ~bits).view(np.float64)


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
    told |= {
        "loss": doubt[few],
        "probability": chances[few].max(axis=1).astype(float),
        "group": part.groups[few],
    }
    return len(rows), pd.DataFrame(told | {"doubt": doubt[few]}).astype(COMPACT)


def read_rows(
    piece: Piece, frame: Any, rows: NDArray[np.int64], roles: Roles, labels: Labels
) -> tuple[InputTable, NDArray[np.int64]]:
    """Read some of the rows that have a label, and say where they stand in the piece."""
    table = piece.read_rows(roles.reading, frame)
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
