"""A table in, a decision out: train, audit, review and predict, for files and data frames.

Examples
--------
>>> from fairsieve import tabular
>>> tabular.train("people.csv", label="income", sensitive="sex").decision  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairsieve.tabular.decision import Decision
    from fairsieve.tabular.entry import AuditResult, ReviewResult, TrainResult, audit, predict, review, train
    from fairsieve.tabular.predictions import Predictions

__all__ = [
    "AuditResult",
    "Decision",
    "Predictions",
    "ReviewResult",
    "TrainResult",
    "audit",
    "predict",
    "review",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import NumPy and scikit-learn when a name is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'fairsieve.tabular' has no attribute {name!r}")
    place = {"Decision": "decision", "Predictions": "predictions"}.get(name, "entry")
    return getattr(import_module(f"fairsieve.tabular.{place}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
