"""Estimators for scikit-learn: the classifier, the sieve, the resampler, scorers and displays."""
