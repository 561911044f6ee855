"""Notions of fairness: every law holds for every entry of the registry, and each is checked sample by sample."""

from pathlib import Path

import fairlearn.metrics as fl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_score, zero_one_loss

import fairsieve
from fairsieve.errors import InvalidInputError, in_command
from fairsieve.metrics import (
    Rates,
    compared_rates,
    disparity,
    disparity_from_table,
    gaps_from_table,
    has_enough,
)
from fairsieve.notions import ANY, NOTIONS, RIGHT, WRONG, Rate, find_notion
from fairsieve.report.text import load_sentences
from fairsieve.sampling.sampler import FairRobustBatchSampler
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import comparisons
from fairsieve.training.compromises import find_rate_gaps
from tests.support.refusals import refused
from tests.support.strategies import predictions

DOCS, SOURCES = Path(__file__).parents[1] / "docs", Path(fairsieve.__file__).parent
NAMES = st.sampled_from(sorted(NOTIONS))
METHODS = st.sampled_from(["to_overall", "between_groups"])
SEEDS = st.integers(0, 2**32 - 1)


# The rates that count one sample, and whether it is a hit of each.
def _literal_equalized_odds(true, said, positive, classes):
    return {(true, other): said == other for other in range(classes)}


def _literal_demographic_parity(true, said, positive, classes):
    return {other: said == other for other in range(classes)}


def _literal_equal_opportunity(true, said, positive, classes):
    return {"recognised": said == positive} if true == positive else {}


def _literal_equal_error_rate(true, said, positive, classes):
    return {"wrong": said != true}


def _literal_predictive_parity(true, said, positive, classes):
    return {"right": true == positive} if said == positive else {}


def literal_disparity(name, labels, guessed, groups, weights, positive, method):
    """Compute a disparity by going through the samples one by one."""
    classes, counts = int(max(labels.max(), guessed.max())) + 1, {}
    for true, said, group, weight in zip(labels, guessed, groups, weights, strict=True):
        for rate, hit in globals()[f"_literal_{name}"](true, said, positive, classes).items():
            for who in (group, "everyone"):
                hits, total = counts.get((rate, who), (0.0, 0.0))
                counts[rate, who] = (hits + weight * hit, total + weight)
    rates = {}
    for (rate, who), (hits, total) in counts.items():
        if total > 0:
            rates.setdefault(rate, {})[who] = hits / total
    apart = [0.0]
    for found in rates.values():
        everyone = found.pop("everyone")
        values = list(found.values())
        away = max(abs(value - everyone) for value in values)
        apart.append(away if method == "to_overall" else max(values) - min(values))
    return max(apart)


def options_of(name, positive):
    return {"pos_label": positive} if NOTIONS[name].needs_positive else {}


@given(NAMES, predictions(classes=3), METHODS, st.integers(0, 2))
def test_disparities_are_those_of_the_samples_counted_one_by_one(name, drawn, method, positive):
    labels, guessed, groups, weights = drawn
    if NOTIONS[name].needs_positive and positive not in {*labels, *guessed}:
        positive = int(labels[0])
    options = {"sensitive_features": groups, "sample_weight": weights, "method": method}
    found = disparity(name, labels, guessed, **options, pos_label=positive)
    expected = literal_disparity(name, labels, guessed, groups, weights, positive, method)
    assert found == pytest.approx(expected)
    metric = getattr(fairsieve, f"{name}_disparity")
    assert metric(labels, guessed, **options, **options_of(name, positive)) == found


