"""scikit-learn's shells around the method: one line changed in code that people already have."""
