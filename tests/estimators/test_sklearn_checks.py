"""scikit-learn's own checks of an estimator: none fails, not even that a weight of 2 is a sample twice."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairsieve import FairRobustClassifier, SieveClassifier

SIEVE = SieveClassifier(LogisticRegression(), clean_ratio=0.95, max_iter=1, cv=2)


@pytest.mark.filterwarnings("ignore:no fairness was asked for", "ignore:lbfgs failed to converge")
@parametrize_with_checks([FairRobustClassifier(), FairRobustClassifier(clean_ratio=0.9), SIEVE])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
