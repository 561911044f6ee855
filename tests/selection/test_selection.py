"""Selection"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.literal import literal_selection
from tests.support.strategies import problems, shuffles, untied

import fairsieve
from fairsieve import select
from fairsieve.errors import InvalidInputError

FORMATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
BACKENDS = ["numpy", "torch"]


def chosen(problem, **changes):
    return select(*problem._replace(**changes)).indices.tolist()


@given(problems(), st.sampled_from(FORMATS))
def test_a_selection_is_that_of_algorithm_1(problem, dtype):
    """The selection is that of Algorithm 1 as printed, sample by sample: in every float format, by every backend."""
    losses = torch.from_numpy(problem.losses).to(dtype)
    for values, backend in ((problem.losses, "auto"), (losses, "numpy"), (losses, "torch")):
        ordered = torch.as_tensor(values).double().tolist()
        literal, counts = literal_selection(ordered, *problem[1:])
        found = select(values, *problem[1:], backend=backend)
        assert found.indices.tolist() == literal
        assert found.counts.tolist() == counts.tolist()


@given(problems(), st.sampled_from(FORMATS), st.data())
def test_a_loss_that_is_nan_is_refused(problem, dtype, data):
    """A loss that is NaN is refused, in every float format and by every backend."""
    losses = torch.from_numpy(problem.losses).to(dtype)
    place = data.draw(st.integers(0, len(losses) - 1))
    losses[place] = data.draw(st.sampled_from([np.nan, -np.nan]))
    for backend in BACKENDS:
        with pytest.raises(InvalidInputError, match=f"losses must not be NaN; got 1, the first at {place}"):
            select(*problem._replace(losses=losses), backend=backend)


def breaks(counts, problem, budget):
    """Whether counts break a budget of Eq. 7."""
    total, of_class = counts.sum(), counts.sum(axis=1, keepdims=True)
    return total > budget or (total + counts - problem.ratios * of_class > budget + 1e-9).any()


@given(problems())
def test_a_selection_keeps_to_every_budget_and_fills_it(problem):
    """A selection keeps to every budget, and nothing that it left out could be added."""
    found = select(*problem)
    assert not breaks(found.counts, problem, found.budget)
    for i in set(range(len(problem.losses))) - set(found.indices.tolist()):
        more = found.counts.copy()
        more[problem.labels[i], problem.groups[i]] += 1
        assert breaks(more, problem, found.budget)


@given(problems())
def test_without_ratios_the_lowest_losses_fill_the_budget(problem):
    """Without ratios, as with all groups merged into one, it is the lowest losses that fill the budget."""
    order = np.lexsort((np.arange(len(problem.losses)), problem.losses))
    found = select(*problem._replace(ratios=None))
    assert found.indices.tolist() == sorted(order[: found.budget].tolist())
    assert found.counts.sum() == found.budget
    tensors = select(*problem._replace(losses=torch.from_numpy(problem.losses), ratios=None))
    assert isinstance(found.counts, np.ndarray)
    assert torch.equal(tensors.counts, torch.from_numpy(found.counts))
    assert torch.equal(tensors.indices, torch.from_numpy(found.indices))
    one = np.ones((len(problem.ratios), 1))
    assert chosen(problem, groups=np.zeros_like(problem.groups), ratios=one) == found.indices.tolist()


@given(problems())
def test_only_the_order_of_losses_counts(problem):
    """Only the order of the losses counts: their ranks select the same."""
    ranks = np.unique(problem.losses, return_inverse=True)[1]
    assert chosen(problem, losses=ranks) == chosen(problem)
    assert chosen(untied(problem)) == chosen(problem)


@given(problems(), st.data())
def test_other_names_select_the_same(problem, data):
    """Other names for the classes and the groups, with their ratios, select the same."""
    rows, columns = (data.draw(shuffles(size)) for size in problem.ratios.shape)
    ratios = np.empty_like(problem.ratios)
    ratios[np.ix_(rows, columns)] = problem.ratios
    renamed = {"labels": rows[problem.labels], "groups": columns[problem.groups], "ratios": ratios}
    assert chosen(problem, **renamed) == chosen(problem)


@given(problems().map(untied), st.data())
def test_samples_in_another_order_are_selected_alike(problem, data):
    """Samples in another order, none of equal loss, are selected in that order."""
    order = data.draw(shuffles(len(problem.losses)))
    changed = {name: getattr(problem, name)[order] for name in ("losses", "labels", "groups")}
    moved = chosen(problem, **changed)
    assert sorted(order[moved].tolist()) == chosen(problem)


@given(problems(), st.floats(0.01, 1))
def test_a_higher_clean_ratio_never_selects_fewer(problem, other):
    """A higher clean ratio never selects fewer; without ratios, it keeps all that a lower one selected."""
    low, high = sorted([problem.clean_ratio, other])
    assert len(chosen(problem, clean_ratio=low)) <= len(chosen(problem, clean_ratio=high))
    plain = problem._replace(ratios=None)
    assert set(chosen(plain, clean_ratio=low)) <= set(chosen(plain, clean_ratio=high))


@given(problems(), st.floats(0.01, 1))
def test_what_comes_before_the_first_refusal_stays_selected(problem, other):
    """What comes before the first refusal at a clean ratio is selected at every higher one."""
    low, high = sorted([problem.clean_ratio, other])
    kept = chosen(problem, clean_ratio=low)
    order = np.lexsort((np.arange(len(problem.losses)), problem.losses)).tolist()
    refused = next((place for place, i in enumerate(order) if i not in kept), len(order))
    assert set(order[:refused]) <= set(chosen(problem, clean_ratio=high))


@given(problems().map(untied), st.data())
def test_a_sample_left_out_whose_loss_rises_stays_out(problem, data):
    """Higher losses of samples that were left out change nothing."""
    kept = chosen(problem)
    losses = problem.losses.copy()
    for i in set(range(len(losses))) - set(kept):
        losses[i] += data.draw(st.integers(0, 50))
    assert chosen(problem, losses=losses) == kept


@given(problems().map(untied), st.data())
def test_a_selected_sample_whose_loss_falls_stays(problem, data):
    """A selected sample whose loss falls is still selected."""
    kept = chosen(problem)
    if kept:
        one, losses = data.draw(st.sampled_from(kept)), problem.losses.copy()
        losses[one] -= data.draw(st.integers(0, 50))
        assert one in chosen(problem, losses=losses)


@given(problems(), st.integers(0, 3))
def test_a_class_or_group_of_nobody_changes_nothing(problem, column):
    """A class or a group of nobody changes nothing."""
    classes, groups = problem.ratios.shape
    kept = chosen(problem)
    assert chosen(problem, ratios=np.vstack([problem.ratios, np.eye(groups)[column % groups]])) == kept
    assert chosen(problem, ratios=np.hstack([problem.ratios, np.zeros((classes, 1))])) == kept


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.integers(1, 200))
def test_a_budget_is_within_one_of_its_share(one, other, samples):
    """A budget is a whole number within one of its share, and grows with the clean ratio and the samples."""
    low, high = sorted([one, other])

    def budget(clean_ratio, count):
        return select(np.zeros(count), np.zeros(count, int), np.zeros(count, int), None, clean_ratio).budget

    assert 0 <= budget(low, samples) <= budget(high, samples) <= samples
    assert low * samples - 1 < budget(low, samples) <= low * samples + 1e-6
    assert budget(low, samples) <= budget(low, samples + 1)


# ---- Selection equals Algorithm 1 on every input, and its laws


@pytest.mark.parametrize("n", [5_000, 20_000, 150_000])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_literal_walk_at_every_digit_width(n, seed):
    rng = np.random.default_rng(seed)
    labels, groups = rng.integers(0, 2, n), (rng.random(n) < 0.8).astype(int)
    losses = rng.exponential(size=n).astype(np.float32)
    if seed == 2:
        losses = np.round(losses, 2)  # ties
    ratios = rng.dirichlet([1, 1], 2)
    expected, _ = literal_selection(losses, labels, groups, ratios, 0.9)
    assert fairsieve.select(losses, labels, groups, ratios, 0.9).indices.tolist() == expected


def test_arrays_give_arrays_and_inputs_are_not_changed():
    losses = np.array([0.3, 0.1, 0.2, 0.4])
    losses.setflags(write=False)
    found = fairsieve.select(losses, ["n", "n", "y", "y"], [True, False, True, False], [[0.5, 0.5]] * 2, 1.0)
    assert isinstance(found.indices, np.ndarray)
    assert found.budget == 4
    assert losses.tolist() == [0.3, 0.1, 0.2, 0.4]


def test_integer_and_strided_losses():
    for losses in ([3, 1, 2], np.array([3.0, 0, 1, 0, 2, 0])[::2]):
        assert fairsieve.select(losses, [0] * 3, [0] * 3, [[1.0]], 0.67).indices.tolist() == [1, 2]


def test_no_samples():
    found = fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[0.5, 0.5]] * 2, 0.9)
    assert len(found) == 0
    assert found.counts.tolist() == [[0, 0], [0, 0]]
    assert fairsieve.select([], np.zeros(0, int), np.zeros(0, int), [[1.0]], 0.9).counts.tolist() == [[0]]


RATIOS = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(("arguments", "message"), [
    (([[0.1], [0.2]], [0, 1], [0, 1], RATIOS, 0.9), r"losses must have one value per sample"),
    (([0.1, 0.2], [0, 1], [0, 1], [[1.5, -0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [[1.5, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [[-0.5, 1.0, 0.5]] * 2, 0.9), r"ratios must lie in \[0, 1\]"),
    (([0.1, 0.2], [0, 1], [0, 1], [0.5, 0.5], 0.9), r"ratios must be a table"),
    ((torch.tensor([1j, 0j]), [0, 1], [0, 1], RATIOS, 0.9), r"losses must be real numbers"),
])  # fmt: skip
def test_bad_input_is_named(arguments, message):
    with pytest.raises(fairsieve.errors.InvalidInputError, match=message):
        fairsieve.select(*arguments)


def test_classes_that_are_absent_can_be_named():
    known = {"classes": ["no", "yes"], "group_values": ["a", "b"]}
    found = fairsieve.select([0.1], ["no"], ["a"], RATIOS, 1.0, **known)
    assert found.counts.shape == (2, 2)
    assert fairsieve.select([0.1], [1], [0], RATIOS, 1.0).counts.shape == (2, 2)  # codes need no names
    assert len(fairsieve.select([0.1, 0.2], [-1, 1], [0, 1], RATIOS, 1.0)) == 1  # which these are not
