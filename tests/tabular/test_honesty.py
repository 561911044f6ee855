"""What a run says of a table is true, or it says that it does not know."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas
import pytest

from fairsieve import tabular
from fairsieve.tabular.dropped import DroppedCell
from fairsieve.tabular.evaluation import Share, widest_gap
from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.report.card import model_card
from fairsieve.tabular.report.phrases import estimate_sentence, headline, kept_sentence, suspects_sentence
from fairsieve.tabular.report.story import run_document
from fairsieve.tabular.report.verdicts import dropping_verdict


def table(label, rows, seed=0):
    """Two columns that say what ``label`` makes of them, one that says nothing, and a group."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 3)).round(3)
    frame = pandas.DataFrame(features, columns=["a", "b", "c"])
    frame["sex"] = random.choice(["F", "M"], rows)
    frame["label"] = np.where(label(features, random), "yes", "no")
    return frame


def trained(frame, **settings):
    return tabular.train(frame, label="label", sensitive="sex", epochs=8, **settings)


@pytest.fixture(scope="module")
def noisy():
    """A table with a tenth of its labels wrong, at random."""

    def label(features, random):
        return (features[:, 0] + features[:, 1] > 0) ^ (random.random(len(features)) < 0.1)

    return table(label, 2000)


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
    assert decision.sentence.startswith(
        "Do not use this model: both models predict no for everyone on the test part"
    )
    assert re.match(r"Predict yes from a lower probability on: --threshold balanced", decision.next_steps[0])
    assert "Collect more of the rare label: only 1.3 %" in decision.next_steps[1]


def test_labels_that_are_pure_noise_are_told():
    decision = trained(table(lambda features, random: random.random(len(features)) < 0.5, 3000)).decision
    assert decision.outcome != "use"
    assert any("the labels apart better than chance" in reason for reason in decision.reasons)


def test_a_column_that_duplicates_the_label_is_a_reason_and_no_second_note(noisy):
    result = trained(noisy.assign(code=np.where(noisy["label"] == "yes", 7, 3)))
    assert result.decision.outcome == "do-not-use"
    assert "column 'code' duplicates the label" in result.decision.sentence
    assert not [note for note in result.decision.untold(result.run.notes) if "'code'" in note]


def test_suspects_that_were_trained_on_are_explained(on_noisy):
    run = on_noisy.run
    kept = run.suspects["epochs_kept"] == len(run.history)
    assert kept.any()
    assert kept_sentence(run).startswith(
        f"{kept.sum()} of these rows were trained on all the same: a row is left out"
    )
    assert kept_sentence(run) in str(run_document(run, on_noisy.decision))
    none = {name: column[~kept] for name, column in run.suspects.items()}
    assert kept_sentence(dataclasses.replace(run, suspects=none)) == ""


def test_no_suspects_are_in_no_file(on_noisy):
    run = on_noisy.run
    assert "`suspects.csv` lists them" in model_card(run, on_noisy.decision)
    none = dataclasses.replace(run, suspects={name: column[:0] for name, column in run.suspects.items()})
    assert suspects_sentence(none) == "no label looks wrong"
    assert "suspects.csv" not in model_card(none, decide_run(none)).replace("suspects.csv lists", "")


def test_every_surface_says_that_systematic_errors_do_not_show(on_noisy):
    run, decision = on_noisy.run, on_noisy.decision
    assert run.estimate.credible
    assert re.match(r"at most \.\d{3} of the labels are right: about \d", estimate_sentence(run.estimate))
    page, card = str(run_document(run, decision)), model_card(run, decision)
    terminal = " ".join(decision.reasons)
    for text in (estimate_sentence(run.estimate), page, card, terminal):
        assert "wrong systematically, by a column or for one group, do not show" in text
    told = on_noisy.metrics["estimate"]
    assert told["covers"] == "labels wrong at random"
    assert "systematically" in told["reason"]


def test_where_nobody_knows_no_label_is_counted(on_noisy):
    unknown = dataclasses.replace(
        on_noisy.run.estimate,
        credible=type(on_noisy.run.estimate.credible)(False, "the explanations disagree."),
    )
    run = dataclasses.replace(on_noisy.run, estimate=unknown)
    count = f"{len(run.suspects['row']):,} label"
    for text in (headline(run), suspects_sentence(run), model_card(run, decide_run(run))):
        assert count not in text
        assert "hich labels are wrong cannot be known" in text
    assert not any(count in reason for reason in decide_run(run).reasons)


def test_audit_and_train_say_why_their_suspects_differ(noisy, on_noisy):
    audit = tabular.audit(noisy, label="label", sensitive="sex")
    assert audit.decision.outcome == "do-not-use"
    assert any("fairsieve train may list others: " in reason for reason in audit.decision.reasons)
    assert "fairsieve audit may list others: " in str(run_document(on_noisy.run, on_noisy.decision))


def test_no_wrong_labels_is_never_said_to_a_fraction_of_a_percent():
    frame = table(lambda features, _: features[:, 0] > 0, 3000)
    found = tabular.audit(frame, label="label", sensitive="sex")
    assert 1 - found.audit.estimate.interval[0] < 0.01
    assert "up to 1 % of them could be wrong at random without" in estimate_sentence(found.audit.estimate)
    assert found.decision.sentence.startswith(
        "Nothing speaks against using the labels as they are: no wrong labels"
    )


def dropped(most, least):
    """Two groups of 2,000, of whom shares were dropped, with estimated shares of wrong labels."""
    return [
        DroppedCell("yes", name, Share(round(2000 * share), 2000), 0, noise)
        for name, (share, noise) in (("F", most), ("M", least))
    ]


@pytest.mark.parametrize(
    ("cells", "status", "words"),
    [
        (
            dropped((0.103, 0.05), (0.1, 0.1)),
            "holds",
            "0.3 points apart (95 % interval −2 to 2, which may be chance).",
        ),
        (
            dropped((0.2, 0.2), (0.1, 0.1)),
            "holds",
            "estimated wrong labels among them, 20 % and 10 %, explain it.",
        ),
        (dropped((0.2, 0.13), (0.1, 0.1)), "fails", "13 % and 10 %, explain 3 points of it."),
        (dropped((0.2, 0.05), (0.1, 0.1)), "fails", "5.0 % and 10 %, explain 0 points of it."),
    ],
)
def test_dropping_is_judged_in_words_that_fit(on_noisy, cells, status, words):
    verdict = dropping_verdict(dataclasses.replace(on_noisy.run, dropped=cells))
    assert verdict.status == status
    assert words in verdict.sentence


def test_the_headline_is_about_the_label_asked_for():
    random = np.random.default_rng(0)
    frame = table(lambda features, _: features[:, 0] > 0, 1500)
    frame["label"] = random.choice(["low", "mid", "top"], 1500)
    run = trained(frame, positive="top", clean_ratio=1.0).run
    assert "widest gap: plain model, true-positive rate of top, " in headline(run)
    widest = widest_gap(run.measures, "equalized_odds", 2)
    assert widest.measure.name != "true_positive_rate of top"
    assert f"; over all labels, {widest.measure.title}, " in headline(run)
