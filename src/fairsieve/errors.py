"""Everything fairsieve raises or warns, in one tree.

::

    FairsieveError
    ├── InvalidInputError      (also a ValueError)   a value breaks a stated rule
    ├── NotReadyError          (also a RuntimeError) a call came before what it needs
    ├── CollapseError          (also a RuntimeError) training came to worse than a plain model
    ├── WorkerError            (also a RuntimeError) another worker failed or was lost
    ├── CheckpointError        (also a ValueError)   a checkpoint is damaged, or not one of ours
    ├── MissingExtraError      (also an ImportError) an optional dependency is not installed
    └── MissingDataError       (also a FileNotFoundError) a data file is not on this machine

    FairsieveWarning           (a UserWarning)
    ├── CheckpointWarning      a checkpoint was not used, or could not be written
    └── CollapseWarning        training came to worse than a plain model

Messages name the parameter, the rule, the value that broke it, and the way out.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "CollapseError",
    "CollapseWarning",
    "FairsieveError",
    "FairsieveWarning",
    "InvalidInputError",
    "MissingDataError",
    "MissingExtraError",
    "NotReadyError",
    "WorkerError",
]


class FairsieveError(Exception):
    """Base of every error fairsieve raises on purpose."""


class InvalidInputError(FairsieveError, ValueError):
    """A parameter or an array breaks a rule."""


class NotReadyError(FairsieveError, RuntimeError):
    """Something was asked for before the call that makes it possible."""


class CollapseError(FairsieveError, RuntimeError):
    """Training came to a model that is worse than a plain one, and ``on_collapse="raise"``."""


class WorkerError(FairsieveError, RuntimeError):
    """Another worker failed, or was lost, so this one cannot go on either."""


class CheckpointError(FairsieveError, ValueError):
    """A checkpoint is damaged, or was not written by fairsieve."""


class MissingExtraError(FairsieveError, ImportError):
    """An optional dependency is missing.

    >>> raise MissingExtraError("matplotlib", extra="plot", purpose="drawing figures")
    Traceback (most recent call last):
        ...
    fairsieve.errors.MissingExtraError: drawing figures needs matplotlib: pip install 'fairsieve[plot]'
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'fairsieve[{extra}]'")


class MissingDataError(FairsieveError, FileNotFoundError):
    """A data file is not where it was looked for; the message says how to get it."""


class FairsieveWarning(UserWarning):
    """Base of the warnings fairsieve gives."""


class CheckpointWarning(FairsieveWarning):
    """A checkpoint was not used, or could not be written; training goes on."""


class CollapseWarning(FairsieveWarning):
    """Training came to a model that is worse than a plain one."""
