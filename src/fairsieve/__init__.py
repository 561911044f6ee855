"""Fair and robust training by sample selection.

The core (:func:`select`) takes and gives arrays; :class:`FairRobustBatchSampler`
puts it into any PyTorch loop; :func:`fit` is a whole loop; :class:`FairRobustClassifier` and its
company are for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairsieve import errors as errors
from fairsieve.errors import missing

if TYPE_CHECKING:
    from fairsieve import data as data
    from fairsieve import metrics as metrics
    from fairsieve import notions as notions
    from fairsieve import tabular as tabular
    from fairsieve.estimators.classifier import FairRobustClassifier as FairRobustClassifier
    from fairsieve.estimators.displays import SelectionDisplay as SelectionDisplay
    from fairsieve.estimators.displays import TradeoffDisplay as TradeoffDisplay
    from fairsieve.estimators.displays import fairness_scorer as fairness_scorer
    from fairsieve.estimators.resampler import FairRobustResampler as FairRobustResampler
    from fairsieve.estimators.sieve import SieveClassifier as SieveClassifier
    from fairsieve.label_noise.estimate import CleanRatioEstimate as CleanRatioEstimate
    from fairsieve.label_noise.estimate import estimate_clean_ratio as estimate_clean_ratio
    from fairsieve.label_noise.true_measures import measure_true_labels as measure_true_labels
    from fairsieve.metrics import demographic_parity_disparity as demographic_parity_disparity
    from fairsieve.metrics import equal_error_rate_disparity as equal_error_rate_disparity
    from fairsieve.metrics import equal_opportunity_disparity as equal_opportunity_disparity
    from fairsieve.metrics import equalized_odds_disparity as equalized_odds_disparity
    from fairsieve.metrics import predictive_parity_disparity as predictive_parity_disparity
    from fairsieve.samples import Samples as Samples
    from fairsieve.sampling.losses import sample_losses as sample_losses
    from fairsieve.sampling.sampler import FairRobustBatchSampler as FairRobustBatchSampler
    from fairsieve.sampling.sharded import ShardedBatchSampler as ShardedBatchSampler
    from fairsieve.sampling.sharded import shard_of as shard_of
    from fairsieve.selection.epoch import SamplingMethod as SamplingMethod
    from fairsieve.selection.select import Selection as Selection
    from fairsieve.selection.select import select as select
    from fairsieve.training.fit import fit as fit

__version__ = "0.2.0"

# Where names are; NumPy, torch and scikit-learn are imported when one is first asked for.
NAMES = {
    "estimators.classifier": "FairRobustClassifier",
    "estimators.displays": "SelectionDisplay TradeoffDisplay fairness_scorer",
    "estimators.resampler": "FairRobustResampler",
    "estimators.sieve": "SieveClassifier",
    "label_noise.estimate": "CleanRatioEstimate estimate_clean_ratio",
    "label_noise.true_measures": "measure_true_labels",
    "metrics": "demographic_parity_disparity equal_error_rate_disparity equal_opportunity_disparity "
    "equalized_odds_disparity predictive_parity_disparity",
    "samples": "Samples",
    "sampling.losses": "sample_losses",
    "sampling.sampler": "FairRobustBatchSampler",
    "sampling.sharded": "ShardedBatchSampler shard_of",
    "selection.epoch": "SamplingMethod",
    "selection.select": "Selection select",
    "training.fit": "fit",
}
LATER = {name: f"fairsieve.{module}" for module, names in NAMES.items() for name in names.split()}

# Parts that are imported when they are first used.
PARTS = ("data", "metrics", "notions", "tabular")

__all__ = sorted(LATER)


def __getattr__(name: str) -> Any:
    if name in PARTS:
        return import_module(f"fairsieve.{name}")
    if name not in LATER:
        raise AttributeError(f"module 'fairsieve' has no attribute {name!r}")
    try:
        module = import_module(LATER[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing("torch", purpose=f"fairsieve.{name}") from None
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *PARTS, "__version__", "errors"})
