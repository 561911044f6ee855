"""Synthetic data, COMPAS, Adult, German, and label noise."""

from fairsieve.data.adult import load_adult
from fairsieve.data.compas import load_compas
from fairsieve.data.corruption.annotators import flip_by_feature, flip_near_boundary, flip_weak_annotator
from fairsieve.data.corruption.flips import NoisyLabels, flip_group_targeted, flip_margin, flip_uniform
from fairsieve.data.corruption.influence import flip_influence
from fairsieve.data.german import load_german
from fairsieve.data.splits import Splits, split
from fairsieve.data.synthetic import load_authors_arrays, make_synthetic, synthetic_splits

__all__ = [
    "NoisyLabels",
    "Splits",
    "flip_by_feature",
    "flip_group_targeted",
    "flip_influence",
    "flip_margin",
    "flip_near_boundary",
    "flip_uniform",
    "flip_weak_annotator",
    "load_adult",
    "load_authors_arrays",
    "load_compas",
    "load_german",
    "make_synthetic",
    "split",
    "synthetic_splits",
]
