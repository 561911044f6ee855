"""Fair and robust training by sample selection.

The core (:func:`select`, :class:`Plan`, …) takes and gives arrays; :class:`FairRobustBatchSampler`
puts it into any PyTorch loop; :func:`fit` is a whole loop.
"""

from fairsieve.core.cells import Cells
from fairsieve.core.plan import Plan
from fairsieve.core.selection import Selection, select
from fairsieve.errors import (
    FairsieveError,
    FairsieveWarning,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    NotReadyError,
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

__version__ = "0.1.0"

__all__ = [
    "Cells",
    "FairRobustBatchSampler",
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
    "accuracy",
    "demographic_parity_disparity",
    "equal_opportunity_disparity",
    "equalized_odds_disparity",
    "fit",
    "fit_seeds",
    "sample_losses",
    "select",
]
