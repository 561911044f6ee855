"""What a run says of a table is true, or it says that it does not know."""

import html
import json
import re

import numpy as np
import pandas
import pytest

from fairsieve import tabular
from fairsieve.data import flip_margin, make_synthetic
from fairsieve.tabular.decision import say


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


def test_labels_that_are_pure_noise_are_told():
    decision = trained(table(lambda features, random: random.random(len(features)) < 0.5, 3000)).decision
    assert decision.usable == "do-not-use"
    assert kinds(decision)["useless"] == "do-not-use"
    assert decision.outcome != "use-fair"


def test_a_single_test_row_decides_nothing(noisy):
    result = trained(noisy, test=0.0005, clean_ratio=0.95)
    decision = result.decision
    assert decision.outcome == "cannot-tell"
    assert kinds(decision)["one_label_of_few"] == "cannot-tell"
    assert {one.name: one.status for one in decision.verdicts}["accuracy"] == "cannot tell"
    assert "No two groups have enough people to be compared. As measured, accuracy" in decision.sentence
    # A disparity that nobody measured is no disparity of 0.
    intervals = [result.metrics[name]["disparity"]["interval"] for name in ("plain", "fair", "change")]
    assert intervals == [[0.0, 1.0], [0.0, 1.0], [-1.0, 1.0]]


def test_a_column_that_duplicates_the_label_decides(noisy):
    decision = trained(noisy.assign(code=np.where(noisy["label"] == "yes", 7, 3)), test=0.2).decision
    assert decision.usable == "do-not-use"
    assert "column 'code' duplicates the label" in decision.sentence


def test_an_audit_of_wrong_and_of_right_labels(noisy):
    audit = tabular.audit(noisy, label="label", sensitive="sex")
    assert audit.decision.outcome == "do-not-use"
    assert kinds(audit.decision)["wrong_labels"] == "do-not-use"
    frame = table(lambda features, _: features @ [4, 3, 2] > 0, 3000)
    found = tabular.audit(frame, label="label", sensitive="sex")
    assert found.decision.outcome == "use"
    # Never said to a fraction of a percent.
    assert 1 - found.audit.estimate.interval[0] < 0.01
    assert "up to 1 % of them" in found.decision.sentence


def test_labels_are_judged_by_the_share_that_is_told():
    def label(features, random):
        truth = features @ [4, 3, 2] + 0.3 * random.logistic(size=len(features)) > 0
        return truth ^ (random.random(len(features)) < 0.008)

    found = tabular.audit(table(label, 3000, seed=3), label="label", sensitive="sex")
    told = found.metrics["estimate"]
    assert told["clean_ratio"] < 0.99 < 1 - told["share_wrong"]
    assert found.decision.outcome == "use"
    assert "about 0.9 % of the labels look wrong" in found.decision.sentence


@pytest.fixture(scope="module")
def unlike_groups():
    """A seventh of all labels are wrong, at random; few of one group are truly labelled yes."""

    def label(features, random):
        return random.random(len(features)) < 1 / (1 + np.exp(-3 * (features[:, 0] + features[:, 1])))

    frame, random = table(label, 4000), np.random.default_rng(1)
    scarce = (frame["sex"] == "F") & (random.random(4000) < 0.4)
    truth = (frame["label"] == "yes") & ~scarce
    return frame.assign(label=np.where(truth ^ (random.random(4000) < 0.15), "yes", "no"))


def test_where_labels_are_corrected_by_chances_nobody_is_dropped(on_noisy):
    result = on_noisy
    run = result.run
    assert run.estimate.acts
    assert not any(cell.dropped.hits for cell in run.dropped)
    # A cell loses the mean chance of its labels to be wrong, and that is what is told.
    part, wrong = run.problem.train, run.estimate.wrong
    names = list(zip(part.class_names(part.label_codes), part.group_names(part.groups.codes), strict=True))
    lost = pandas.Series(wrong).groupby(pandas.MultiIndex.from_tuples(names)).mean().to_dict()
    assert {(cell.label, cell.group): cell.estimated_noise for cell in run.dropped} == pytest.approx(lost)
    # A difference between groups is no sign of errors in one of them: no group is named.
    told = " ".join([result.decision.sentence, *result.decision.lines])
    assert "doubted" not in told


def test_most_of_a_cell_that_is_left_out_is_told(unlike_groups):
    found = trained(unlike_groups, clean_ratio=0.5, tolerance=0.02, test=0.2)
    if found.run.choice.stored == "fair":
        assert kinds(found.decision)["cells_dropped"] == "cannot-tell"
    assert {cell.dropped.value > 0.5 for cell in found.run.dropped} >= {True}


def test_rows_that_are_left_out_are_counted_though_no_label_is_doubted():
    people = make_synthetic(1200, seed=1)
    frame = pandas.DataFrame(people.features, columns=["a", "b", "c"])
    frame = frame.assign(sex=people.groups, label=flip_margin(people, 0.3).labels)
    run = trained(frame, test_file=frame.tail(100)).run
    left_out = run.trained.estimator.left_out_
    assert len(left_out) == sum(cell.dropped.hits for cell in run.dropped) > 0
    assert f"{len(left_out)} rows were left out" in say("dropped", {"run": run})


