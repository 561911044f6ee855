"""FR-Train's players in run_epochs: compiled for the linear model, by autograd for any module."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from fairsieve.paper.methods.fr_train_linear import COIN, LEAK, Discriminators, GameArrays, run_epochs
from fairsieve.paper.methods.fr_train_options import FRTrainOptions
from fairsieve.sampling.losses import check_outputs, cross_entropy, is_single
from fairsieve.training.linear import new_adam
from fairsieve.training.models import LogisticRegression
from fairsieve.training.settings import Settings

__all__ = ["AutogradGame", "CompiledGame", "Game"]


class Game(Protocol):
    """A classifier and its discriminators in run_epochs."""

    def advance(self, batches: NDArray[np.int64], real: NDArray[np.int64], first: int, last: int) -> None:
        """Run the epochs from ``first`` up to ``last``, in turn with each of the batches."""

    def module(self) -> nn.Module:
        """Return the classifier in its current state."""


class CompiledGame:
    """The linear model: closed-form gradients in compiled code."""

    def __init__(
        self,
        model: nn.Module,
        arrays: GameArrays,
        options: FRTrainOptions,
        discriminators: Discriminators,
        settings: Settings,
    ) -> None:
        assert isinstance(model, LogisticRegression)
        self.model, self.arrays, self.options, self.discriminators = model, arrays, options, discriminators
        weight, bias = model.linear.weight.detach(), model.linear.bias.detach()
        self.parameters = torch.cat([weight.flatten(), bias]).double().numpy()
        self.adam = new_adam(self.parameters.size)

    def advance(self, batches: NDArray[np.int64], real: NDArray[np.int64], first: int, last: int) -> None:
        run_epochs(
            self.arrays,
            self.options,
            self.discriminators,
            self.parameters,
            self.adam,
            batches,
            real,
            first,
            last,
        )

    def module(self) -> nn.Module:
        flat = torch.from_numpy(self.parameters)
        with torch.no_grad():
            self.model.linear.weight.copy_(flat[None, :-1])
            self.model.linear.bias.copy_(flat[-1:])
        return self.model


class AutogradGame:
    """Any module, by autograd."""

    def __init__(
        self,
        model: nn.Module,
        arrays: GameArrays,
        options: FRTrainOptions,
        discriminators: Discriminators,
        settings: Settings,
    ) -> None:
        first = next(model.parameters())
        self.device = torch.device(settings.device) if settings.device else first.device
        self.model, self.options, self.dtype = model.to(self.device), options, first.dtype
        self.features, self.inputs, self.counted = (
            self.tensor(part) for part in (arrays.features, arrays.inputs, arrays.counted)
        )
        self.labels, self.groups = (
            torch.from_numpy(part).to(self.device) for part in (arrays.labels, arrays.groups)
        )
        self.real_inputs, self.real_chances = self.tensor(arrays.real_inputs), self.tensor(arrays.real_labels)
        self.fair, self.entry, self.exit = (self.tensor(part).requires_grad_() for part in discriminators)
        self.loss = settings.loss or cross_entropy
        make = settings.optimizer or (lambda found: torch.optim.Adam(found, lr=options.classifier_rate))
        self.optimizer = make(model.parameters())

    def tensor(self, part: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(part, dtype=self.dtype, device=self.device)

    def advance(self, batches: NDArray[np.int64], real: NDArray[np.int64], first: int, last: int) -> None:
        self.model.train()
        rows, real_rows = (torch.from_numpy(part).to(self.device) for part in (batches, real))
        for step, epoch in enumerate(range(first, last)):
            turn = epoch - self.options.pretrain_epochs + 1
            self.run_epoch(turn, rows[step % len(rows)], real_rows[step % len(real_rows)])

    def run_epoch(self, turn: int, rows: torch.Tensor, real: torch.Tensor) -> None:
        """Train plainly in the turns up to 0; after them, update the discriminators and sometimes the classifier."""
        moves = turn <= 0 or turn % self.options.discriminator_updates == 0
        with torch.set_grad_enabled(moves):
            outputs = self.model(self.features[rows])
        check_outputs(outputs, len(rows), 2)
        if turn <= 0:
            self.update(self.loss(outputs, self.labels[rows]).mean())
            return
        chances = torch.sigmoid(outputs.reshape(-1)) if is_single(outputs) else outputs.softmax(dim=1)[:, 1]
        fixed = chances.detach()
        self.descend([self.fair], self.fair_loss(fixed, rows))
        loss = self.fake_loss(fixed, self.odds(self.inputs[rows])) + self.real_loss(real)
        self.descend([self.entry, self.exit], loss)
        if moves:
            odds = self.odds(self.inputs[rows])
            losses = self.loss(outputs, self.labels[rows])
            if float(loss.detach()) < COIN:
                weights = torch.sigmoid(odds.detach()).gather(0, self.labels[rows][None])[0]
                losses = losses * weights / weights.mean()
            fair, robust = self.options.fairness_weight, self.options.robustness_weight
            objective = (1 - fair - robust) * losses.mean()
            self.update(
                objective - fair * self.fair_loss(chances, rows) - robust * self.fake_loss(chances, odds)
            )

    def odds(self, inputs: torch.Tensor) -> torch.Tensor:
        """Compute the robustness discriminator's logits of "real" for the labels 0 and 1: (2, samples)."""
        hidden = inputs @ self.entry[:-1]
        sides = torch.stack([hidden - self.entry[-1], hidden + self.entry[-1]])
        return F.leaky_relu(sides, LEAK) @ self.exit[:-1] + self.exit[-1]

    def fake_loss(self, chances: torch.Tensor, odds: torch.Tensor) -> torch.Tensor:
        """Compute −log(1 − D(x, z, ŷ)), in expectation over ŷ."""
        return -((1 - chances) * F.logsigmoid(-odds[0]) + chances * F.logsigmoid(-odds[1])).mean()

    def real_loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Compute −log D(x, z, y) of the clean samples."""
        odds, chances = self.odds(self.real_inputs[rows]), self.real_chances[rows]
        return -((1 - chances) * F.logsigmoid(odds[0]) + chances * F.logsigmoid(odds[1])).mean()

    def fair_loss(self, chances: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Compute −log of the probability that the fairness discriminator gives a sample's own group."""
        columns = [2 * chances - 1, torch.ones_like(chances)]
        if self.fair.shape[1] == 3:
            columns.insert(1, 2 * self.labels[rows].to(self.dtype) - 1)
        logits = F.pad(torch.stack(columns, dim=1) @ self.fair.T, (1, 0))
        counted = self.counted[rows]
        losses = F.cross_entropy(logits, self.groups[rows], reduction="none")
        return (losses * counted).sum() / counted.sum().clamp(min=1)

    def descend(self, parameters: list[torch.Tensor], loss: torch.Tensor) -> None:
        """Take one step of a discriminator."""
        slopes = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, slope in zip(parameters, slopes, strict=True):
                parameter -= self.options.discriminator_rate * slope

    def update(self, objective: torch.Tensor) -> None:
        """Take one step of the classifier."""
        self.optimizer.zero_grad(set_to_none=True)
        objective.backward(inputs=list(self.model.parameters()))
        self.optimizer.step()

    def module(self) -> nn.Module:
        return self.model
