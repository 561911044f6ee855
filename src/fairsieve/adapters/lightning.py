"""Public import path of :mod:`fairsieve.sampling.adapters.lightning`."""

from fairsieve.sampling.adapters.lightning import FairRobustCallback

__all__ = ["FairRobustCallback"]
