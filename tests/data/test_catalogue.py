"""The catalogue agrees with the loaders and the table of files."""

from __future__ import annotations

import json

import pytest

from fairsieve.data.catalogue import DATASETS, describe
from fairsieve.data.sources import FILES
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples


def test_every_raw_file_belongs_to_an_entry() -> None:
    assert {name for entry in DATASETS.values() for name in entry.files} == set(FILES)
    for name, entry in DATASETS.items():
        assert entry.name == name
        for file in entry.files:
            assert FILES[file].licence == entry.licence
            assert FILES[file].source == entry.source


def test_every_entry_says_what_it_is() -> None:
    for entry in DATASETS.values():
        assert entry.title
        assert entry.label
        assert entry.licence
        assert entry.source
        assert entry.sensitive


def test_describe_counts(compas: Samples) -> None:
    found = describe("compas")
    assert found["rows"] == 5278
    assert found["features"] == 10
    assert found["sensitive"] == "sex"
    assert found["groups"] == ["Female", "Male"]
    assert found["cells"] == [[658, 2137], [373, 2110]]
    assert found["base_rates"] == pytest.approx({"Female": 373 / 1031, "Male": 2110 / 4247})
    assert found["licence"] == "none found"
    assert found["files"] == ["compas-scores-two-years.csv"]


def test_describe_by_another_attribute(compas: Samples) -> None:
    found = describe("compas", sensitive="race")
    assert found["groups"] == ["African-American", "Caucasian"]
    assert found["cells"] == [[1514, 1281], [1661, 822]]


def test_descriptions_are_plain_data(german: Samples) -> None:
    found = describe("german")
    assert json.loads(json.dumps(found)) == found
    assert sum(map(sum, found["cells"])) == found["rows"] == 1000


def test_unknown_names_and_attributes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"name must be one of \[.*'compas'.*\]; got 'iris'"):
        describe("iris")
    with pytest.raises(InvalidInputError, match=r"sensitive must be one of \['sex'\] for german; got 'race'"):
        describe("german", sensitive="race")
