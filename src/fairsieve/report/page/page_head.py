"""What every page of ours has: the themes as CSS variables, and a policy that allows its own scripts alone."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict

from fairsieve.report.looks import Theme

__all__ = ["colour_variables", "content_policy", "script_hash"]


def colour_variables(theme: Theme) -> dict[str, str]:
    """Write a theme as CSS variables."""
    found: dict[str, str] = {}
    for name, value in asdict(theme).items():
        if isinstance(value, dict):
            found |= {f"{name}-{key}": entry for key, entry in value.items()}
        elif isinstance(value, tuple):
            found |= {f"{name}-{i}": entry for i, entry in enumerate(value)}
        else:
            found[name] = value
    return found


def content_policy(*hashes: str) -> str:
    """Write the content security policy: nothing from anywhere, no script but ours."""
    scripts = " ".join(f"'{value}'" for value in hashes if value)
    # Plotly sets styles on what it draws.
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_hash(text: str) -> str:
    """Compute the hash by which a policy allows an inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
