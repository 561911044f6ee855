"""Short fits on little data rarely reach a tolerance: the warnings of that are tested where they are the point."""

from pathlib import Path

import pytest

from fairsieve.data import make_synthetic


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for ignored in ("ignore::fairsieve.errors.FairnessWarning", "ignore:the widest gap is"):
                item.add_marker(pytest.mark.filterwarnings(ignored), append=False)


@pytest.fixture(scope="session")
def data():
    """What most of these tests fit to; some files have more or fewer rows."""
    return make_synthetic(300, seed=0)
