"""The methods of selection, which differ only in how they plan an epoch."""

from __future__ import annotations

from dataclasses import dataclass

from fairsieve.errors import InvalidInputError
from fairsieve.validation import closest_hint

__all__ = ["SELECTION_METHODS", "SelectionMethod", "selection_method"]


@dataclass(frozen=True, kw_only=True)
class SelectionMethod:
    """The parts of the plan that a method uses.

    Attributes
    ----------
    cleans : bool
        Whether it selects low-loss samples within the budget, and not all samples.
    fair : bool
        Whether the ratios move, towards fairness.
    constrained, weighted : bool
        Whether the ratios bound the selection (Eq. 7), and weigh the training (Eq. 3).
    """

    name: str
    cleans: bool = False
    fair: bool = False
    constrained: bool = False
    weighted: bool = False


SELECTION_METHODS = {
    method.name: method
    for method in (
        SelectionMethod(name="lr"),
        SelectionMethod(name="itlm", cleans=True),
        SelectionMethod(name="fairbatch", fair=True, weighted=True),
        SelectionMethod(name="fairsieve", cleans=True, fair=True, constrained=True, weighted=True),
        SelectionMethod(name="fairsieve-no-constraints", cleans=True, fair=True, weighted=True),
        SelectionMethod(name="fairsieve-no-weights", cleans=True, fair=True, constrained=True),
    )
}


def selection_method(method: str | SelectionMethod) -> SelectionMethod:
    """Return a method by its name."""
    if isinstance(method, SelectionMethod):
        return method
    if method not in SELECTION_METHODS:
        raise InvalidInputError(
            f"method must be one of {', '.join(SELECTION_METHODS)}; got {method!r}"
            f"{closest_hint(method, SELECTION_METHODS)}"
        )
    return SELECTION_METHODS[method]
