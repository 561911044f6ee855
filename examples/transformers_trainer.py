"""Hugging Face Trainer: a small BERT of random weights on tokens, a tenth of the labels flipped.

python examples/transformers_trainer.py
torchrun --nproc-per-node 2 examples/transformers_trainer.py    # two processes, the same model
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

from fairsieve import Samples, equalized_odds_disparity
from fairsieve.adapters.transformers import FairRobustTrainer
from fairsieve.data import flip_group_targeted, synthetic_splits
from fairsieve.metrics import accuracy


class Sentences(Dataset[dict[str, Any]]):
    """Each sample as a sentence: a first word, then one word for what each feature is roughly."""

    def __init__(self, samples: Samples, labels: np.ndarray) -> None:
        words = np.clip(np.round(samples.features * 2), -8, 8).astype(np.int64) + 10
        words += 20 * np.arange(words.shape[1])
        self.words, self.labels = np.column_stack([np.ones(len(words), np.int64), words]), labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": torch.from_numpy(self.words[index]), "labels": int(self.labels[index])}


def chosen_rows(rows: int, samples: int | None) -> np.ndarray:
    """So many of the rows, all when None."""
    return np.random.default_rng(0).permutation(rows)[:samples]


def train(
    folder: Path,
    *,
    epochs: float = 10,
    resume: bool | str = False,
    samples: int | None = None,
    **options: Any,
) -> tuple[dict[str, float], FairRobustTrainer]:
    """Train; what the model comes to on the test data."""
    parts = synthetic_splits(seed=0)
    labels = flip_group_targeted(parts.train, 0.1).labels
    rows = chosen_rows(len(labels), samples)
    data = Sentences(parts.train.take(rows), labels[rows])
    processes = int(os.environ.get("WORLD_SIZE", "1"))  # torchrun says it
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=80,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=8,
            hidden_dropout_prob=0.0,  # each process would drop others
            attention_probs_dropout_prob=0.0,
        )
    )
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=100 // processes,
        learning_rate=0.005,
        lr_scheduler_type="constant",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **({"save_strategy": "no"} | options),
    )
    trainer = FairRobustTrainer(
        model,
        arguments,
        train_dataset=data,
        sieve={
            "labels": data.labels,
            "sensitive_features": parts.train.groups[rows],
            "clean_ratio": 0.9,
            "warmup_epochs": 2,
        },
    )
    trainer.train(resume_from_checkpoint=resume or None)
    words = torch.from_numpy(Sentences(parts.test, parts.test.labels).words)
    with torch.no_grad():
        guessed = model.eval()(input_ids=words).logits.argmax(1).numpy()
    truth, groups = parts.test.labels, parts.test.groups
    found = {
        "accuracy": accuracy(truth, guessed),
        "disparity": equalized_odds_disparity(truth, guessed, sensitive_features=groups),
        "sum of weights": sum(value.detach().double().abs().sum().item() for value in model.parameters()),
    }
    return found, trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=float, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, trainer = train(Path(folder), epochs=arguments.epochs)
    if trainer.is_world_process_zero():
        print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
