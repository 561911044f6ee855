"""Adult: the pinned counts, the encoding, the known accuracy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsieve.data import adult as module
from fairsieve.data.adult import load_adult
from fairsieve.data.fetch import fetch
from fairsieve.data.sources import locate
from fairsieve.data.splits import split
from fairsieve.errors import InvalidInputError, MissingDataError
from fairsieve.samples import Samples

LINE = "39, State-gov, 77516, Bachelors, 13, Divorced, Sales, Husband, White, Male, 2174, 0, 40, Cuba, "


def test_counts_by_sex(adult: Samples) -> None:
    assert adult.features.shape == (43131, 97)
    assert adult.cells.groups == ["Female", "Male"]
    assert adult.cells.counts.tolist() == [[12386, 20004], [1581, 9160]]
    assert adult.cells.counts.sum(axis=1).tolist() == [32390, 10741]


def test_counts_by_race(adult: Samples) -> None:
    by_race = load_adult(sensitive="race")
    assert by_race.cells.groups == ["Black", "White"]
    assert by_race.cells.counts.tolist() == [[3694, 28696], [534, 10207]]
    np.testing.assert_array_equal(by_race.features, adult.features)


def test_rows_before_the_cuts(adult: Samples) -> None:
    rows = [row for name in ("adult.test", "adult.data") for row in module.read_rows(locate(name))]
    assert len(rows) == 48842
    assert sum("?" not in row for row in rows) == 45222


def test_the_test_file_comes_first(adult: Samples) -> None:
    first = dict(zip(adult.feature_names, adult.features[0].tolist(), strict=True))
    assert first["age"] == 25
    assert first["workclass=Private"] == 1
    assert first["education=11th"] == 1
    assert first["race=White"] == 0
    assert first["sex=Male"] == 1


def test_numeric_columns_are_raw_and_the_others_are_indicators(adult: Samples) -> None:
    assert adult.feature_names[:5] == (
        "age",
        "education-num",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
    )
    assert adult.feature_names[-2:] == ("race=White", "sex=Male")
    assert not any("fnlwgt" in name or "Laos" in name for name in adult.feature_names)
    assert len(set(adult.feature_names)) == 97
    assert adult.features.dtype == np.float32
    assert adult.features[:, 0].min() == 17
    assert adult.features[:, 2].max() == 99999
    assert set(np.unique(adult.features[:, 5:])) == {0.0, 1.0}
    assert (adult.features[:, 5:].sum(axis=1) - adult.features[:, -2:].sum(axis=1) == 6).all()
    np.testing.assert_array_equal(adult.features[:, -1] == 1, adult.groups == "Male")


def test_loading_is_quick(adult: Samples) -> None:
    start = time.process_time()
    load_adult()
    assert time.process_time() - start < 5  # about 0.7 s on a quiet machine


def test_logistic_regression_on_clean_labels(adult: Samples) -> None:
    parts = split(adult)
    model = LogisticRegression(max_iter=1000).fit(parts.train.features, parts.train.labels)
    assert model.score(parts.test.features, parts.test.labels) == pytest.approx(0.847, abs=0.006)
    assert np.mean(parts.test.labels == 0) == pytest.approx(0.751, abs=0.001)


def test_labels_with_and_without_a_full_stop(tmp_path: Path) -> None:
    (tmp_path / "adult.test").write_text(f"|1x3 Cross validator\n{LINE}>50K.\n\n")
    (tmp_path / "adult.data").write_text(f"{LINE}<=50K\n{LINE.replace('Sales', '?')}<=50K\n")
    samples = load_adult(tmp_path, check=False)
    assert samples.labels.tolist() == [1, 0]
    assert samples.cells.groups == ["Female", "Male"]


def test_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "adult.test").write_text(f"{LINE}>50K.\n")
    with pytest.raises(InvalidInputError, match=r"adult\.test with the SHA-256"):
        load_adult(tmp_path)
    with pytest.raises(MissingDataError, match=r"adult\.data .* does not exist"):
        load_adult(tmp_path, check=False)
    (tmp_path / "adult.data").write_text("1, 2, 3\n")
    with pytest.raises(InvalidInputError, match="must have 15 fields"):
        load_adult(tmp_path, check=False)
    with pytest.raises(InvalidInputError, match=r"path must be a folder that holds adult\.data"):
        load_adult(tmp_path / "adult.data")


def test_parameters_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="sensitive must be one of sex, race; got 'age'"):
        load_adult(sensitive="age")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="source must be one of"):
        load_adult(source="web")  # type: ignore[arg-type]
    (tmp_path / module.OPENML_FILE).write_text(f"{LINE}<=50K\n")
    with pytest.raises(InvalidInputError, match="must have 48842 rows; got 1"):
        load_adult(tmp_path, source="openml")


def test_openml_gives_the_same_samples(
    adult: Samples, openml_answers: Any, bunch_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [*module.COLUMNS[:-1], "class"]
    lines = [row for name in ("adult.test", "adult.data") for row in module.read_rows(locate(name))]
    rows = [dict(zip(names, line, strict=True)) for line in lines]
    calls = openml_answers(bunch_of(rows, {*module.NUMERIC, "fnlwgt"}))
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    assert fetch("adult", source="openml") == [tmp_path / module.OPENML_FILE]
    assert [call["data_id"] for call in calls] == [1590]
    loaded = load_adult(source="openml")
    assert loaded.feature_names == adult.feature_names
    np.testing.assert_array_equal(loaded.features, adult.features)
    np.testing.assert_array_equal(loaded.labels, adult.labels)
    np.testing.assert_array_equal(loaded.groups, adult.groups)
