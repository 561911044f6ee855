"""Fair label correction: flip back what an ensemble contradicts, towards equal base rates.

After Fair-OBNC (Oliveira e Silva et al. 2024). The members of a bagged ensemble judge the samples
they were not trained on. Labels are flipped from the most contradicted down, but only where the flip
moves the group's share of the class towards everybody's share, and no more than a budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from fairsieve.baselines.fitted_estimator import refuse_unknown
from fairsieve.core.checks import check_at_least, check_share
from fairsieve.core.selection import budget_of
from fairsieve.metrics import classes_of
from fairsieve.samples import Samples
from fairsieve.training.fitted import Fitted
from fairsieve.training.loop import ModelLike, check_data, fit
from fairsieve.training.settings import Settings

__all__ = ["CorrectedLabels", "correct_labels", "train_fair_label_correction"]
