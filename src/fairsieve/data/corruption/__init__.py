"""Wrong labels, made on purpose for experiments and tests."""
