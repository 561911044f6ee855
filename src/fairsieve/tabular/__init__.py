"""A table → models, what they are worth, and the labels to check."""
