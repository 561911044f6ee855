"""What weights are foretold to bring and cost, beside a version that foretells it sample by sample."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import FairRobustBatchSampler, SamplingMethod
from fairsieve.sampling import forecast
from fairsieve.sampling.doubt import Doubt, shares_of_classes
from fairsieve.sampling.forecast import ABOUT, POWERS, PRICE, Forecast
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

SEEDS = st.integers(0, 10**6)
FAIRNESS = ["equalized_odds", "equal_opportunity", "demographic_parity"]


def draw(rng, classes, groups, samples=60):
    """Labels, groups and logits; every cell may be rare or empty."""
    labels = np.r_[np.arange(classes), rng.integers(classes, size=samples)]
    columns = rng.choice(groups, size=len(labels), p=rng.dirichlet(np.ones(groups)))
    return labels, columns, rng.normal(0, rng.choice([0.3, 1.0, 4.0]), (len(labels), classes))


def new_plan(labels, columns, fairness="equalized_odds", groups=None):
    """A plan in which labels are doubted and powers foretold."""
    values = list(range(int(columns.max()) + 1)) if groups is None else list(range(groups))
    cells = Cells.of(labels, columns, group_values=values)
    return Plan(cells, 8, fairness=fairness, step_size=None, warmup_epochs=0, clean_ratio=1.0)


def literal_forecast(plan, logits, columns, compared):
    """Gaps and costs under each power, from sums over samples; logits as under natural weights."""
    counts = plan.cell_counts.astype(float)
    groups = range(counts.shape[1])
    natural = np.exp(logits - logits.max(axis=1, keepdims=True))
    natural /= natural.sum(axis=1, keepdims=True)
    gaps, costs = [], []
    for power in POWERS:
        weighted = counts.copy()
        for y in compared:
            share = [(counts[y, z] / counts[y].sum()) ** power if counts[y, z] else 0.0 for z in groups]
            weighted[y] = np.array(share) / sum(share) * counts[y].sum()
        lift = np.log(shares_of_classes(weighted)) - np.log(shares_of_classes(counts))
        guess = [int((row + lift[:, z]).argmax()) for row, z in zip(logits, columns, strict=True)]
        lost = natural.max(axis=1) - natural[np.arange(len(guess)), guess]
        costs.append(lost.mean() if power < 1 else 0.0)
        widths = []
        for y in compared:
            rates = []
            for z in groups:
                own = [(p[y], g == y) for p, g, c in zip(natural, guess, columns, strict=True) if c == z]
                own = [(1.0, hit) for _, hit in own] if plan.comparisons.by_group else own
                if own:
                    rates.append(sum(p * hit for p, hit in own) / sum(p for p, _ in own))
            widths.append(max(rates) - min(rates))
        gaps.append(np.mean(widths))
    return np.array([gaps, costs])


@given(SEEDS, st.integers(2, 4), st.integers(1, 3), st.sampled_from(FAIRNESS))
def test_powers_are_foretold_as_sample_by_sample(seed, classes, groups, fairness):
    """Gaps, costs and the chosen power are those of the literal version, whatever shares were trained on."""
    rng = np.random.default_rng(seed)
    classes = 2 if fairness != "equalized_odds" else classes
    labels, columns, logits = draw(rng, classes, groups)
    plan = new_plan(labels, columns, fairness, groups)
    compared = np.flatnonzero(plan.balance.compared)
    trained = shares_of_classes(rng.uniform(1, 50, plan.cells.shape))
    natural = shares_of_classes(plan.cell_counts.astype(float))
    outputs = logits + np.log(trained / natural).T[columns]
    found = Forecast(plan, momentum=0.5)
    found.look(torch.from_numpy(outputs), trained)
    power = found.choose(found.table)
    wanted = literal_forecast(plan, logits, columns, compared)
    assert found.averages == pytest.approx(wanted, abs=1e-5)
    losses = found.averages[0] + PRICE * found.averages[1]
    assert power == POWERS[losses <= losses.min() + ABOUT + 1e-9].min()
    assert found.choose(np.zeros_like(found.table)) == power  # nothing new is foretold


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_outputs_of_half_precision_foretell_the_same(kind):
    """Numbers that a half holds exactly give the tables of whole precision, and of one logit those of two."""
    labels, columns, logits = draw(np.random.default_rng(3), 2, 2)
    outputs = torch.from_numpy(np.column_stack([0 * logits[:, 0], logits.round()[:, 1]])).float()
    tables = []
    for given_outputs in (outputs, outputs.to(kind), outputs.to(kind)[:, 1]):
        plan = new_plan(labels, columns, groups=2)
        tables.append(Forecast(plan, 0.5))
        tables[-1].look(given_outputs, Doubt(plan).shares)
    assert all((one.table == tables[0].table).all() for one in tables[1:])


@given(SEEDS, st.integers(2, 4), st.integers(1, 4))
def test_workers_add_up_what_one_process_foretells(seed, classes, parts):
    """The tables of parts add up to that of all, to the last digit, and each part takes its own of the same samples."""
    rng = np.random.default_rng(seed)
    labels, columns, logits = draw(rng, classes, 2, samples=300)
    outputs = torch.from_numpy(logits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast, "ENOUGH", int(rng.integers(20, 400)))
        whole = Forecast(new_plan(labels, columns, groups=2), 0.5)
        shares = Doubt(whole.plan).shares
        whole.look(outputs[whole.samples], shares)
        edges, total, taken = np.sort(rng.integers(0, len(labels), parts - 1)).tolist(), 0, []
        for first, last in zip([0, *edges], [*edges, len(labels)], strict=True):
            own = slice(first, last)
            cells = Cells.of(labels[own], columns[own], classes=range(classes), group_values=[0, 1])
            plan = new_plan(labels, columns, groups=2)
            plan.cells = cells  # a worker's own samples, and the counts of all
            part = Forecast(plan, 0.5, first)
            part.look(outputs[own][part.samples], shares)
            total = total + part.table
            taken += (part.samples + first).tolist()
    assert taken == whole.samples.tolist()
    assert (total == whole.table).all()


def test_weights_are_strong_where_they_cost_nothing_and_weak_where_they_do():
    """Where groups say nothing about classes α is .6, and nearer to 1 where the group gives the class away."""
    rng, powers = np.random.default_rng(0), {}
    columns = (rng.random(4000) < 0.2).astype(int)
    for name, odds in {"alike": (1.0, 1.0), "told": (19.0, 1 / 19)}.items():
        odds = np.array(odds)[columns]
        labels = (rng.random(4000) < odds / (1 + odds)).astype(int)
        sampler = FairRobustBatchSampler(labels, columns, 50, warmup_epochs=0, clean_ratio=1.0)
        sampler.update(torch.from_numpy(0.8 * labels + rng.normal(-0.4, 1, 4000) + np.log(odds)))
        powers[name] = sampler.plan.balance.powers
    assert (powers["told"] > powers["alike"]).all()
    assert powers["alike"].tolist() == [0.6, 0.6]


@pytest.mark.parametrize("missing", [False, True])
def test_where_nothing_is_foretold_the_power_is_the_middle_one(missing):
    """Losses alone foretell nothing, outputs do, also where groups are missing, and a named power stays."""
    labels, groups = np.tile([0, 1], 60), np.array(["a", "a", "a", "b"] * 30, object)
    groups[::7] = None if missing else "a"
    logits = torch.randn(120, generator=torch.Generator().manual_seed(1))
    for method, wanted in ((None, 0.75), (SamplingMethod(balance=0.3), 0.3)):
        sampler = FairRobustBatchSampler(labels, groups, 10, warmup_epochs=0, method=method)
        sampler.update_losses(torch.rand(120))
        assert sampler.plan.balance.powers.tolist() == [wanted] * 2
        list(sampler)
        sampler.update(logits)
        assert (sampler.plan.balance.powers.tolist() == [wanted] * 2) == (method is not None)


def test_a_pass_over_what_is_stale_foretells_once():
    """``refresh`` runs the model over the forecast's samples as well, the first time; states hold what it said."""
    labels, groups = np.tile([0, 1], 60), np.array(["a", "a", "a", "b"] * 30)
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(2))
    model = torch.nn.Linear(3, 2)
    sampler, again = (FairRobustBatchSampler(labels, groups, 10, warmup_epochs=1) for _ in range(2))
    for epoch in range(3):
        sampler.refresh(model, x)
        sampler.update()
        for batch in sampler.batches():
            sampler.observe(batch, model(x[batch]))
        assert (sampler.forecast.averages is not None) == (epoch > 0)
    whole = FairRobustBatchSampler(labels, groups, 10, warmup_epochs=0)
    whole.update(model, x)
    assert sampler.forecast.averages == pytest.approx(whole.forecast.averages, abs=1e-6)
    again.load_state_dict(sampler.state_dict())
    assert (again.forecast.averages == sampler.forecast.averages).all()
