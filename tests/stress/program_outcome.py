"""What a stress program reports.

The name is long because programs here are started by their paths: ``outcome`` is a package that trio imports.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Outcome:
    """The faults that a program caused, and what went wrong after them.

    Attributes
    ----------
    faults : int
        How many faults were caused: kills, freezes, full disks, restarts.
    counts : dict
        Further numbers for the report.
    failures : list of str
        Promises that were broken; empty where all were kept.
    skipped : str
        Why nothing was done, such as a missing system call; empty where something was.
    """

    faults: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    skipped: str = ""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to one of the further numbers."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def check(self, kept: bool, promise: str) -> None:
        """Note a promise that was broken."""
        if not kept:
            self.failures.append(promise)
