"""Every public name is found."""

from __future__ import annotations

import importlib.util

import pytest

import fairsieve


def test_names_that_come_later_are_listed_and_found():
    assert sorted(fairsieve.__all__) == fairsieve.__all__
    assert set(fairsieve.LATER) <= set(fairsieve.__all__) <= set(dir(fairsieve))
    for name in fairsieve.__all__:
        try:
            found = getattr(fairsieve, name)
        except fairsieve.errors.MissingExtraError as error:
            assert importlib.util.find_spec("torch") is None
            assert "needs torch" in str(error)
        else:
            assert found.__name__ == name
    for name in dir(fairsieve):
        if name not in fairsieve.LATER:
            assert getattr(fairsieve, name) is not None
    with pytest.raises(AttributeError, match="module 'fairsieve' has no attribute 'nothing'"):
        _ = fairsieve.nothing
