"""Data that the tests of training share."""

from __future__ import annotations

import os

import pytest

from fairsieve.data import flip_margin, make_synthetic


@pytest.fixture(scope="module")
def noisy():
    clean = make_synthetic(200, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture
def hurried(monkeypatch):
    """Skip fsync in tests that do not need files to survive a power failure."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
