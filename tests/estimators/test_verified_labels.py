"""Verified labels in the three estimators: what they change, and how they travel through scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.support.annotators import check_some

from fairsieve import (
    FairRobustClassifier,
    FairRobustResampler,
    Samples,
    SieveClassifier,
    equalized_odds_disparity,
    estimate_clean_ratio,
    fairness_scorer,
)
from fairsieve.data import flip_margin, flip_uniform, make_synthetic
from fairsieve.errors import InvalidInputError
from fairsieve.label_noise.verified import gain_on_checked
from fairsieve.metrics import accuracy
from fairsieve.training import solver

DATA, TEST = make_synthetic(1200, seed=11), make_synthetic(4000, seed=12)
NOISY = flip_margin(DATA, 0.2)
FEATURES = DATA.features.astype(np.float64)  # as lists hold numbers; single precision moves the last digits
SIEVE = SieveClassifier(LogisticRegression(), max_iter=3, cv=2, random_state=0)
GIVEN = {"sensitive_features": DATA.groups}


VERIFIED = check_some(DATA, 150)
ROWS = np.flatnonzero(VERIFIED != None)  # noqa: E711
CHECKED = GIVEN | {"verified_labels": VERIFIED}
quiet = pytest.mark.filterwarnings("ignore::fairsieve.errors.FairsieveWarning")


@pytest.fixture(scope="module")
def sieve():
    return clone(SIEVE).fit(DATA.features, NOISY.labels, **CHECKED)


@pytest.fixture(scope="module")
def resampled():
    resampler = FairRobustResampler(random_state=0)
    return resampler, *resampler.fit_resample(FEATURES, NOISY.labels, **CHECKED)


def test_checked_rows_mend_a_sieve_under_attack(sieve):
    """A fifth of the surest labels is flipped, which nothing but the checked rows tells."""
    plain, ours = sieve.plain_model_.predict(TEST.features), sieve.predict(TEST.features)
    assert accuracy(TEST.labels, ours) > accuracy(TEST.labels, plain) + 0.05
    groups = {"sensitive_features": TEST.groups}
    wide = [equalized_odds_disparity(TEST.labels, found, **groups) for found in (ours, plain)]
    assert wide[0] < wide[1]


def test_a_sieve_measures_its_rounds_by_the_chances(sieve):
    found = sieve.path_["accuracy"]
    plain = sieve.plain_model_.predict(DATA.features)
    true, seen = accuracy(DATA.labels, plain), accuracy(NOISY.labels, plain)
    assert abs(found[0] - true) < 0.5 * abs(seen - true)
    assert sieve.path_index_ > 0
    assert found[sieve.path_index_] > found[0]
    assert (sieve.path_["selected"][0], len(sieve.weights_)) == (1200, 1200)
    assert (sieve.weights_ > 0).all()
    assert sieve.estimate_.verified.checked.sum() == 150
    assert sieve.clean_ratio_ == pytest.approx(0.8, abs=0.06)


def test_checked_rows_are_neither_suspects_nor_checked_again(sieve):
    suspects = sieve.suspects()["row"]
    assert not np.isin(ROWS, suspects).any()
    assert NOISY.flipped[suspects].mean() > 0.5
    rows, weights = sieve.next_to_verify(40)
    assert not np.isin(ROWS, rows).any()
    assert weights.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [11, 21, 31])
@pytest.mark.parametrize("model", [SIEVE, FairRobustClassifier(random_state=0)], ids=["sieve", "classifier"])
def test_all_rows_checked_is_training_on_the_truth(model, seed):
    """The model is fitted as if the true labels had been given and none were wrong."""
    data = make_synthetic(1200, seed=seed)
    noisy, groups = flip_margin(data, 0.2), {"sensitive_features": data.groups}
    model = clone(model).set_params(tolerance=1.0)  # no choice between points, which other folds may tip
    checked = clone(model).fit(data.features, noisy.labels, **groups, verified_labels=data.labels)
    known = model.set_params(clean_ratio=1.0).fit(data.features, data.labels, **groups)
    assert np.mean(checked.predict(TEST.features) == known.predict(TEST.features)) > 0.995
    assert checked.clean_ratio_ == pytest.approx(1 - noisy.flipped.mean())


@quiet
@pytest.mark.parametrize("model", [SIEVE, FairRobustClassifier(random_state=0)])
def test_one_checked_row_is_corrected_and_too_few_to_learn_from(model):
    row = int(NOISY.flipped.argmax())
    verified = np.full(1200, np.nan)
    verified[row] = DATA.labels[row]
    fitted = clone(model).set_params(tolerance=1.0)  # no choice between points, which one row may tip
    with warnings.catch_warnings(record=True, action="always") as caught:
        fitted.fit(DATA.features, NOISY.labels, **GIVEN, verified_labels=verified)
    assert any("has 1 checked row, which is too few to learn from" in str(each.message) for each in caught)
    assert not any("taken from the other groups" in str(each.message) for each in caught)
    assert fitted.estimate_.verified is None
    assert row not in set(fitted.suspects()["row"])
    corrected = NOISY.labels.copy()
    corrected[row] = DATA.labels[row]
    known = clone(fitted).fit(DATA.features, corrected, **GIVEN)
    agree = np.mean(fitted.predict(TEST.features) == known.predict(TEST.features))
    assert agree > 0.96


@quiet
def test_a_model_is_kept_that_is_fairer_without_checks():
    """Either the model is no less fair by both judgements, or it is the one that is found without the checks."""
    kept, changes = 0, []
    for seed in range(6):
        data = make_synthetic(1200, seed=seed)
        given = flip_uniform(data, np.array([[0.0, 0.0], [0.3, 0.1]]), seed=seed).labels
        models = []
        for verified in (None, check_some(data, 60, seed)):
            model = FairRobustClassifier(random_state=0)
            model.fit(data.features, given, sensitive_features=data.groups, verified_labels=verified)
            models.append(model)
        without, checked = (model.predict(TEST.features) for model in models)
        assert models[1].estimate_.verified.checked.sum() == 60
        kept += bool((without == checked).all())
        groups = {"sensitive_features": TEST.groups}
        wide = [equalized_odds_disparity(TEST.labels, found, **groups) for found in (without, checked)]
        changes.append(wide[1] - wide[0])
        place = models[1].path_index_
        assert models[1].path_["gap"][place] == models[1].at(tolerance=models[1].path_["gap"][place]).gap_
        assert (models[1].stopped_ == "met") == (models[1].path_["gap"][place] <= models[1].tolerance_)
    assert kept > 0
    assert np.mean(changes) <= 0.01


@quiet
def test_models_of_many_rows_are_judged_without_folds(monkeypatch):
    """Where the way is found on a part of the rows, no model has left out a fold, however many columns there are."""
    monkeypatch.setattr(solver, "MANY", 1000)
    monkeypatch.setattr(solver, "PART", 900)
    wide = np.column_stack([DATA.features, np.random.default_rng(0).normal(size=(1200, 12))])
    kept = []
    for seed in range(3):
        model = FairRobustClassifier(random_state=0)
        without = clone(model).fit(wide, NOISY.labels, **GIVEN)
        model.fit(wide, NOISY.labels, **GIVEN, verified_labels=check_some(DATA, 12, seed))
        assert not model.comparison_.held_out
        kept.append((model.predict(wide) == without.predict(wide)).all())
    assert any(kept)


@quiet
def test_a_gain_is_what_the_checked_rows_say_where_all_are_checked():
    """Then the chances of rows that nobody checked say nothing; few checks leave it open."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 1200))
    for verified, low, high in ((DATA.labels, 0.0, 0.01), (check_some(DATA, 12), 0.1, 0.4)):
        found = estimate_clean_ratio(DATA.features, NOISY.labels, **GIVEN | {"verified_labels": verified})
        gain, off = gain_on_checked(found, first, second, np.ones(1200))
        expected = accuracy(DATA.labels, first) - accuracy(DATA.labels, second)
        assert abs(gain - expected) < (1e-9 if verified is DATA.labels else 3 * off)
        assert low < off < high


