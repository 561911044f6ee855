"""Draw one training as an interactive figure."""

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register nothing yet."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
