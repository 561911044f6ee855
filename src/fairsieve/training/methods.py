"""The methods that differ only in how they plan an epoch."""

from __future__ import annotations

from dataclasses import dataclass

from fairsieve.errors import InvalidInputError

__all__ = ["SELECTION_METHODS", "SelectionMethod", "selection_method"]


@dataclass(frozen=True)
class SelectionMethod:
    """Which parts of the plan a method uses.

    Attributes
    ----------
    cleans : bool
        Selects low-loss samples within the budget; otherwise all samples.
    fair : bool
        The ratios move, towards fairness.
    constrained, weighted : bool
        The ratios bound the selection (Eq. 2), and weigh the training (Eq. 3).
    """

    name: str
    title: str
    cleans: bool
    fair: bool
    constrained: bool
    weighted: bool


SELECTION_METHODS = {
    method.name: method
    for method in (
        SelectionMethod("lr", "LR", cleans=False, fair=False, constrained=False, weighted=False),
        SelectionMethod("itlm", "ITLM", cleans=True, fair=False, constrained=False, weighted=False),
        SelectionMethod("fairbatch", "FairBatch", cleans=False, fair=True, constrained=False, weighted=True),
        SelectionMethod("fairsieve", "fairsieve", cleans=True, fair=True, constrained=True, weighted=True),
        SelectionMethod(
            "fairsieve-no-constraints",
            "w/o constraints",
            cleans=True,
            fair=True,
            constrained=False,
            weighted=True,
        ),
        SelectionMethod(
            "fairsieve-no-weights", "w/o weights", cleans=True, fair=True, constrained=True, weighted=False
        ),
    )
}


def selection_method(method: str | SelectionMethod) -> SelectionMethod:
    """A method by its name."""
    if isinstance(method, SelectionMethod):
        return method
    if method not in SELECTION_METHODS:
        raise InvalidInputError(f"method must be one of {', '.join(SELECTION_METHODS)}; got {method!r}")
    return SELECTION_METHODS[method]
