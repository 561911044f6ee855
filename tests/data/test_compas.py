"""COMPAS: the pinned counts, no personal data, the known accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsieve.data import compas as module
from fairsieve.data.compas import load_compas
from fairsieve.data.sources import locate
from fairsieve.data.splits import split
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

HEADER = ",".join(["name", "dob", *module.COLUMNS])


def row(**changes: str) -> str:
    """One usable line of the CSV."""
    usual = {
        "sex": "Male",
        "race": "Caucasian",
        "age_cat": "25 - 45",
        "priors_count": "2",
        "c_charge_degree": "F",
        "days_b_screening_arrest": "-1",
        "is_recid": "0",
        "score_text": "Low",
        "two_year_recid": "0",
    }
    return ",".join(["ann example", "1970-01-01", *(usual | changes).values()])


def load_lines(tmp_path: Path, *lines: str) -> Samples:
    path = tmp_path / "compas.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return load_compas(path, check=False)


def test_counts_by_sex(compas: Samples) -> None:
    assert compas.features.shape == (5278, 10)
    assert compas.cells.groups == ["Female", "Male"]
    assert compas.cells.counts.tolist() == [[658, 2137], [373, 2110]]
    assert compas.cells.counts.sum(axis=1).tolist() == [2795, 2483]


def test_counts_by_race(compas: Samples) -> None:
    by_race = load_compas(sensitive="race")
    assert by_race.cells.groups == ["African-American", "Caucasian"]
    assert by_race.cells.counts.tolist() == [[1514, 1281], [1661, 822]]
    np.testing.assert_array_equal(by_race.features, compas.features)


def test_usable_rows_before_the_choice_of_races(compas: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = ("African-American", "Caucasian", "Hispanic", "Other", "Asian", "Native American")
    assert len(module._read_rows(locate(module.FILE))) == 7214
    monkeypatch.setattr(module, "RACES", everyone)
    assert len(load_compas(sensitive="race")) == 6172


def test_features_are_ten_indicators(compas: Samples) -> None:
    assert compas.feature_names == (
        "sex=Female",
        "race=Caucasian",
        "age_cat=Less than 25",
        "age_cat=25 - 45",
        "age_cat=Greater than 45",
        "priors=0",
        "priors=1-3",
        "priors=>3",
        "charge_degree=F",
        "charge_degree=M",
    )
    assert compas.features.dtype == np.float32
    assert set(np.unique(compas.features)) == {0.0, 1.0}
    for block in (slice(2, 5), slice(5, 8), slice(8, 10)):
        assert (compas.features[:, block].sum(axis=1) == 1).all()
    np.testing.assert_array_equal(compas.features[:, 0] == 1, compas.groups == "Female")


def test_labels_are_integers_and_groups_words(compas: Samples) -> None:
    assert compas.labels.dtype.kind == "i"
    assert set(compas.labels.tolist()) == {0, 1}
    assert compas.groups.dtype.kind == "U"


def test_no_personal_column_is_loaded(compas: Samples) -> None:
    personal = {"id", "name", "first", "last", "dob", "c_case_number", "age"}
    assert personal.isdisjoint(module.COLUMNS)
    assert all(row.keys() == set(module.COLUMNS) for row in module._read_rows(locate(module.FILE)))


def test_logistic_regression_on_clean_labels(compas: Samples) -> None:
    scores = []
    for seed in range(5):
        parts = split(compas, seed=seed)
        model = LogisticRegression(max_iter=1000).fit(parts.train.features, parts.train.labels)
        scores.append(model.score(parts.test.features, parts.test.labels))
    assert np.mean(scores) == pytest.approx(0.661, abs=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {"days_b_screening_arrest": ""},
        {"days_b_screening_arrest": "31"},
        {"days_b_screening_arrest": "-31"},
        {"is_recid": "-1"},
        {"c_charge_degree": "O"},
        {"score_text": "N/A"},
        {"race": "Hispanic"},
    ],
)
def test_each_cut(changes: dict[str, str], tmp_path: Path) -> None:
    samples = load_lines(tmp_path, row(), row(**changes))
    assert len(samples) == 1


@pytest.mark.parametrize(("priors", "position"), [("0", 5), ("1", 6), ("3", 6), ("4", 7), ("38", 7)])
def test_brackets_of_priors(priors: str, position: int, tmp_path: Path) -> None:
    samples = load_lines(tmp_path, row(priors_count=priors), row(days_b_screening_arrest="30"))
    assert samples.features[0, 5:8].argmax() + 5 == position


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"two_year_recid in .* must be among .* \['2'\]"):
        load_lines(tmp_path, row(two_year_recid="2"))
    with pytest.raises(InvalidInputError, match="line 2 has fewer"):
        load_lines(tmp_path, "a,b")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"the header of .* must have the columns"):
        load_compas(tmp_path / "other.csv", check=False)
    with pytest.raises(InvalidInputError, match="SHA-256"):
        load_compas(tmp_path / "other.csv")


def test_sensitive_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="sensitive must be one of sex, race; got 'age'"):
        load_compas(sensitive="age")  # type: ignore[arg-type]
