"""Torch modules: the paper's model as one, the trainer of any, and its checkpoints: each is whole or is refused.

``000120.checkpoint`` holds the state after 120 epochs: the SHA-256 of what follows, then a file of ``torch.save`` that
is loaded with ``weights_only=True``, so that nothing in it can run. A file is written under another name and renamed.

All of it needs torch, so that ``fit`` imports it late.
"""

from __future__ import annotations

import copy
import hashlib
import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

from fairsieve.errors import CheckpointError, CheckpointWarning, InvalidInputError
from fairsieve.files import clear_stale, make_folder, write_whole
from fairsieve.samples import Samples
from fairsieve.sampling.losses import (
    check_outputs,
    compute_outputs,
    compute_signals,
    cross_entropy,
    is_single,
    predicted_classes,
)
from fairsieve.selection.cells import Integers
from fairsieve.training.linear_trainer import initial_parameters
from fairsieve.training.newton import LinearModel
from fairsieve.training.trainer import Measurement, Trainer, TrainingSpec
from fairsieve.validation import check_at_least, shown

KEPT = 2  # checkpoints: the last, and the one before it in case the last is damaged
NAME = re.compile(r"\d{6,}\.checkpoint", re.ASCII)
DIGEST = hashlib.sha256().digest_size
State = dict[str, Any]  # tensors by name

_GLOBAL_GENERATOR = threading.RLock()  # dropout and its like draw from torch's global generator


class LogisticRegression(nn.Module):
    """Logistic regression as in the paper's experiments.

    Weights start at N(0, 0.2²), biases at 0. With two classes there is one output, the logit 2·f(x),
    so that the probability is σ(2·f(x)) = (tanh f(x) + 1) / 2; with more there is one per class.

    Parameters
    ----------
    n_features, n_classes : int
    generator : torch.Generator, optional
        Where the first weights come from.

    Examples
    --------
    >>> model = LogisticRegression(3, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(
        self, n_features: int, n_classes: int = 2, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        check_at_least("n_features", n_features, 1)
        outputs = 1 if check_at_least("n_classes", n_classes, 1) <= 2 else n_classes
        # Not initialised twice: nn.Linear would draw from torch's global generator.
        self.linear = skip_init(nn.Linear, n_features, outputs)
        with torch.no_grad():
            self.linear.weight.normal_(0, 0.2, generator=generator)
            self.linear.bias.zero_()

    @classmethod
    def from_linear(cls, linear: LinearModel) -> LogisticRegression:
        """Make the module of a trained linear model."""
        outputs, features = linear.coef.shape
        module = cls(features, outputs if outputs > 1 else 2, generator=torch.Generator())
        scale = 0.5 if outputs == 1 else 1.0  # one logit is 2·f
        with torch.no_grad():
            module.linear.weight.copy_(torch.from_numpy(scale * linear.coef))
            module.linear.bias.copy_(torch.from_numpy(scale * linear.intercept))
        return module.eval()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(features)
        return 2 * scores.squeeze(-1) if scores.shape[-1] == 1 else scores


@contextmanager
def random_numbers(states: State, seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Let torch's global generators go on from ``states``, at first from ``seed``, and keep there where they get to.

    Only one thread at a time can do so: others wait. The generators' own states come back after.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices):
        if states:
            torch.random.set_rng_state(states["cpu"])
        else:
            torch.default_generator.manual_seed(seed)
        for each in devices:
            with torch.cuda.device(each):
                torch.cuda.set_rng_state(states["cuda"]) if states else torch.cuda.manual_seed(seed)
        yield
        states["cpu"] = torch.random.get_rng_state()
        for each in devices:
            states["cuda"] = torch.cuda.get_rng_state(each)


def make_module(
    model: nn.Module | Callable[[torch.Generator], nn.Module] | None, data: Samples, seed: int
) -> nn.Module:
    """Make a module of its own to train: a copy, what a callable makes, or the paper's logistic regression."""
    if model is None:
        parameters = initial_parameters(data.features.shape[1], data.cells.shape[0], seed)
        outputs = 1 if data.cells.shape[0] <= 2 else data.cells.shape[0]
        return LogisticRegression.from_linear(LinearModel.from_parameters(parameters, outputs))
    made: Any = model
    kinds = (
        f"model must be None, an nn.Module, or a callable (torch.Generator) → nn.Module; got {shown(model)}"
    )
    if isinstance(model, nn.Module):
        made = copy.deepcopy(model)
    elif callable(model):
        try:
            with random_numbers({}, seed):
                made = model(torch.Generator().manual_seed(seed))
        except TypeError as error:  # most often a class
            raise InvalidInputError(
                f"{kinds}, which a generator alone does not make one of ({error}): pass a module that is made"
            ) from error
    if not isinstance(made, nn.Module):
        raise InvalidInputError(f"{kinds}{f', which makes {shown(made)}' if callable(model) else ''}")
    if any(parameter.dtype in (torch.float16, torch.bfloat16) for parameter in made.parameters()):
        raise InvalidInputError(
            "model must be in single or double precision, where small steps are not lost; call float() on it, or train "
            "it in a loop of your own with a FairRobustBatchSampler"
        )
    if not any(parameter.requires_grad for parameter in made.parameters()):
        raise InvalidInputError(
            f"model must have parameters to train; got {shown(made)}, which has none, or all are frozen: unfreeze some "
            "with requires_grad_(True)"
        )
    return made