def test_a_test_file_of_one_label_does_not_tell_whether_labels_are_told_apart(noisy):
    others = noisy[noisy["label"] == "no"].tail(200)
    found = trained(noisy.head(800), test_file=others).decision
    assert "tells nobody apart" not in found.sentence
    assert not set(kinds(found)) & {"useless", "use_unknown", "one_label"}


def test_the_rates_are_of_the_label_asked_for():
    random = np.random.default_rng(0)
    frame = table(lambda features, _: features[:, 0] > 0, 1500)
    frame["label"] = random.choice(["low", "mid", "top"], 1500)
    facts = trained(frame, positive="top", clean_ratio=1.0, test=0.5).decision.facts
    assert facts["rate"].label == "top"
    assert [group for group, *_ in facts["rates"]] == ["F", "M"]


def test_the_folder_names_the_model_the_decision_and_nobody(on_noisy, noisy, tmp_path):
    folder, decision = on_noisy.save(tmp_path / "run"), on_noisy.decision
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in ("report.html", "card.md")}
    texts = {name: html.unescape(" ".join(text.split())) for name, text in texts.items()}
    record = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert (record["decision"], record["reasons"]) == (decision.outcome, decision.reasons)
    assert record["next_steps"] == decision.next_steps
    holds = on_noisy.metrics["model"]["holds"]
    assert holds == f"{on_noisy.run.choice.stored} model"
    for text in texts.values():
        assert f"model.skops holds: the {holds}" in text
        for told in (decision.sentence, *decision.next_steps):
            assert told in text.replace("\\", "")
    assert all(reason in texts["report.html"] for reason in decision.reasons)
    for text in (*texts.values(), str(record)):
        assert "Surname1" not in text
        assert "Town1" not in text
        assert str(noisy["a"].iloc[on_noisy.run.suspects["row"][0]]) not in text
        assert "7000001" not in text.replace(",", "")


@pytest.mark.parametrize("model", ["logistic", "hist-gradient-boosting"])
def test_a_plain_model_that_is_kept_is_called_plain_and_shown_beside_the_fair_one(model, tmp_path):
    def label(features, random):
        return features[:, 0] + random.logistic(size=len(features)) / 2 > 0

    result = trained(table(label, 600), clean_ratio=0.95, model=model, trees=5, test=0.3)
    assert result.run.choice.stored == "plain"
    assert result.model is result.run.trained.plain.model
    record = result.metrics
    assert record["model"]["holds"] == "plain model"
    assert record["change"]["accuracy"]["interval"][0] < record["change"]["accuracy"]["interval"][1]
    folder = result.save(tmp_path / "run")
    card = (folder / "card.md").read_text(encoding="utf-8")
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    for text in (card, page):
        assert "the plain model, in which every row counts the same" in text
        assert "Use the fair model" not in text
    assert "| measure | plain model | fair model | change |\n" in card
    assert "fair model</th>" in result._repr_html_()


def test_the_sentence_has_the_absolute_rates_of_every_group(on_noisy):
    words = say("rates", {"facts": on_noisy.decision.facts})
    for group, plain, fair in on_noisy.decision.facts["rates"]:
        before, after = round(100 * plain.value), round(100 * fair.value)
        assert re.search(rf"in 100 are predicted \w+:.* {group} {after} \((plain model: )?{before}\)", words)


def test_advice_for_those_who_call_functions_names_parameters(on_noisy, noisy, tmp_path):
    leaky = noisy.assign(code=np.where(noisy["label"] == "yes", 7, 3))
    path = tmp_path / "leaky.csv"
    leaky.to_csv(path, index=False)
    for result in (on_noisy, trained(leaky, test=0.2), trained(path, test=0.2)):
        decision = result.decision
        told = " ".join([decision.sentence, *decision.reasons, *decision.next_steps])
        assert "--" not in told + str(result.metrics["data"]["notes"])
    assert "tabular.review(" in " ".join(on_noisy.decision.next_steps)
    assert "add drop='code'" in decision.sentence


@pytest.mark.parametrize(
    ("drop", "said"), [((), "also learns from sex"), (("sex",), "does not learn from sex")]
)
def test_the_card_says_whether_the_model_learns_from_the_group(tmp_path, drop, said):
    frame = table(lambda features, random: features[:, 0] + random.normal(size=len(features)) > 0, 300)
    found = trained(frame, keep_sensitive=True, drop=drop, clean_ratio=0.9, test=0.3)
    assert said in (found.save(tmp_path / "run") / "card.md").read_text("utf-8")


def test_the_card_says_how_to_load_the_model(on_noisy, tmp_path, monkeypatch):
    monkeypatch.chdir(on_noisy.save(tmp_path / "run"))
    code = (tmp_path / "run" / "card.md").read_text(encoding="utf-8").partition("```python\n")[2]
    names: dict[str, object] = {}
    exec(code.partition("```")[0], names)
    assert names["model"].classes_.tolist() == ["no", "yes"]


def test_columns_are_shown_when_asked_for_but_never_names(noisy, tmp_path):
    folder = trained(noisy, show_columns=True, test=0.2).save(tmp_path / "run")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "this page holds personal data" in page
    assert "Town1" in page
    assert "Surname1" not in page
    assert "7000001" not in page.replace(",", "")
    assert "Town1" not in (folder / "card.md").read_text(encoding="utf-8")
