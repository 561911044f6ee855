"""Importing the package stays light, and every public name is found."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

import fairsieve


def test_what_takes_long_to_import_is_imported_later():
    code = "import sys, fairsieve; print({'numpy', 'torch', 'sklearn', 'pandas', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


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
    with pytest.raises(AttributeError, match="module 'fairsieve' has no attribute 'nothing'"):
        _ = fairsieve.nothing
