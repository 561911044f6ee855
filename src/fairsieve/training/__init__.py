"""Torch: the batch sampler, losses of a model, the loop."""
