"""A decision: from verdicts and reasons, the same everywhere."""

from __future__ import annotations

import dataclasses
import html
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.report.page import render_page
from fairsieve.tabular.decision import OUTCOMES, Reason, Step, TableVerdict, check_fail_on, decide
from fairsieve.tabular.evaluation import Score, Share
from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.report.files import model_card
from fairsieve.tabular.report.metrics import record_json, run_record
from fairsieve.tabular.report.pages import run_document, run_lines

REASONS = st.lists(
    st.builds(
        Reason,
        st.just("leak"),
        st.sampled_from(OUTCOMES),
        st.fixed_dictionaries({"text": st.text("ab", min_size=1)}),
        st.just((Step("columns"),)),
    )
)
VERDICTS = st.lists(st.builds(TableVerdict, st.text(), st.sampled_from(["holds", "fails", "inconclusive"])))


@given(VERDICTS, REASONS)
def test_the_worst_reason_decides_and_failed_verdicts_come_first(verdicts, reasons):
    found = decide("labels", verdicts, reasons)
    worst = max((OUTCOMES.index(reason.outcome) for reason in reasons), default=0)
    assert found.outcome == OUTCOMES[worst]
    order = [["fails", "inconclusive", "holds"].index(one.status) for one in found.verdicts]
    assert order == sorted(order)
    assert len(order) == len(verdicts)
    assert set(found.reasons) == {reason.facts["text"] for reason in reasons}
    assert len(found.next_steps) == bool(reasons)
    assert [found.fails(at) for at in (None, "inconclusive", "do-not-use")] == [
        False,
        found.outcome != "use",
        found.outcome == "do-not-use",
    ]


def test_fail_on_is_checked():
    assert [check_fail_on(one) for one in (None, "inconclusive", "do-not-use")] == [
        None,
        "inconclusive",
        "do-not-use",
    ]
    with pytest.raises(InvalidInputError, match=r"--fail-on must be .*'do-not-uze'. Did you mean do-not-use"):
        check_fail_on("do-not-uze")


def with_change(run, accuracy, disparity):
    """The run, with other intervals of what changed."""
    change = {
        "accuracy": Score(float(np.mean(accuracy)), accuracy),
        "disparity": Score(float(np.mean(disparity)), disparity),
    }
    plain = run.scores[0] | {"disparity": Score(0.3, (0.2, 0.4))}
    fair = run.scores[-1] | {"disparity": Score(0.2, (0.1, 0.3))}
    cells = [dataclasses.replace(cell, dropped=Share(0, cell.dropped.total)) for cell in run.dropped]
    return dataclasses.replace(run, change=change, scores=[plain, *run.scores[1:-1], fair], dropped=cells)


@pytest.mark.parametrize(
    ("accuracy", "disparity", "outcome"),
    [
        ((-0.005, 0.004), (-0.1, 0.01), "inconclusive"),
        ((-0.03, 0.01), (-0.1, -0.02), "inconclusive"),
        ((-0.005, 0.004), (0.01, 0.1), "do-not-use"),
        ((-0.05, -0.02), (-0.1, -0.02), "do-not-use"),
        ((-0.005, 0.004), (-0.1, -0.02), "use"),
    ],
)
def test_an_interval_that_includes_no_change_is_inconclusive(run, accuracy, disparity, outcome):
    assert decide_run(with_change(run, accuracy, disparity)).outcome == outcome


def test_the_sentence_has_the_absolute_rates_of_every_group(run):
    decision = decide_run(with_change(run, (-0.005, 0.004), (-0.1, -0.02)))
    rates = decision.facts["rates"]
    assert [rate.group for rate in rates] == ["man", "woman"]
    for rate in rates:
        after = round(100 * rate.fair.value)
        assert re.search(
            rf"{rate.group}\b[^;]* {after}( times in 100)? (as before|instead of)", decision.sentence
        )


def test_a_model_that_flags_nobody_is_not_to_be_used(run):
    nobody = []
    for measure in run.measures:
        none = [Share(0, share.total) for share in measure.plain]
        told = measure.kind != "accuracy"
        nobody.append(dataclasses.replace(measure, plain=none, fair=none) if told else measure)
    still = with_change(dataclasses.replace(run, measures=nobody), (0.0, 0.0), (0.0, 0.0))
    decision = decide_run(still)
    assert decision.outcome == "do-not-use"
    assert (decision.findings[0].kind, decision.findings[0].facts["label"]) == ("one_label", "low")


def test_the_decision_is_the_same_everywhere(run, tmp_path):
    bad = with_change(run, (-0.05, -0.02), (-0.1, -0.02))
    decision = decide_run(bad)
    assert decision.verdicts[0].status == "fails"
    record = json.loads(record_json(run_record(bad, decision)))
    assert record["decision"] == "do-not-use"
    assert record["reasons"] == decision.reasons
    assert record["next_steps"] == decision.next_steps
    assert record["verdicts"][0]["interval"] == [-0.05, -0.02]
    card = model_card(bad, decision)
    page = html.unescape(re.sub(r"\s+", " ", render_page(run_document(bad, decision))))
    for text in (decision.sentence, *decision.next_steps):
        assert text in card.replace("\\", "")
    for text in (decision.sentence, *decision.reasons, *decision.next_steps):
        assert text in page


def test_the_terminal_has_at_most_eight_lines(run, tmp_path):
    for accuracy in ((-0.005, 0.004), (-0.03, 0.01), (-0.05, -0.02)):
        changed = with_change(run, accuracy, (-0.1, -0.02))
        lines = run_lines(changed, decide_run(changed), tmp_path)
        assert len(lines) <= 8
        assert any(line.endswith("model.skops holds: the fair model.") for line in lines)
