"""Clusters that runs can be spread over: dask, ray and Spark, through joblib."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import joblib

from fairsieve.errors import FairsieveError, InvalidInputError, WorkerError
from fairsieve.optional import require

__all__ = ["open_cluster"]

FORMS = "dask://HOST:PORT, ray, ray://HOST:PORT, spark or spark://HOST:PORT"


@contextmanager
def open_cluster(address: str | None) -> Iterator[None]:
    """Send joblib's work to a cluster while the context lasts; with None, keep it on this machine.

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
        yield
        return
    kind, separator, place = address.partition("://")
    if kind not in OPENERS or bool(separator) != bool(place) or (kind == "dask" and not place):
        raise InvalidInputError(f"backend must be {FORMS}; got {address!r}")
    with ExitStack() as stack:
        OPENERS[kind](place, stack)
        stack.enter_context(joblib.parallel_config(backend=kind))
        yield


def _open_dask(place: str, stack: ExitStack) -> None:
    """Connect to a dask scheduler."""
    distributed = require("dask.distributed", extra="dask", purpose="running on a dask cluster")
    try:
        stack.enter_context(distributed.Client(f"tcp://{place}", timeout="20s"))
    except OSError as error:
        raise WorkerError(
            f"no dask scheduler answers at {place}: start one there with `dask scheduler`"
        ) from error


def _open_ray(place: str, stack: ExitStack) -> None:
    """Connect to a ray cluster, or start one on this machine."""
    ray = _import_engine("ray", "ray[client]" if place else "ray")
    if not ray.is_initialized():
        try:
            ray.init(address=f"ray://{place}" if place else None, log_to_driver=False)
        except (ConnectionError, OSError) as error:
            raise WorkerError(
                f"no ray cluster answers at {place}: start one there with `ray start --head`"
            ) from error
        except ValueError as error:
            if "ray[client]" not in str(error):
                raise
            raise FairsieveError(
                "running on a ray cluster elsewhere needs its client: pip install 'ray[client]'"
            ) from error
        stack.callback(ray.shutdown)
    import_module("ray.util.joblib").register_ray()


def _open_spark(place: str, stack: ExitStack) -> None:
    """Use the active Spark session, or start one."""
    sql = _import_engine("pyspark.sql", "joblibspark pyspark")
    joblibspark = _import_engine("joblibspark", "joblibspark pyspark")
    if sql.SparkSession.getActiveSession() is None:
        os.environ.setdefault(
            "PYSPARK_PYTHON", sys.executable
        )  # Spark would take the first python3 of the path
        builder = sql.SparkSession.builder.appName("fairsieve")
        session = builder.master(f"spark://{place}" if place else "local[*]").getOrCreate()
        stack.callback(session.stop)
    joblibspark.register_spark()


def _import_engine(name: str, packages: str) -> Any:
    """Import a package that is too large to be an extra of ours, or say how to install it."""
    try:
        return import_module(name)
    except ImportError:
        found = name.partition(".")[0]
        raise FairsieveError(f"running on a {found} cluster needs {found}: pip install {packages}") from None


OPENERS: dict[str, Callable[[str, ExitStack], None]] = {
    "dask": _open_dask,
    "ray": _open_ray,
    "spark": _open_spark,
}
