"""fairsieve train goes on where it was killed."""

from __future__ import annotations

import os

import pytest

from fairsieve.tabular.train import train
from fairsieve.training.linear_trainer import LinearTrainer


class Killed(BaseException):
    """As sudden as a signal, to the code that it passes through."""


def test_a_killed_train_ends_the_same(run, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    run_epochs, calls = LinearTrainer.run_epochs, [0]

    def killed(self, epochs):
        calls[0] += 1
        if calls[0] in (5, 30):  # in the plain model, then in the fair one
            raise Killed
        run_epochs(self, epochs)

    monkeypatch.setattr(LinearTrainer, "run_epochs", killed)
    for _ in range(2):
        with pytest.raises(Killed):
            train(run.asked, checkpoint_dir=tmp_path, checkpoint_every=1)
    resumed = train(run.asked, checkpoint_dir=tmp_path, checkpoint_every=1)
    assert resumed.model["model"].coef_.tolist() == run.model["model"].coef_.tolist()
    assert resumed.suspects["row"].tolist() == run.suspects["row"].tolist()
    assert calls[0] == 2 + 3 * 24  # no epoch was trained twice
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fair", "plain"]
