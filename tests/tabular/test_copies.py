"""Copies of rows are told, and those whose labels contradict each other first; people who are alike are no copies."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.people import people

from fairsieve import tabular
from fairsieve.tabular.reading.columns import note_kind
from fairsieve.tabular.reading.read import read_frame
from fairsieve.tabular.table_notes import copy_notes


def told(frame, label="y"):
    """The notes on the copies of a table."""
    codes = pd.factorize(frame[label])[0]
    return copy_notes(read_frame(frame), label, codes)


def distinct(rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(size=rows), "count": rng.integers(0, 5, rows)})
    return frame.assign(kind=rng.choice(["a", "b", "c"], rows), y=rng.choice(["no", "yes"], rows))


@settings(max_examples=25, deadline=None)
@given(st.integers(80, 300), st.integers(0, 12), st.integers(0, 12), st.integers(0, 10**6))
def test_copies_and_contradictions_are_counted(rows, repeated, contradicted, seed):
    frame = distinct(rows, seed)
    again = frame.iloc[: repeated + contradicted].copy()
    again.loc[again.index[repeated:], "y"] = again["y"].iloc[repeated:].map({"no": "yes", "yes": "no"})
    order = np.random.default_rng(seed).permutation(rows + repeated + contradicted)
    notes = told(pd.concat([frame, again], ignore_index=True).iloc[order])
    kinds = [note_kind(note) for note in notes]
    assert kinds == ["contradiction"] * (contradicted > 0) + ["warning"] * (repeated > 0)
    if contradicted:
        assert f"have another 'y': {2 * contradicted} (rows" in notes[0]
        assert "Where these are copies of one row, and not people who are alike" in notes[0]
    if repeated:
        assert f"in every column: {repeated} (row" in notes[-1]


def test_a_column_that_says_the_label_again_hides_no_contradiction():
    frame = distinct(300, seed=0)
    again = frame.iloc[:4].assign(y=frame["y"].iloc[:4].map({"no": "yes", "yes": "no"}))
    both = pd.concat([frame, again], ignore_index=True)
    (note,) = told(both.assign(paid=both["y"] == "yes"))
    assert "have another 'y': 8 (rows" in note


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [200, 2000])
def test_people_who_are_alike_are_no_copies(rows, seed):
    rng = np.random.default_rng(seed)
    few = {f"x{i}": rng.random(rows) < (0.5, 0.1, 0.02)[i % 3] for i in range(6)}
    tables = [
        pd.DataFrame({"y": rng.integers(0, 2, rows), **few}),
        pd.DataFrame(people(rows, seed=seed)).rename(columns={"income": "y"}),
        pd.DataFrame({"y": rng.integers(0, 2, rows), "age": rng.integers(18, 90, rows), "x": few["x0"]}),
        pd.DataFrame({"y": rng.integers(0, 2, rows), "age": rng.integers(18, 90, rows)}),
    ]
    for frame in tables:
        assert told(frame) == []
        assert told(frame.assign(number=range(rows))) == []


def test_an_audit_tells_contradictions_first():
    frame = pd.DataFrame(people(600))
    frame["size"] = np.random.default_rng(0).normal(size=600)
    again = frame.iloc[:9].assign(income=lambda one: one["income"].map({"high": "low", "low": "high"}))
    found = tabular.audit(pd.concat([frame, again], ignore_index=True), label="income", sensitive="sex")
    told = next(note for note in found.audit.notes if "have another 'income': 18 (rows 0, 1, 2" in note)
    assert next(note for note in found.audit.notes if note_kind(note) != "remark") == told


@pytest.mark.parametrize("leak", ["copy", "almost", "both"])
def test_a_leak_is_no_evidence_that_labels_are_right(leak):
    """A column that repeats the label agrees with every wrong label too."""
    frame = pd.DataFrame(people(1500, wrong=0.15))
    rng = np.random.default_rng(0)
    if leak != "almost":
        frame["outcome"] = frame["income"].map({"high": "paid", "low": "not"})
    if leak != "copy":
        frame["score"] = (frame["income"] == "high") + rng.normal(0, 0.1, 1500)
    frame = frame.assign(age=0, hours=0, job="x") if leak == "both" else frame
    found = tabular.audit(frame, label="income", sensitive="sex")
    rest = frame.drop(columns=["outcome", "score"], errors="ignore")
    without = None if leak == "both" else tabular.audit(rest, **ROLES)
    estimate = found.audit.estimate
    assert found.decision.outcome != "use"
    assert any("does without" in note for note in found.audit.notes)
    if without is not None:
        assert estimate.interval == without.audit.estimate.interval
    else:
        assert not estimate.credible
    chosen = tabular.review(frame, **ROLES, rows=5).review
    reasons = [reason for told in chosen.rows["reasons"] for reason in told]
    assert leak == "both" or not any("outcome (" in reason for reason in reasons)


ROLES = {"label": "income", "sensitive": "sex"}
