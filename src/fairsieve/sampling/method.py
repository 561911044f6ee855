"""How a sampler doubts labels and weights groups: what a user need not set, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fairsieve.errors import InvalidInputError
from fairsieve.selection.epoch import Batching
from fairsieve.selection.ratios import SignalName
from fairsieve.validation import check_share


@dataclass(frozen=True, kw_only=True)
class SamplingMethod:
    """What a sampler does after the warm-up.

    Parameters
    ----------
    step_size : float in [0, 1] or None, default=None
        The paper's step of the ratios, which follow the training losses. None doubts labels and balances groups in
        place of it.
    balance : float in [0, 1], default=0.5
        α: groups are weighted within their class by (share of what is kept)^α. 0 is groups of equal weight, 1 natural
        weights. Where labels of the class are left out, it is nearer to 1, for some of those that stay are wrong too.
    momentum : float in [0, 1), default=0.5
        How much of what is known of a sample's label is kept when an epoch brings something new; 0 takes the present
        alone.
    signal : {"loss", "error"}, default="loss"
        What the paper's step compares between groups: mean losses or error rates.
    constrained : bool, default=False
        Whether the ratios bound the selection (Eq. 7).
    weighted : bool, default=True
        Whether the ratios weigh the batches (Eq. 3).
    batching : {"even", "paper"}, default="even"
        How many batches an epoch has, and how quotas are rounded; see :class:`~fairsieve.selection.epoch.Plan`.

    Examples
    --------
    >>> SamplingMethod(balance=0).momentum
    0.5
    """

    step_size: float | None = None
    balance: float = 0.5
    momentum: float = 0.5
    signal: SignalName = "loss"
    constrained: bool = False
    weighted: bool = True
    batching: Batching = "even"

    def __post_init__(self) -> None:
        if check_share("momentum", self.momentum) == 1:
            raise InvalidInputError("momentum must be below 1, or nothing new would ever count; got 1")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's method, or parts of it changed.

        >>> SamplingMethod.paper(signal="error").step_size
        0.001
        """
        paper: dict[str, Any] = {
            "step_size": 0.001,
            "momentum": 0.0,
            "constrained": True,
            "batching": "paper",
        }
        return cls(**(paper | changes))
