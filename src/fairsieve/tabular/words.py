"""Names and sentences about tables, which the templates of this folder word."""

from __future__ import annotations

import math
from typing import Any

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.report.text import environment, load_sentences, upper

__all__ = ["estimate_facts", "estimate_sentence", "group_name", "say", "upper", "write"]

NO_GROUP = "(no group)"


def group_name(group: str | None) -> str:
    """Name a group."""
    return NO_GROUP if group is None else group


def say(template: str, name: str, facts: dict[str, Any] | None = None, *, in_python: bool = False) -> str:
    """Word one sentence or a few in one line: the macro ``name`` of a template.

    With ``in_python``, advice names parameters instead of options of the command line.
    """
    macros = load_sentences("fairsieve.tabular", f"templates/{template}", in_python=in_python)
    return " ".join(str(getattr(macros, name)(**(facts or {}))).split())


def write(template: str, **facts: Any) -> str:
    """Write a whole file."""
    return str(environment("fairsieve.tabular").get_template(f"templates/{template}").render(facts))


def estimate_facts(estimate: CleanRatioEstimate) -> dict[str, Any]:
    """Collect what is said of an estimate."""
    low, high = estimate.interval
    return {
        "conclusive": bool(estimate.credible),
        "why": str(estimate.credible).rstrip("."),
        "training": estimate.training,
        "checked": estimate.verified is not None,
        "found": bool(estimate.flip_rates.any()),
        "aimed": estimate.aimed,
        "wrong": float(estimate.wrong.mean()),
        "bounds": (1 - high, 1 - low),
        "most": max(math.ceil(100 * (1 - low) - 1e-9), 1),
    }


def estimate_sentence(estimate: CleanRatioEstimate) -> str:
    """Say how many labels were found to be wrong, how they came about, and what cannot be known."""
    return say("decision.j2", "estimate", {"it": estimate_facts(estimate)})
