"""What an entry of the catalogue says: a bad input, and the four things its error must name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairsieve import Samples
from fairsieve.errors import InvalidInputError

X = np.random.default_rng(0).normal(size=(40, 3))
LABELS = np.array([0, 1] * 20)
GROUPS = np.array(["a", "a", "b", "b"] * 10)
LOSSES = np.linspace(0, 1, 40)


@dataclass(frozen=True)
class Bad:
    """A call that must fail.

    Attributes
    ----------
    name : str
        What is called, and with what.
    call : callable
    parameter, rule, value, way_out : str
        What the message must contain. A rule that lists what is allowed is a way out itself.
    error : type
    """

    name: str
    call: Callable[[], object]
    parameter: str
    rule: str
    value: str
    way_out: str
    error: type[Exception] = InvalidInputError

    @property
    def parts(self) -> tuple[str, ...]:
        return self.parameter, self.rule, self.value, self.way_out

    def lacks(self, message: str) -> list[str]:
        """What a message does not say."""
        words = " ".join(message.split())
        return [part for part in self.parts if part not in words]


def samples() -> Samples:
    return Samples(X, LABELS, GROUPS)
