"""Train FR-Train's classifier against its discriminators, and record the training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.fr_train_games import AutogradGame, CompiledGame, Game
from fairsieve.paper.methods.fr_train_linear import HIDDEN, Discriminators, GameArrays
from fairsieve.paper.methods.fr_train_options import FRTrainOptions
from fairsieve.progress import progress_bar
from fairsieve.samples import Samples
from fairsieve.sampling.losses import check_outputs, compute_outputs, cross_entropy, predicted_classes
from fairsieve.selection.ratios import initial_ratios
from fairsieve.training.autograd import make_module
from fairsieve.training.history import History, count_predictions, new_recording, record_model, record_plan
from fairsieve.training.models import LogisticRegression
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings

__all__ = ["train_against_discriminators"]

ROWS = 200  # of the history
State = dict[str, torch.Tensor]
Draw = Callable[[int], NDArray[np.int64]]  # number of updates → rows of each, (updates or 1, batch size)


def train_against_discriminators(
    given: TrainingInput,
    options: FRTrainOptions,
    *,
    epochs: int,
    batch_limit: int,
    engine: Literal["auto", "compiled", "autograd"],
) -> Fitted:
    """Train the classifier; the arguments are those of FR-Train, checked."""
    data, validation, settings, seed = given.data, given.validation, given.settings, given.seed
    assert validation is not None
    module = make_module(given.model, data, seed)
    arrays = _make_arrays(data, validation, settings)
    rng = np.random.default_rng(seed)
    discriminators = _make_discriminators(arrays, data.cells.shape[1], settings.fairness, rng)
    on_cpu = next(module.parameters()).device.type == "cpu"
    compilable = type(module) is LogisticRegression and settings.allow_linear and on_cpu
    if engine == "compiled" and not compilable:
        raise InvalidInputError(
            "engine='compiled' takes the linear model with its own loss and optimiser on a CPU; use engine='auto'"
        )
    kind: type[CompiledGame] | type[AutogradGame] = (
        CompiledGame if compilable and engine != "autograd" else AutogradGame
    )
    game = kind(module, arrays, options, discriminators, settings)
    training = _GameTraining(game, data, given.evaluation, settings, epochs)
    draw, draw_real = (
        _batch_source(len(part), batch_limit, random)
        for part, random in zip((data, validation), rng.spawn(2), strict=True)
    )
    with progress_bar("FR-Train", epochs, shown=given.progress) as report, torch.random.fork_rng():
        torch.manual_seed(seed)
        interrupted = training.train(draw, draw_real, report)
    return training.fitted(options.pretrain_epochs, seed, interrupted)


def _make_arrays(data: Samples, validation: Samples, settings: Settings) -> GameArrays:
    """Prepare the arrays that both engines read."""
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
    return GameArrays(
        np.ascontiguousarray(data.features),
        inputs,
        labels,
        groups,
        counted,
        real_inputs,
        validation.cells.label_codes.astype(np.float64),
    )


def _tells_groups(features: NDArray[np.float64], groups: NDArray[np.int64]) -> bool:
    """Return whether one feature alone tells the groups apart."""
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    values = features[first]
    same = (features == values[places.reshape(-1)]).all(axis=0)
    return any(len(np.unique(values[:, j])) == len(first) for j in np.flatnonzero(same))


def _make_discriminators(
    arrays: GameArrays, groups: int, fairness: str, rng: np.random.Generator
) -> Discriminators:
    """Make the discriminators: zeros for fairness, random weights for robustness."""
    inputs = arrays.inputs.shape[1]
    reach, reach_out = 1 / np.sqrt(inputs), 1 / np.sqrt(HIDDEN)
    return Discriminators(
        np.zeros((groups - 1, 3 if fairness == "equalized_odds" else 2)),
        rng.uniform(-reach, reach, (inputs + 1, HIDDEN)),
        rng.uniform(-reach_out, reach_out, HIDDEN + 1),
    )


def _batch_source(samples: int, limit: int, rng: np.random.Generator) -> Draw:
    """Return a function that draws the rows of updates: all samples, or parts of shuffles."""
    if samples <= limit:
        everyone = np.arange(samples)[None]
        return lambda count: everyone

    def parts() -> Iterator[NDArray[np.int64]]:
        while True:
            order = rng.permutation(samples)
            yield from order[: samples // limit * limit].reshape(-1, limit)

    stream = parts()
    return lambda count: np.stack([next(stream) for _ in range(count)])


class _GameTraining:
    """FR-Train's training from beginning to end, with its history."""

    def __init__(
        self, game: Game, data: Samples, evaluation: Samples | None, settings: Settings, epochs: int
    ) -> None:
        self.game, self.data, self.evaluation, self.settings = game, data, evaluation, settings
        self.epochs, self.every, self.done = epochs, max(1, epochs // ROWS), 0
        cells, rows = data.cells, len(range(0, epochs, self.every))
        self.recording = new_recording(rows, cells)
        self.recorded: list[int] = []
        self.average: State | None = None

    def train(self, draw: Draw, draw_real: Draw, report: Callable[[int], None]) -> bool:
        """Train to the end, record a row now and then, and average the last epochs; return True when interrupted."""
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
        outputs = compute_outputs(model, self.seen(self.data), chunk_size=self.settings.chunk_size).cpu()
        check_outputs(outputs, len(cells), cells.shape[0])
        losses = (self.settings.loss or cross_entropy)(outputs, torch.from_numpy(cells.label_codes))
        if losses.isnan().any():
            raise self.diverged()
        everyone, counts = np.arange(len(cells)), cells.counts.reshape(-1)
        predicted = predicted_classes(outputs).numpy()
        record_model(recording, row, losses.numpy(), predicted, cells.codes, everyone, counts)
        record_plan(recording, row, initial_ratios(cells), everyone, counts, False)
        if self.evaluation is not None:
            shown = compute_outputs(
                model, self.seen(self.evaluation), chunk_size=self.settings.chunk_size
            ).cpu()
            codes = self.evaluation.cells.codes
            count_predictions(predicted_classes(shown).numpy(), codes, recording.evaluation_tables[row])
        self.recorded.append(self.done)

    def seen(self, samples: Samples) -> torch.Tensor:
        return torch.from_numpy(samples.features).to(next(self.game.module().parameters()).dtype)

    def add_to_average(self, number: int) -> None:
        """Add the classifier's state to the running mean, as its ``number``-th."""
        state = {name: value.clone() for name, value in self.game.module().state_dict().items()}
        if self.average is not None:
            for name, value in state.items():
                if value.is_floating_point():
                    state[name] = self.average[name] + (value - self.average[name]) / number
        self.average = state

    def fitted(self, pretrain_epochs: int, seed: int, interrupted: bool) -> Fitted:
        """Describe the trained classifier; after an interruption, as it was then."""
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
            seconds=0.0,
            interrupted=interrupted,
        )

    def diverged(self) -> FairsieveError:
        return FairsieveError(
            f"training diverged: by epoch {self.done} losses are not numbers. Lower classifier_rate or "
            "discriminator_rate, or scale the features"
        )
