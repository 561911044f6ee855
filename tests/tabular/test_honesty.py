"""What a run says of a table is true, or it says that it does not know."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas
import pytest

from fairsieve import tabular
from fairsieve.report.page import render_page
from fairsieve.tabular.evaluation import DroppedCell, Share
from fairsieve.tabular.reasons import decide_run, dropping_verdict, main_rates
from fairsieve.tabular.report.files import model_card
from fairsieve.tabular.report.pages import run_document


def table(label, rows, seed=0):
    """Two columns that say what ``label`` makes of them, one that says nothing, and a group."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 3)).round(3)
    frame = pandas.DataFrame(features, columns=["a", "b", "c"])
    frame["sex"] = random.choice(["F", "M"], rows)
    frame["label"] = np.where(label(features, random), "yes", "no")
    return frame


def trained(frame, **settings):
    return tabular.train(frame, label="label", sensitive="sex", max_iter=8, **settings)


def kinds(decision):
    """The kinds of the reasons, by what follows from each."""
    return {reason.kind: reason.outcome for reason in decision.findings}


@pytest.fixture(scope="module")
def noisy():
    """A table with a tenth of its labels wrong, at random, and columns that name people."""

    def label(features, random):
        return (features[:, 0] + features[:, 1] > 0) ^ (random.random(len(features)) < 0.1)

    frame = table(label, 2000)
    frame["customer_id"] = np.arange(2000) % 400 + 7_000_000
    frame["surname"] = [f"Surname{number % 40}" for number in range(2000)]
    frame["town"] = [f"Town{number % 5}" for number in range(2000)]
    return frame


@pytest.fixture(scope="module")
def on_noisy(noisy):
    return trained(noisy)


def test_models_that_flag_nobody_are_not_to_be_used():
    def fraud(features, random):
        return random.random(len(features)) < np.where(features[:, 0] > 0, 0.018, 0.004)

    frame = table(fraud, 4000)
    assert 0.005 < (frame["label"] == "yes").mean() < 0.02
    decision = trained(frame, clean_ratio=1.0).decision
    assert decision.outcome == "do-not-use"
    first = decision.findings[0]
    assert (first.kind, first.facts["label"]) == ("one_label", "no")
    assert [step.kind for step in first.steps] == ["threshold", "rare_label"]


def test_labels_that_are_pure_noise_are_told():
    decision = trained(table(lambda features, random: random.random(len(features)) < 0.5, 3000)).decision
    assert decision.outcome != "use"
    assert "chance" in kinds(decision)


def test_a_column_that_duplicates_the_label_decides(noisy):
    decision = trained(noisy.assign(code=np.where(noisy["label"] == "yes", 7, 3))).decision
    assert decision.outcome == "do-not-use"
    assert "column 'code' duplicates the label" in decision.sentence


def test_where_nobody_knows_no_label_is_counted(on_noisy):
    unknown = dataclasses.replace(
        on_noisy.run.estimate,
        credible=type(on_noisy.run.estimate.credible)(False, "the explanations disagree."),
    )
    run = dataclasses.replace(on_noisy.run, estimate=unknown)
    decision = decide_run(run)
    assert "unknown_labels" in kinds(decision)
    assert "suspects" not in kinds(decision)
    count = f"{len(run.suspects['row']):,} label"
    assert count not in model_card(run, decision)
    assert count not in render_page(run_document(run, decision))


def test_an_audit_of_wrong_and_of_right_labels(noisy):
    audit = tabular.audit(noisy, label="label", sensitive="sex")
    assert audit.decision.outcome == "do-not-use"
    assert kinds(audit.decision)["wrong_labels"] == "do-not-use"
    frame = table(lambda features, _: features[:, 0] > 0, 3000)
    found = tabular.audit(frame, label="label", sensitive="sex")
    assert found.decision.outcome == "use"
    # Never said to a fraction of a percent.
    assert 1 - found.audit.estimate.interval[0] < 0.01
    assert found.decision.findings[0].facts["it"]["most"] == 1


def dropped(most, least):
    """Two groups of 2,000, of whom shares were dropped, with estimated shares of wrong labels."""
    return [
        DroppedCell("yes", name, Share(round(2000 * share), 2000), 0, noise)
        for name, (share, noise) in (("F", most), ("M", least))
    ]


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        (dropped((0.103, 0.05), (0.1, 0.1)), "holds"),  # chance
        (dropped((0.2, 0.2), (0.1, 0.1)), "holds"),  # as many are wrong
        (dropped((0.2, 0.13), (0.1, 0.1)), "fails"),
        (dropped((0.2, 0.05), (0.1, 0.1)), "fails"),
    ],
)
def test_dropping_is_judged_by_the_wrong_labels_and_decides_nothing(on_noisy, cells, status):
    run = dataclasses.replace(on_noisy.run, dropped=cells)
    assert dropping_verdict(run).status == status
    assert kinds(decide_run(run)) == kinds(on_noisy.decision)


