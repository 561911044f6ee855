"""What the rounds of a sieve fit: the samples as they are labelled, or under every label that may be right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from fairsieve.errors import InvalidInputError
from fairsieve.estimators._folds import FittedCopy, Folds, TrainingTask, select_rows
from fairsieve.estimators._rounds import Round, RoundSettings
from fairsieve.label_noise.verified import Verification
from fairsieve.label_noise.weighting import PossibleLabels
from fairsieve.selection.cells import Cells
from fairsieve.selection.ratios import initial_ratios

__all__ = ["SieveTask", "describe_task"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SieveTask:
    """The entries that are weighed in every round; each is a sample, under one label.

    Attributes
    ----------
    plain : TrainingTask
        The samples under their given labels.
    plain_cells : Cells
    folds : list of pairs of rows
    own : array, optional
        The samples' own weights.
    entries : PossibleLabels, optional
        The samples under every label that may be right; None where each has its given label alone.
    """

    plain: TrainingTask
    plain_cells: Cells
    folds: Folds
    own: Floats | None
    entries: PossibleLabels | None = None

    @property
    def cells(self) -> Cells:
        """Labels and groups of the entries."""
        return self.plain_cells if self.entries is None else self.entries.cells

    def fit(self, weights: Floats | None) -> FittedCopy:
        """Fit a copy of the classifier to the entries by their weights; to the given labels when None."""
        if weights is None or self.entries is None:
            return self.plain.fit(_multiply(weights, self.own))
        return self._weighed().fit(_multiply(weights, self._own_of_entries()))

    def out_of_fold(self, weights: Floats | None) -> Floats:
        """Predict every entry by copies that were not fitted to its sample, (entries, classes)."""
        if self.entries is None:
            return self.plain.out_of_fold(_multiply(weights, self.own), self.folds)
        if weights is None:
            return self.plain.out_of_fold(self.own, self.folds)[self.entries.rows]
        folds = [(self._find_entries(seen), self._find_entries(tested)) for seen, tested in self.folds]
        return self._weighed().out_of_fold(_multiply(weights, self._own_of_entries()), folds)

    def by_sample(self, rounds: list[Round]) -> list[Round]:
        """Return the rounds with one weight and one prediction per sample in place of each entry."""
        if self.entries is None:
            return rounds
        rows, samples = self.entries.rows, len(self.plain_cells)
        given = self.plain_cells.label_codes[rows] == self.cells.label_codes
        believed = np.zeros(samples, bool)
        believed[rows[given & (self.entries.chances >= 0.5)]] = True
        first = np.searchsorted(rows, np.arange(samples))
        found = []
        for each in rounds:
            probabilities = each.probabilities[first]
            if each.weights is None:
                every, ratios = np.ones(samples, bool), initial_ratios(self.plain_cells)
                found.append(each._replace(kept=every, ratios=ratios, probabilities=probabilities))
                continue
            weights = np.bincount(rows, weights=each.weights, minlength=samples).astype(np.float64)
            found.append(each._replace(kept=believed, weights=weights, probabilities=probabilities))
        return found

    def _weighed(self) -> TrainingTask:
        """Return the entries as something to fit to."""
        assert self.entries is not None
        rows, task = self.entries.rows, self.plain
        options = {
            name: select_rows(value, rows, len(task.labels)) for name, value in task.fit_params.items()
        }
        labels = task.classes[self.cells.label_codes]
        return replace(task, X=_safe_indexing(task.X, rows), labels=labels, fit_params=options)

    def _own_of_entries(self) -> Floats | None:
        return None if self.own is None or self.entries is None else self.own[self.entries.rows]

    def _find_entries(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entries of some samples."""
        assert self.entries is not None
        inside = np.zeros(len(self.plain_cells), bool)
        inside[samples] = True
        return np.flatnonzero(inside[self.entries.rows])


def _multiply(weights: Floats | None, own: Floats | None) -> Floats | None:
    """Multiply two sets of weights, either of which may be None for ones."""
    return own if weights is None else weights if own is None else weights * own


def describe_task(
    sieve: Any, settings: RoundSettings, seed: int, task: SieveTask, verified: Verification | None
) -> dict[str, Any]:
    """Return what the checkpoints of a fit must agree on, in plain values."""
    options = dict(task.plain.fit_params)
    try:
        fit_params = joblib.hash(options) if options else None
    except Exception as error:  # whatever the parameters' own pickling raises
        raise InvalidInputError(
            f"fit parameters must be picklable where checkpoints are kept; {error}: leave out checkpoint_dir"
        ) from None
    more = {} if verified is None else {"verified": joblib.hash(tuple(verified))}
    if not settings.threshold.is_default:
        more["threshold"] = str(settings.threshold)
    return more | {
        "rule": repr(settings),
        "cv": sieve.cv if sieve.cv is None or isinstance(sieve.cv, Integral) else joblib.hash(task.folds),
        "seed": seed,
        "clean_ratio": sieve.clean_ratio,
        "fit_params": fit_params,
    }
