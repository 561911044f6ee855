"""NHANES: the counts that are known, what people miss in each group, and the truth, which is nowhere a feature."""

import gzip
import re
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from tests.support.refusals import refused

from fairsieve.data import load_nhanes, read_nhanes, split, tables
from fairsieve.data.catalogue import DATASETS, describe, export_csv
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples

# Of those who are obese as measured: how many there are, and how many are not by what they say.
MISSED = {
    "Asian": (117, 34), "Black": (594, 68), "Mexican American": (301, 43), "Other Hispanic": (174, 34),
    "Other or several": (125, 17), "White": (771, 132),
}  # fmt: skip
SHARES = {"Asian": 0.291, "Other Hispanic": 0.195, "White": 0.171, "Mexican American": 0.143, "Black": 0.114}
# A measure of the body, or what tells of it.
TELLING = re.compile(
    r"bmi|mass|weight|height|waist|fat|diet|eaten|meal|milk|kcal|lose|lost|obes|diabet|glyco|a1c|insulin|truth|told"
)


@pytest.fixture(scope="module")
def people():
    return read_nhanes()


def test_the_file_is_small_and_the_one_that_is_known():
    file = resources.files("fairsieve.data") / tables.NHANES_FILE
    assert len(file.read_bytes()) <= 300_000
    assert tables.hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest() == tables.NHANES_SHA256


def test_counts_and_who_is_missed(people):
    assert len(people) == 4962
    assert (people["obese"] != people["truth"]).sum() == 390
    obese = people[people["truth"] == "yes"]
    counts = obese.groupby("race")["obese"].agg([len, lambda said: (said == "no").sum()])
    assert {race: tuple(row) for race, row in counts.iterrows()} == MISSED
    for race, share in SHARES.items():
        assert MISSED[race][1] / MISSED[race][0] == pytest.approx(share, abs=0.0005)


def test_diabetes_is_the_second_label():
    told = read_nhanes("diabetes")
    assert len(told) == 4757
    assert pd.crosstab(told["diabetes"], told["truth"]).to_numpy().tolist() == [[3767, 210], [65, 715]]


@pytest.mark.parametrize("condition", tables.NHANES_CONDITIONS)
def test_no_feature_tells_the_truth(condition):
    people, samples = read_nhanes(condition), load_nhanes(condition)
    label = tables.NHANES_LABELS[condition]
    names = [name for name in people if name not in (label, "truth")]
    assert not [name for name in (*names, *samples.feature_names) if TELLING.search(name)]
    truth = samples.truth.astype(float)
    assert np.abs([np.corrcoef(column, truth)[0, 1] for column in samples.features.T]).max() < 0.5
    assert samples.labels.tolist() == (people[label] == "yes").astype(int).tolist()
    assert samples.truth.tolist() == (people["truth"] == "yes").astype(int).tolist()


def test_columns_have_the_types_of_what_is_in_them(people):
    numbers = people.select_dtypes("number")
    assert list(numbers)[:3] == ["age", "household_size", "income_to_poverty"]
    assert numbers["age"].between(20, 80).all()
    assert numbers.max().max() <= 1320  # codes for no answer are larger
    texts = people.drop(columns=numbers)
    assert all(isinstance(value, str) for column in texts for value in texts[column].dropna().unique())
    assert 0.1 < people["income_to_poverty"].isna().mean() < 0.15


@pytest.mark.parametrize(("sensitive", "groups"), [("race", 6), ("sex", 2), ("age", 3)])
def test_samples(sensitive, groups):
    samples = load_nhanes(sensitive=sensitive)
    assert samples.features.dtype == np.float32
    assert samples.cells.shape == (2, groups)
    assert samples.cells.counts.sum() == 4962
    assert DATASETS["nhanes"].sensitive == ("race", "sex", "age")
    assert describe("nhanes", sensitive=sensitive)["rows"] == 4962


def test_the_truth_goes_where_its_people_go():
    samples = load_nhanes()
    parts = split(samples, seed=3)
    there = [part.truth.sum() for part in (parts.train, parts.test, parts.validation)]
    assert sum(there) == samples.truth.sum()
    rows = np.array([5, 1])
    assert samples.take(rows).truth.tolist() == samples.truth[rows].tolist()
    assert samples.with_labels(samples.truth).labels.tolist() == samples.truth.tolist()
    with pytest.raises(InvalidInputError, match=r"truth must have one label per sample, the shape \(2,\)"):
        Samples([[0.0], [1.0]], [0, 1], ["a", "b"], truth=[1])


def test_the_exported_table_is_the_one_that_is_read(people, tmp_path):
    export_csv("nhanes", tmp_path / "people.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "people.csv"), people)
    changed = export_csv("nhanes", tmp_path / "few.csv", rows=50, wrong=0.1)
    few = pd.read_csv(tmp_path / "few.csv")
    assert (few["obese"] != people["obese"].head(50)).sum() == len(changed) == 5


def test_bad_input_is_named(monkeypatch):
    refused("condition must be one of obesity, diabetes; got 'asthma'", read_nhanes, "asthma")
    refused("sensitive must be one of race, sex, age", load_nhanes, sensitive="income")
    monkeypatch.setattr(tables, "NHANES_SHA256", "0")
    refused("it is damaged: install fairsieve again", read_nhanes)


def test_half_of_the_people_can_be_exported_as_measured(tmp_path):
    said, measured, whole = (tmp_path / name for name in ("said.csv", "measured.csv", "whole.csv"))
    export_csv("nhanes", said, measured=measured)
    export_csv("nhanes", whole)
    paths = said, measured, whole
    first, second, both = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
    assert len(first) == len(second) == 2481
    told, truth = both.drop(columns="truth"), both.assign(obese=both["truth"]).drop(columns="truth")
    assert len(pd.concat([first, told]).drop_duplicates()) == len(told.drop_duplicates())
    assert len(pd.concat([second, truth]).drop_duplicates()) == len(truth.drop_duplicates())
    assert (second["obese"] == "yes").mean() == pytest.approx((truth["obese"] == "yes").mean(), abs=0.05)


def test_measured_labels_are_asked_for_where_there_are_some(tmp_path):
    with pytest.raises(InvalidInputError, match="only nhanes has measured labels"):
        export_csv("adult", tmp_path / "a.csv", measured=tmp_path / "b.csv")
    with pytest.raises(InvalidInputError, match="measured must be another file"):
        export_csv("nhanes", tmp_path / "a.csv", measured=tmp_path / "a.csv")