class AutogradTrainer(Trainer):
    """Trains any module by autograd."""

    def __init__(self, model: nn.Module, spec: TrainingSpec) -> None:
        super().__init__(spec)
        settings, cells = spec.settings, self.plan.cells
        first = next(model.parameters())
        self.device = torch.device(settings.device) if settings.device else first.device
        self.model = model.to(self.device)
        features = np.require(spec.data.features, requirements="W")  # torch does not take read-only arrays
        self.features = torch.from_numpy(features).to(self.device, first.dtype)
        self.labels = torch.from_numpy(cells.label_codes).to(self.device)
        self.weights = None if spec.weights is None else torch.from_numpy(spec.weights).to(self.device)
        if spec.evaluation is not None:
            self.shown = torch.from_numpy(spec.evaluation.features).to(self.device, first.dtype)
        self.loss = settings.loss or cross_entropy
        make = settings.optimizer or partial(torch.optim.Adam, lr=settings.learning_rate)
        self.optimizer: torch.optim.Optimizer = make(self.model.parameters())
        self.random: State = {}
        self.best: tuple[float, list[State]] = (-np.inf, [])  # of the epochs after the warm-up, as they began
        self.last: list[State] = []  # after each of the epochs whose predictions are averaged

    def run_epoch(self) -> None:
        with random_numbers(self.random, self.spec.seed, self.device):
            super().run_epoch()

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """Compute the logits of all samples."""
        try:
            return compute_outputs(self.model, features, chunk_size=self.settings.chunk_size)
        except RuntimeError as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            shape = tuple(features[: self.settings.chunk_size].shape)
            raise InvalidInputError(
                f"model must take batches of the features; it could not be applied to one of the shape {shape} "
                f"({error}): pass a model that is made for them"
            ) from error

    def measure(self) -> Measurement:
        outputs = self.outputs(self.features)
        check_outputs(outputs, len(self.labels), self.plan.cells.shape[0])
        losses = self.loss(outputs, self.labels)
        targets = self.plan.comparisons.targets
        signals = compute_signals(outputs, self.labels, losses, targets, self.plan.signal, self.loss)
        predicted = predicted_classes(outputs)
        return Measurement(losses.cpu().numpy(), signals.cpu().numpy(), predicted.cpu().numpy())

    def predict_evaluation(self) -> Integers:
        return predicted_classes(self.outputs(self.shown)).cpu().numpy()

    def train(self, batches: Integers) -> None:
        if not self.plan.in_warmup:
            merit = float(self.merits(self.done, self.done + 1)[0])
            if merit > self.best[0]:
                self.best = merit, [self.copy_state()]
        self.model.train()
        for batch in torch.from_numpy(batches).to(self.device):
            self.train_step(batch)
        if self.settings.epochs - self.done <= self.settings.average_last > 1:
            self.last.append(self.copy_state())

    def train_step(self, batch: torch.Tensor) -> None:
        """Take one step of the optimiser on a batch."""
        self.model.zero_grad()  # all the gradients that the optimiser has, without its hooks
        losses = self.loss(self.model(self.features[batch]), self.labels[batch])
        if self.weights is not None:
            losses = losses * self.weights[batch].to(losses.dtype)
        losses.mean().backward()
        self.optimizer.step()

    def finish(self, *, interrupted: bool) -> nn.Module:
        last_models = []
        for state in self.best[1] if interrupted else self.last:
            self.put_back(state)
            last_models.append(copy.deepcopy(self.model))
        if len(last_models) > 1:
            return AveragedModule(last_models).eval()
        return (last_models[0] if last_models else self.model).eval()

    def live_tensors(self) -> State:
        """Return the tensors themselves that training changes, but for the optimiser's."""
        # Buffers that a module does not keep in its state change too.
        return dict(self.model.named_buffers()) | self.model.state_dict()

    def copy_state(self) -> State:
        """Copy everything that the model has learned."""
        return {name: value.detach().clone() for name, value in self.live_tensors().items()}

    def put_back(self, state: State) -> None:
        """Let the model be what it was."""
        with torch.no_grad():
            for name, value in self.live_tensors().items():
                value.copy_(state[name])

    def checkpoint(self) -> State:
        """Return all that training changes, in plain values and tensors."""
        plan = self.plan.state_dict()
        return {
            "live": self.live_tensors(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.random,
            "best": self.best,
            "last": self.last,
            "plan": plan | {name: torch.from_numpy(plan[name]) for name in ("ratios", "indices")},
            "recording": {name: torch.from_numpy(part) for name, part in self.recording._asdict().items()},
        }

    def restore(self, state: State) -> None:
        """Put back what :meth:`checkpoint` returned."""
        try:
            self.put_back(state["live"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.random, self.best, self.last = state["random"], state["best"], state["last"]
            self.plan.load_state_dict(state["plan"])
            for name, part in self.recording._asdict().items():
                part[...] = state["recording"][name].numpy()
        except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"checkpoint_dir must hold checkpoints that fit the model; {error!r}: pass another folder"
            ) from error


class AveragedModule(nn.Module):
    """Several states of one module, whose probabilities are averaged (Sec. A.3): gives the logits of the mean."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(modules)

    def forward(self, *inputs: Any) -> torch.Tensor:
        outputs = torch.stack([member(*inputs) for member in self.members])
        if is_single(outputs[0]):
            return F.logsigmoid(outputs).logsumexp(dim=0) - F.logsigmoid(-outputs).logsumexp(dim=0)
        return torch.log_softmax(outputs, dim=-1).logsumexp(dim=0)


class Checkpoints:
    """Writes checkpoints of a trainer while it trains, and goes back to the last.

    Parameters
    ----------
    trainer : AutogradTrainer
        At its start.
    folder : Path
        Made if it does not exist. Checkpoints of another training in it are an error.
    every : int, optional
        Epochs between checkpoints; a twentieth of all when None. There is one after the last epoch too.
    """

    def __init__(self, trainer: AutogradTrainer, folder: Path, every: int | None) -> None:
        self.trainer, self.folder, self.has_warned = trainer, folder, False
        self.every = max(1, trainer.settings.epochs // 20) if every is None else every
        self.training = _describe_training(trainer)
        make_folder("checkpoint_dir", folder)

    def files(self) -> list[Path]:
        """List the checkpoints that are there, the oldest first."""
        found = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.stem))

    def resume(self) -> None:
        """Take the trainer to the last whole checkpoint, if there is any; warn of those that are not."""
        for path in reversed(self.files()):
            try:
                content = _read(path)
            except CheckpointError as error:
                warnings.warn(
                    f"{path} is not used: {error}. The checkpoint before it is, if there is any",
                    CheckpointWarning,
                    stacklevel=4,
                )
                continue
            self.check_training(content["training"])
            self.trainer.restore(content["state"])
            return

    def check_training(self, was: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another training."""
        now = self.training
        different = [
            f"{name} was {was.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        ]
        if different:
            raise InvalidInputError(
                f"checkpoint_dir must hold checkpoints of this training or none; {self.folder} holds those of "
                f"another: {'; '.join(different)}. Pass another folder, or remove this one"
            )

    def write_if_due(self) -> None:
        """Write a checkpoint if one is due, and remove all before it but one; where that fails, warn once and go on."""
        done = self.trainer.done
        if done % self.every and done < self.trainer.settings.epochs:
            return
        path = self.folder / f"{done:06d}.checkpoint"
        content = _pack({"training": self.training, "state": self.trainer.checkpoint()})
        try:
            clear_stale(self.folder, path.name)  # what a training that was killed here has left
            write_whole(path, content)
            for old in self.files()[:-KEPT]:
                old.unlink()
        except OSError as error:
            if not self.has_warned:
                self.has_warned = True
                warnings.warn(
                    f"{path} could not be written ({error.strerror or error}); training goes on, and later "
                    "checkpoints are tried again, without another warning. Make room on the disk",
                    CheckpointWarning,
                    stacklevel=4,
                )


def _pack(content: dict[str, Any]) -> bytes:
    """Write the content of a checkpoint as bytes, with their checksum before them."""
    buffer = io.BytesIO()
    try:
        torch.save(content, buffer)
        torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    except Exception as error:  # whatever the state cannot be written by
        raise InvalidInputError(
            "a checkpoint must hold numbers, text and tensors only, and the optimizer's state has something else: use "
            f"another optimizer, or train without checkpoint_dir ({str(error).splitlines()[0]})"
        ) from error
    return hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()


def _read(path: Path) -> dict[str, Any]:
    """Read a checkpoint, or raise an error that says what is wrong with it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"it cannot be read: {error.strerror}") from error
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        raise CheckpointError("it is damaged: its checksum is another")
    try:
        found = torch.load(io.BytesIO(content[DIGEST:]), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file makes torch raise
        raise CheckpointError(f"torch cannot load it: {str(error).splitlines()[0]}") from error
    if not (isinstance(found, dict) and found.keys() == {"training", "state"}):
        raise CheckpointError("it was not written by fairsieve")
    return found


def _describe_training(trainer: AutogradTrainer) -> dict[str, Any]:
    """Describe what is trained, on what and how, in plain values: the same in any process."""
    spec, data = trainer.spec, (trainer.spec.data, trainer.spec.evaluation)
    settings = {name: _plain(value) for name, value in vars(spec.settings).items()}
    shapes = [(name, str(value.dtype), value.shape) for name, value in trainer.model.state_dict().items()]
    given, shown = (
        each and joblib.hash((each.features, each.cells.codes, each.classes, each.group_values))
        for each in data
    )
    return settings | {
        "method": spec.method.name,
        "seed": spec.seed,
        "model": f"{type(trainer.model).__qualname__} {joblib.hash(shapes)}",
        "data": given,
        "evaluation": shown,
        "sample_weight": None if spec.weights is None else joblib.hash(spec.weights),
    }


def _plain(value: Any) -> Any:
    """Return a setting as a plain value; a function by its name."""
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"
    return value if value is None or isinstance(value, (int, float, str)) else repr(value)
