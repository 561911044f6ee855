"""scikit-learn's own checks of an estimator: none fails, not even that a weight of 2 is a sample twice."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairsieve import FairRobustClassifier


@pytest.mark.filterwarnings("ignore:no fairness was asked for", "ignore:which labels are wrong")
@parametrize_with_checks([FairRobustClassifier(), FairRobustClassifier(clean_ratio=0.9)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
