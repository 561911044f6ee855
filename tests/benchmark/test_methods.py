"""What every method promises, and what each exists for."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from fairsieve import Samples
from fairsieve.benchmark.methods import Method, Trained, TrainingInput
from fairsieve.benchmark.problems import make_problem, measure
from fairsieve.benchmark.run import choose, pick
from fairsieve.data import flip_margin, flip_uniform, load_authors_arrays, make_synthetic, synthetic_splits
from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS
from fairsieve.report.page import Look
from fairsieve.training.trainer import Settings
from fairsieve_reproduction.methods.noise_losses import estimate_noise_rates
from fairsieve_reproduction.methods.registry import METHODS, find_methods
from fairsieve_reproduction.methods.variants import authors_prefix, exact_selection

SHORT = Settings(clean_ratio=0.9, epochs=8, warmup_epochs=2, batch_size=50)
QUICK = {"game_epochs": 60}
EVERY = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
ARRAYS = Path(__file__).parents[3] / "shared" / "authors-arrays"


@pytest.fixture(scope="module")
def data():
    clean = make_synthetic(200, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture(scope="module")
def validation():
    return make_synthetic(60, seed=1)


def train(method, data, validation=None, settings=SHORT, seed=0, **options):
    own = QUICK if method.name.startswith("fr-train") else {}
    given = TrainingInput(data=data, settings=settings, seed=seed, validation=validation)
    return method.fit(given, own | options)


@EVERY
def test_repeatable_for_a_seed_and_inputs_are_not_changed(method, data, validation):
    arrays = [getattr(s, name) for s in (data, validation) for name in ("features", "labels", "groups")]
    before = [array.copy() for array in arrays]
    one, two = (train(method, data, validation, seed=4) for _ in range(2))
    assert isinstance(one, Trained)
    assert one.predict(data).tolist() == two.predict(data).tolist()
    assert one.indices.tolist() == two.indices.tolist()
    assert (np.diff(one.indices) > 0).all()
    assert set(one.indices.tolist()) <= set(range(len(data)))
    assert all((array == copy).all() for array, copy in zip(arrays, before, strict=True))


@EVERY
def test_string_labels(method, data, validation):
    def named(samples):
        labels = np.where(samples.labels == 1, "yes", "no")
        return Samples(samples.features, labels, np.where(samples.groups == 1, "m", "f"))

    found = train(method, named(data), named(validation)).predict(named(data))
    plain = train(method, data, validation).predict(data)
    assert set(found) <= {"yes", "no"}
    assert (found == "yes").tolist() == (plain == 1).tolist()


@EVERY
@pytest.mark.parametrize("what", ["groups", "classes"])
def test_three_groups_or_classes_or_a_clear_refusal(method, data, validation, what):
    def changed(samples):
        first, labels, groups = samples.features[:, 0], samples.labels, samples.groups
        if what == "groups":
            groups = np.where(first > 1, "c", np.where(groups == 1, "a", "b"))
        else:
            labels = np.digitize(first + labels, [-1.0, 1.5])
        return Samples(samples.features, labels, groups)

    try:
        fitted = train(method, changed(data), changed(validation))
    except InvalidInputError as error:
        assert what in str(error)
        assert getattr(method, f"most_{what}") == 2
    else:
        assert set(fitted.predict(changed(data))) <= {0, 1, 2}


@EVERY
def test_an_empty_cell_and_one_batch(method, data, validation):
    keep = ~((data.labels == 1) & (data.groups == 0))
    settings = Settings(clean_ratio=0.9, epochs=4, warmup_epochs=1, batch_size=10_000)
    assert set(train(method, data.take(keep), validation, settings).predict(data)) <= {0, 1}


def test_methods_by_name():
    assert [m.name for m in find_methods("lr,fairsieve")] == ["lr", "fairsieve"]
    assert [m.name for m in find_methods("default")][:2] == ["plain", "fairsieve"]
    assert len(find_methods("all")) == len(METHODS)


@EVERY
def test_a_notion_is_served_or_refused_by_name(method, data, validation):
    for notion in NOTIONS.values():
        asked = replace(SHORT, fairness=notion.name)
        if notion.name in method.notions:
            assert set(train(method, data, validation, asked).predict(data)) <= {0, 1}
        else:
            told = f"{method.name}|{notion.title}".replace("+", r"\+")
            with pytest.raises(InvalidInputError, match=f"({told}) .*({told}).* Use a method that can"):
                train(method, data, validation, asked)


# What each method exists for, over a few draws of the synthetic data.


@cache  # several methods are compared with LR and ITLM
def scores(name, *, noise, fairness="equalized_odds", **options):
    """Mean accuracy and disparity on clean test data."""
    values = []
    for seed in range(2):
        parts = synthetic_splits(seed)
        data = parts.train.with_labels(noise(parts.train, seed))
        settings = Settings(fairness=fairness, clean_ratio=0.9, epochs=450)
        given = TrainingInput(data=data, settings=settings, seed=seed, validation=parts.validation)
        found = measure(METHODS[name].fit(given, options).predict(parts.test), parts.test)
        values.append((found["accuracy"], found[fairness]))
    return np.mean(values, axis=0)


def clean(train, seed):
    return train.labels


def aimed(train, seed):
    return flip_margin(train, 0.1, among=train.groups == 1).labels


RATES = ((0.1, 0.1), (0.4, 0.1))  # of classes and groups


def by_group(train, seed):
    return flip_uniform(train, RATES, seed=seed).labels


def test_itlm_gains_accuracy_under_flips():
    assert scores("itlm", noise=aimed)[0] > scores("lr", noise=aimed)[0] + 0.04


@pytest.mark.parametrize(
    "name", ["fairbatch", "penalty", "reweighing", "exponentiated-gradient", "threshold-optimizer"]
)
def test_fair_methods_lower_the_disparity_on_clean_labels(name):
    plain = scores("lr", noise=clean)
    fair = scores(name, noise=clean, **({"penalty_weight": 10.0} if name == "penalty" else {}))
    assert fair[1] < plain[1] * 0.6
    assert fair[0] > plain[0] - 0.03


@pytest.mark.parametrize(
    "name", ["itlm-fairbatch", "itlm-penalty", "itlm+penalty-fairbatch", "itlm+penalty-penalty"]
)
def test_two_step_methods_are_fairer_than_cleaning_and_more_accurate_than_plain(name):
    found = scores(name, noise=aimed)
    assert found[1] < scores("itlm", noise=aimed)[1]
    assert found[0] > scores("lr", noise=aimed)[0]


@pytest.mark.parametrize("name", ["sample-selection", "sample-selection-authors", "fr-train"])
def test_the_method_and_fr_train_are_fair_and_accurate_under_flips(name):
    found, plain, itlm = (scores(each, noise=aimed) for each in (name, "lr", "itlm"))
    assert found[0] > plain[0] + 0.03
    assert found[1] < min(plain[1], itlm[1]) / 2


def test_fr_train_has_two_settings_of_one_game(data, validation):
    ours, published = (METHODS[name] for name in ("fr-train", "fr-train-published"))
    given = TrainingInput(data=data, settings=SHORT, seed=0, validation=validation)
    one, other = (each.train(given, game_epochs=700).predict(data) for each in (ours, published))
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize("name", ["surrogate-loss", "group-peer-loss"])
def test_losses_for_noise_of_each_group_undo_what_it_does(name):
    """The setting of Wang, Liu and Levy: rates that depend on class and group. Known rates bring fairness back."""
    noisy, corrected = scores("plain", noise=by_group), scores(name, noise=by_group, mu=10.0, rates=RATES)
    assert corrected[1] < noisy[1] / 2
    assert corrected[0] > noisy[0] - 0.02


def test_noise_rates_are_estimated_where_some_labels_are_certain():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 1)) * 4
    sure = Samples(x, (x[:, 0] > 0).astype(int), rng.integers(0, 2, 6000))
    found = estimate_noise_rates(sure.with_labels(flip_uniform(sure, RATES, seed=0).labels))
    assert found == pytest.approx(np.array(RATES), abs=0.06)


def test_learning_to_reweight_keeps_accuracy_under_many_flips():
    """Ren et al.: most labels of a class flipped to the other, with a small clean validation set."""

    def skewed(train, seed):
        return flip_uniform(train, {(1, 0): 0.5, (1, 1): 0.5}, seed=seed).labels

    assert scores("learning-to-reweight", noise=skewed)[0] > scores("plain", noise=skewed)[0] + 0.02


# Choosing hyperparameters, and what methods are given.


def test_tuning_takes_the_fairest_of_the_accurate():
    """Three made-up candidates, by their share of wrong predictions in either group."""
    drawn = make_synthetic(300, seed=0)
    data = Samples(np.column_stack([drawn.labels, drawn.groups]), drawn.labels, drawn.groups)

    def train(given, *, wrong):
        def predict(samples):
            truth, groups = samples.features.T.astype(int)
            is_wrong = np.random.default_rng(0).random(len(truth)) < np.array(wrong)[groups]
            return np.where(is_wrong, 1 - truth, truth)

        return Trained(predict=predict, indices=np.arange(len(given.data)))

    accurate, poor, fair = (0.1, 0.0), (0.5, 0.5), (0.02, 0.02)
    candidates = {"wrong": (accurate, poor, fair)}
    method = Method("stub", "stub", Look("grey"), "fair", train, candidates=candidates)
    assert choose(method, TrainingInput(data=data, settings=Settings(), seed=0)) == {"wrong": fair}


def test_fairness_comes_first_among_those_close_to_the_best_accuracy():
    accuracies = np.array([[0.70, 0.66, 0.60]])
    assert pick(accuracies, np.array([[0.2, 0.1, 0.0]])) == 1  # .1 below the best is too far
    assert pick(accuracies, np.array([[0.1, 0.1, 0.0]])) == 0  # of equally fair ones the default
    assert pick(accuracies[:, ::-1], np.array([[0.0, 0.1, 0.2]])) == 1


def test_problems_flip_training_labels_only():
    problem, parts = make_problem("synthetic", "label", 0.1, 2), synthetic_splits(2)
    assert (problem.train.labels != parts.train.labels).sum() == problem.flipped.sum() == 200
    assert (problem.test.labels == parts.test.labels).all()
    assert (problem.clean_validation.labels == parts.validation.labels).all()
    assert (problem.noisy_validation.labels != parts.validation.labels).sum() == 20


# The authors' code.


def literal_prefix(losses, data, ratios, clean_ratio):
    """Walk as their code does: stop once a budget is full, tested before a sample is taken."""
    budget, taken, used = int(clean_ratio * len(losses)), [], np.zeros((2, 2))
    for i in np.argsort(losses, kind="stable"):
        if len(taken) >= budget or not (used < budget).all():
            break
        label, group = data.cells.label_codes[i], data.cells.group_codes[i]
        used += 1
        used[label] -= ratios[label]
        used[label, group] += 1
        taken.append(i)
    return sorted(taken)


def random_problems(count, least, most):
    """Losses, data, ratios and a clean ratio of so many problems."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        labels, groups = rng.integers(0, 2, (2, int(rng.integers(least, most))))
        data = Samples(labels[:, None], labels, groups, classes=[0, 1], group_values=[0, 1])
        share = rng.random(2)
        ratios = np.column_stack([share, 1 - share])
        yield rng.random(len(labels)), data, ratios, float(rng.uniform(0.3, 1))