def test_three_classes_and_three_groups():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 900)
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    names = np.array(["a", "b", "c"])
    data = Samples(rng.normal(size=(900, 2)) + centres[codes], names[codes], rng.choice(["x", "y", "z"], 900))
    given = np.where((rng.random(900) < 0.4) & (codes == 0), "b", data.labels)
    options = {"sensitive_features": data.groups, "verified_labels": check_some(data, 200)}
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = SieveClassifier(tree, max_iter=2, cv=2, random_state=0)
    model.fit(data.features, given, **options)
    assert model.ratios_.shape == model.flip_rates_.shape == (3, 3)
    assert model.flip_rates_[0].mean() == pytest.approx(0.4, abs=0.12)
    assert model.flip_rates_[2].max() < 0.1
    assert model.score(data.features, data.labels) > model.plain_model_.score(data.features, data.labels)
    X, y = FairRobustResampler(model, random_state=0).fit_resample(data.features, given, **options)
    assert len(X) == len(y) == 900
    assert set(y) == {"a", "b", "c"}
    linear = FairRobustClassifier(random_state=0).fit(data.features, given, **options)
    assert linear.estimate_.verified.flip_rates.shape == (3, 3)
    assert linear.score(data.features, data.labels) > linear.score(data.features, given)


@quiet
def test_resampled_labels_are_nearer_the_truth(resampled):
    resampler, X, y = resampled
    rows = resampler.sample_indices_
    assert len(y) == 1200
    assert X.tolist() == FEATURES[rows].tolist()
    assert np.mean(y == DATA.labels[rows]) > np.mean(NOISY.labels == DATA.labels) + 0.05
    inside = np.isin(rows, ROWS)
    assert y[inside].tolist() == DATA.labels[rows[inside]].tolist()


