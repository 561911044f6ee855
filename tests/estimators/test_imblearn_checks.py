"""imbalanced-learn's own checks of a sampler, on FairRobustResampler."""

import pytest

pytest.importorskip("imblearn")
from imblearn.utils.estimator_checks import _yield_all_checks
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks as parametrize_with_sklearn_checks

from fairsieve import FairRobustClassifier, FairRobustResampler, SieveClassifier

CLASSIFIER = FairRobustClassifier(clean_ratio=0.95, random_state=0)
SIEVE = SieveClassifier(LogisticRegression(), clean_ratio=0.95, max_iter=1, cv=2, random_state=0)
NAMED = {"classifier": CLASSIFIER, "sieve": SIEVE}
RESAMPLERS = {name: FairRobustResampler(each, random_state=0) for name, each in NAMED.items()}


CHECKS = [(name, check) for name, each in RESAMPLERS.items() for check in _yield_all_checks(each)]


@pytest.mark.parametrize(("name", "check"), CHECKS, ids=lambda one: getattr(one, "__name__", one))
def test_imbalanced_learns_checks(name, check):
    check("FairRobustResampler", RESAMPLERS[name])


@parametrize_with_sklearn_checks([RESAMPLERS["sieve"]])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
