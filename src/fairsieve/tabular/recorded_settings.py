"""Read what an earlier run asked of its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairsieve.errors import InvalidInputError

__all__ = ["read_settings"]

TAKEN = (
    "label",
    "sensitive",
    "positive",
    "fairness",
    "small_groups",
    "keep_sensitive",
    "drop",
    "categories",
    "dates",
    "missing",
    "seed",
)


def read_settings(run: Path) -> dict[str, Any]:
    """Return the settings in a run's ``metrics.json`` by which another command reads the same table alike."""
    try:
        recorded = json.loads((Path(run) / "metrics.json").read_text(encoding="utf-8"))["settings"]
        found = {name: recorded[name] for name in TAKEN if name in recorded or name in TAKEN[:2]}
        edges = recorded["bins"].items()
        found["bins"] = [f"{column}={','.join(map(str, its))}" for column, its in edges if its]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"--run must be a folder that fairsieve train made; {run} has no metrics.json that can be read "
            f"({type(error).__name__}): name the folder that was given to train as --out"
        ) from error
    return found
