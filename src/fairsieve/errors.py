"""Everything fairsieve raises or warns, in one tree; and packages that may be missing.

::

    FairsieveError
    ├── InvalidInputError      (also a ValueError)   a value breaks a stated rule
    ├── NotReadyError          (also a RuntimeError) a call came before what it needs
    ├── WorkerError            (also a RuntimeError) another worker failed or was lost
    ├── CheckpointError        (also a ValueError)   a checkpoint is damaged, or not one of ours
    ├── MissingExtraError      (also an ImportError) an optional dependency is not installed
    └── MissingDataError       (also a FileNotFoundError) a data file is not on this machine

    FairsieveWarning           (a UserWarning)
    ├── CheckpointWarning      a checkpoint was not used, or could not be written
    └── FairnessWarning        the fairness that was asked for was not reached, or not worth it

Messages name the parameter, the rule, the value that broke it, and the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from typing import Any

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "FairnessWarning",
    "FairsieveError",
    "FairsieveWarning",
    "InvalidInputError",
    "MissingDataError",
    "MissingExtraError",
    "NotReadyError",
    "WorkerError",
]


# The extra of fairsieve that has each package that may be missing; others are what fairsieve itself depends on.
EXTRAS = {
    "accelerate": "accelerate",
    "dask": "dask",
    "fairlearn": "fairlearn",
    "lightgbm": "lightgbm",
    "lightning": "lightning",
    "matplotlib": "plot",
    "numba": "reproduce",
    "pyarrow": "table",
    "torch": "torch",
    "transformers": "transformers",
}
# Whether a command was called, and not a function.
_IN_COMMAND: ContextVar[bool] = ContextVar("in_command", default=False)
# Parameters of functions that are called otherwise than the option; most are called alike.
_PARAMETERS = {"id": "id_column", "out": "path"}


@contextmanager
def in_command() -> Iterator[None]:
    """Let :func:`spell` write options of the command line."""
    token = _IN_COMMAND.set(True)
    try:
        yield
    finally:
        _IN_COMMAND.reset(token)


def in_python() -> bool:
    """Return whether a function was called, and not a command."""
    return not _IN_COMMAND.get()


def spell(option: str, value: Any = None, *, quote: bool = False) -> str:
    """Name a parameter in the words of whoever called: as an option of a command, or as a parameter of a function.

    What does not begin with ``--`` is no option, and stays as it is. ``quote`` puts quotes around a value of an
    option, as names of columns need.

    >>> spell("--keep-sensitive"), spell("--bins", "age=4")
    ('keep_sensitive', "bins='age=4'")
    >>> with in_command():
    ...     spell("--keep-sensitive"), spell("--bins", "age=4")
    ('--keep-sensitive', '--bins age=4')
    """
    if not option.startswith("--"):
        return option
    if not in_python():
        if value in (None, True):
            return option
        return f"{option} {value!r}" if quote else f"{option} {value}"
    name = option.removeprefix("--").replace("-", "_")
    name = _PARAMETERS.get(name, name)
    return name if value is None else f"{name}={value!r}"


class FairsieveError(Exception):
    """Base of every error fairsieve raises on purpose.

    Examples
    --------
    >>> from fairsieve import select
    >>> try:
    ...     select([0.5, -1.0], [0, 1], ["a", "b"], ratios=[[0.5, 0.5]] * 2, clean_ratio=2)
    ... except FairsieveError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(FairsieveError, ValueError):
    """A parameter or an array breaks a rule.

    Examples
    --------
    >>> from fairsieve.metrics import accuracy
    >>> accuracy([0, 1], [0, 1, 1])
    Traceback (most recent call last):
        ...
    fairsieve.errors.InvalidInputError: ...
    """


class NotReadyError(FairsieveError, RuntimeError):
    """Something was asked for before the call that makes it possible.

    Examples
    --------
    >>> raise NotReadyError("update() must be called before iterating: give it the model's outputs")
    Traceback (most recent call last):
        ...
    fairsieve.errors.NotReadyError: update() must be called before iterating: give it the model's outputs
    """


class WorkerError(FairsieveError, RuntimeError):
    """Another worker failed, or was lost, so this one cannot go on either.

    Examples
    --------
    >>> issubclass(WorkerError, RuntimeError)
    True
    """


class CheckpointError(FairsieveError, ValueError):
    """A checkpoint is damaged, or was not written by fairsieve.

    Examples
    --------
    >>> issubclass(CheckpointError, ValueError)
    True
    """


class MissingExtraError(FairsieveError, ImportError):
    """A package is missing; the message says how to install it.

    ``extra`` is the extra of fairsieve that has it; None for what fairsieve itself depends on.

    >>> raise MissingExtraError("matplotlib", extra="plot", purpose="drawing figures")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingExtraError: drawing figures needs matplotlib: pip install 'fairsieve[plot]'
    """

    def __init__(self, package: str, *, extra: str | None, purpose: str) -> None:
        wanted = package if extra is None else f"'fairsieve[{extra}]'"
        super().__init__(f"{purpose} needs {package}: pip install {wanted}")


class MissingDataError(FairsieveError, FileNotFoundError):
    """A data file is not where it was looked for; the message says how to get it.

    Examples
    --------
    >>> from fairsieve.data import load_adult
    >>> load_adult("nowhere.data")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingDataError: ...
    """


class FairsieveWarning(UserWarning):
    """Base of the warnings fairsieve gives.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FairsieveWarning)  # all of ours, and no other
    """


class CheckpointWarning(FairsieveWarning):
    """A checkpoint was not used, or could not be written; training goes on.

    Examples
    --------
    >>> issubclass(CheckpointWarning, FairsieveWarning)
    True
    """


class FairnessWarning(FairsieveWarning):
    """The fairness that was asked for was not reached, or the fair model is not the better one.

    Examples
    --------
    >>> issubclass(FairnessWarning, FairsieveWarning)
    True
    """


def require(name: str, *, purpose: str) -> Any:
    """Import a package, or raise an error that says how to install it.

    Examples
    --------
    >>> require("no_such_package", purpose="training a module")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingExtraError: training a module needs no_such_package: pip install no_such_package
    """
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, purpose=purpose) from None


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Name the versions of Python and of those packages that are installed, on which results depend."""
    import platform  # late, as the next one: fairsieve is imported fast
    from importlib import metadata

    versions = {"python": platform.python_version()}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def missing(name: str, *, purpose: str) -> MissingExtraError:
    """Return the error that says how to install a package, by its own name or that of one of its modules.

    >>> str(missing("matplotlib.pyplot", purpose="drawing figures"))
    "drawing figures needs matplotlib: pip install 'fairsieve[plot]'"
    """
    package = name.partition(".")[0]
    return MissingExtraError(package, extra=EXTRAS.get(package), purpose=purpose)
