"""NHANES, synthetic data, COMPAS, Adult, German, and label noise."""

from fairsieve.data.adult import load_adult
from fairsieve.data.compas import load_compas
from fairsieve.data.flips import (
    NoisyLabels,
    flip_greedily,
    flip_group_targeted,
    flip_margin,
    flip_uniform,
)
from fairsieve.data.german import load_german
from fairsieve.data.nhanes import load_nhanes, read_nhanes
from fairsieve.data.splits import Splits, split
from fairsieve.data.synthetic import load_authors_arrays, make_synthetic, synthetic_splits

__all__ = [
    "NoisyLabels",
    "Splits",
    "flip_greedily",
    "flip_group_targeted",
    "flip_margin",
    "flip_uniform",
    "load_adult",
    "load_authors_arrays",
    "load_compas",
    "load_german",
    "load_nhanes",
    "make_synthetic",
    "read_nhanes",
    "split",
    "synthetic_splits",
]
