"""Public import path of :mod:`fairsieve.sampling.adapters.accelerate`."""

from fairsieve.sampling.adapters.accelerate import prepared_loader, prepared_sieve

__all__ = ["prepared_loader", "prepared_sieve"]
