"""What a table's columns, groups and categories are called, and in which order they stand, decides nothing."""

import numpy as np
import pandas as pd
import pytest
from tests.support.people import people

from fairsieve import tabular


def change(frame):
    """Rename and turn round whatever has a name or a place, and add columns that say nothing."""
    cities, groups = {"Rome": "Aosta", "Bern": "Zug", "Oslo": "Zürich"}, {"man": "x", "woman": "b"}
    renamed = frame.replace({"sex": groups, "city": cities}).rename(columns={"hours": "a hours", "age": "zz"})
    order = ["first", "a hours", "second", "city", "sex", "job", "income", "zz"]
    return renamed.assign(first="same", second=3.5)[order]


SHORT = {"tolerance": 0.02, "max_iter": 8}
APART = SHORT | {"test": 0.3}  # folds are five models more
SETTINGS = {"a given ratio": APART | {"clean_ratio": 0.9}, "folds": SHORT, "a part set aside": APART}


def table(seed):
    frame = pd.DataFrame(people(700, seed=seed))
    rng = np.random.default_rng(seed)
    frame["city"] = rng.choice(["Rome", "Oslo", "Bern"], 700)
    downgraded = (frame["sex"] == "woman") & (rng.random(700) < 0.25)
    return frame.assign(income=frame["income"].mask(downgraded, "low"))


def train_and_predict(frame, name):
    result = tabular.train(frame, label="income", sensitive="sex", **SETTINGS[name])
    return result, tabular.predict(result, frame, probabilities=True)


@pytest.mark.parametrize("name", SETTINGS)
def test_names_and_order_move_nothing(name):
    before, expected = train_and_predict(table(3), name)
    result, predictions = train_and_predict(change(table(3)), name)
    np.testing.assert_allclose(predictions.chances["high"], expected.chances["high"], atol=1e-6, rtol=0)
    assert predictions.predicted.tolist() == expected.predicted.tolist()
    assert result.decision.outcome == before.decision.outcome
    # Measured by the same folds; the draws behind an interval follow the order of groups.
    said, wanted = ({each.name: each.value for each in r.decision.verdicts} for r in (result, before))
    assert said == pytest.approx(wanted, abs=1e-6)
    assert len(result.suspects) == len(before.suspects)
