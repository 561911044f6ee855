"""The list of mutants that behave like the original follows the code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SELECTION = FOLDER.parents[1] / "src" / "fairsieve" / "selection"


def test_every_known_mutant_is_one_of_the_present_code(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    mutants = __import__("mutants")
    known = json.loads((FOLDER / "equivalent_mutants.json").read_text(encoding="utf-8"))
    files = {pattern.partition(" ")[0] for pattern in known}
    names = {
        mutant.name
        for file in files
        for mutant in mutants.mutants_of(file, (SELECTION / file).read_text(encoding="utf-8"))
    }
    outdated = [
        pattern
        for pattern in known
        if pattern not in names
        and not (pattern.endswith("*") and any(name.startswith(pattern[:-1]) for name in names))
    ]
    sys.modules.pop("mutants", None)
    assert outdated == []