@pytest.fixture(scope="module")
def unlike_groups():
    """A seventh of all labels are wrong, at random; few of one group are truly labelled yes."""

    def label(features, random):
        return random.random(len(features)) < 1 / (1 + np.exp(-3 * (features[:, 0] + features[:, 1])))

    frame, random = table(label, 4000), np.random.default_rng(1)
    scarce = (frame["sex"] == "F") & (random.random(4000) < 0.4)
    truth = (frame["label"] == "yes") & ~scarce
    return frame.assign(label=np.where(truth ^ (random.random(4000) < 0.15), "yes", "no"))


def test_where_labels_are_corrected_by_chances_nobody_is_dropped(unlike_groups):
    run = trained(unlike_groups, tolerance=0.05).run
    assert run.estimate.acts
    assert len(run.suspects["row"])
    assert not any(cell.dropped.hits for cell in run.dropped)
    # A cell loses the mean chance of its labels to be wrong, and that is what is told.
    part, wrong = run.problem.train, run.estimate.wrong
    names = list(zip(part.class_names(part.label_codes), part.group_names(part.groups.codes), strict=True))
    lost = pandas.Series(wrong).groupby(pandas.MultiIndex.from_tuples(names)).mean().to_dict()
    assert {(cell.label, cell.group): cell.noise for cell in run.dropped} == pytest.approx(lost)
    assert max(lost, key=lost.get) == ("yes", "F")
    verdict = dropping_verdict(run)
    assert verdict.status == "holds"
    assert "Labels yes of F are doubted most" in verdict.sentence


def test_rows_selected_by_loss_are_counted_beside_what_the_ratio_allows(unlike_groups):
    found = trained(unlike_groups, clean_ratio=0.8)
    verdict = dropping_verdict(found.run)
    assert verdict.status == "fails"
    assert "20 % of all rows were to be dropped" in verdict.sentence
    assert found.decision.outcome != "do-not-use"


@pytest.mark.parametrize(("weight", "warned"), [(0.2, True), (0.3, False)])
def test_a_cell_below_a_quarter_of_its_weight_is_warned_of(on_noisy, weight, warned):
    cells = [dataclasses.replace(cell, weight=1.0) for cell in on_noisy.run.dropped]
    cells[0] = dataclasses.replace(cells[0], weight=weight)
    decision = decide_run(dataclasses.replace(on_noisy.run, dropped=cells))
    assert bool(decision.warnings) == warned
    (verdict,) = (one for one in decision.verdicts if one.name == "weight")
    assert (verdict.status, verdict.value) == ("fails" if warned else "holds", weight)


def test_effective_weights_are_shares_of_weight_over_shares_of_rows(on_noisy):
    weights = [cell.weight for cell in on_noisy.run.dropped]
    people = [cell.dropped.total for cell in on_noisy.run.dropped]
    assert np.average(weights, weights=people) == pytest.approx(1)
    told = [cell["effective_weight"] for cell in on_noisy.metrics["dropped"]]
    assert told == weights


def test_the_rates_are_of_the_label_asked_for():
    random = np.random.default_rng(0)
    frame = table(lambda features, _: features[:, 0] > 0, 1500)
    frame["label"] = random.choice(["low", "mid", "top"], 1500)
    measure, rates = main_rates(trained(frame, positive="top", clean_ratio=1.0).run)
    assert measure.label == "top"
    assert [rate.group for rate in rates] == ["F", "M"]


def test_pages_and_cards_hold_no_values_of_rows(on_noisy, noisy):
    surfaces = (
        render_page(run_document(on_noisy.run, on_noisy.decision)),
        model_card(on_noisy.run, on_noisy.decision),
        str(on_noisy.metrics),
    )
    for text in surfaces:
        assert "Surname1" not in text
        assert "Town1" not in text
        assert str(noisy["a"].iloc[on_noisy.run.suspects["row"][0]]) not in text
        assert "7000001" not in text.replace(",", "")


def test_the_stored_model_is_named_everywhere(on_noisy, tmp_path):
    folder = on_noisy.save(tmp_path / "run")
    assert on_noisy.metrics["model"]["holds"] == "fair model"
    for name in ("report.html", "card.md"):
        assert "model.skops holds: the fair model" in (folder / name).read_text(encoding="utf-8")


def test_advice_for_data_frames_names_parameters(on_noisy):
    told = " ".join(on_noisy.decision.next_steps)
    assert "tabular.review(" in told
    assert "--" not in told


def test_the_card_says_how_to_load_the_model(on_noisy, tmp_path, monkeypatch):
    monkeypatch.chdir(on_noisy.save(tmp_path / "run"))
    code = (tmp_path / "run" / "card.md").read_text(encoding="utf-8").partition("```python\n")[2]
    names: dict[str, object] = {}
    exec(code.partition("```")[0], names)
    assert names["model"].classes_.tolist() == ["no", "yes"]


def test_columns_are_shown_when_asked_for_but_never_names(on_noisy, noisy):
    asked = dataclasses.replace(on_noisy.run.asked, show_columns=True)
    problem = dataclasses.replace(on_noisy.run.problem, asked=asked)
    page = render_page(run_document(dataclasses.replace(on_noisy.run, problem=problem), on_noisy.decision))
    assert "this page holds personal data" in page
    assert "Town1" in page
    assert "Surname1" not in page
    assert "7000001" not in page.replace(",", "")
