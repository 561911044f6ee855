"""One small table, and one run on it, for all these tests."""

import pytest
from tests.support.people import QUICK, people, write_csv

from fairsieve import tabular


@pytest.fixture(scope="session")
def people_csv(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("people") / "people.csv", people())


@pytest.fixture(scope="session")
def trained(people_csv):
    return tabular.train(people_csv, **QUICK)


@pytest.fixture(scope="session")
def run(trained):
    return trained.run
