"""Fair and robust training by sample selection.

The core (:func:`select`, :class:`Plan`, …) takes and gives arrays; :class:`FairRobustBatchSampler`
puts it into any PyTorch loop; :func:`fit` is a whole loop; :class:`FairRobustClassifier` and its
company are for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairsieve.errors import (
    CheckpointError,
    CheckpointWarning,
    FairsieveError,
    FairsieveWarning,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    NotReadyError,
    WorkerError,
)

if TYPE_CHECKING:
    from fairsieve.estimators.classifier import FairRobustClassifier
    from fairsieve.estimators.displays import SelectionDisplay, TradeoffDisplay
    from fairsieve.estimators.resampler import FairRobustResampler
    from fairsieve.estimators.scorers import fairness_scorer
    from fairsieve.estimators.sieve import SieveClassifier
    from fairsieve.label_noise.estimate import CleanRatioEstimate, estimate_clean_ratio
    from fairsieve.label_noise.true_measures import measure_true_labels
    from fairsieve.metrics import (
        accuracy,
        demographic_parity_disparity,
        equal_opportunity_disparity,
        equalized_odds_disparity,
    )
    from fairsieve.samples import Samples
    from fairsieve.sampling.losses import sample_losses
    from fairsieve.sampling.sampler import FairRobustBatchSampler
    from fairsieve.sampling.sharded_sampler import ShardedBatchSampler
    from fairsieve.sampling.shards import shard_of
    from fairsieve.selection.cells import Cells
    from fairsieve.selection.epoch import Plan
    from fairsieve.selection.select import Selection, select
    from fairsieve.training.fit import fit, fit_seeds
    from fairsieve.training.history import History
    from fairsieve.training.models import LogisticRegression
    from fairsieve.training.result import Fitted

__version__ = "0.1.0"

# Where names are; NumPy, torch and scikit-learn are imported when one is first asked for.
LATER = {
    "Cells": "fairsieve.selection.cells",
    "CleanRatioEstimate": "fairsieve.label_noise.estimate",
    "FairRobustBatchSampler": "fairsieve.sampling.sampler",
    "FairRobustClassifier": "fairsieve.estimators.classifier",
    "FairRobustResampler": "fairsieve.estimators.resampler",
    "Fitted": "fairsieve.training.result",
    "History": "fairsieve.training.history",
    "LogisticRegression": "fairsieve.training.models",
    "Plan": "fairsieve.selection.epoch",
    "Samples": "fairsieve.samples",
    "Selection": "fairsieve.selection.select",
    "SelectionDisplay": "fairsieve.estimators.displays",
    "ShardedBatchSampler": "fairsieve.sampling.sharded_sampler",
    "SieveClassifier": "fairsieve.estimators.sieve",
    "TradeoffDisplay": "fairsieve.estimators.displays",
    "accuracy": "fairsieve.metrics",
    "demographic_parity_disparity": "fairsieve.metrics",
    "equal_opportunity_disparity": "fairsieve.metrics",
    "equalized_odds_disparity": "fairsieve.metrics",
    "estimate_clean_ratio": "fairsieve.label_noise.estimate",
    "measure_true_labels": "fairsieve.label_noise.true_measures",
    "fairness_scorer": "fairsieve.estimators.scorers",
    "fit": "fairsieve.training.fit",
    "fit_seeds": "fairsieve.training.fit",
    "sample_losses": "fairsieve.sampling.losses",
    "select": "fairsieve.selection.select",
    "shard_of": "fairsieve.sampling.shards",
}

__all__ = [
    "Cells",
    "CheckpointError",
    "CheckpointWarning",
    "CleanRatioEstimate",
    "FairRobustBatchSampler",
    "FairRobustClassifier",
    "FairRobustResampler",
    "FairsieveError",
    "FairsieveWarning",
    "Fitted",
    "History",
    "InvalidInputError",
    "LogisticRegression",
    "MissingDataError",
    "MissingExtraError",
    "NotReadyError",
    "Plan",
    "Samples",
    "Selection",
    "SelectionDisplay",
    "ShardedBatchSampler",
    "SieveClassifier",
    "TradeoffDisplay",
    "WorkerError",
    "accuracy",
    "demographic_parity_disparity",
    "equal_opportunity_disparity",
    "equalized_odds_disparity",
    "estimate_clean_ratio",
    "fairness_scorer",
    "fit",
    "fit_seeds",
    "measure_true_labels",
    "sample_losses",
    "select",
    "shard_of",
]


def __getattr__(name: str) -> Any:
    if name == "tabular":  # fairsieve.tabular.train, with nothing imported but fairsieve
        return import_module("fairsieve.tabular")
    if name not in LATER:
        raise AttributeError(f"module 'fairsieve' has no attribute {name!r}")
    try:
        module = import_module(LATER[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", extra="torch", purpose=f"fairsieve.{name}") from None
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
