"""scikit-learn's own checks of an estimator, and where repeating a sample is not weighing it."""

from __future__ import annotations

from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

from fairsieve import FairRobustClassifier

NOT_REPETITION = (
    "a weight multiplies a loss, while a repeated sample also counts in the budget, the cells and the batches"
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": NOT_REPETITION,
    "check_sample_weight_equivalence_on_sparse_data": NOT_REPETITION,
}


GIVEN = FairRobustClassifier(clean_ratio=0.95)
AUTO = FairRobustClassifier(epochs=60, warmup_epochs=10, learning_rate=0.02)


@parametrize_with_checks([GIVEN, AUTO], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_in_one_batch_and_with_nothing_left_out_weights_are_repetitions():
    model = FairRobustClassifier(clean_ratio=1.0, batch_size=1000, epochs=50, warmup_epochs=10)
    check_sample_weight_equivalence_on_dense_data("FairRobustClassifier", model)
