"""Data that the tests of training share."""

import os

import pytest


@pytest.fixture
def hurried(monkeypatch):
    """Skip fsync in tests that do not need files to survive a power failure."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
