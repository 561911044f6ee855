"""The demo says what its numbers say, and judges by what was measured."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairsieve import demo
from fairsieve.samples import Samples


def some_people():
    """Everybody has it; half of group b and none of group a say otherwise."""
    groups = np.repeat(["a", "b"], 4)
    said = np.array([1, 1, 1, 1, 1, 0, 1, 0])
    return Samples(np.zeros((8, 1)), said, groups, classes=[0, 1], truth=np.ones(8, int))


def some_scores(found):
    frame = pd.DataFrame.from_dict(found, orient="index", columns=["a", "b"]).rename_axis("method")
    return pd.concat([frame.reset_index().assign(accuracy=0.7, disparity=0.1)] * 3)


def test_those_who_say_otherwise_are_counted_among_those_who_have_it():
    assert demo.missed(some_people()).to_dict() == {"a": 0.0, "b": 0.5}


@pytest.mark.parametrize("plain", [(0.6, 0.2), (0.1, 0.9)])
def test_the_sentence_names_the_groups_that_the_plain_model_serves_worst_and_best(plain):
    found = dict.fromkeys(demo.METHODS, plain) | {demo.OURS: (0.5, 0.4)}
    table, sentence = demo.tell_demo(some_people(), some_scores(found))
    worst, best = sorted("ab", key=lambda group: plain["ab".index(group)])
    low, high = sorted(round(100 * share) for share in plain)
    assert f"Of 100 {worst} people who are obese, the plain model finds {low}" in sentence
    assert f"of 100 {best} people, {high}. " in sentence
    ours = {"a": 50, "b": 40}
    assert f"fairsieve finds {ours[worst]} and {ours[best]}" in sentence
    assert "(a change of 0.0 ± 0.0)" in sentence
    # The group that the labels miss most comes first.
    assert table.splitlines()[3].split()[:2] == ["b", "found"]


def test_an_interval_allows_for_splits_that_share_people():
    values = np.array([0.1, 0.2, 0.4, 0.3])
    ordinary = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    found = demo.interval(values)
    assert found.mean == pytest.approx(values.mean())
    widening = np.sqrt(1 + 4 * demo.TEST / (1 - demo.TEST))  # Nadeau and Bengio
    assert found.half == pytest.approx(widening * (ordinary[1] - values.mean()))
    assert demo.interval([0.3]).text() == "0.300"


def test_models_are_judged_by_the_truth_and_learn_from_what_was_said(monkeypatch):
    """A model that repeats what it learnt on: its accuracy is that of the labels."""
    people = demo.load_nhanes()

    class Repeats:
        def fit(self, features, labels, **_):
            self.said = {row.tobytes(): label for row, label in zip(features, labels, strict=True)}

        def predict(self, features):
            return np.array([self.said[row.tobytes()] for row in features])

    class Parts:
        train = test = people

    monkeypatch.setattr(demo, "METHODS", {"plain": lambda seed: Repeats()})
    monkeypatch.setattr(demo, "split", lambda *_, **__: Parts)
    _, scores = demo.run_demo(1, lambda _: None)
    assert scores["accuracy"][0] == pytest.approx(np.mean(people.labels == people.truth))
    assert 1 - scores["Asian"][0] == pytest.approx(demo.missed(people)["Asian"])
