"""The covariance penalty of the paper's compiled loop, against the literal formula."""

import numpy as np
import pytest

from fairsieve import Samples
from fairsieve.data import make_synthetic
from fairsieve_reproduction.methods.loop import EVERYONE, penalised_classes, penalty_directions

NOTIONS = ("equalized_odds", "demographic_parity", "equal_opportunity")


@pytest.fixture(scope="module")
def data():
    drawn = make_synthetic(300, seed=0)
    return Samples(drawn.features.astype(np.float64), drawn.labels, drawn.groups)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    return Samples(rng.normal(size=(90, 3)), rng.choice(list("abc"), 90), rng.choice(list("xyz"), 90))


def literal_penalty(decision, samples, classes):
    """Zafar's form: Σ |mean of (z − z̄) · g|, halved over groups; g is the decision, or its wrong part in a class."""
    labels, groups, total = samples.cells.label_codes, samples.cells.group_codes, 0.0
    for label in classes:
        for output in range(decision.shape[1]):
            own = labels == (output if decision.shape[1] > 1 else 1)
            wrong = np.minimum(0, np.where(own, 1, -1) * decision[:, output]) * (labels == label)
            counted = decision[:, output] if label == EVERYONE else wrong
            for group in range(samples.cells.shape[1]):
                member = groups == group
                total += abs(np.mean((member - member.mean()) * counted)) / 2
    return total


@pytest.mark.parametrize("notion", NOTIONS)
def test_directions_give_the_value_of_the_penalty(data, many, notion):
    for samples, outputs in ((data, 1), (many, 3)):
        classes = penalised_classes(samples.cells, notion, samples.classes[-1])
        flat = np.random.default_rng(1).normal(size=outputs * 4)
        scores = samples.features @ flat[:-outputs].reshape(outputs, 3).T + flat[-outputs:]
        decision = scores if outputs == 1 else scores - scores.mean(axis=1, keepdims=True)
        rows = penalty_directions(samples.features, samples.cells, flat, classes, np.arange(len(samples)))
        assert np.abs(rows @ flat).sum() == pytest.approx(literal_penalty(decision, samples, classes))


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_penalty_is_over_the_selected_samples_that_have_a_group(data, notion):
    parameters, selected = np.array([0.3, -0.2, 0.1, 0.05]), np.arange(0, 300, 3)
    classes = penalised_classes(data.cells, notion, 1)
    part = data.take(selected)
    expected = penalty_directions(part.features, part.cells, parameters, classes, np.arange(len(part)))
    found = penalty_directions(data.features, data.cells, parameters, classes, selected)
    assert found == pytest.approx(expected)
    groups = np.full(300, np.nan)
    groups[selected] = data.groups[selected]
    some = Samples(data.features, data.labels, groups, missing="own")
    found = penalty_directions(some.features, some.cells, parameters, classes, np.arange(300))
    assert found == pytest.approx(expected)
