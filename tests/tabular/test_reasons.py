"""What decides: verdicts and reasons, from numbers that few tables have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.errors import InvalidInputError
from fairsieve.estimators.base import PlainComparison
from fairsieve.tabular.decision import OUTCOMES, Reason, Step, TableVerdict, check_fail_on, decide, tell
from fairsieve.tabular.evaluation import Score, Share
from fairsieve.tabular.reasons import decide_run
from fairsieve.tabular.table_run import DroppedCell

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
    found = decide("labels", [*reasons, *verdicts])
    worst = max((OUTCOMES.index(reason.outcome) for reason in reasons), default=0)
    assert found.outcome == OUTCOMES[worst]
    order = [["fails", "inconclusive", "holds"].index(one.status) for one in found.verdicts]
    assert order == sorted(order)
    assert len(order) == len(verdicts)
    assert set(found.reasons) == {reason.facts["text"] for reason in reasons}
    assert len(found.next_steps) == bool(reasons)
    failing = [found.fails(at) for at in (None, "inconclusive", "do-not-use")]
    assert failing == [False, found.outcome != "use", found.outcome == "do-not-use"]


def test_fail_on_is_checked():
    assert [check_fail_on(one) for one in (None, "inconclusive")] == [None, "inconclusive"]
    with pytest.raises(
        InvalidInputError, match=r"--fail-on must be .*'do-not-uze'. Did you mean 'do-not-use'"
    ):
        check_fail_on("do-not-uze")


def with_change(run, accuracy=(-0.005, 0.004), disparity=(-0.1, -0.02)):
    """The run, with other intervals of what changed, and nobody dropped."""
    change = {
        "accuracy": Score(float(np.mean(accuracy)), accuracy),
        "disparity": Score(float(np.mean(disparity)), disparity),
    }
    plain = run.scores[0] | {"disparity": Score(0.3, (0.2, 0.4))}
    fair = run.scores[-1] | {"disparity": Score(0.2, (0.1, 0.3))}
    cells = [
        replace(cell, dropped=Share(0, cell.dropped.total), effective_weight=1.0) for cell in run.dropped
    ]
    return replace(run, change=change, scores=[plain, fair], dropped=cells)


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
    changed = with_change(run, accuracy, disparity)
    decision = decide_run(changed)
    assert decision.outcome == outcome
    lines = tell("page.j2", "terminal", {"run": changed, "decision": decision, "folder": "run/"})
    assert len(lines) <= 8
    assert any(line.endswith("model.skops holds: the fair model.") for line in lines)


def test_a_model_that_flags_nobody_is_not_to_be_used(run):
    decision = decide_run(with_change(replace(run, predicted=[{"low": 120}] * 2), (0.0, 0.0), (0.0, 0.0)))
    assert decision.outcome == "do-not-use"
    assert (decision.findings[0].kind, decision.findings[0].facts["label"]) == ("one_label", "low")


@pytest.mark.parametrize(("accuracy", "outcome"), [(0.4, "do-not-use"), (0.79, "use")])
def test_a_plain_model_is_kept_where_the_fair_one_is_no_better(run, trained, accuracy, outcome):
    kept = replace(
        run,
        comparison=PlainComparison(accuracy, 0.8, 0.1, 0.1, 0.01, 0.01, 0.1, True, False),
        trade_off=[replace(run.trade_off[0], kept=True)],
    )
    decision = decide_run(kept)
    kind = "collapse" if outcome == "do-not-use" else "plain_kept"
    assert {one.kind: one.outcome for one in decision.findings}[kind] == outcome
    assert replace(trained, run=kept, decision=decision).metrics["model"]["holds"] == "plain model"


def dropped(most, least):
    """Two groups of 2,000, of whom shares were dropped, with estimated shares of wrong labels."""
    pairs = (("F", most), ("M", least))
    return [
        DroppedCell("yes", name, Share(round(2000 * part), 2000), 0, noise) for name, (part, noise) in pairs
    ]


@pytest.mark.parametrize(
    ("cells", "status", "outcome"),
    [
        (dropped((0.103, 0.05), (0.1, 0.1)), "holds", "use"),  # chance
        (dropped((0.2, 0.2), (0.1, 0.1)), "holds", "use"),  # as many are wrong
        (dropped((0.2, 0.13), (0.1, 0.1)), "fails", "use"),
        (dropped((0.2, None), (0.1, None)), "fails", "use"),
        (dropped((0.1, 0.05), (0.1, 0.1)), "holds", "use"),  # equally often, whatever the estimate says
        (dropped((0.6, None), (0.55, None)), "fails", "inconclusive"),  # most of a cell, for no known reason
        (dropped((0.6, 0.58), (0.2, 0.2)), "holds", "use"),
    ],
)
def test_dropping_is_judged_by_the_wrong_labels_and_most_of_a_cell_decides(run, cells, status, outcome):
    decision = decide_run(replace(with_change(run), dropped=cells))
    (verdict,) = (one for one in decision.verdicts if one.name == "dropping")
    assert (verdict.status, decision.outcome) == (status, outcome)
    assert all("were dropped" not in text for text in decision.warnings) or outcome == "use"  # said once


def test_groups_too_small_to_compare_are_inconclusive(run):
    cells = [DroppedCell("yes", name, Share(1, 4), 0, None) for name in ("F", "M")]
    (verdict,) = (
        one for one in decide_run(replace(with_change(run), dropped=cells)).verdicts if one.name == "dropping"
    )
    assert verdict.status == "inconclusive"


@pytest.mark.parametrize(("weight", "warned"), [(0.2, True), (0.3, False)])
def test_a_cell_below_a_quarter_of_its_weight_is_warned_of(run, weight, warned):
    cells = with_change(run).dropped
    decision = decide_run(
        replace(with_change(run), dropped=[replace(cells[0], effective_weight=weight), *cells[1:]])
    )
    assert bool(decision.warnings) == warned
    (verdict,) = (one for one in decision.verdicts if one.name == "weight")
    assert (verdict.status, verdict.value) == ("fails" if warned else "holds", weight)


def test_where_nobody_knows_no_label_is_counted(run, trained, tmp_path):
    from fairsieve import estimate_clean_ratio

    random = np.random.default_rng(0)
    estimate = estimate_clean_ratio(
        random.normal(size=(300, 1)),
        random.integers(0, 2, 300),
        sensitive_features=random.integers(0, 2, 300),
    )
    assert not estimate.credible  # labels that nothing predicts
    unknown = replace(run, estimate=estimate)
    decision = decide_run(unknown)
    kinds = {one.kind for one in decision.findings}
    assert ("unknown_labels" in kinds, "suspects" in kinds) == (True, False)
    folder = replace(trained, run=unknown, decision=decision).save(tmp_path / "run")
    for name in ("report.html", "card.md"):
        assert f"{len(run.suspects['row']):,} label" not in (folder / name).read_text(encoding="utf-8")
