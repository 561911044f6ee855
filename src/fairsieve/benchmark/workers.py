"""Runs in workers, and their records: one JSON line each, appended as runs finish, also by several processes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import joblib
from joblib.parallel import get_active_backend

from fairsieve.errors import FairsieveError, FairsieveWarning, InvalidInputError, WorkerError, require
from fairsieve.files import hold
from fairsieve.notions import EO

Record = dict[str, Any]

LARGEST = sys.float_info.max


def fingerprint(settings: dict[str, Any]) -> str:
    """Return a short name of a run's settings; equal settings have equal names."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def append_record(path: Path, record: Record) -> bool:
    """Add a line, unless the run is recorded already; return whether it was added.

    A record of an error gives way to one of success, and a damaged one to a whole one. A line that an
    interruption left half-written is closed off first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [append_record(Path(folder) / "records.jsonl", {"run": "a"}) for _ in range(2)]
    [True, False]
    """
    line = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    try:
        with path.open("a+b") as file, hold(path, wait=True):
            file.seek(0)
            if _is_recorded(file, record):
                return False
            size = file.seek(0, os.SEEK_END)
            content = line.encode()
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                content = b"\n" + content
            file.write(content)  # all of it, or an error
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(
            error.errno,
            f"the record of a run could not be written ({error.strerror}). Make room, or name another folder, and give "
            "the same command again: runs that are recorded are not repeated",
            str(path),
        ) from error
    return True


def _is_recorded(file: BinaryIO, record: Record) -> bool:
    """Return whether a file holds a record of the same run that is as good."""
    name, content = json.dumps(record.get("run")).encode(), file.read()
    candidates = (_parsed(line) for line in content.splitlines() if name in line) if name in content else ()
    same = [old for old in candidates if old is not None and old["run"] == record.get("run")]
    rank = _is_result(record), "error" not in record
    return any((_is_result(old), "error" not in old) >= rank for old in same)


def read_results(path: Path) -> Iterator[Record]:
    """Yield the records of a file that hold a result; a run whose record is damaged is made again."""
    if path.exists():
        with path.open("rb") as lines:
            yield from (record for record in map(_parsed, lines) if record is not None and _is_result(record))


def _is_result(record: Record) -> bool:
    """Return whether a record is named by its settings and holds an error, a choice or measures."""
    settings = record.get("settings")
    if not isinstance(settings, dict) or record.get("run") != fingerprint(settings):
        return False
    if "error" in record:
        return isinstance(record["error"], str)
    if "tuning" in settings:
        return isinstance(record.get("hyperparameters"), dict) and isinstance(record.get("candidates"), list)
    if settings.get("history") and not isinstance(record.get("history"), dict):
        return False
    metrics, needed = record.get("metrics"), {"accuracy", settings.get("fairness", EO)}
    if not isinstance(metrics, dict) or not needed <= metrics.keys():
        return False
    numbers = *metrics.values(), record.get("seconds")  # that a double can hold, or NaN
    return all(type(value) in (int, float) and not abs(value) > LARGEST for value in numbers)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line, if it is whole."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("run"), str) else None


# ---- Make runs in workers, here or on a cluster, and write each record as it arrives
#
# ``fairsieve compare`` and ``fairsieve reproduce`` stand on it. The workers are joblib's: processes of this
# machine, or dask, ray and Spark (:func:`open_cluster`). Only the calling process writes records. Workers
# may be lost; their runs are made again.

Work = Callable[[], Record]
Calls = Generator[tuple[int, Record | Exception]]  # the place of a run, with its record or what it raised

MOST_LOSSES = 3  # times in a row that workers may be lost before a new record arrives
RUNS_IN_A_CHUNK = 2  # for each worker, where a backend returns its results all at once


def run_and_record(work: Sequence[Work], path: Path, *, jobs: int) -> Iterator[tuple[int, Record]]:
    """Make runs, write each record into ``path`` as it arrives, and yield it with its place in ``work``.

    Parameters
    ----------
    work : sequence of callable
        Each makes one run and returns its record. They must be picklable.
    path : Path
        The file of records.
    jobs : int
        Workers; −1 for as many as the backend has. dask and ray use all that they have.

    Raises
    ------
    WorkerError
        When workers are lost three times in a row and no record arrives in between. What is recorded stays.
    """
    left, losses = dict(enumerate(work)), 0
    while left:
        results = _call_workers(left, jobs)
        try:
            while True:
                try:
                    place, record = next(results)
                except StopIteration:
                    break
                except Exception as error:  # what a run raises comes back as a value: this is a lost worker
                    losses += 1
                    _report_loss(error, losses, len(left), path)
                    break
                if isinstance(record, Exception):
                    raise record
                append_record(path, record)
                losses = 0
                del left[place]
                yield place, record
        finally:
            with warnings.catch_warnings():  # joblib warns that runs are cancelled: they are
                warnings.filterwarnings("ignore", "[0-9]+ tasks which were still being processed")
                results.close()


def _call_workers(work: dict[int, Work], jobs: int) -> Calls:
    """Call workers; yield results as they arrive, or in chunks where the backend has no generators."""
    backend, _ = get_active_backend()
    call_backend = {"DaskDistributedBackend": _call_dask, "RayBackend": _call_ray}.get(type(backend).__name__)
    if call_backend is not None:  # joblib's backends for dask and ray hang when a worker is killed
        yield from call_backend(work, backend)
        return
    try:
        workers = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # joblib says so of Spark's backend
        calls = [joblib.delayed(_call)(place, each) for place, each in work.items()]
        chunk = RUNS_IN_A_CHUNK * joblib.effective_n_jobs(jobs)
        with joblib.Parallel(n_jobs=jobs) as workers:  # which lets one set of workers run all chunks
            for first in range(0, len(calls), chunk):
                yield from workers(calls[first : first + chunk])
    else:
        yield from workers([joblib.delayed(_call_here)(os.getpid(), *each) for each in work.items()])


