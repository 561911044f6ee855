"""Synthetic data, COMPAS, Adult, German, and label noise."""

from fairsieve.data.synthetic import load_authors_arrays, make_synthetic, synthetic_splits

__all__ = ["load_authors_arrays", "make_synthetic", "synthetic_splits"]
