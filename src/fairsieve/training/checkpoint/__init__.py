"""Checkpoints: written whole or not at all, with no code in them."""
