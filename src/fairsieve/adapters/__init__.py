"""Thin shells around other people's training loops; each needs its library, an extra of its own."""

from fairsieve.errors import require

require("torch", purpose="fairsieve.adapters")
