"""Public import path of :mod:`fairsieve.sampling.adapters.transformers`."""

from fairsieve.sampling.adapters.transformers import FairRobustTrainer

__all__ = ["FairRobustTrainer"]
