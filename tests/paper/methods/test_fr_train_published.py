"""FR-Train as published: its closed-form gradients against autograd, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fairsieve import InvalidInputError
from fairsieve.data import make_synthetic
from fairsieve.paper.methods import fr_train_published as published
from fairsieve.paper.methods.fr_train_published import _Game
from fairsieve.paper.methods.registry import METHODS
from fairsieve.training.settings import Settings

WEIGHTS = (0.3, 0.4)


def as_tensor(array):
    return torch.tensor(np.array(array, dtype=np.float64), requires_grad=True)


def play_by_autograd(game, epochs):
    """Play the published game literally, in double precision; return the classifier's last weights."""
    x, y, z = (torch.tensor(part.astype(np.float64)) for part in (game.x, game.signs, game.groups))
    real = torch.tensor(game.real.astype(np.float64))
    theta, fair, entry, exit_ = map(
        as_tensor, (game.parameters, game.fair, game.robust.entry, game.robust.exit)
    )
    adam = torch.optim.Adam([theta], lr=0.001)
    sgd = torch.optim.SGD([fair, entry, exit_], lr=0.001)
    weights, last = torch.ones(len(x), dtype=torch.float64), [1.0, 1.0]

    def guess_group(f):
        logit = fair[0] * f + fair[-1] + (fair[1] * y if len(fair) == 3 else 0)
        return F.binary_cross_entropy_with_logits(logit, z, reduction="none")

    def is_real(inputs):
        return F.leaky_relu(inputs @ entry[:-1] + entry[-1], 0.2) @ exit_[:-1] + exit_[-1]

    def told(logit, answer):
        return F.binary_cross_entropy_with_logits(logit, torch.full_like(logit, answer))

    for epoch in range(epochs):
        f = x @ theta[:-1] + theta[-1]
        seen = torch.column_stack([x, f.detach()])
        sgd.zero_grad()
        robust = 0.5 * (told(is_real(real), 1.0) + told(is_real(seen), 0.0))
        (robust + guess_group(f.detach()).mean()).backward()
        sgd.step()
        last[1] = float(robust.detach())
        if epoch < published.PRETRAIN_EPOCHS:
            objective = 0.1 * F.softplus(-2 * y * f).mean()
        elif epoch % 5 == 0:
            fake = is_real(torch.column_stack([x, f]))
            if epoch % 100 == 0:
                share = 1 / (1 + np.exp(-(last[0] / last[1] - 3)))
                weights = share * torch.sigmoid(fake.detach()) + 1 - share
            objective = 0.3 * (weights * F.softplus(-y * f)).mean() - 0.4 * told(fake, 0.0)
            objective = objective - 0.3 * (weights * guess_group(f)).mean()
        else:
            continue
        last[0] = float(objective.detach())
        adam.zero_grad()
        objective.backward(inputs=[theta])
        adam.step()
    return theta.detach().numpy()


@pytest.mark.parametrize("fairness", ["equalized_odds", "demographic_parity"])
def test_a_game_is_that_of_autograd(fairness, monkeypatch):
    monkeypatch.setattr(published, "PRETRAIN_EPOCHS", 60)
    game = _Game(make_synthetic(80, seed=0), make_synthetic(30, seed=1), fairness, WEIGHTS, seed=2)
    expected = play_by_autograd(game, 220)
    batch, real = game.batch(slice(None)), game.real_inputs(slice(None))
    for epoch in range(220):
        game.run_epoch(epoch, batch, real)
    assert game.parameters == pytest.approx(expected, abs=2e-5)


def test_equal_opportunity_looks_at_the_positive_class():
    game = _Game(make_synthetic(80, seed=0), make_synthetic(30, seed=1), "equal_opportunity", WEIGHTS, seed=2)
    assert (game.counted > 0).tolist() == (game.signs > 0).tolist()


def test_large_data_are_taken_in_parts_that_cover_everything():
    parts = published._batches(1001, 250, np.random.default_rng(0))
    assert len(parts) == 5
    assert sorted(np.concatenate(parts)) == list(range(1001))
    assert published._batches(10, 250, np.random.default_rng(0)) == [slice(None)]


def test_it_says_what_it_cannot_do():
    method, data = METHODS["fr-train-published"], make_synthetic(60, seed=0)
    with pytest.raises(InvalidInputError, match="fr-train-published needs a validation set"):
        method.train(data, Settings(), seed=0)
    with pytest.raises(InvalidInputError, match=r"must sum to at most 1; got 0\.7 and 0\.4"):
        method.train(data, Settings(), seed=0, validation=data, fairness_weight=0.7)
