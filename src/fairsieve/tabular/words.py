"""Names and sentences about tables, which the templates of this folder word."""

from __future__ import annotations

import math
import shlex
from typing import Any

from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.report.sentences import Sentences, upper
from fairsieve.report.text import markdown

__all__ = ["SENTENCES", "estimate_facts", "estimate_sentence", "group_name", "upper"]

NO_GROUP = "(no group)"


def group_name(group: str | None) -> str:
    """Name a group."""
    return NO_GROUP if group is None else group


SENTENCES = Sentences("fairsieve.tabular", group=group_name, shell=shlex.join, md=markdown)


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
    return SENTENCES.say("decision.j2", "estimate", {"it": estimate_facts(estimate)})
