"""One small table, and one run on it, for all these tests."""

from __future__ import annotations

import pytest
from tests.support.people import people, write_csv

from fairsieve.tabular.settings import TableSettings
from fairsieve.tabular.table_run import train_table


@pytest.fixture(scope="session")
def people_csv(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("people") / "people.csv", people())


@pytest.fixture(scope="session")
def run(people_csv):
    return train_table(TableSettings(people_csv, "income", ["sex"], "high", clean_ratio=0.9, max_iter=24))
