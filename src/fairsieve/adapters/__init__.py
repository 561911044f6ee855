"""Public import path of the adapters; the code is in :mod:`fairsieve.sampling.adapters`."""
