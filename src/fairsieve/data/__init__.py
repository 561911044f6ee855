"""NHANES, synthetic data, COMPAS, Adult, German, and label noise."""

from fairsieve.data.flips import NoisyLabels, flip_greedily, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.splits import Splits, split
from fairsieve.data.synthetic import load_authors_arrays, make_synthetic, synthetic_splits
from fairsieve.data.tables import load_adult, load_compas, load_german, load_nhanes, read_nhanes

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
