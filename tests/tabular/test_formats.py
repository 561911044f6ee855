"""How a column is written is part of a model: it is applied as it was, and a table that contradicts it is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairsieve import tabular
from fairsieve.errors import InvalidInputError

ROLES = {"label": "paid", "sensitive": "sex"}
ROWS = 240
RNG = np.random.default_rng(0)
VALUES = RNG.integers(100, 999, ROWS) / 100  # two decimals, and none is whole
LABELS = np.where(VALUES + RNG.normal(0, 1, ROWS) > 5.5, "yes", "no")
GROUPS = np.where(RNG.random(ROWS) < 0.5, "a", "b")

WRITTEN = {
    "point": "{:.2f}".format,
    "comma": lambda value: f"{value:.2f}".replace(".", ","),
    "three decimals": "{:.3f}".format,
    "three decimals, comma": lambda value: f"{value:.3f}".replace(".", ","),
    "percent": "{:.2f} %".format,
    "euro": "€ {:.2f}".format,
    "dollar": "${:.2f}".format,
    "thousands": lambda value: f"{value * 1000:,.1f}",
    "date": lambda value: str(np.datetime64("2020-01-01") + int(value * 100)),
}


def write(path, texts):
    """A table with these texts between semicolons."""
    rows = [f"{text};{group};{label}" for text, group, label in zip(texts, GROUPS, LABELS, strict=True)]
    path.write_text("\n".join(["x;sex;paid", *rows, ""]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model for each way to write its column, stored and read again."""
    folder = tmp_path_factory.mktemp("formats")
    found = {}
    for name, text_of in WRITTEN.items():
        data = write(folder / f"{name}.csv", map(text_of, VALUES))
        dates = {"dates": "x"} if name == "date" else {}
        result = tabular.train(data, **ROLES, clean_ratio=0.95, max_iter=2, test=0.3, **dates)
        found[name] = result.save(folder / name), data
    return found


@pytest.mark.parametrize("name", WRITTEN)
def test_the_table_of_training_is_read_as_it_was(models, name):
    run, data = models[name]
    chances = tabular.predict(run, data, probabilities=True).chances["yes"]
    expected = {row: VALUES[row] for row in range(ROWS)}
    assert np.corrcoef(chances, list(expected.values()))[0, 1] > 0.9
    one = write(data.with_name("one.csv"), [WRITTEN[name](VALUES[0])] * ROWS)
    assert tabular.predict(run, one, probabilities=True).chances["yes"][0] == chances[0]


CONTRADICTIONS = [
    ("comma", "point", "decimal point"),
    ("point", "comma", "decimal comma"),
    ("comma", "three decimals", "could be read in two ways"),
    ("point", "three decimals, comma", "could be read in two ways"),
    ("percent", "point", "with %; got"),
    ("point", "percent", "without a sign; got"),
    ("euro", "dollar", "with €; got '\\$"),
    ("point", "euro", "without a sign; got '€"),
    ("euro", "percent", "with €; got"),
    ("date", "point", "a column of dates must have them as 2026-03-04"),
    ("point", "date", "mixes numbers with 240 texts"),
    ("comma", "thousands", "mixes numbers"),
]


@pytest.mark.parametrize(("learnt", "given", "message"), CONTRADICTIONS)
@pytest.mark.parametrize("way", ["predict", "test_file"])
def test_a_table_that_contradicts_training_is_refused(models, tmp_path, learnt, given, message, way):
    run, data = models[learnt]
    other = write(tmp_path / "other.csv", map(WRITTEN[given], VALUES))
    dates = {"dates": "x"} if learnt == "date" else {}
    again = {**ROLES, "clean_ratio": 0.95, "max_iter": 2, "test_file": other, **dates}
    with pytest.raises(InvalidInputError, match=message):
        tabular.predict(run, other) if way == "predict" else tabular.train(data, **again)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1000, 9999), min_size=1, max_size=6), st.sampled_from([2, 3]), st.sampled_from(",.")
)
def test_numbers_of_any_decimals_mean_what_they_meant(models, tmp_path_factory, values, decimals, mark):
    """Trained on two decimals behind a comma; three of them are no thousands, or somebody has to say so."""
    run, _ = models["comma" if mark == "," else "point"]
    numbers = [value / 1000 for value in values]
    path = tmp_path_factory.mktemp("new") / "new.csv"
    path.write_text("x;y\n" + "".join(f"{number:.{decimals}f};0\n".replace(".", mark) for number in numbers))
    frame = pd.DataFrame({"x": [round(number, decimals) for number in numbers]})
    expected = tabular.predict(run, frame, probabilities=True).chances["yes"]
    np.testing.assert_array_equal(tabular.predict(run, path, probabilities=True).chances["yes"], expected)


def test_what_somebody_says_of_another_table_holds(models, tmp_path):
    run, data = models["comma"]
    expected = tabular.predict(run, data).probability
    other = write(tmp_path / "other.csv", map(WRITTEN["point"], VALUES))
    assert tabular.predict(run, other, decimal=".").probability.tolist() == expected.tolist()
    thousands = write(tmp_path / "thousands.csv", [f"{value:.3f}" for value in VALUES])
    again = tabular.predict(run, thousands, decimal=".").probability
    np.testing.assert_allclose(again, expected)


def test_groups_of_numbers_are_read_as_they_were(models, tmp_path):
    _, data = models["percent"]
    other = write(tmp_path / "other.csv", map(WRITTEN["point"], VALUES))
    asked = {"label": "paid", "sensitive": "x", "bins": "x=5", "clean_ratio": 0.95, "max_iter": 2}
    with pytest.raises(InvalidInputError, match=r"'x' of .* must be written as in training, with %"):
        tabular.train(data, test_file=other, **asked)