@settings(max_examples=20)  # fairlearn takes its time
@given(predictions(), METHODS)
def test_new_notions_have_fairlearns_values(drawn, method):
    labels, guessed, groups, weights = drawn
    given = {"y_true": labels, "y_pred": guessed, "sensitive_features": groups}
    wrong = fl.MetricFrame(metrics=zero_one_loss, **given, sample_params={"sample_weight": weights})
    options = {"sample_weight": weights, "method": method}
    found = fairsieve.equal_error_rate_disparity(**given, **options)
    assert found == pytest.approx(wrong.difference(method=method))
    said = guessed == 1
    if said.any():  # of nobody, scikit-learn's precision is 0, and ours undefined

        def precision(y_true, y_pred, sample_weight):
            return precision_score(y_true, y_pred, sample_weight=sample_weight, zero_division=np.nan)

        those, params = {name: each[said] for name, each in given.items()}, {"sample_weight": weights[said]}
        precise = fl.MetricFrame(metrics=precision, **those, sample_params=params)
        found = fairsieve.predictive_parity_disparity(**given, **options, pos_label=1)
        assert found == pytest.approx(precise.difference(method=method))


@given(NAMES, SEEDS, st.integers(2, 4), st.integers(2, 4))
def test_relabelled_groups_change_nothing(name, seed, classes, groups):
    """Not a disparity, not a gap but the names of its groups, not which groups have enough people."""
    rng = np.random.default_rng(seed)
    table, order = rng.integers(0, 9, (classes, groups, classes)).astype(float), rng.permutation(groups)
    positive = seed % classes
    for method in ("to_overall", "between_groups"):
        options = {"positive": positive, "method": method}
        found, other = (disparity_from_table(each, name, **options) for each in (table, table[:, order]))
        assert found == pytest.approx(other, abs=1e-12)
    gaps = gaps_from_table(table, name, positive=positive)
    assert gaps_from_table(table[:, order], name, positive=positive) == pytest.approx(gaps[:, order])
    enough = has_enough(table, name, 9, positive=positive)
    assert (has_enough(table[:, order], name, 9, positive=positive) == enough[:, order]).all()
    found, other = (find_rate_gaps(each, name, positive, groups) for each in (table, table[:, order]))
    assert [gap.size for gap in found] == [gap.size for gap in other]


@given(NAMES, SEEDS, st.integers(2, 4))
def test_relabelled_classes_change_nothing(name, seed, classes):
    rng = np.random.default_rng(seed)
    table, order = rng.integers(0, 9, (classes, 3, classes)).astype(float), rng.permutation(classes)
    positive = seed % classes
    found = disparity_from_table(table, name, positive=positive)
    other = disparity_from_table(table[order][..., order], name, positive=int(np.argmax(order == positive)))
    assert found == pytest.approx(other, abs=1e-12)


@given(NAMES, SEEDS, st.integers(2, 4), st.integers(1, 3))
def test_derivatives_are_the_change_of_the_rates(name, seed, classes, groups):
    rng = np.random.default_rng(seed)
    table = rng.uniform(1.0, 5.0, (classes, groups, classes))
    rates = compared_rates(name, classes, seed % classes)
    weights, step = rng.normal(size=(len(rates.rates), groups)), rng.normal(size=table.shape)
    moved = [(rates.of(table + sign * 1e-5 * step)[0] * weights).sum() for sign in (1, -1)]
    derivative = rates.derivative(table, weights)
    assert (moved[0] - moved[1]) / 2e-5 == pytest.approx((derivative * step).sum(), abs=1e-6)
    # More of the same people change no rate.
    assert (derivative * table).sum(axis=(0, 2)) == pytest.approx(np.zeros(groups), abs=1e-9)


RATES = st.builds(
    Rate,
    st.sampled_from([ANY, 0, 1]),
    st.sampled_from([ANY, RIGHT, WRONG, 0, 1]),
    st.sampled_from([ANY, 0, 1]),
    st.sampled_from([ANY, 0, 1]),
).filter(lambda rate: rate.of_true in (ANY, rate.true) and rate.of_predicted in (ANY, rate.predicted))