def test_the_prefix_is_the_authors_walk_on_random_problems():
    for problem in random_problems(50, 10, 200):
        assert authors_prefix(*problem).tolist() == literal_prefix(*problem)


def test_the_exact_knapsack_is_what_trying_all_selections_finds():
    for losses, data, ratios, ratio in random_problems(25, 4, 11):
        n, labels, groups = len(losses), data.labels, data.groups
        budget, profits, best = int(ratio * n + 1e-9), losses.max() - losses, 0.0
        for taken in product([0, 1], repeat=n):
            chosen = np.array(taken, bool)
            cells = np.zeros((2, 2))
            np.add.at(cells, (labels[chosen], groups[chosen]), 1)
            used = [cells.sum(), *(cells.sum() + cells - ratios * cells.sum(axis=1, keepdims=True)).flat]
            if max(used) <= budget + 1e-9:
                best = max(best, profits[chosen].sum())
        found = exact_selection(losses, data, ratios, ratio)
        assert profits[found].sum() == pytest.approx(best)


@pytest.mark.skipif(not ARRAYS.is_dir(), reason="the authors' arrays are not part of the project")
def test_300_steps_on_the_authors_arrays_select_what_their_rule_selects():
    """Every selection after the warm-up is a pure prefix of the losses, and that of the text often is not."""
    parts, noisy = load_authors_arrays(ARRAYS)
    data, settings = parts.train.with_labels(noisy["general"]), Settings(clean_ratio=0.9, epochs=400)
    given = TrainingInput(data=data, settings=settings, seed=0)
    theirs = METHODS["sample-selection-authors"].train(given)
    assert theirs.trace["prefix_differences"] == [0] * 300
    ours = METHODS["sample-selection-authors"].train(given, selector="greedy")
    assert 0 < sum(count > 0 for count in ours.trace["prefix_differences"]) < 300
    loop = METHODS["sample-selection"].train(given)
    # The compiled loop takes the same steps.
    assert (loop.predict(parts.test) == ours.predict(parts.test)).mean() > 0.999
    found = measure(theirs.predict(parts.test), parts.test)
    told_by_the_paper = pytest.approx((0.727, 0.064), abs=0.02)
    assert (found["accuracy"], found["equalized_odds"]) == told_by_the_paper
