"""Record one training for the interactive figure of "How the method works"; anew when this file changes.

The model is the logistic regression of the paper on its synthetic data, a tenth of whose labels are flipped in one
group. What is drawn comes from the package's own :class:`~fairsieve.selection.epoch.Plan`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = "_static/generated/training-data.js"
SAMPLES, FRAMES, WARMUP, STEPS, RATE = 700, 60, 8, 60, 0.2
MOST = 4.0  # losses above are drawn at the edge


def record_training() -> dict[str, Any]:
    """Train, and return the losses and the selection of every epoch, quantised and packed."""
    from fairsieve import equalized_odds_disparity
    from fairsieve.data import flip_group_targeted, make_synthetic
    from fairsieve.selection.cells import Cells
    from fairsieve.selection.epoch import Plan

    train, test = make_synthetic(SAMPLES, seed=1), make_synthetic(5000, seed=99)
    noisy = flip_group_targeted(train, 0.1)
    cells = Cells.of(noisy.labels, train.groups)
    plan = Plan(cells, 100, clean_ratio=0.9, step_size=0.004, warmup_epochs=WARMUP)
    design = np.column_stack([train.features, np.ones(SAMPLES)]).astype(float)
    signs, weights = 2.0 * noisy.labels - 1, np.zeros(design.shape[1])
    codes = np.asarray(cells.codes).ravel()
    losses, selections, frames = [], [], []
    for epoch in range(FRAMES):
        loss = np.logaddexp(0, -signs * (design @ weights))
        plan.epoch = epoch
        plan.update(loss)
        selected = np.zeros(SAMPLES, bool)
        selected[np.asarray(plan.indices)] = True
        losses.append(np.minimum(255, loss / MOST * 255).astype(np.uint8))
        selections.append(np.packbits(selected))
        guess = np.column_stack([test.features, np.ones(len(test))]) @ weights > 0
        frames.append(
            {
                "ratios": np.round(plan.ratios, 4).tolist(),
                "selected": int(selected.sum()),
                "accuracy": round(float(np.mean(guess == test.labels)), 3),
                "disparity": round(
                    equalized_odds_disparity(
                        test.labels, guess.astype(int), sensitive_features=test.groups
                    ),
                    3,
                ),
            }
        )
        importance = selected.astype(float)
        if epoch >= WARMUP:  # Eq. 3: each cell counts by its ratio
            for row in range(2):
                of_class = selected & (noisy.labels == row)
                for column in range(2):
                    cell = of_class & (train.groups == column)
                    importance[cell] = (
                        plan.ratios[row, column] * of_class.sum() / max(1, cell.sum())
                    )
        for _ in range(STEPS):
            slope = -signs / (1 + np.exp(signs * (design @ weights))) * importance
            weights -= RATE * design.T @ slope / selected.sum()
    return {
        "most": MOST,
        "warmup": WARMUP,
        "cells": codes.tolist(),
        "names": [
            "label 0, group 0",
            "label 0, group 1",
            "label 1, group 0",
            "label 1, group 1",
        ],
        "wrong": np.flatnonzero(noisy.flipped).tolist(),
        "losses": base64.b64encode(np.concatenate(losses).tobytes()).decode(),
        "selections": base64.b64encode(np.concatenate(selections).tobytes()).decode(),
        "frames": frames,
    }


def _write(app: Any) -> None:
    """Write the script with the data, unless it is there and as new as this file."""
    path = Path(app.srcdir) / FILE
    state = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    if path.exists() and path.read_text("utf-8").startswith(f"/* {state} */"):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(record_training(), separators=(",", ":"))
    path.write_text(f"/* {state} */\nwindow.fairsieveTraining = {data};\n", "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the hook."""
    app.connect("config-inited", lambda app, config: _write(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
