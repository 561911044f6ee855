"""German credit: the pinned counts and the encoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairsieve.data import german as module
from fairsieve.data.fetch import fetch
from fairsieve.data.german import load_german
from fairsieve.data.sources import locate
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

LINE = "A11 6 A34 A43 1169 A65 A75 4 {status} A101 4 A121 67 A143 A152 2 A173 1 A192 A201 {label}"


def test_counts(german: Samples) -> None:
    assert german.features.shape == (1000, 58)
    assert german.cells.classes == [0, 1]
    assert german.cells.groups == ["Female", "Male"]
    assert german.cells.counts.sum(axis=1).tolist() == [300, 700]
    assert german.cells.counts.sum(axis=0).tolist() == [310, 690]


def test_first_row(german: Samples) -> None:
    first = dict(zip(german.feature_names, german.features[0].tolist(), strict=True))
    assert {name: value for name, value in first.items() if value != 0} == {
        "checking_status=<0": 1,
        "duration": 6,
        "credit_history=critical/other existing credit": 1,
        "purpose=radio/tv": 1,
        "credit_amount": 1169,
        "savings_status=no known savings": 1,
        "employment=>=7": 1,
        "installment_commitment": 4,
        "other_parties=none": 1,
        "residence_since": 4,
        "property_magnitude=real estate": 1,
        "age": 67,
        "other_payment_plans=none": 1,
        "housing=own": 1,
        "existing_credits": 2,
        "job=skilled": 1,
        "num_dependents": 1,
        "own_telephone=yes": 1,
        "foreign_worker=yes": 1,
        "sex=Male": 1,
    }
    assert german.labels[0] == 1


def test_personal_status_is_replaced_by_sex(german: Samples) -> None:
    assert not any(name.startswith("personal_status") for name in german.feature_names)
    np.testing.assert_array_equal(german.features[:, -1] == 1, german.groups == "Male")


def test_no_feature_is_constant(german: Samples) -> None:
    assert (german.features.min(axis=0) < german.features.max(axis=0)).all()


@pytest.mark.parametrize(
    ("status", "sex"),
    [("A91", "Male"), ("A92", "Female"), ("A93", "Male"), ("A94", "Male"), ("A95", "Female")],
)
def test_sex_of_each_status(status: str, sex: str, tmp_path: Path) -> None:
    (tmp_path / "german.data").write_text(LINE.format(status=status, label=2) + "\n")
    samples = load_german(tmp_path, check=False)
    assert samples.groups.tolist() == [sex]
    assert samples.labels.tolist() == [0]
    assert samples.features.shape == (1, 58)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "german.data"
    path.write_text(LINE.format(status="A99", label=1))
    with pytest.raises(InvalidInputError, match=r"personal_status in .* got also \['A99'\]"):
        load_german(path, check=False)
    path.write_text(LINE.format(status="A91", label=3))
    with pytest.raises(InvalidInputError, match=r"class in .* got also \['3'\]"):
        load_german(path, check=False)
    path.write_text("A11 6")
    with pytest.raises(InvalidInputError, match="must have 21 fields"):
        load_german(path, check=False)


def test_parameters_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="sensitive must be one of sex; got 'race'"):
        load_german(sensitive="race")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="source must be one of"):
        load_german(source="web")  # type: ignore[arg-type]
    (tmp_path / module.OPENML_FILE).write_text(LINE.format(status="A91", label=1))
    with pytest.raises(InvalidInputError, match="must have 1000 rows; got 1"):
        load_german(tmp_path, source="openml")


@pytest.fixture
def openml_bunch(german: Samples, bunch_of: Any) -> Any:
    """OpenML has words where the file has codes."""
    rows = []
    for fields in module._read_rows(locate("german.data")):
        pairs = zip(module.COLUMNS.items(), fields, strict=True)
        rows.append({name: words[field] if words else field for (name, words), field in pairs})
    return bunch_of(rows, {name for name, words in module.COLUMNS.items() if words is None})


def test_openml_gives_the_same_samples(
    german: Samples,
    openml_bunch: Any,
    openml_answers: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = openml_answers(openml_bunch)
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    assert fetch("german", source="openml") == [tmp_path / module.OPENML_FILE]
    assert [call["data_id"] for call in calls] == [31]
    loaded = load_german(source="openml")
    assert loaded.feature_names == german.feature_names
    np.testing.assert_array_equal(loaded.features, german.features)
    np.testing.assert_array_equal(loaded.labels, german.labels)
    np.testing.assert_array_equal(loaded.groups, german.groups)


def test_words_that_openml_does_not_use_are_refused(
    openml_bunch: Any, openml_answers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openml_bunch["categories"]["housing"] = ["castle", "tent", "barrel"]
    openml_answers(openml_bunch)
    monkeypatch.setenv("FAIRSIEVE_CACHE", str(tmp_path))
    with pytest.raises(InvalidInputError, match="housing from OpenML must be among"):
        fetch("german", source="openml")
    assert list(tmp_path.iterdir()) == []
