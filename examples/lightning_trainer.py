"""Lightning: fair and robust training by one line in a Trainer.

python examples/lightning_trainer.py
python examples/lightning_trainer.py --devices 2    # two processes, the same model
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset

from fairsieve import equalized_odds_disparity
from fairsieve.adapters.lightning import FairRobustCallback
from fairsieve.data import flip_group_targeted, synthetic_splits
from fairsieve.metrics import accuracy


class Classifier(LightningModule):
    """Logistic regression; any module will do."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, torch.Tensor]:
        x, y = batch
        losses = torch.nn.functional.cross_entropy(self(x), y, reduction="none")
        return {"loss": losses.mean(), "losses": losses.detach()}  # "losses" saves a forward pass

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.005)


def train(
    *,
    epochs: int = 40,
    stop: int | None = None,
    devices: int = 1,
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> tuple[dict[str, float], FairRobustCallback, Trainer]:
    """Train; what the model comes to on the test data."""
    parts = synthetic_splits(seed=0)
    labels = flip_group_targeted(parts.train, 0.1).labels
    x, y = torch.from_numpy(parts.train.features).float(), torch.from_numpy(labels)
    torch.manual_seed(0)
    model = Classifier(x.shape[1])
    loader = DataLoader(TensorDataset(x, y), batch_size=100 // devices, shuffle=True)
    path = options.pop("resume", None)
    sieve = FairRobustCallback(labels, parts.train.groups, clean_ratio=0.9, epochs=epochs, warmup_epochs=5)
    options |= {"accelerator": "cpu", "devices": devices, "strategy": "auto" if devices == 1 else "ddp"}
    trainer = Trainer(max_epochs=epochs if stop is None else stop, callbacks=[sieve, *callbacks], **options)
    trainer.fit(model, loader, ckpt_path=path)
    with torch.no_grad():
        guessed = model(torch.from_numpy(parts.test.features).to(model.dtype)).argmax(1).numpy()
    truth, groups = parts.test.labels, parts.test.groups
    found = {
        "accuracy": accuracy(truth, guessed),
        "disparity": equalized_odds_disparity(truth, guessed, sensitive_features=groups),
        "sum of weights": sum(value.detach().double().abs().sum().item() for value in model.parameters()),
    }
    return found, sieve, trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--devices", type=int, default=1)
    arguments = parser.parse_args()
    options = {"logger": False, "enable_checkpointing": False}
    found, _, trainer = train(epochs=arguments.epochs, devices=arguments.devices, **options)
    if trainer.is_global_zero:
        print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
