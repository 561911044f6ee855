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
    from fairsieve.tabular.entry import audit, predict, review, train
    from fairsieve.tabular.table_results import AuditResult, Predictions, ReviewResult, TrainResult

# Where names are; NumPy and scikit-learn are imported when one is first asked for.
PLACES = {
    "AuditResult": "table_results",
    "Decision": "decision",
    "Predictions": "table_results",
    "ReviewResult": "table_results",
    "TrainResult": "table_results",
    "audit": "entry",
    "predict": "entry",
    "review": "entry",
    "train": "entry",
}

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
    if name not in PLACES:
        raise AttributeError(f"module 'fairsieve.tabular' has no attribute {name!r}")
    return getattr(import_module(f"fairsieve.tabular.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