@given(RATES, SEEDS, st.integers(2, 4))
def test_what_is_left_of_a_rate_is_a_rate(rate, seed, classes):
    """Of any rate, whether a notion has it or not; hits are among those who are counted."""
    table = np.random.default_rng(seed).integers(1, 9, (classes, 2, classes)).astype(float)
    left = rate.complement(classes)
    if left != rate:
        (first,), (second,) = (Rates([each]).of(table)[0] for each in (rate, left))
        assert first + second == pytest.approx(np.ones(2))
        assert left.complement(classes) == rate


def test_which_reported_rates_a_notion_compares():
    assert NOTIONS["equal_error_rate"].compares(Rate(ANY, RIGHT), 2)
    assert NOTIONS["equalized_odds"].compares(Rate(0, 1, of_true=0), 2)  # false positives
    assert not NOTIONS["equal_opportunity"].compares(Rate(0, 1, of_true=0), 2)
    assert NOTIONS["predictive_parity"].compares(Rate(1, 1, of_predicted=1), 2)
    assert not NOTIONS["demographic_parity"].compares(Rate(ANY, WRONG), 2)


def test_entries_are_whole():
    """Names, abbreviations and sentences are there once; a title reads as words."""
    for name, notion in NOTIONS.items():
        assert find_notion(name.replace("_", "-")) is notion
        assert notion.sentence.startswith(notion.title.capitalize())
        assert not notion.meaning.endswith(".")
        assert callable(getattr(fairsieve, f"{name}_disparity"))
    for part in ("name", "short", "meaning"):
        assert len({getattr(one, part) for one in NOTIONS.values()}) == len(NOTIONS)


@pytest.mark.parametrize("name", NOTIONS)
def test_what_is_said_of_a_notion_is_what_its_entry_says(name):
    """On pages of runs and audits, and in the glossary; no template and no module of tables says a word of its own."""
    notion = NOTIONS[name]
    said = " ".join(str(load_sentences("fairsieve.tabular", "sentences.j2").notion(name)).split())
    first = f"Fairness here is {notion.title} ({notion.short}): {notion.meaning}. The {notion.short} "
    assert said.startswith(first)
    rest = said.replace(notion.meaning, "").replace(notion.title, "").replace(notion.short, "")
    other = next(one for one in NOTIONS.values() if one is not notion)
    told = " ".join(str(load_sentences("fairsieve.tabular", "sentences.j2").notion(other.name)).split())
    assert rest == told.replace(other.meaning, "").replace(other.title, "").replace(other.short, "")
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    assert f"| A notion of fairness ({notion.short}): {notion.meaning}. |" in glossary
    for path in SOURCES.joinpath("tabular").glob("*.j2"):
        if path.is_file():
            text = path.read_text("utf-8").lower().replace("_", " ").replace("-", " ")
            assert notion.title not in text


def test_names_of_notions_stand_in_few_files():
    """Elsewhere they come from the registry."""
    files = [path for kind in ("py", "j2", "toml") for path in SOURCES.rglob(f"*.{kind}")]
    texts = [path.read_text("utf-8") for path in files]
    assert sum("demographic_parity" in text or "equalized_odds" in text for text in texts) <= 8


@pytest.mark.parametrize("name", [name for name, one in NOTIONS.items() if one.list_comparisons is None])
def test_what_compares_losses_of_cells_refuses_by_name(name):
    cells = Cells.of([0, 0, 1, 1], list("abab"))
    told = f"fairness must be one of equalized_odds, .* got '{name}': FairRobustClassifier and SieveClassifier take it"
    refused(told, comparisons, name, cells)
    refused(told, Plan, cells, 2, fairness=name)
    refused(told, FairRobustBatchSampler, [0, 0, 1, 1], list("abab"), batch_size=2, fairness=name)


def test_a_command_spells_notions_with_dashes():
    told = r"--fairness must be one of equalized-odds, .*'equalized-odds'"
    with in_command(), pytest.raises(InvalidInputError, match=told):
        find_notion("equal-odds")
    with in_command():
        assert find_notion("equalized-odds") is find_notion("equalized_odds")
