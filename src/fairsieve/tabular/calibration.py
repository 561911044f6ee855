"""Whether probabilities mean what they say, group by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsieve.selection.cells import Cells
from fairsieve.tabular.bootstrap import Score
from fairsieve.tabular.evaluation import FEW, Share
from fairsieve.tabular.quality import ModelOutput
from fairsieve.tabular.reading.roles import Labels

__all__ = ["Calibration", "calibrate_scores", "measure_calibration"]

BINS = 10


class _CalibrationBin(NamedTuple):
    """People with about the same probability: its mean, and the share of them that has the label."""

    predicted: float
    observed: Share


@dataclass(frozen=True)
class Calibration:
    """The probabilities of one model in one group.

    Attributes
    ----------
    model : {"plain", "fair"}
    group : str or None
    label : str
        What the probabilities are of; empty for the predicted label, where no label of many is named.
    bins : list of _CalibrationBin
        From low to high probabilities; those of fewer than ten people of the group are left out.
    predicted : float
        The mean probability.
    observed : Share
        Those of the group that have the label.
    """

    model: str
    group: str | None
    label: str
    bins: list[_CalibrationBin]
    predicted: float
    observed: Share

    @property
    def error(self) -> Score:
        """How far the share that has the label lies above the mean probability, with its 95 % interval."""
        low, high = self.observed.interval
        return Score(self.observed.value - self.predicted, (low - self.predicted, high - self.predicted))


def measure_calibration(
    cells: Cells, plain: ModelOutput, fair: ModelOutput, labels: Labels
) -> list[Calibration]:
    """Compare the probabilities of both models with what was found, in every group of ``cells``.

    Everybody's probabilities are cut into ten parts of equally many people, the same for all groups; into fewer where
    a group is small.
    """
    found = []
    for name, model in (("plain", plain), ("fair", fair)):
        if labels.positive is None:  # many labels, and none of them named
            scores, hits = model.chances.max(axis=1), model.chances.argmax(axis=1) == cells.label_codes
        else:
            place = labels.classes.index(labels.positive)
            scores, hits = model.chances[:, place], cells.label_codes == place
        found += calibrate_scores(name, cells, scores, hits, labels.positive or "")
    return found


def calibrate_scores(
    model: str, cells: Cells, scores: NDArray[np.float64], hits: NDArray[np.bool_], label: str
) -> list[Calibration]:
    """Compare the scores of one model with what was found (``hits``), in every group of ``cells``."""
    found = []
    people = np.bincount(cells.group_codes, minlength=cells.shape[1])[: cells.named_groups]
    parts = int(np.clip(people.min(initial=len(cells)) // (2 * FEW), 2, BINS))
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    places = np.searchsorted(edges, scores, side="right")
    for code, group in enumerate(cells.groups):
        inside = cells.group_codes == code
        if inside.any():
            bins = _list_bins(scores[inside], hits[inside], places[inside])
            mean = float(scores[inside].mean())
            share = Share(int(hits[inside].sum()), int(inside.sum()))
            found.append(Calibration(model, group, label, bins, mean, share))
    return found


def _list_bins(scores: NDArray[Any], hits: NDArray[np.bool_], places: NDArray[Any]) -> list[_CalibrationBin]:
    """List the parts that have enough people."""
    parts = [np.flatnonzero(places == place) for place in np.unique(places)]
    return [
        _CalibrationBin(float(scores[part].mean()), Share(int(hits[part].sum()), len(part)))
        for part in parts
        if len(part) >= FEW
    ]
