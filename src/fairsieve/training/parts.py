"""Rows in parts: each part answers the solver's questions where it is, and the answers are added up.

An *engine* says where that is: :class:`LocalEngine` keeps parts in the memory of this machine or, beyond a limit, in
files of its own that it reads again for every question; :class:`DaskEngine` keeps them on the workers of a cluster. The
size of an answer does not depend on the number of rows.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partialmethod
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError, require
from fairsieve.samples import draw_rows
from fairsieve.selection.cells import Flags, Floats, Integers, Values, slices
from fairsieve.training.newton import Newton
from fairsieve.training.rows import EVERYTHING, LinearRows, LossLimit, add_up, one_thread

Selection = tuple[Floats, LossLimit]
Chances = NDArray[np.float32] | None

SAMPLE = 100_000  # rows that represent all where single rows are looked at
RULED = 2**13  # rows that a rule looks at together: it makes many columns of them
BINS, LEVELS = 1024, 4  # a loss is located among 1024⁴ places
# What the dashboard of a cluster calls the questions.
TITLES = {
    "derivatives": "gradient",
    "hessian_times": "curvature",
    "confusion": "rates",
    "soft_confusion": "rates",
    "soft_gradient": "gradient-of-rates",
    "loss_counts": "losses",
    "moments": "means",
    "standard_moments": "means",
    "score_moments": "scores",
}


def local_threads() -> int:
    """Return how many parts this machine works on at a time."""
    return min(os.cpu_count() or 1, 8)


class _Stored(NamedTuple):
    """Where a part is in the file."""

    start: int
    size: int


class LocalEngine:
    """Threads of this machine. What does not fit into ``memory`` bytes is kept in a file.

    The file has no name, so that nothing stays of it, however the process ends.

    Examples
    --------
    >>> engine = LocalEngine(memory=0)
    >>> parts = engine.keep("squares", lambda number: np.full(3, number**2), [2, 3])
    >>> engine.ask("sum", lambda part, more: int(part.sum()) + more, parts, repeat(1))
    [13, 28]
    """

    def __init__(self, memory: int | None = None, threads: int | None = None) -> None:
        self.left, self.lock = memory, threading.Lock()
        self.threads = threads or local_threads()
        self.file: Any = None
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="fairsieve-parts")

    def keep(self, title: str, function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
        return self._map(lambda *items: self._store(function(*map(self._load, items))), *columns)

    def ask(self, title: str, function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
        return self._map(lambda *items: function(*map(self._load, items)), *columns)

    def _map(self, function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
        with one_thread("blas"):
            futures = [self.pool.submit(function, *items) for items in zip(*columns, strict=False)]
            try:
                return [future.result() for future in futures]
            finally:  # after an error or Ctrl-C nothing more begins
                for future in futures:
                    future.cancel()

    def _store(self, value: Any) -> Any:
        """Keep a value in memory while there is room, else in the file."""
        with self.lock:
            if self.left is None or value.nbytes <= self.left:
                self.left = None if self.left is None else self.left - value.nbytes
                return value
        content = pickle.dumps(value, protocol=5)
        try:
            with self.lock:
                if self.file is None:
                    self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                    weakref.finalize(self, self.file.close)
                start = self.file.seek(0, os.SEEK_END)
                rest = memoryview(content)
                while rest:
                    rest = rest[self.file.write(rest) :]
        except OSError as error:
            raise FairsieveError(
                f"parts that do not fit into memory are kept in a file in {tempfile.gettempdir()}, which cannot be "
                f"written ({error.strerror}): make room there, set TMPDIR to another folder, or allow more memory"
            ) from error
        return _Stored(start, len(content))

    def _load(self, value: Any) -> Any:
        if not isinstance(value, _Stored):
            return value
        with self.lock:
            self.file.seek(value.start)
            content = bytearray(value.size)
            self.file.readinto(content)
        return pickle.loads(content)


class DaskEngine:
    """The workers of a dask cluster: of ``client`` or, when None, of whatever dask computes with."""

    def __init__(self, client: Any = None) -> None:
        self.client = client
        self.dask = require("dask", purpose="work on a cluster")

    def keep(self, title: str, function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
        return self._run(self.dask.persist, title, function, columns)

    def ask(self, title: str, function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
        return self._run(self.dask.compute, title, function, columns)

    def _run(self, run: Any, title: str, function: Callable[..., Any], columns: Any) -> list[Any]:
        """Call a function for each part; say that a scheduler went away, in place of what it left behind."""
        options = {} if self.client is None else {"scheduler": self.client}
        call = self.dask.delayed(function, pure=False, traverse=False)
        name = title.replace(" ", "-")
        rows = zip(*columns, strict=False)
        calls = [call(*items, dask_key_name=f"{name}-{uuid.uuid4().hex}") for items in rows]
        try:
            return list(run(*calls, **options))
        except (CancelledError, OSError, TimeoutError) as error:
            if self.client is None:
                raise
            raise FairsieveError(
                f"the dask scheduler no longer answers ({type(error).__name__}), and nothing was written: start the "
                "cluster again, and then this"
            ) from error


# Where parts are kept, and who works on them. ``keep`` calls a function once for each part, with the items of the
# columns, and keeps what it returns where it is; ``ask`` returns it.
Engine = LocalEngine | DaskEngine


@dataclass(frozen=True)
class View:
    """Which rows are asked about, and as what they are taken.

    Attributes
    ----------
    believed : bool
        By the chances of their true classes, where those are known.
    without_held : bool
        Without the rows that are held out.
    kept : (parameters, LossLimit), optional
        Only rows whose labels a model believes.
    selection : (parameters, LossLimit), optional
        Only rows whose losses under a model are selected.
    """

    believed: bool = False
    without_held: bool = False
    kept: Selection | None = None
    selection: Selection | None = None


class _Sized(NamedTuple):
    """Something that engines can keep, whatever it is."""

    value: Any
    nbytes: int = 0


@dataclass(eq=False)
class Part:
    """The rows of one part, where they are.

    Attributes
    ----------
    features : array or OneHot of shape (n, d)
    labels, groups : integer arrays of shape (n,)
        Class and group codes, in as few bytes as hold them.
    shape : (int, int)
        How many classes and groups there are.
    weights : array of shape (n,), optional
    held : boolean array of shape (n,), optional
        Rows that are held out to measure on.
    given : tuple of arrays, optional
        Labels and groups as they were given.
    """

    features: Any
    labels: Values
    groups: Values
    shape: tuple[int, int]
    weights: Floats | None = None
    held: Flags | None = None
    given: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = self.features, self.labels, self.groups, self.weights, self.held
        return sum(int(each.nbytes) for each in arrays if each is not None)

    def rows(self, chances: Chances, view: View) -> LinearRows:
        """Return the rows that a view is about; ``chances`` of shape (n, classes) are those of their true classes."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        if view.without_held and self.held is not None:
            weights = weights * ~self.held
        rows = LinearRows(self.features, self.labels, self.groups, self.shape, weights)
        rows.threads = 1  # those that work on parts share the processors already
        if view.kept is not None:
            rows = rows.select(*view.kept)
        if view.believed and chances is not None:
            rows = rows.with_labels(rows.labels, chances.astype(np.float64))
        return rows if view.selection is None else rows.select(*view.selection)

    def answer(
        self, chances: Chances, view: View, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Answer a question of the solver."""
        return getattr(self.rows(chances, view), name)(*arguments, **options)

    def take(self, chances: Chances, rows: Integers, view: View) -> LinearRows:
        """Return some of the rows of a view."""
        return self.rows(chances, view).take(rows)

    def take_given(self, _: Chances, rows: Integers) -> tuple[Any, ...]:
        """Return features, labels and groups as they were given, and weights, of some of the rows."""
        labels, groups = self.given or (self.labels, self.groups)
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        return self.features[rows], labels[rows], groups[rows], weights

    def believe(self, rule: _Sized) -> NDArray[np.float32]:
        """Compute the chances of the true classes, by a rule of features, labels and groups."""
        chances = np.empty((len(self), self.shape[0]), np.float32)
        for piece in slices(len(self), RULED):
            features = np.asarray(self.features[piece], np.float64)
            labels, groups = (each[piece].astype(np.int64) for each in (self.labels, self.groups))
            chances[piece] = rule.value(features, labels, groups)
        return chances


class PartRows:
    """The rows of all parts, with the answers of :class:`~fairsieve.training.rows.LinearRows`.

    Parameters
    ----------
    engine : Engine
    parts : list
        What the engine keeps: a :class:`Part` each.
    sizes : list of int
    shape : (int, int)
    first : array of shape (1, d)
        A row.
    """

    shift = 0.0

    def __init__(
        self,
        engine: Engine,
        parts: list[Any],
        sizes: Sequence[int],
        shape: tuple[int, int],
        first: Values,
    ) -> None:
        self.engine, self.parts, self.shape = engine, parts, shape
        self.starts = (np.cumsum(sizes) - sizes).tolist()  # the numbers of their first rows
        self.is_single = first.dtype.itemsize < 8
        self.samples, self.columns = int(sum(sizes)), first.shape[1]
        self.outputs = 1 if shape[0] <= 2 else shape[0]
        self.view = View()
        # Of the true classes; kept apart from what stays as it is.
        self.chances: list[Any] = [None] * len(parts)
        self.first: Floats = first[0].astype(np.float64)

    def call(self, title: str, function: Callable[..., Any], *same: Any) -> list[Any]:
        """Call a function with every part, the chances of its true classes, and what is the same for all."""
        return self.engine.ask(title, function, self.parts, self.chances, *map(repeat, same))

    def ask(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Ask every part the same question of the solver, where it is."""
        return self.call(TITLES[name], Part.answer, self.view, name, arguments, options)

    def sum(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Add up the answers of all parts."""
        return add_up(self.ask(name, *arguments, **options))

    moments = partialmethod(sum, "moments")
    derivatives = partialmethod(sum, "derivatives")
    hessian_times = partialmethod(sum, "hessian_times")
    confusion = partialmethod(sum, "confusion")
    loss_counts = partialmethod(sum, "loss_counts")
    standard_moments = partialmethod(sum, "standard_moments")
    score_moments = partialmethod(sum, "score_moments")
    soft_confusion = partialmethod(sum, "soft_confusion")
    soft_gradient = partialmethod(sum, "soft_gradient")

    @cached_property
    def in_memory(self) -> LinearRows:
        return self.take(draw_rows(self.samples, SAMPLE))

    def reference(self) -> Floats:
        return self.first

    def seen(self, **changes: Any) -> PartRows:
        """Return the rows in another view."""
        found = copy(self)
        vars(found).pop("in_memory", None)
        found.view = replace(self.view, **changes)
        return found

    def select(self, parameters: Floats, limit: LossLimit) -> PartRows:
        return self if limit is EVERYTHING else self.seen(selection=(parameters.copy(), limit))

    def believe(self, rule: Callable[..., Floats]) -> PartRows:
        """Return the rows by the chances of their true classes, which a rule computes where they are."""
        found = self.seen(believed=True)
        (shared,) = self.engine.keep("rule", _Sized, [rule])
        found.chances = self.engine.keep("true classes", Part.believe, self.parts, repeat(shared))
        return found

    def keep_believable(self, share: float, ridge: float) -> Selection:
        """Say which rows to train on: by a model of all of them, all but ``share`` with the highest losses."""
        parameters = Newton(self, ridge).minimise(np.ones(self.shape), precision=1e-4).parameters
        left = share * float(self.confusion().sum())
        low, high = 0.0, 1.0 + 1e-9
        for _ in range(LEVELS):
            counts = self.loss_counts(parameters, low, high, BINS).sum(axis=(0, 1))
            above = np.cumsum(counts[::-1])[::-1]  # at least as high
            place = int(np.flatnonzero(above >= left)[-1]) if above[0] >= left else 0
            left -= above[place + 1] if place + 1 < BINS else 0.0
            step = (high - low) / BINS
            low, high = low + place * step, low + (place + 1) * step
        most = np.log(2) / (1 + np.log(2))  # a label that is likelier right than wrong is kept
        return parameters, LossLimit(max(high, most), max(high, most), 1.0)

    def fetch(self, function: Callable[..., Any], rows: Integers, *same: Any) -> list[Any]:
        """Call a function with every part that has some of the rows, whose numbers ascend, and their places there."""
        edges = np.searchsorted(rows, [*self.starts, self.samples])
        split = zip(self.parts, self.chances, self.starts, edges[:-1], edges[1:], strict=True)
        asked = [(part, own, rows[low:high] - start) for part, own, start, low, high in split if high > low]
        return self.engine.ask("sample", function, *zip(*asked, strict=True), *map(repeat, same))

    def take(self, rows: Integers) -> LinearRows:
        """Fetch some of the rows, ascending, into memory."""
        pieces = self.fetch(Part.take, rows, self.view)
        names = "features", "labels", "groups", "weights", "chances"
        joined = [[getattr(piece, name) for piece in pieces] for name in names]
        features, labels, groups, weights = (np.concatenate(each) for each in joined[:4])
        chances = None if joined[4][0] is None else np.concatenate(joined[4])
        return LinearRows(features, labels, groups, self.shape, weights, chances)
