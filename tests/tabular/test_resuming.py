"""fairsieve train goes on where it was killed."""

from __future__ import annotations

import os

import pytest

from fairsieve.tabular.table_run import train_table
from fairsieve.training.newton_trainer import NewtonTrainer


class Killed(BaseException):
    """As sudden as a signal, to the code that it passes through."""


def test_a_killed_train_ends_the_same(run, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    run_epoch, calls, made = NewtonTrainer.run_epoch, [0], []

    def killed(self):
        calls[0] += 1
        if calls[0] in (5, 20):
            raise Killed
        made.append((self.spec.method.name, self.done))
        run_epoch(self)

    monkeypatch.setattr(NewtonTrainer, "run_epoch", killed)
    for _ in range(2):
        with pytest.raises(Killed):
            train_table(run.asked, checkpoint_dir=tmp_path, checkpoint_every=1)
    resumed = train_table(run.asked, checkpoint_dir=tmp_path, checkpoint_every=1)
    assert resumed.model["model"].coef_.tolist() == run.model["model"].coef_.tolist()
    assert resumed.suspects["row"].tolist() == run.suspects["row"].tolist()
    assert made == [("fairsieve", update) for update in range(24)]  # none was made twice
    assert [path.name for path in tmp_path.iterdir()] == ["fair"]
