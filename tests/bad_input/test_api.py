"""Every bad input to the public API gives the error that the catalogue says, and leaves nothing behind."""

import re

import pytest
from tests.bad_input import api_core, api_data, api_learning, api_tables

ENTRIES = [*api_core.ENTRIES, *api_learning.ENTRIES, *api_data.ENTRIES, *api_tables.ENTRIES]


@pytest.mark.parametrize("bad", ENTRIES, ids=lambda bad: bad.name)
def test_it_is_told(bad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bad.error) as caught:
        bad.call()
    message = str(caught.value)
    assert bad.lacks(message) == [], message
    assert not re.search(r"np\.\w+\(|numpy\.\w+\(", message), message  # NumPy's names say nothing to a user
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path.parent / "x").exists()
