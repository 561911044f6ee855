"""Where a training stands inside its epochs, so that it can be stopped and resumed at any batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from fairsieve.selection.epoch import Plan
from fairsieve.validation import check_at_least

Batch = TypeVar("Batch")


class Position:
    """The epoch of a plan, whether it has begun, and how many of its batches were handed out.

    An epoch begins by :meth:`begin` (the sampler's ``update``) or :meth:`set_epoch`. It ends with the last batch of a
    pass, or when the next one begins. A pass that is begun and dropped uses up nothing.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.handed_out = 0  # batches of the present epoch
        self.has_begun = False
        self.is_resumed = False  # the epoch goes on from a state: its samples are selected already
        self._present: object = None  # the latest pass; those before it count no more
        self._latest: tuple[int, int] | None = (
            None  # epoch and number of batches of the present or just ended pass
        )

    @property
    def coming(self) -> int:
        """The epoch that comes after the batches that were handed out."""
        return self.plan.epoch + (self.handed_out > 0)

    def begin(self) -> None:
        """Begin an epoch: the next one where the present one has begun and some of it was trained."""
        if self.has_begun and self.handed_out:
            self.plan.epoch += 1
        self.has_begun, self.handed_out = True, 0
        self._present = self._latest = None

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch is trained next; an epoch that goes on from a state is left where it is."""
        if self.is_resumed and epoch == self.plan.epoch:
            return
        self.plan.epoch = check_at_least("epoch", epoch, 0)
        self.has_begun, self.handed_out, self.is_resumed = False, 0, False
        self._present = self._latest = None

    def hand_out(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        """Give the batches of a pass, those that a loaded state had trained left out."""
        if not self.is_resumed:
            self.handed_out = 0
        self.is_resumed = False
        present = self._present = object()
        self._latest = self.plan.epoch, len(batches)
        for batch in batches[self.handed_out :]:
            if self._present is present:
                self.handed_out += 1
                if self.handed_out == len(batches):  # the epoch ends with its last batch
                    self.plan.epoch += 1
                    self.has_begun, self.handed_out = False, 0
            yield batch

    def state_dict(self, trained: int | None = None) -> dict[str, Any]:
        """Return the position; ``trained`` says how many batches of the latest pass were, where it was read ahead."""
        if trained is not None and self._latest is not None:
            epoch, batches = self._latest
            is_over = check_at_least("trained", trained, 0) >= batches
            return {"epoch": epoch + is_over, "position": 0 if is_over else trained, "has_begun": not is_over}
        return {"epoch": self.plan.epoch, "position": self.handed_out, "has_begun": self.has_begun}

    def load_state_dict(self, state: Any) -> None:
        """Continue from a state; the next update is left out where it was made before the state was taken."""
        self.plan.epoch = check_at_least("the state's epoch", state["epoch"], 0)
        self.handed_out = check_at_least("the state's position", state["position"], 0)
        self.has_begun = bool(state["has_begun"])
        self.is_resumed = self.has_begun or self.handed_out > 0
        self._present = self._latest = None