def _call_dask(work: dict[int, Work], backend: Any) -> Calls:
    futures = [backend.client.submit(_call, place, each, pure=False) for place, each in work.items()]
    try:
        for future in import_module("distributed").as_completed(futures):
            yield future.result()
    finally:
        backend.client.cancel(futures)


def _call_ray(work: dict[int, Work], backend: Any) -> Calls:
    ray = import_module("ray")
    call = ray.remote(_call)
    running = [call.remote(place, each) for place, each in work.items()]
    try:
        while running:
            done, running = ray.wait(running)
            yield from ray.get(done)
    finally:
        for waiting in running:
            ray.cancel(waiting, force=True)


def _call_here(caller: int, place: int, work: Work) -> tuple[int, Record | Exception]:
    """Make one run in a process of this machine, which ends when the one that started it is gone."""
    if os.getpid() != caller:  # a single job is done by the caller itself
        _end_with(caller)
    return _call(place, work)


@cache
def _end_with(parent: int) -> None:
    """Watch the parent from a thread: a killed one cannot end its workers, and joblib's wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _call(place: int, work: Work) -> tuple[int, Record | Exception]:
    """Make one run in a worker. Its errors are returned, so that they are not mistaken for a lost worker."""
    try:
        return place, work()
    except Exception as error:
        try:  # another process makes the error again, from its arguments
            return place, type(error)(*error.args)
        except Exception:
            return place, RuntimeError(f"{type(error).__name__}: {error}")


def _report_loss(error: Exception, losses: int, left: int, path: Path) -> None:
    """Warn that a worker was lost, or give up after several losses in a row."""
    reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    if losses >= MOST_LOSSES:
        raise WorkerError(
            f"workers were lost {losses} times in a row, with {left} runs left ({reason}). What is finished is in "
            f"{path}: start again to continue, with fewer jobs if the memory ran out"
        ) from error
    told = f"a worker was lost, and its runs are made again ({reason})"
    warnings.warn(told, FairsieveWarning, stacklevel=3)


@contextmanager
def open_cluster(address: str | None, jobs: int | None = None) -> Iterator[int]:
    """Send joblib's work to a cluster while the context lasts; with None, keep it on this machine.

    Yield the number of workers to ask for: ``jobs``, or 2 on this machine and all (−1) of a cluster.

    Parameters
    ----------
    address : str or None
        ``dask://HOST:PORT`` of a dask scheduler; ``ray`` for a running ray cluster (or a new one on this machine)
        and ``ray://HOST:PORT`` for one elsewhere; ``spark`` for the active Spark session (or a new one on this
        machine) and ``spark://HOST:PORT`` for a Spark master.

    Examples
    --------
    >>> with open_cluster("slurm://head"):
    ...     pass
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: backend must be dask://HOST:PORT, ray, ray://HOST:PORT, spark or
    spark://HOST:PORT; got 'slurm://head'
    """
    if address is None:
        yield jobs or 2
        return
    kind, separator, place = address.partition("://")
    if kind not in OPENERS or bool(separator) != bool(place) or (kind == "dask" and not place):
        forms = "dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT"
        raise InvalidInputError(f"backend must be {forms}; got {address!r}")
    with ExitStack() as stack:
        OPENERS[kind](place, stack)
        stack.enter_context(joblib.parallel_config(backend=kind))
        yield jobs or -1


def _open_dask(place: str, stack: ExitStack) -> None:
    """Connect to a dask scheduler."""
    distributed = require("dask.distributed", purpose="running on a dask cluster")
    try:
        stack.enter_context(distributed.Client(f"tcp://{place}", timeout="20s"))
    except OSError as error:
        raise _no_answer("dask scheduler", place, "dask scheduler") from error


def _open_ray(place: str, stack: ExitStack) -> None:
    """Connect to a ray cluster, or start one on this machine."""
    ray = _import_engine("ray", "ray[client]" if place else "ray")
    if not ray.is_initialized():
        try:
            ray.init(address=f"ray://{place}" if place else None, log_to_driver=False)
        except OSError as error:
            raise _no_answer("ray cluster", place, "ray start --head") from error
        except ValueError as error:
            if "ray[client]" not in str(error):
                raise
            told = "running on a ray cluster elsewhere needs its client: pip install 'ray[client]'"
            raise FairsieveError(told) from error
        stack.callback(ray.shutdown)
    import_module("ray.util.joblib").register_ray()


def _open_spark(place: str, stack: ExitStack) -> None:
    """Use the active Spark session, or start one."""
    sql = _import_engine("pyspark.sql", "joblibspark pyspark")
    joblibspark = _import_engine("joblibspark", "joblibspark pyspark")
    if sql.SparkSession.getActiveSession() is None:
        # Spark would take the first python3 of the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.appName("fairsieve")
        session = builder.master(f"spark://{place}" if place else "local[*]").getOrCreate()
        stack.callback(session.stop)
    joblibspark.register_spark()


def _no_answer(what: str, place: str, command: str) -> WorkerError:
    return WorkerError(f"no {what} answers at {place}: start one there with `{command}`")


def _import_engine(name: str, packages: str) -> Any:
    """Import a package that is too large to be an extra of ours, or say how to install it."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        told = f"running on a {package} cluster needs {package}: pip install {packages}"
        raise FairsieveError(told) from None


Opener = Callable[[str, ExitStack], None]
OPENERS: dict[str, Opener] = {"dask": _open_dask, "ray": _open_ray, "spark": _open_spark}
