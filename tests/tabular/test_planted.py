"""Tables with planted errors: no decision is wrong on right labels, and intervals hold what is true of others."""

import pytest
from tests.support.planted import RECIPES, plant

from fairsieve import equalized_odds_disparity, tabular


@pytest.mark.parametrize(
    "name", ["right labels, groups alike", "one group's positive labels missed", "four groups"]
)
def test_decisions_hold_for_the_right_labels_of_other_people(name):
    table = plant(name, seed=1)
    result = tabular.train(table.frame, label="label", sensitive="group", positive="yes")
    run, truth = result.run, []
    for point in (run.trained.plain, run.trained.fair):
        predicted = point.model.predict(table.others)
        right = (predicted == table.others["label"].to_numpy()).mean()
        groups = table.others["group"]
        wide = equalized_odds_disparity(table.others["label"], predicted, sensitive_features=groups)
        truth.append((right, wide))
    (accuracy, disparity), (fair_accuracy, fair_disparity) = truth
    low, high = run.choice.change["disparity"].interval
    assert low - 0.005 <= fair_disparity - disparity <= high + 0.005
    if result.decision.outcome == "use-fair":
        assert fair_disparity <= disparity + 0.01
        assert fair_accuracy >= accuracy - 0.02
    stored = truth[run.place]
    assert stored[1] <= disparity + 0.01


def test_a_table_is_the_same_for_the_same_seed_and_its_errors_are_those_planted():
    for name in RECIPES:
        one, two = plant(name, seed=3, others=10), plant(name, seed=3, others=10)
        assert one.frame.equals(two.frame)
        wrong = (one.frame["label"] != one.right).mean()
        assert (wrong == 0) == name.startswith("right labels")
        assert wrong < 0.25