@quiet
@pytest.mark.parametrize("kind", ["pandas", "polars", "list"])
def test_resampled_labels_come_back_in_their_container(resampled, kind):
    names = np.array(["no", "yes"])
    verified = np.array([None if value is None else names[value] for value in VERIFIED], dtype=object)
    given = names[NOISY.labels]
    X, y = {
        "pandas": lambda: (
            pd.DataFrame(FEATURES, index=np.arange(1200) + 5),
            pd.Series(pd.Categorical(given), index=np.arange(1200) + 5),
        ),
        "polars": lambda: (pl.DataFrame(FEATURES, schema=list("abc")), pl.Series("label", given)),
        "list": lambda: (FEATURES.tolist(), given.tolist()),
    }[kind]()
    resampler = FairRobustResampler(random_state=0)
    some, labels = resampler.fit_resample(X, y, **GIVEN, verified_labels=verified)
    assert (type(some), type(labels)) == (type(X), type(y))
    assert list(labels) == names[resampled[2]].tolist()
    if kind == "pandas":
        assert labels.dtype == y.dtype
        assert labels.index.equals(some.index)


@pytest.mark.parametrize("model", [SIEVE, FairRobustClassifier(random_state=0)], ids=["sieve", "classifier"])
def test_pipelines_and_searches_pass_them_on(model):
    with config_context(enable_metadata_routing=True):
        wanted = dict.fromkeys(("sensitive_features", "verified_labels", "verified_weight"), True)
        routed = clone(model).set_fit_request(**wanted)
        steps, scoring = make_pipeline(StandardScaler(), routed), fairness_scorer(with_accuracy=True)
        tried = {f"{type(model).__name__.lower()}__fairness": ["equalized_odds", "demographic_parity"]}
        search = GridSearchCV(steps, tried, scoring=scoring, cv=2, error_score="raise")
        search.fit(DATA.features, NOISY.labels, **CHECKED, verified_weight=np.ones(1200))
    assert search.best_estimator_[-1].estimate_.verified.checked.sum() == 150


