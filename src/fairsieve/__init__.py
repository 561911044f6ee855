"""Fair and robust training by sample selection.

The core (:func:`select`, :class:`Plan`, …) takes and gives arrays; :class:`FairRobustBatchSampler`
puts it into any PyTorch loop; :func:`fit` is a whole loop; :class:`FairRobustClassifier` and its
company are for scikit-learn, which is imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairsieve.core.cells import Cells
from fairsieve.core.plan import Plan
from fairsieve.core.selection import Selection, select
from fairsieve.errors import (
    CheckpointError,
    CheckpointWarning,
    CollapseError,
    CollapseWarning,
    FairsieveError,
    FairsieveWarning,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    NotReadyError,
    WorkerError,
)
from fairsieve.metrics import (
    accuracy,
    demographic_parity_disparity,
    equal_opportunity_disparity,
    equalized_odds_disparity,
)
from fairsieve.samples import Samples
from fairsieve.training.fitted import Fitted
from fairsieve.training.history import History
from fairsieve.training.loop import fit, fit_seeds
from fairsieve.training.losses import sample_losses
from fairsieve.training.models import LogisticRegression
from fairsieve.training.sampler import FairRobustBatchSampler

if TYPE_CHECKING:
    from fairsieve.distributed.sampler import ShardedBatchSampler
    from fairsieve.distributed.shards import shard_of
    from fairsieve.estimators.classifier import FairRobustClassifier
    from fairsieve.estimators.clean_ratio import CleanRatioEstimate, estimate_clean_ratio
    from fairsieve.estimators.resampler import FairRobustResampler
    from fairsieve.estimators.scorers import fairness_scorer
    from fairsieve.estimators.sieve import SieveClassifier
    from fairsieve.report.displays import SelectionDisplay, TradeoffDisplay

__version__ = "0.1.0"

# Names whose modules take a while to import, and where they are.
LATER = {
    "CleanRatioEstimate": "fairsieve.estimators.clean_ratio",
    "FairRobustClassifier": "fairsieve.estimators.classifier",
    "FairRobustResampler": "fairsieve.estimators.resampler",
    "SelectionDisplay": "fairsieve.report.displays",
    "ShardedBatchSampler": "fairsieve.distributed.sampler",
    "SieveClassifier": "fairsieve.estimators.sieve",
    "TradeoffDisplay": "fairsieve.report.displays",
    "estimate_clean_ratio": "fairsieve.estimators.clean_ratio",
    "fairness_scorer": "fairsieve.estimators.scorers",
    "shard_of": "fairsieve.distributed.shards",
}

__all__ = [
    "Cells",
    "CheckpointError",
    "CheckpointWarning",
    "CleanRatioEstimate",
    "CollapseError",
    "CollapseWarning",
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
    "sample_losses",
    "select",
    "shard_of",
]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'fairsieve' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
