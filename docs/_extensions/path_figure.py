"""Draw the path of one fit, for the page on the solver: running this file writes docs/images/path.svg."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from fairsieve import FairRobustClassifier
from fairsieve.data import flip_uniform, make_synthetic

FILE = Path(__file__).parents[1] / "images" / "path.svg"


def draw() -> None:
    """Fit once, and draw accuracy against the gap of every point, with three tolerances."""
    people = make_synthetic(4000, seed=0)
    noisy = flip_uniform(people, 0.1, seed=0).labels
    model = FairRobustClassifier("demographic_parity", tolerance=0.02, random_state=0)
    model.fit(people.features, noisy, sensitive_features=people.groups)
    path = model.path_
    mpl.rcParams["svg.hashsalt"] = "fairsieve"
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    ax.plot(path["gap"], path["accuracy"], color="#bbbbbb", marker=".", zorder=1)
    for tolerance in (0.2, 0.12, 0.02):
        point = model.at(tolerance=tolerance)
        correct = path["accuracy"][(path["gap"] - point.gap_).abs().idxmin()]
        ax.scatter(point.gap_, correct, color="#2a6f97", zorder=2)
        ax.annotate(
            f"at(tolerance={tolerance})",
            (point.gap_, correct),
            xytext=(4, 8),
            textcoords="offset points",
        )
    ax.set(xlabel="widest gap between groups", ylabel="accuracy", xlim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(
        "One fit: from the cleaned model (right) to the fair one (left)", loc="left"
    )
    fig.savefig(FILE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