def test_a_pipeline_of_imbalanced_learn_passes_them_to_the_resampler():
    pytest.importorskip("imblearn")
    from imblearn.pipeline import make_pipeline as make_imbalanced_pipeline

    class Resampler(FairRobustResampler):
        """Defined after imblearn was imported, which adds ``set_fit_resample_request``."""

    with config_context(enable_metadata_routing=True):
        resampler = Resampler(random_state=0)
        wanted = {"sensitive_features": True, "verified_labels": True}
        resampler.set_fit_resample_request(**wanted).set_fit_request(**wanted)
        tried = {"logisticregression__C": [1.0]}
        steps = make_imbalanced_pipeline(resampler, LogisticRegression())
        search = GridSearchCV(steps, tried, cv=2, error_score="raise")
        search.fit(DATA.features, NOISY.labels, **CHECKED)
    fitted = search.best_estimator_
    assert fitted[0].estimator_.estimate_.verified.checked.sum() == 150
    assert accuracy(TEST.labels, fitted.predict(TEST.features)) > 0.6


MISSING = [None] * 1200
BAD = {
    "weights alone": (None, {"verified_weight": np.ones(1200)}, "verified_weight belongs to verified_labels"),
    "class": ([*MISSING[1:], "maybe"], {}, "verified_labels must be among the classes of y"),
    "length": ([1, 0], {}, r"verified_labels must have one value per sample, the shape \(1200,\); got \(2,\)"),
    "empty": (MISSING, {}, "must have a value where somebody checked; all 1200 are missing"),
    "weights": (VERIFIED, {"verified_weight": np.zeros(1200)}, "verified_weight must be finite and above 0"),
    "weight length": (VERIFIED, {"verified_weight": [1.0]}, "verified_weight must have one number per sample"),
}  # fmt: skip


def test_a_clean_ratio_beside_verified_labels_is_refused():
    for model in (SIEVE, FairRobustClassifier()):
        with pytest.raises(InvalidInputError, match=r"got clean_ratio=0\.9 too: pass clean_ratio='auto'"):
            clone(model).set_params(clean_ratio=0.9).fit(DATA.features, NOISY.labels, **CHECKED)


@pytest.mark.parametrize("model", [SIEVE, FairRobustClassifier(), FairRobustResampler(SIEVE)])
@pytest.mark.parametrize("name", BAD)
def test_every_estimator_refuses_bad_verified_labels(model, name):
    verified, options, message = BAD[name]
    fit = getattr(clone(model), "fit_resample" if isinstance(model, FairRobustResampler) else "fit")
    with pytest.raises(InvalidInputError, match=message):
        fit(DATA.features, NOISY.labels, **GIVEN, verified_labels=verified, **options)


def test_an_estimator_that_takes_no_verified_labels_is_named():
    class OnlyGroups(LogisticRegression):
        def fit(self, X, y, sensitive_features=None):
            return super().fit(X, y)

    with pytest.raises(InvalidInputError, match="estimator must take verified_labels in fit"):
        FairRobustResampler(OnlyGroups()).fit_resample(DATA.features, NOISY.labels, **CHECKED)


def test_checkpoints_of_other_checked_labels_are_not_used(tmp_path):
    model, others = clone(SIEVE).set_params(max_iter=1), check_some(DATA, 150, seed=1)

    def probabilities(model, verified):
        model.fit(DATA.features, NOISY.labels, **GIVEN, verified_labels=verified)
        return model.predict_proba(TEST.features)

    first = probabilities(clone(model).set_params(checkpoint_dir=tmp_path), VERIFIED)
    for verified, expected in ((VERIFIED, first), (others, probabilities(model, others))):
        found = probabilities(clone(model).set_params(checkpoint_dir=tmp_path), verified)
        assert found.tolist() == expected.tolist()
