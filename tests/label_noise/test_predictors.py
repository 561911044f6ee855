"""The predictors of the labels as they are: what they see, and which one is chosen."""

import numpy as np
import pytest
from scipy import sparse

from fairsieve import Samples
from fairsieve.label_noise.explanations import choose, choose_base
from fairsieve.label_noise.predictors import (
    Survey,
    boosted_predictor,
    linear_predictor,
)


def drawn(labels, seed=0, n=2000, columns=3):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, columns)), rng.integers(0, 2, n)
    return Samples(X, labels(X, groups, rng).astype(np.int64), groups)


def chosen(data, seed=0):
    survey = Survey.draw(data, None, seed, 8000)
    tried, base, levelled = choose_base(survey)
    boosted = boosted_predictor(survey, seed)
    return choose([*tried, boosted], base, levelled, survey)[0]


def logistic(logit):
    return lambda X, z, rng: rng.random(len(X)) < 1 / (1 + np.exp(-logit(X, z)))


def boxes(X, z, rng):
    return (np.abs(X[:, 0]) < 0.7) ^ (np.abs(X[:, 1]) < 0.7)


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (logistic(lambda X, z: 2 * X[:, 0] - X[:, 1] + z), "linear"),
        (logistic(lambda X, z: 3 * X[:, 0] * X[:, 1]), "curved"),
        (logistic(lambda X, z: np.where(z == 1, 3, -3) * X[:, 0]), "by group"),
        (boxes, "boosted"),
    ],
)
def test_the_predictor_that_fits_is_chosen(labels, name):
    choice = chosen(drawn(labels))
    assert name in choice.name or (name == "linear" and choice.gain < 0.003)
    assert name in str(choice) or name == "linear"


def test_the_group_is_a_column_of_every_predictor():
    data = drawn(logistic(lambda X, z: 4.0 * z - 2.0))
    survey = Survey.draw(data, None, 0, 8000)
    assert survey.features.shape == (2000, 4)
    for predictor in (linear_predictor(survey, curved=False), boosted_predictor(survey, 0)):
        assert predictor.losses.mean() < 0.45  # without the group .69


def test_scores_of_all_samples_are_those_of_the_surveyed_ones():
    data = drawn(logistic(lambda X, z: 2 * X[:, 0]))
    survey = Survey.draw(data, None, 0, 500)
    predictor = linear_predictor(survey, curved=True)
    scores = predictor.all_scores(survey, data)
    assert scores.shape == (2000, 1)
    assert scores[survey.rows] == pytest.approx(predictor.own)
    again = predictor.predict(survey.features_of(data, slice(None)))
    assert scores == pytest.approx(again)


def test_many_columns_are_reduced_to_the_telling_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 500))
    data = Samples(X, (X[:, 123] > 0).astype(int), np.zeros(300, int))
    survey = Survey.draw(data, None, 0, 8000)
    assert len(survey.columns) <= 120
    assert 123 in survey.columns


def test_sparse_features_are_read_by_rows():
    X = sparse.random(200, 5, 0.3, random_state=0, format="csr")
    dense = Samples(X.toarray(), np.arange(200) % 2, np.zeros(200, int))
    survey = Survey.draw(dense, None, 0, 100)
    if sparse.issparse(getattr(dense, "features", None)):
        pytest.skip("samples are sparse already")

    class Sparse:
        features, cells = X, dense.cells

    part = slice(20, 40)
    assert survey.features_of(Sparse, part) == pytest.approx(survey.features_of(dense, part))


@pytest.mark.parametrize(("curved", "by_group"), [(False, False), (True, False), (True, True)])
def test_logits_without_a_design_matrix_are_those_with_it(curved, by_group):
    data = drawn(logistic(lambda X, z: 2 * X[:, 0] + X[:, 1] ** 2))
    survey = Survey.draw(data, None, 0, 500)
    predictor = linear_predictor(survey, curved=curved, by_group=by_group)
    model = predictor.fitted[1]
    expected = predictor.design(survey.features) @ (model.weights[:, 1:] - model.weights[:, :1])
    assert predictor.design.logits(survey.features, model) == pytest.approx(expected, abs=1e-9)


def test_where_a_fit_starts_does_not_change_it():
    survey = Survey.draw(drawn(logistic(lambda X, z: 2 * X[:, 0] + X[:, 1] ** 2)), None, 0, 8000)
    start = linear_predictor(survey, curved=False)
    cold, warm = (linear_predictor(survey, curved=True, start=first) for first in (None, start))
    assert warm.losses == pytest.approx(cold.losses, abs=0.02)
    assert warm.losses.mean() == pytest.approx(cold.losses.mean(), abs=1e-4)
