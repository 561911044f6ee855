"""Many games of FR-Train on one data set, advanced together as one batch of tensors (``fr_train_games.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LEAK, COIN = 0.2, 2 * np.log(2.0)
PRETRAIN, EVERY, WEIGH = 500, 5, 100
RATE, DISCRIMINATOR_RATES = 0.001, {"fr-train": 0.05, "fr-train-published": 0.001}
LIMITS = {"fr-train": 2_000, "fr-train-published": 5_000}


def load_problem(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Load what :func:`save_problem` saved: features, labels, groups, and how many are trained on."""
    saved = np.load(path)
    binary = saved["binary"]
    features = np.empty((len(saved["labels"]), len(binary)), np.float32)
    features[:, binary] = np.unpackbits(saved["bits"], axis=1)[:, : binary.sum()]
    features[:, ~binary] = saved["numbers"]
    return features, saved["labels"].astype(np.int64), saved["groups"].astype(np.int64), int(saved["trained"])


class Stack:
    """Games on one data set, advanced together. Parts of a shuffle are shared by all games."""

    def __init__(self, folder: Path, games: list[dict[str, Any]], method: str, device: Any) -> None:
        import torch

        self.torch, self.method, self.device = torch, method, device
        loaded = {
            place: load_problem(folder / f"problem-{place}.npz")
            for place in {game["problem"] for game in games}
        }
        places = {place: i for i, place in enumerate(loaded)}
        self.of = torch.tensor([places[game["problem"]] for game in games], device=device)
        trained = [part[3] for part in loaded.values()]
        held = [len(part[1]) - part[3] for part in loaded.values()]
        self.n, self.m = min(trained), min(held)  # splits differ by a sample or two

        def stacked(k: int, real: bool) -> Any:
            parts = [
                part[k][part[3] : part[3] + self.m] if real else part[k][: self.n] for part in loaded.values()
            ]
            return torch.tensor(np.stack(parts), dtype=torch.float32, device=device)

        self.x, self.y, self.z = (stacked(k, False) for k in range(3))
        self.real_x, self.real_y, _ = (stacked(k, True) for k in range(3))
        ones = lambda part: torch.ones_like(part[..., :1])  # noqa: E731
        if method == "fr-train":
            shift, scale = self.x.mean(1, keepdim=True), self.x.std(1, correction=0, keepdim=True)
            scale = torch.where(scale == 0, 1.0, scale)
            self.inputs = torch.cat([(self.x - shift) / scale, ones(self.x)], 2)
            self.real_inputs = torch.cat([(self.real_x - shift) / scale, ones(self.real_x)], 2)
        column = lambda name: torch.tensor([game[name] for game in games], dtype=torch.float32, device=device)  # noqa: E731
        self.parameters, self.fair = column("parameters"), column("fair")
        self.entry, self.exit = column("entry"), column("exit")
        self.fair_weight, self.sees = column("fairness_weight")[:, None], column("sees_label")[:, None]
        self.robust_weight = 0.4
        self.first, self.second, self.steps = (
            torch.zeros_like(self.parameters),
            torch.zeros_like(self.parameters),
            0,
        )
        self.sample_weights = torch.ones(len(games), self.n, device=device)
        self.objective = self.robust_loss = torch.ones(len(games), device=device)

    def play(self, epochs: int) -> np.ndarray:
        """Play to the end; return the weights (games, d + 1)."""
        limit, torch = LIMITS[self.method], self.torch
        generator = torch.Generator(self.device).manual_seed(0)
        parts = max(1, -(-self.n // limit))
        real_parts = max(1, -(-self.m // limit))
        rows = real = None
        for epoch in range(epochs):
            if parts > 1:
                if epoch % parts == 0:
                    order = torch.randperm(self.n, generator=generator, device=self.device)
                size = self.n // parts
                rows = order[epoch % parts * size : (epoch % parts + 1) * size]
            if real_parts > 1:
                if epoch % real_parts == 0:
                    real_order = torch.randperm(self.m, generator=generator, device=self.device)
                size = self.m // real_parts
                real = real_order[epoch % real_parts * size : (epoch % real_parts + 1) * size]
            (self.ours if self.method == "fr-train" else self.published)(epoch, rows, real)
        return self.parameters.cpu().numpy()

    def take(self, part: Any, rows: Any) -> Any:
        """Return the rows of an update, game by game."""
        return (part if rows is None else part[:, rows])[self.of]

    def outputs(self, x: Any, parameters: Any) -> Any:
        return (x @ parameters[:, :-1, None])[..., 0] + parameters[:, -1:]

    def descend(self, parts: list[str], loss: Any) -> None:
        """Take a gradient step of a discriminator in every game."""
        values = [getattr(self, name) for name in parts]
        slopes = self.torch.autograd.grad(loss.sum(), values)
        for name, value, slope in zip(parts, values, slopes, strict=True):
            setattr(self, name, (value - DISCRIMINATOR_RATES[self.method] * slope).detach())

    def step(self, slope: Any) -> None:
        """Take a step of Adam in every game."""
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope**2
        first, second = self.first / (1 - 0.9**self.steps), self.second / (1 - 0.999**self.steps)
        self.parameters = (self.parameters - RATE * first / (second.sqrt() + 1e-8)).detach()

    def fair_loss(self, seen: Any, signs: Any, z: Any, fair: Any) -> Any:
        """Return the fairness discriminator's loss of every sample."""
        logits = fair[:, :1] * seen + self.sees * fair[:, 1:2] * signs + fair[:, 2:]
        return self.torch.nn.functional.binary_cross_entropy_with_logits(logits, z, reduction="none")

    def odds(self, inputs: Any, entry: Any, exit_: Any) -> Any:
        """Return the logits of "real" with the label 0 and with the label 1 (ours)."""
        hidden = inputs @ entry[:, :-1]
        leaky = self.torch.nn.functional.leaky_relu
        side = entry[:, -1:]
        found = [leaky(hidden + sign * side, LEAK) @ exit_[:, :-1, None] for sign in (-1, 1)]
        return [one[..., 0] + exit_[:, -1:] for one in found]

    def ours(self, epoch: int, rows: Any, real: Any) -> None:
        """Run one epoch as ``fr_train`` does."""
        torch, F = self.torch, self.torch.nn.functional
        x, y = self.take(self.x, rows), self.take(self.y, rows)
        parameters = self.parameters.requires_grad_()
        logits = 2 * self.outputs(x, parameters)
        costs = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
        turn = epoch - PRETRAIN + 1
        if turn <= 0:
            self.step(torch.autograd.grad(costs.mean(1).sum(), parameters)[0])
            return
        signs, z, chances = 2 * y - 1, self.take(self.z, rows), torch.sigmoid(logits)
        inputs, real_inputs, real_y = (
            self.take(self.inputs, rows),
            self.take(self.real_inputs, real),
            self.take(self.real_y, real),
        )
        fixed = chances.detach()

        def mixed(p: Any, odds: Any, sign: int) -> Any:
            return -((1 - p) * F.logsigmoid(sign * odds[0]) + p * F.logsigmoid(sign * odds[1])).mean(1)

        fair = self.fair.requires_grad_()
        self.descend(["fair"], self.fair_loss(2 * fixed - 1, signs, z, fair).mean(1))
        entry, exit_ = self.entry.requires_grad_(), self.exit.requires_grad_()
        loss = mixed(fixed, self.odds(inputs, entry, exit_), -1) + mixed(
            real_y, self.odds(real_inputs, entry, exit_), 1
        )
        self.descend(["entry", "exit"], loss)
        if turn % EVERY:
            return
        odds = self.odds(inputs, self.entry, self.exit)
        weights = torch.sigmoid(torch.where(y > 0, odds[1], odds[0]))
        weights = weights / weights.mean(1, keepdim=True)
        weights = torch.where((loss.detach() < COIN)[:, None], weights, 1.0)
        share, fair_weight = 1 - self.fair_weight[:, 0] - self.robust_weight, self.fair_weight[:, 0]
        objective = share * (weights * costs).mean(1) - self.robust_weight * mixed(chances, odds, -1)
        objective = objective - fair_weight * self.fair_loss(2 * chances - 1, signs, z, self.fair).mean(1)
        self.step(torch.autograd.grad(objective.sum(), parameters)[0])

    def real_logits(self, inputs: Any, entry: Any, exit_: Any) -> Any:
        """Return the logits of "real" (as published)."""
        hidden = inputs @ entry[:, :-1] + entry[:, -1:]
        return (self.torch.nn.functional.leaky_relu(hidden, LEAK) @ exit_[:, :-1, None])[..., 0] + exit_[
            :, -1:
        ]

    def published(self, epoch: int, rows: Any, real: Any) -> None:
        """Run one epoch as ``fr_train_published`` does."""
        torch, F = self.torch, self.torch.nn.functional
        x, y, z = (self.take(part, rows) for part in (self.x, self.y, self.z))
        signs = 2 * y - 1
        moves = epoch < PRETRAIN or epoch % EVERY == 0
        parameters = self.parameters.requires_grad_(moves)
        outputs = self.outputs(x, parameters)
        fixed = outputs.detach()
        fair = self.fair.requires_grad_()
        self.descend(["fair"], self.fair_loss(fixed, signs, z, fair).mean(1))
        entry, exit_ = self.entry.requires_grad_(), self.exit.requires_grad_()
        inputs = torch.cat([x, fixed[..., None]], 2)
        real_x, real_y = self.take(self.real_x, real), self.take(self.real_y, real)
        real_inputs = torch.cat([real_x, (2 * real_y - 1)[..., None]], 2)
        fake, right = self.real_logits(inputs, entry, exit_), self.real_logits(real_inputs, entry, exit_)
        loss = -0.5 * (F.logsigmoid(-fake).mean(1) + F.logsigmoid(right).mean(1))
        self.descend(["entry", "exit"], loss)
        self.robust_loss = loss.detach()
        if epoch < PRETRAIN:
            objective = -0.1 * F.logsigmoid(2 * signs * outputs).mean(1)
        elif moves:
            fake = self.real_logits(torch.cat([x, outputs[..., None]], 2), self.entry, self.exit)
            places = slice(None) if rows is None else rows
            if epoch % WEIGH == 0:
                share = torch.sigmoid(self.objective / self.robust_loss.clamp(min=1e-12) - 3)[:, None]
                self.sample_weights[:, places] = share * torch.sigmoid(fake.detach()) + (1 - share)
            weights = self.sample_weights[:, places]
            share, fair_weight = 1 - self.fair_weight[:, 0] - self.robust_weight, self.fair_weight[:, 0]
            objective = -share * (weights * F.logsigmoid(signs * outputs)).mean(1)
            objective = objective - fair_weight * (
                weights * self.fair_loss(outputs, signs, z, self.fair)
            ).mean(1)
            objective = objective + self.robust_weight * F.logsigmoid(-fake).mean(1)
        else:
            return
        self.objective = objective.detach()
        self.step(torch.autograd.grad(objective.sum(), parameters)[0])
