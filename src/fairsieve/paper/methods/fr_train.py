"""FR-Train (Roh et al. 2020): a classifier that plays against two discriminators.

The *fairness* discriminator tells a sample's group from the classifier's output ŷ (for equalized
odds, with the label as a second input). The *robustness* discriminator tells training samples with
the classifier's label, (x, z, ŷ), from samples of a clean validation set, (x, z, y). The classifier
minimises (1 − λf − λr)·L₁ − λf·L_fair − λr·L_robust; in L₁ a sample weighs what the robustness
discriminator makes of (x, z, y), once that tells more than a coin.

Three things the description leaves open are settled here, by trial on the synthetic data:

- ŷ is a label that is 1 with the classifier's probability, and L_robust is its expectation. Handing
  over the probability itself lets the discriminator win by noticing that it is not 0 or 1, which
  says nothing about wrong labels.
- The robustness discriminator sees standardised features, so that one step size fits all data.
- Discriminators take steps of 0.05, not the published 0.001, at which they learn too slowly to steer
  the classifier: with group-targeted flips accuracy / EO disparity are then .693 / .156, not .710 / .052.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.fr_train_games import AutogradGame, CompiledGame, Game
from fairsieve.paper.methods.fr_train_linear import HIDDEN, Board, Opponents, Stakes
from fairsieve.progress import progress_bar
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.sampling.losses import cross_entropy, outputs_of, predicted_classes
from fairsieve.selection.ratios import initial_ratios
from fairsieve.training.autograd import can_compile, make_module
from fairsieve.training.fit import ModelLike, check_data, fit
from fairsieve.training.history import History, count_predictions, new_recording, record_model, record_plan
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings
from fairsieve.validation import check_at_least, check_choice, check_positive, check_share

__all__ = [
    "FR_TRAIN",
    "clean_with_itlm",
]

ROWS = 200  # of the history
State = dict[str, torch.Tensor]
Draw = Callable[[int], NDArray[np.int64]]  # number of updates → rows of each, (updates or 1, batch size)


def _train_fr_train(
    data: Samples,
    settings: Settings,
    *,
    seed: int,
    model: ModelLike = None,
    validation: Samples | None = None,
    evaluation: Samples | None = None,
    progress: bool = False,
    fairness_weight: float = 0.4,
    robustness_weight: float = 0.4,
    validation_kind: Literal["clean", "noisy", "cleaned"] = "clean",
    epochs: int = 10_000,
    pretrain_epochs: int = 500,
    discriminator_updates: int = 5,
    classifier_rate: float = 0.001,
    discriminator_rate: float = 0.05,
    batch_limit: int = 2_000,
    engine: Literal["auto", "compiled", "autograd"] = "auto",
    **hyperparameters: Any,
) -> Fitted:
    """Train by FR-Train; any module, two classes, any number of groups.

    Of ``settings`` the notion of fairness, the positive label, the loss, the optimiser (the
    classifier's), the device and ``average_last`` count; epochs, batches and rates are FR-Train's own.

    Parameters
    ----------
    validation : Samples
        What right labels look like; needed.
    fairness_weight, robustness_weight : float
        λf and λr, together at most 1.
    validation_kind : {"clean", "noisy", "cleaned"}
        What the validation set is (Table 3). Clean and noisy are taken as they are; cleaned is
        first put through :func:`clean_with_itlm` with the settings' clean ratio.
    epochs, pretrain_epochs : int
        Epochs in all, one update of someone in each, and how many of them train plainly first.
    discriminator_updates : int
        For one update of the classifier.
    classifier_rate, discriminator_rate : float
        Learning rates, of Adam and of gradient descent.
    batch_limit : int
        An update looks at all training and all validation samples, or at so many of each where there are
        more: a shuffle, part by part.
    engine : {"auto", "compiled", "autograd"}
        The linear model has a compiled loop beside the autograd one; auto uses it where it can.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> data, clean = make_synthetic(300, seed=0), make_synthetic(50, seed=1)
    >>> fitted = _train_fr_train(data, Settings(), seed=0, validation=clean, epochs=30, pretrain_epochs=10)
    >>> fitted.history.epochs.tolist()[-1], len(fitted.indices)
    (29, 300)
    """
    settings = settings_with("fr-train", settings, hyperparameters, OWN)
    check_data(data, evaluation)
    FR_TRAIN.check(data, settings, validation)
    assert validation is not None
    _check_validation(data, validation)
    stakes = _checked_stakes(
        fairness_weight,
        robustness_weight,
        classifier_rate,
        discriminator_rate,
        discriminator_updates,
        pretrain_epochs,
    )
    check_at_least("epochs", epochs, 1)
    check_at_least("batch_limit", batch_limit, 1)
    check_choice("engine", engine, ("auto", "compiled", "autograd"))
    started = time.perf_counter()
    if check_choice("validation_kind", validation_kind, ("clean", "noisy", "cleaned")) == "cleaned":
        validation = clean_with_itlm(validation, settings.clean_ratio, seed=seed)
    module = make_module(model, data, seed)
    board = _new_board(data, validation, settings)
    rng = np.random.default_rng(seed)
    opponents = _new_opponents(board, data.cells.shape[1], settings.fairness, rng)
    compilable = can_compile(module, settings) and next(module.parameters()).shape[0] == 1
    if engine == "compiled" and not compilable:
        raise InvalidInputError(
            "engine='compiled' takes the linear model with its own loss and optimiser on a CPU; use engine='auto'"
        )
    kind: type[CompiledGame] | type[AutogradGame] = (
        CompiledGame if compilable and engine != "autograd" else AutogradGame
    )
    game = kind(module, board, stakes, opponents, settings)
    match = _Match(game, data, evaluation, settings, epochs)
    draw, draw_real = (
        _batches_of(len(part), batch_limit, random)
        for part, random in zip((data, validation), rng.spawn(2), strict=True)
    )
    with progress_bar("FR-Train", epochs, shown=progress) as report, torch.random.fork_rng():
        torch.manual_seed(seed)
        interrupted = match.play_all(draw, draw_real, report)
    return match.fitted(pretrain_epochs, seed, time.perf_counter() - started, interrupted)


FR_TRAIN = Method(
    name="fr-train",
    title="FR-Train",
    look=Look("red", "square"),
    family="fair and robust",
    train=_train_fr_train,
    candidates={"fairness_weight": (0.4, 0.2)},
    while_tuning={"epochs": 3_000},
    uses_validation=True,
    most_classes=2,
)
OWN = (
    "fairness_weight",
    "robustness_weight",
    "validation_kind",
    "epochs",
    "pretrain_epochs",
    "discriminator_updates",
    "classifier_rate",
    "discriminator_rate",
    "batch_limit",
    "engine",
)


def clean_with_itlm(validation: Samples, clean_ratio: float, *, seed: int = 0) -> Samples:
    """What ITLM keeps of a noisy validation set after training on it (Table 3).

    Batches are a twentieth of the set, so that a small one gets as many updates as the paper's
    2,000 samples in batches of 100.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> len(clean_with_itlm(make_synthetic(200, seed=0), 0.9))
    180
    """
    batch_size = max(1, len(validation) // 20)
    fitted = fit(None, validation, "itlm", seed=seed, clean_ratio=clean_ratio, batch_size=batch_size)
    return validation.take(fitted.indices)


def _check_validation(data: Samples, validation: Samples) -> None:
    """Samples of the same kind as the training data."""
    if len(validation) == 0:
        raise InvalidInputError("validation must have at least one sample; got none")
    known = (data.classes, data.group_values, data.features.shape[1:])
    found = (validation.classes, validation.group_values, validation.features.shape[1:])
    if known != found:
        raise InvalidInputError(
            f"validation must have the classes, groups and features of data, {known}; got {found}. Pass classes= and "
            "group_values= to Samples when some are absent"
        )


def _checked_stakes(
    fairness_weight: float,
    robustness_weight: float,
    classifier_rate: float,
    discriminator_rate: float,
    discriminator_updates: int,
    pretrain_epochs: int,
) -> Stakes:
    """What is played for, with the rules it must keep."""
    check_share("fairness_weight", fairness_weight)
    check_share("robustness_weight", robustness_weight)
    if fairness_weight + robustness_weight > 1 + 1e-9:
        raise InvalidInputError(
            f"fairness_weight and robustness_weight must sum to at most 1; got {fairness_weight} and "
            f"{robustness_weight}"
        )
    return Stakes(
        float(fairness_weight),
        float(robustness_weight),
        check_positive("classifier_rate", classifier_rate),
        check_positive("discriminator_rate", discriminator_rate),
        check_at_least("discriminator_updates", discriminator_updates, 1),
        check_at_least("pretrain_epochs", pretrain_epochs, 0),
    )


def _new_board(data: Samples, validation: Samples, settings: Settings) -> Board:
    """The samples as both engines see them."""
    flat, real = (part.features.reshape(len(part), -1).astype(np.float64) for part in (data, validation))
    shift, scale = flat.mean(axis=0), flat.std(axis=0)
    scale[scale == 0] = 1.0
    groups = data.cells.group_codes
    one_hot = np.ones((data.cells.shape[1], 1))  # a constant, and which group it is, unless a feature tells
    if not _tells_groups(flat, groups):
        one_hot = np.hstack([np.eye(len(one_hot)), one_hot])
    inputs = np.hstack([(flat - shift) / scale, one_hot[groups]])
    real_inputs = np.hstack([(real - shift) / scale, one_hot[validation.cells.group_codes]])
    labels = data.cells.label_codes
    counted = np.ones(len(data))
    if settings.fairness == "equal_opportunity":
        counted = (labels == data.cells.class_index(settings.pos_label)).astype(np.float64)
    return Board(
        np.ascontiguousarray(data.features),
        inputs,
        labels,
        groups,
        counted,
        real_inputs,
        validation.cells.label_codes.astype(np.float64),
    )


def _tells_groups(features: NDArray[np.float64], groups: NDArray[np.int64]) -> bool:
    """Whether a feature has one value in each group, another in every one."""
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    values = features[first]
    same = (features == values[places.reshape(-1)]).all(axis=0)
    return any(len(np.unique(values[:, j])) == len(first) for j in np.flatnonzero(same))


def _new_opponents(board: Board, groups: int, fairness: str, rng: np.random.Generator) -> Opponents:
    """Discriminators at their start: the fairness one knows nothing, the other has random weights."""
    inputs = board.inputs.shape[1]
    reach, reach_out = 1 / np.sqrt(inputs), 1 / np.sqrt(HIDDEN)
    return Opponents(
        np.zeros((groups - 1, 3 if fairness == "equalized_odds" else 2)),
        rng.uniform(-reach, reach, (inputs + 1, HIDDEN)),
        rng.uniform(-reach_out, reach_out, HIDDEN + 1),
    )


def _batches_of(samples: int, limit: int, rng: np.random.Generator) -> Draw:
    """Rows for so many updates: everyone (once, for all of them), or parts of shuffles."""
    if samples <= limit:
        everyone = np.arange(samples)[None]
        return lambda count: everyone

    def parts() -> Iterator[NDArray[np.int64]]:
        while True:
            order = rng.permutation(samples)
            yield from order[: samples // limit * limit].reshape(-1, limit)

    stream = parts()
    return lambda count: np.stack([next(stream) for _ in range(count)])


class _Match:
    """A game from beginning to end, recorded."""

    def __init__(
        self, game: Game, data: Samples, evaluation: Samples | None, settings: Settings, epochs: int
    ) -> None:
        self.game, self.data, self.evaluation, self.settings = game, data, evaluation, settings
        self.epochs, self.every, self.done = epochs, max(1, epochs // ROWS), 0
        cells, rows = data.cells, len(range(0, epochs, self.every))
        self.recording = new_recording(rows, cells)
        self.recorded: list[int] = []
        self.average: State | None = None

    def play_all(self, draw: Draw, draw_real: Draw, report: Callable[[int], None]) -> bool:
        """Play to the end, recording now and then and averaging the last epochs; True when interrupted."""
        averaged_from = max(self.epochs - self.settings.average_last, 0)
        try:
            while self.done < self.epochs:
                if self.done % self.every == 0:
                    self.record()
                stop = self.done + 1
                if self.done < averaged_from:
                    stop = min(self.done - self.done % self.every + self.every, averaged_from)
                updates = stop - self.done
                self.game.advance(draw(updates), draw_real(updates), self.done, stop)
                self.done = stop
                if stop > averaged_from:
                    self.add_to_average(stop - averaged_from)
                report(stop)
        except KeyboardInterrupt:
            return True
        return False

    def record(self) -> None:
        """Add a row to the history."""
        cells, row, recording, model = self.data.cells, len(self.recorded), self.recording, self.game.module()
        outputs = outputs_of(model, self.seen(self.data), chunk_size=self.settings.chunk_size).cpu()
        losses = (self.settings.loss or cross_entropy)(outputs, torch.from_numpy(cells.label_codes))
        if losses.isnan().any():
            raise self.diverged()
        everyone, counts = np.arange(len(cells)), cells.counts.reshape(-1)
        predicted = predicted_classes(outputs).numpy()
        record_model(recording, row, losses.numpy(), predicted, cells.codes, everyone, counts)
        record_plan(recording, row, initial_ratios(cells), everyone, counts, False)
        if self.evaluation is not None:
            shown = outputs_of(model, self.seen(self.evaluation), chunk_size=self.settings.chunk_size).cpu()
            codes = self.evaluation.cells.codes
            count_predictions(predicted_classes(shown).numpy(), codes, recording.evaluation_tables[row])
        self.recorded.append(self.done)

    def seen(self, samples: Samples) -> torch.Tensor:
        return torch.from_numpy(samples.features).to(next(self.game.module().parameters()).dtype)

    def add_to_average(self, number: int) -> None:
        """Running mean of the classifier's states; this is the ``number``-th."""
        state = {name: value.clone() for name, value in self.game.module().state_dict().items()}
        if self.average is not None:
            for name, value in state.items():
                if value.is_floating_point():
                    state[name] = self.average[name] + (value - self.average[name]) / number
        self.average = state

    def fitted(self, pretrain_epochs: int, seed: int, seconds: float, interrupted: bool) -> Fitted:
        """What the game came to; of an interrupted one, the classifier as it was."""
        cells, settings, model = self.data.cells, self.settings, self.game.module()
        if not interrupted and self.average is not None:
            model.load_state_dict(self.average)
        if not all(bool(part.isfinite().all()) for part in model.parameters()):
            raise self.diverged()
        self.recording.times_selected[:] = max(self.done - pretrain_epochs, 0)
        history = History.from_recording(
            self.recording,
            cells,
            np.array(self.recorded, np.int64),
            warmup_epochs=pretrain_epochs,
            evaluated=self.evaluation is not None,
            positive=cells.class_index(settings.pos_label),
        )
        everyone, ratios = np.arange(len(cells)), initial_ratios(cells)
        return Fitted(
            predictor=model.eval(),
            history=history,
            indices=everyone,
            ratios=ratios,
            classes=cells.classes,
            method="fr-train",
            seed=seed,
            seconds=seconds,
            interrupted=interrupted,
        )

    def diverged(self) -> FairsieveError:
        return FairsieveError(
            f"training diverged: by epoch {self.done} losses are not numbers. Lower classifier_rate or "
            "discriminator_rate, or scale the features"
        )
