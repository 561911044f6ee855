"""Fixtures that the data sets' tests define."""

from tests.data.conftest import compas

__all__ = ["compas"]
