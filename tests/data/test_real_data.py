"""COMPAS, Adult and German credit: the pinned counts, the encoding, the known accuracy, and files that are wrong."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.support.refusals import refused

from fairsieve.data import load_adult, load_compas, load_german, split
from fairsieve.errors import InvalidInputError, MissingDataError

LOADERS = {"compas": load_compas, "adult": load_adult, "german": load_german}
COUNTS = {  # rows of labels 0 and 1, columns of groups
    ("compas", "sex"): (("Female", "Male"), [[658, 2137], [373, 2110]], 10),
    ("compas", "race"): (("African-American", "Caucasian"), [[1514, 1281], [1661, 822]], 10),
    ("adult", "sex"): (("Female", "Male"), [[12386, 20004], [1581, 9160]], 97),
    ("adult", "race"): (("Black", "White"), [[3694, 28696], [534, 10207]], 97),
    ("german", "sex"): (("Female", "Male"), [[109, 191], [201, 499]], 58),
}


@pytest.mark.parametrize(("name", "sensitive"), COUNTS)
def test_counts(request, name, sensitive):
    groups, cells, features = COUNTS[name, sensitive]
    found = LOADERS[name](sensitive=sensitive)
    assert found.cells.classes == [0, 1]
    assert tuple(found.cells.groups) == groups
    assert found.cells.counts.tolist() == cells
    assert found.features.shape == (sum(map(sum, cells)), features)
    assert found.features.dtype == np.float32
    assert found.labels.dtype.kind == "i"
    np.testing.assert_array_equal(found.features, request.getfixturevalue(name).features)


def test_features_of_compas_are_ten_indicators(compas):
    priors = ("priors=0", "priors=1-3", "priors=>3", "charge_degree=F", "charge_degree=M")
    ages = ("age_cat=Less than 25", "age_cat=25 - 45", "age_cat=Greater than 45")
    assert compas.feature_names == ("sex=Female", "race=Caucasian", *ages, *priors)
    assert set(np.unique(compas.features)) == {0.0, 1.0}
    for block in (slice(2, 5), slice(5, 8), slice(8, 10)):
        assert (compas.features[:, block].sum(axis=1) == 1).all()
    np.testing.assert_array_equal(compas.features[:, 0] == 1, compas.groups == "Female")


def test_features_of_adult_are_numbers_and_indicators(adult):
    first = dict(zip(adult.feature_names, adult.features[0].tolist(), strict=True))
    expected = {"age": 25, "workclass=Private": 1, "education=11th": 1, "race=White": 0, "sex=Male": 1}
    assert {name: first[name] for name in expected} == expected  # the test file comes first
    numbers = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    assert adult.feature_names[:5] == numbers
    assert adult.feature_names[-2:] == ("race=White", "sex=Male")
    assert not any("fnlwgt" in name or "Laos" in name for name in adult.feature_names)
    assert adult.features[:, 2].max() == 99999
    assert set(np.unique(adult.features[:, 5:])) == {0.0, 1.0}
    assert (adult.features[:, 5:].sum(axis=1) - adult.features[:, -2:].sum(axis=1) == 6).all()


def test_features_of_german_have_sex_in_place_of_the_status(german):
    first = dict(zip(german.feature_names, german.features[0].tolist(), strict=True))
    expected = {"checking_status=<0": 1, "duration": 6, "credit_amount": 1169, "age": 67, "housing=own": 1}
    assert {name: first[name] for name in expected} == expected
    assert sum(value != 0 for value in first.values()) == 20
    assert german.labels[0] == 1
    assert not any(name.startswith("personal_status") for name in german.feature_names)
    np.testing.assert_array_equal(german.features[:, -1] == 1, german.groups == "Male")
    assert (german.features.min(axis=0) < german.features.max(axis=0)).all()


@pytest.mark.parametrize(("name", "seeds", "expected"), [("compas", 5, 0.661), ("adult", 1, 0.847)])
def test_logistic_regression_on_clean_labels(request, name, seeds, expected):
    scores = []
    for seed in range(seeds):
        parts = split(request.getfixturevalue(name), seed=seed)
        model = LogisticRegression(max_iter=1000).fit(parts.train.features, parts.train.labels)
        scores.append(model.score(parts.test.features, parts.test.labels))
    assert np.mean(scores) == pytest.approx(expected, abs=0.01)


COMPAS = {
    "sex": "Male", "age_cat": "25 - 45", "race": "Caucasian", "priors_count": "1",
    "days_b_screening_arrest": "0", "c_charge_degree": "F", "is_recid": "0", "score_text": "Low",
    "two_year_recid": "0",
}  # fmt: skip


def load_compas_lines(folder, *rows):
    lines = [",".join(COMPAS), *(",".join((COMPAS | row).values()) for row in rows)]
    (folder / "compas-scores-two-years.csv").write_text("\n".join(lines) + "\n")
    return load_compas(folder, check=False)


CUT = {"is_recid": "-1", "c_charge_degree": "O", "score_text": "N/A", "race": "Hispanic"}
CUTS = [*({"days_b_screening_arrest": days} for days in ("", "31", "-31"))]
CUTS += [{name: value} for name, value in CUT.items()]


def test_rows_of_compas_that_are_left_out_and_brackets_of_priors(tmp_path):
    counts = ("0", "1", "3", "4", "38")
    kept = ({"priors_count": count, "days_b_screening_arrest": "30"} for count in counts)
    samples = load_compas_lines(tmp_path, *CUTS, *kept)
    assert samples.features[:, 5:8].argmax(axis=1).tolist() == [0, 1, 1, 2, 2]


ADULT = "39, State-gov, 77516, Bachelors, 13, Divorced, Sales, Husband, White, Male, 2174, 0, 40, Cuba, "
GERMAN = "A11 6 A34 A43 1169 A65 A75 4 {status} A101 4 A121 67 A143 A152 2 A173 1 A192 A201 {label}"


def test_labels_of_adult_with_and_without_a_full_stop(tmp_path):
    (tmp_path / "adult.test").write_text(f"|1x3 Cross validator\n{ADULT}>50K.\n\n")
    (tmp_path / "adult.data").write_text(f"{ADULT}<=50K\n{ADULT.replace('Sales', '?')}<=50K\n")
    samples = load_adult(tmp_path, check=False)
    assert samples.labels.tolist() == [1, 0]
    assert samples.cells.groups == ["Female", "Male"]


def test_sex_of_each_status(tmp_path):
    lines = [GERMAN.format(status=status, label=2) for status in ("A91", "A92", "A94", "A95")]
    (tmp_path / "german.data").write_text("\n".join(lines) + "\n")
    samples = load_german(tmp_path, check=False)
    assert samples.groups.tolist() == ["Male", "Female"] * 2
    assert samples.labels.tolist() == [0] * 4


WRONG = [
    (load_compas, {"compas-scores-two-years.csv": "a,b\n1,2\n"}, "must be the published table"),
    (load_adult, {"adult.test": f"{ADULT}>50K.\n", "adult.data": "1, 2, 3\n"},
     "must have all fields; row 1 has fewer"),
    (load_german, {"german.data": GERMAN.format(status="A99", label=1)}, r"personal_status in .* got also \['A99'\]"),
    (load_german, {"german.data": GERMAN.format(status="A91", label=3)}, r"class in .* got also \['3'\]"),
    (load_german, {"german.data": "A11 6"}, "must have all fields"),
]  # fmt: skip


@pytest.mark.parametrize(("load", "files", "message"), WRONG)
def test_wrong_files_are_named(load, files, message, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    refused("SHA-256", load, tmp_path)
    refused(message, load, tmp_path, check=False)


def test_files_that_are_missing_or_damaged_are_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"two_year_recid in .* must be among .* \['2'\]"):
        load_compas_lines(tmp_path, {"two_year_recid": "2"})
    (tmp_path / "adult.test").write_text(f"{ADULT}>50K.\n")
    with pytest.raises(MissingDataError, match=r"adult\.data .* does not exist"):
        load_adult(tmp_path, check=False)
    refused(r"path must be a folder that holds adult\.data", load_adult, tmp_path / "adult.test")


@pytest.mark.parametrize("load", LOADERS.values())
def test_parameters_are_checked(load):
    refused(r"sensitive must be one of sex.*; got 'age'", load, sensitive="age")
    if load is not load_compas:
        refused("source must be one of", load, source="web")
