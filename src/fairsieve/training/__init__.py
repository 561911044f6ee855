"""Whole trainings: fit for any model, the trainers, and the solvers of the linear model."""
