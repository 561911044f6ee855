"""The real data sets, loaded once; a missing file fails with the command that gets it."""

import pytest

from fairsieve.data import load_adult, load_compas, load_german
from fairsieve.data.sources import locate
from fairsieve.errors import MissingDataError


def loaded(load, *names):
    try:
        for name in names:
            locate(name)
    except MissingDataError as error:
        pytest.fail(str(error), pytrace=False)
    return load()


@pytest.fixture(scope="session")
def compas():
    return loaded(load_compas, "compas-scores-two-years.csv")


@pytest.fixture(scope="session")
def adult():
    return loaded(load_adult, "adult.test", "adult.data")


@pytest.fixture(scope="session")
def german():
    return loaded(load_german, "german.data")
