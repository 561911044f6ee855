"""Batch samplers for PyTorch loops, on one process or several."""
