"""Ask of a table what an earlier run asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.table import Reading
from fairsieve.tabular.request import Asked

__all__ = ["recorded_request"]

TAKEN = (
    "label",
    "sensitive",
    "positive",
    "fairness",
    "small_groups",
    "keep_sensitive",
    "drop",
    "categories",
    "seed",
)


def recorded_request(run: Path, data: Path, given: Mapping[str, Any]) -> Asked:
    """Return what a run's ``metrics.json`` says that was asked, for a table, with what is ``given`` in its place."""
    file = Path(run) / "metrics.json"
    try:
        recorded = json.loads(file.read_text(encoding="utf-8"))["settings"]
        found = {name: recorded[name] for name in TAKEN}
        found["bins"] = [
            f"{column}={','.join(map(str, edges))}" for column, edges in recorded["bins"].items() if edges
        ]
        found["reading"] = Reading(missing=tuple(map(str, recorded["missing"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"--run must be a folder that fairsieve train made; {run} has no metrics.json that can be read "
            f"({type(error).__name__}): name the folder that was given to train as --out"
        ) from error
    return Asked(data, **(found | dict(given)))
