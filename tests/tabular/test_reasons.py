"""What decides: which model to use, verdicts and reasons, from numbers that few tables have."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import estimate_clean_ratio
from fairsieve.errors import in_command
from fairsieve.label_noise.judgement import NOTHING, ModelJudgement, Needed
from fairsieve.metrics import Score
from fairsieve.tabular.decision import (
    OUTCOMES,
    USES,
    Reason,
    Step,
    TableVerdict,
    check_fail_on,
    decide,
    decide_run,
    tell,
)
from fairsieve.tabular.evaluation import Share, choose_model
from fairsieve.tabular.table_run import DroppedCell, WithSensitive

FACTS = st.fixed_dictionaries({"text": st.text("ab", min_size=1)})
STEPS = st.just((Step("columns"),))
REASONS = st.lists(st.builds(Reason, st.just("leak"), st.sampled_from(USES), FACTS, STEPS))
VERDICTS = st.lists(st.builds(TableVerdict, st.text(), st.sampled_from(["holds", "fails", "cannot tell"])))


@given(VERDICTS, REASONS)
def test_the_worst_reason_decides_and_failed_verdicts_come_first(verdicts, reasons):
    found = decide("labels", [*reasons, *verdicts])
    worst = max((USES.index(reason.outcome) for reason in reasons), default=0)
    assert found.outcome == found.usable == USES[worst]
    order = [["fails", "cannot tell", "holds"].index(one.status) for one in found.verdicts]
    assert order == sorted(order)
    assert len(order) == len(verdicts)
    assert set(found.reasons) == {reason.facts["text"] for reason in reasons}
    assert len(found.next_steps) == bool(reasons)
    failing = [found.fails(at) for at in (None, "cannot-tell", "do-not-use")]
    assert failing == [False, found.outcome != "use", found.outcome == "do-not-use"]


@given(st.sampled_from(OUTCOMES[1:5]), st.sampled_from(OUTCOMES[2:]))
def test_what_must_not_be_used_is_worse_than_any_outcome(outcome, at):
    leak = Reason("leak", "do-not-use", {"text": "x"})
    assert decide("model", [leak], outcome=outcome).fails(at)
    assert decide("model", [], outcome=outcome).fails(at) == (OUTCOMES.index(outcome) >= OUTCOMES.index(at))


def test_fail_on_is_checked():
    assert [check_fail_on(one) for one in (None, "cannot-tell")] == [None, "cannot-tell"]
    refused(r"fail_on must be .*'do-not-uze'. Did you mean 'do-not-use'", check_fail_on, "do-not-uze")


@dataclass
class Judged:
    """A judgement with the intervals of its changes as they are given, and claims that follow from them."""

    judged: Any
    changes: dict[str, Score]
    basis: str = "estimate"
    needed: Needed = NOTHING
    estimate: Any = None
    same: bool = False

    def are_same(self, first, second):
        return self.same

    @property
    def models(self):
        plain = Score(0.3, (0.2, 0.4))
        fair = Score(plain.value + self.changes["disparity"].value, (0.0, 1.0))
        both = zip(self.judged.models, (plain, fair), strict=True)
        return [ModelJudgement(one.accuracy, wide, one.rates, one.table) for one, wide in both]

    @property
    def on_given_labels(self):
        return self.judged.on_given_labels if self.basis == "bounds" else self

    def change(self):
        return self.changes

    def more_alike(self):
        low, high = self.changes["disparity"].interval
        return "holds" if high < 0 else "fails" if low >= 0 else "cannot tell"

    def to_tell(self, small):
        return self.needed

    def keeps_accuracy(self, within):
        low, high = self.changes["accuracy"].interval
        return "holds" if low > -within else "fails" if high < -within else "cannot tell"


def with_change(run, accuracy=(-0.005, 0.004), disparity=(-0.1, -0.02), **more):
    """The run, with other intervals of what changed, nobody dropped, and no gap that is sure."""
    bounds = {"accuracy": accuracy, "disparity": disparity}
    changes = {name: Score(float(np.mean(each)), each) for name, each in bounds.items()}
    small = [Score(0.01, (-0.02, 0.04))] * 2
    gaps = [replace(gap, models=small, at_once=small) for gap in run.evaluation.gaps]
    judged = Judged(run.evaluation.judged, changes, **more)
    evaluation = replace(run.evaluation, judged=judged, gaps=gaps, widest=gaps[:1] * 2)
    cells = [replace(each, dropped=Share(0, each.dropped.total)) for each in run.dropped]
    cells = [replace(each, effective_weight=1.0) for each in cells]
    return rechosen(replace(run, evaluation=evaluation, dropped=cells), tolerance=None)


def rechosen(run, **settings):
    """The run, with its model chosen again, by other settings."""
    asked = replace(run.asked, **settings)
    choice = choose_model(run.evaluation, asked)
    return replace(run, problem=replace(run.problem, asked=asked), choice=choice)


CASES = [
    # accuracy, disparity, decision, why, stored by default, stored with a tolerance
    ((-0.005, 0.004), (-0.1, -0.02), "use-fair", "fairer", "fair", "fair"),
    ((0.001, 0.02), (-0.1, 0.03), "use-fair", "more accurate", "fair", "fair"),
    ((-0.005, 0.004), (-0.1, 0.005), "use-fair", "no harm", "fair", "fair"),
    ((-0.03, 0.004), (-0.1, 0.005), "cannot-tell", "unknown", "plain", "fair"),
    ((-0.03, -0.015), (-0.1, -0.02), "your-call", "trade", "plain", "fair"),
    ((-0.03, 0.01), (-0.1, -0.02), "your-call", "trade", "plain", "fair"),
    ((0.001, 0.02), (0.01, 0.1), "your-call", "other trade", "plain", "fair"),
    ((0.02, 0.05), (-0.1, 0.14), "your-call", "other trade", "plain", "fair"),
    ((-0.005, 0.004), (0.01, 0.1), "keep-plain", "worse", "plain", "plain"),
    ((-0.06, -0.03), (-0.01, 0.02), "keep-plain", "worse", "plain", "plain"),
    ((-0.005, 0.004), (-0.02, 0.02), "keep-plain", "alike", "plain", "fair"),
    ((0.0, 0.0), (0.0, 0.0), "keep-plain", "alike", "plain", "fair"),  # they predict the same
    ((-0.005, 0.004), (-0.1, 0.07), "cannot-tell", "unknown", "plain", "fair"),
    # It loses, surely or as measured, and gains nothing.
    ((-0.06, -0.03), (-0.1, 0.14), "cannot-tell", "unknown", "plain", "plain"),
    ((-0.03, 0.02), (-0.1, 0.14), "cannot-tell", "unknown", "plain", "plain"),
]


@pytest.mark.parametrize(("accuracy", "disparity", "outcome", "why", "stored", "named"), CASES)
def test_intervals_decide_and_models_follow(run, accuracy, disparity, outcome, why, stored, named, trained):
    changed = with_change(run, accuracy, disparity)
    decision = decide_run(changed)
    assert (decision.outcome, changed.choice.why, changed.choice.stored) == (outcome, why, stored)
    lines = tell("terminal", {"run": changed, "decision": decision, "folder": "run/"})
    assert len(lines) <= 8
    assert any(line.endswith(f"model.skops holds: the {stored} model.") for line in lines)
    fair = rechosen(changed, tolerance=0.02)
    assert fair.choice.stored == named
    assert outcome in ("use-fair", fair.choice.outcome) or why in ("alike", "fair enough")
    # The sentence never says one thing, and the stored model is another.
    for each in (changed, fair):
        said = decide_run(each).sentence
        assert ("Use the fair model" in said) <= (each.choice.stored == "fair")
        assert ("Keep the plain model" in said) <= (each.choice.stored == "plain")
    record = replace(trained, run=changed, decision=decision).metrics
    assert record["model"]["holds"] == f"{stored} model"
    assert record["decision"] == outcome


# Nothing is said of how alike models are whose disparities may differ by .4.
UNFORESEEN = (
    "may change by −.400 to .100; how many more rows or checked labels would tell cannot be foreseen."
)
FEW_AND_CHECKS = "Collect about {more} more rows, have about 80 labels of all checked, and train again."


@pytest.mark.parametrize(("needed", "said", "steps"), [
    (Needed(3000), "With about {more} more rows it could be told.", ["Collect"]),
    (Needed(None, 200), "With about 200 checked labels it could be told.", ["Have 200"]),
    (Needed(3000, 80), "rows, and about 80 checked labels among all, it could", [FEW_AND_CHECKS, "Have 80"]),
    (Needed(300_000, 80), "rows, and about 80 checked labels among all, it could", ["Have 80"]),
    (Needed(10**8), UNFORESEEN, ["Have 50"]),
    (Needed(), UNFORESEEN, ["Have 50"]),
])  # fmt: skip
def test_where_it_cannot_be_told_it_is_said_what_would_tell(run, needed, said, steps):
    count = len(run.evaluation.cells)
    unknown = with_change(run, (-0.005, 0.004), (-0.4, 0.1), basis="bounds", needed=needed)
    decision = decide_run(unknown)
    assert said.format(more=f"{3000 - count:,}") in decision.sentence
    steps = [step.format(more=f"{3000 - count:,}") for step in steps]
    assert [step for step in steps if not any(each.startswith(step) for each in decision.next_steps)] == []
    assert any(each.startswith("Collect") for each in decision.next_steps) == (needed.rows == 3000)


def test_models_that_predict_the_same_are_alike_whatever_is_not_known_of_labels(run):
    choice = with_change(run, (-0.003, 0.003), (-0.35, 0.37), basis="bounds", same=True).choice
    assert (choice.outcome, choice.why) == ("keep-plain", "alike")


def test_checks_that_there_are_already_are_not_asked_for(run):
    estimate = estimate_clean_ratio(np.zeros((40, 1)), [0, 1] * 20, verified_labels=[0, 1] * 20)
    more = {"needed": Needed(3000, 40), "estimate": estimate}
    unknown = with_change(run, (-0.005, 0.004), (-0.4, 0.1), basis="verified labels", **more)
    decision = decide_run(replace(unknown, estimate=estimate))
    assert "more rows it could be told" in decision.sentence
    assert not any("labels checked" in step for step in decision.next_steps)  # all are


def test_each_side_of_a_trade_off_has_its_command(run, people_csv):
    trade = with_change(run, (-0.03, -0.015), (-0.1, -0.02))
    decision, other = decide_run(trade), decide_run(rechosen(trade, tolerance=0.05))
    assert "of 1,000 people, 22 fewer are predicted right (between 15 and 30 fewer)" in decision.sentence
    assert "fairsieve train" not in decide_run(trade).next_steps[0]
    with in_command():
        fair, plain = decision.next_steps[0], other.next_steps[0]
    assert fair.startswith(f"To store the fair model: fairsieve train {people_csv} --label")
    assert "--tolerance 0.02" in fair
    assert plain.startswith("To store the plain model: fairsieve train")
    assert "--tolerance" not in plain


def test_a_model_that_flags_nobody_is_not_to_be_used(run):
    nobody = with_change(run, (0.0, 0.0), (-0.2, -0.1))
    evaluation = replace(nobody.evaluation, predicted=[{"low": 600}] * 2)
    decision = decide_run(rechosen(replace(nobody, evaluation=evaluation)))
    assert decision.usable == "do-not-use"
    assert decision.findings[0].kind == "one_label"
    # A fair model that flags nobody is not chosen for its disparity of 0.
    one = replace(nobody.evaluation, predicted=[nobody.evaluation.predicted[0], {"low": 600}])
    assert rechosen(replace(nobody, evaluation=one)).choice.why == "useless"


def test_the_stored_model_is_judged_as_any_predictions_are(run):
    wide = [Score(0.48, (0.4, 0.55))] * 2
    for disparity in ((-0.1, -0.02), (0.01, 0.1)):
        changed = with_change(run, (-0.005, 0.004), disparity)
        gaps = [replace(gap, models=wide, at_once=wide) for gap in changed.evaluation.gaps]
        decision = decide_run(replace(changed, evaluation=replace(changed.evaluation, gaps=gaps)))
        assert decision.usable == "do-not-use"
        assert "48 points less often" in decision.sentence
        assert decision.fails("do-not-use")


def test_what_the_sensitive_columns_would_give_is_said_where_it_helps(run):
    def both(disparity):
        first = Score(0.779, (0, 1)), Score(0.229, (0, 1))
        return WithSensitive(1000, first, (Score(0.775, (0, 1)), disparity))

    told = decide_run(replace(with_change(run), with_sensitive=both(Score(0.024, (0, 1)))))
    words = "If sex may be used to predict: disparity .024 instead of .229, accuracy .775 instead of .779"
    assert words in " ".join(told.reasons)
    useless = replace(run, evaluation=replace(run.evaluation, predicted=[{"low": 600}] * 2))
    for each, found in ((run, 0.222), (useless, 0.024)):  # no help, and of models that tell nobody apart
        silent = decide_run(replace(with_change(each), with_sensitive=both(Score(found, (0, 1)))))
        assert "may be used" not in " ".join(silent.reasons)


@pytest.mark.parametrize(("noise", "usable"), [(None, "cannot-tell"), (0.15, "use")])
def test_most_of_a_cell_dropped_for_no_known_reason_is_doubted(run, noise, usable):
    cells = [DroppedCell("yes", name, Share(1200, 2000), 0, noise, 1.0) for name in ("F", "M")]
    dropped = replace(with_change(run), dropped=cells)
    decision = decide_run(dropped)
    assert decision.usable == usable
    # What is left out since that predicts better is told all the same, and is no reason against the model.
    estimator = copy(run.trained.estimator)
    estimator.left_out_ = np.arange(2400)
    left_out = decide_run(replace(dropped, trained=replace(run.trained, estimator=estimator)))
    assert (left_out.usable, left_out.warnings) == ("use", [])
    assert any("left out of training" in reason for reason in left_out.reasons) == (usable != "use")


@pytest.mark.parametrize(("weight", "warned"), [
    (0.2, "(20 %) hardly counts in training"),
    (-2.0, "(below 0) counts against the label in training"),
    (0.3, None),
])  # fmt: skip
def test_a_cell_below_a_quarter_of_its_weight_is_warned_of(run, weight, warned):
    cells = with_change(run).dropped
    dropped = [replace(cells[0], effective_weight=weight), *cells[1:]]
    decision = decide_run(replace(with_change(run), dropped=dropped))
    assert [warned in told for told in decision.warnings] == ([True] if warned else [])
    (verdict,) = (one for one in decision.verdicts if one.name == "weight")
    assert (verdict.status, verdict.value) == ("fails" if warned else "holds", weight)
