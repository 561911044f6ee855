"""Fused kernels for a GPU, on top of the torch backend."""

from __future__ import annotations

from typing import Any

from fairsieve.selection.backends.torch import TorchBackend

__all__ = ["TritonBackend", "can_use_triton"]


def can_use_triton(device: Any) -> bool:
    """Return whether Triton's kernels run on a device."""
    return False


class TritonBackend(TorchBackend):
    """Answers in fused kernels where they are faster than torch operations."""

    name = "triton"
