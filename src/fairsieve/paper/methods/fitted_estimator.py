"""A fitted estimator that is no torch module, behind the same interface as every trained model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import torch

from fairsieve.errors import InvalidInputError
from fairsieve.metrics import decode_classes
from fairsieve.samples import Samples
from fairsieve.selection.cells import as_array, encode
from fairsieve.selection.ratios import initial_ratios
from fairsieve.training.history import History, count_predictions, new_recording, record_model, record_plan
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["fitted_estimator", "settings_with"]


class _Estimator(Protocol):
    """What :class:`_FittedEstimator` holds."""

    def probabilities(self, features: NDArray[Any], groups: NDArray[np.int64] | None) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, (n, classes); ``groups`` are indices of the known groups."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class _FittedEstimator(Fitted):
    """A fitted estimator and how it does; see :class:`~fairsieve.training.result.Fitted`.

    Attributes
    ----------
    predictor : Estimator
        In place of a module.
    group_values : list
        The groups it was fitted on.
    uses_groups : bool
        Whether it looks at the group of a sample to predict it. Without the groups there are then
        only the probabilities that it starts from.
    randomised : bool
        Whether a prediction is drawn by the probabilities (the same draws for the same seed and
        number of samples) rather than the likeliest class.
    """

    predictor: Any
    group_values: list[Any]
    uses_groups: bool
    randomised: bool

    def predict(
        self, features: ArrayLike | torch.Tensor, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict labels."""
        if self.uses_groups and sensitive_features is None:
            raise InvalidInputError(
                f"{self.method} looks at the group of a sample to predict it: pass "
                "predict(features, sensitive_features=groups)"
            )
        chances = self.predict_proba(features, sensitive_features=sensitive_features)
        return decode_classes(_draw_classes(chances, self.seed if self.randomised else None), self.classes)

    def predict_proba(
        self, features: ArrayLike | torch.Tensor, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Compute the probabilities of the classes, (n, classes); where predictions are drawn, of being drawn."""
        rows = as_array("features", features)
        groups = None
        if self.uses_groups and sensitive_features is not None:
            groups, _ = encode("sensitive_features", sensitive_features, self.group_values, crossed=True)
            if len(groups) != len(rows):
                raise InvalidInputError(
                    f"sensitive_features must have one value per sample, {len(rows)}; got {len(groups)}"
                )
        probabilities: NDArray[np.float64] = self.predictor.probabilities(rows, groups)
        return probabilities


def _draw_classes(probabilities: NDArray[np.float64], seed: int | None) -> NDArray[np.int64]:
    """Return class indices: drawn by the probabilities, or the likeliest when ``seed`` is None.

    >>> _draw_classes(np.array([[0.3, 0.7], [1.0, 0.0]]), None).tolist()
    [1, 0]
    """
    if seed is None:
        return np.asarray(probabilities.argmax(axis=1))
    levels = np.random.default_rng(seed).random((len(probabilities), 1))
    # A class with no chance is never drawn, a class with every chance always: levels lie in [0, 1).
    drawn: NDArray[np.int64] = (levels >= probabilities.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return drawn


def fitted_estimator(
    model: _Estimator,
    data: Samples,
    settings: Settings,
    *,
    method: str,
    seed: int,
    seconds: float,
    evaluation: Samples | None = None,
    uses_groups: bool = False,
    randomised: bool = False,
) -> _FittedEstimator:
    """Describe an estimator fitted on ``data``, with a history of one row."""
    history = _history_of_estimator(
        model, data, settings, evaluation, uses_groups=uses_groups, seed=seed if randomised else None
    )
    return _FittedEstimator(
        predictor=model,
        history=history,
        indices=np.arange(len(data)),
        ratios=initial_ratios(data.cells),
        classes=data.cells.classes,
        method=method,
        seed=seed,
        seconds=seconds,
        group_values=data.cells.groups,
        uses_groups=uses_groups,
        randomised=randomised,
    )


def _history_of_estimator(
    model: _Estimator,
    data: Samples,
    settings: Settings,
    evaluation: Samples | None,
    *,
    uses_groups: bool,
    seed: int | None,
) -> History:
    """One row: the fitted estimator, on everything.

    The losses are cross-entropies; where predictions are drawn (``seed`` is given), the chances of
    a wrong one, since a certain but wrong prediction has no finite cross-entropy.
    """

    def compute_chances(samples: Samples) -> NDArray[np.float64]:
        return model.probabilities(samples.features, samples.cells.group_codes if uses_groups else None)

    cells = data.cells
    chances = compute_chances(data)
    own = chances[np.arange(len(data)), cells.label_codes]
    losses = -np.log(np.maximum(own, 1e-300)) if seed is None else 1 - own
    everyone, counts = np.arange(len(data)), cells.counts.reshape(-1)
    recording = new_recording(1, cells)
    record_model(recording, 0, losses, _draw_classes(chances, seed), cells.codes, everyone, counts)
    record_plan(recording, 0, initial_ratios(cells), everyone, counts, True)
    if evaluation is not None:
        predicted = _draw_classes(compute_chances(evaluation), seed)
        count_predictions(predicted, evaluation.cells.codes, recording.evaluation_tables[0])
    positive = -1 if settings.pos_label is None else cells.class_index(settings.pos_label)
    return History.from_recording(
        recording, cells, np.arange(1), evaluated=evaluation is not None, positive=positive
    )


def settings_with(
    method: str, settings: Settings, hyperparameters: Mapping[str, Any], own: Collection[str] = ()
) -> Settings:
    """Return the settings with the hyperparameters in them; refuse names that are not fields.

    ``own`` are the names that the method itself takes, for the message.
    """
    unknown = sorted(hyperparameters.keys() - settings.__dataclass_fields__.keys())
    if unknown:
        has = f"the hyperparameters {', '.join(own)}" if own else "no hyperparameters"
        raise InvalidInputError(
            f"{method} has {has} beside the fields of Settings; got also {', '.join(unknown)}"
        )
    return replace(settings, **hyperparameters)
