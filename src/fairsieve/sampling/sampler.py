"""A batch sampler for ``DataLoader(batch_sampler=…)``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.notions import EO, OWN_LABEL
from fairsieve.sampling.losses import (
    Forward,
    LossFunction,
    check_outputs,
    compute_outputs,
    compute_signals,
    cross_entropy,
    expected_losses,
    follow_weights,
    look_like_probabilities,
    quiet_loader,
    run_in_chunks,
)
from fairsieve.sampling.observed import RunningLosses, as_indices, check_dataset
from fairsieve.sampling.position import Position
from fairsieve.sampling.states import as_tensors, check_origin, plain_settings
from fairsieve.sampling.summary import Summary, pass_warnings
from fairsieve.selection.backends.numpy import NumpyBackend
from fairsieve.selection.cells import Cells, as_array, cells_checksum
from fairsieve.selection.epoch import Batching, Plan, check_room
from fairsieve.selection.fairness import SignalName
from fairsieve.validation import check_at_least, check_share, shown

WARMUP = 5  # epochs, where nobody says how many there will be
FIRST_STEP = 0.05


class FairRobustBatchSampler(Sampler[list[int]]):
    """Batches of clean and fair samples, selected anew every epoch.

    Tell it the model's outputs once an epoch and it picks what to train on; nothing else in a
    training loop changes. The first ``warmup_epochs`` train on everything, plainly.

    Parameters
    ----------
    labels : array of n labels
        Any type; the classes are their sorted values, or ``classes``.
    sensitive_features : array of n values, or of several columns, which are crossed; None where ``fairness`` is
        Samples whose group is missing (None, NaN) train, and no fairness looks at them.
    batch_size : int
    fairness : str or None
        The name of a notion of fairness, see :mod:`fairsieve.notions`; equalized odds by default.
        None only cleans.
    clean_ratio : float in (0, 1], table of them, mapping, or "auto"
        Share of the labels believed to be right; if unsure, choose a lower value. A number is the budget of the
        paper's Algorithm 1. A table (classes × groups, or a mapping from (class, group) to a share) caps each
        cell at its own share of lowest losses. ``"auto"`` estimates that table from the averaged losses at every
        update; :attr:`clean_ratios` says what it found.
    epochs : int, optional
        How long the training will be. Sets the warm-up and the first step of ``step_size="auto"``.
    step_size : float or "auto"
        How far the ratios move in an epoch. ``"auto"`` moves every class by a step that grows while its gap keeps
        its sign and is halved when the sign changes. See :meth:`paper` for the paper's.
    tolerance : float
        Gaps up to this, and up to what chance explains, are left alone; for ``step_size="auto"``.
    warmup_epochs : int, optional
        When None: a third of ``epochs``, and 5 without them.
    momentum : float in [0, 1)
        How much of a sample's averaged loss is kept when a new loss comes; 0 takes the latest loss alone.
    seed : int
        The order of an epoch is a function of (seed, epoch).
    signal : {"loss", "error"}
        What is compared between groups: mean losses (the paper's) or error rates.
    batching : {"even", "paper"}
        How many batches an epoch has, and how a cell's share of them becomes a whole number; see
        :class:`~fairsieve.selection.epoch.Plan`.
    constrained, weighted : bool
        Parts of the method that can be left out; see :class:`~fairsieve.selection.epoch.Plan`.
    pos_label : label, optional
    classes : sequence of labels, optional
        All classes, in the order of the model's outputs, where some may not occur among the labels.
    folder : path, optional
        Keep observed losses (see :meth:`observe`) in files there, memory-mapped; in memory when None.
    device : torch device, optional
        Where codes, selection and batches are kept. When None: the device of labels, sensitive features
        or outputs that are on one, else the host. On a device no vector of length n leaves it, and
        :meth:`batches` gives tensors there.
    label_weights : array of shape (n, classes), optional
        The chance of each class to be a sample's true one, such as ``true_class`` of
        :func:`~fairsieve.estimate_clean_ratio` with verified labels. Losses and errors become expectations
        over them, and a sample belongs to the cell of its likeliest class. Train on the same chances:
        ``cross_entropy(outputs, sampler.label_weights[indices])``, with ``clean_ratio=1.0`` unless some samples
        are to be left out.

    Examples
    --------
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> x, y, z = torch.randn(8, 2), torch.tensor([0, 1] * 4), ["a"] * 4 + ["b"] * 4
    >>> sampler = FairRobustBatchSampler(y, z, 4, clean_ratio=0.9, epochs=3)
    >>> loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
    >>> model = torch.nn.Linear(2, 2)
    >>> for epoch in range(3):
    ...     sampler.update(model(x))
    ...     for features, targets in loader:
    ...         pass  # train as ever
    """

    first = 0  # the number of the first sample among those of all workers

    def __init__(
        self,
        labels: ArrayLike | torch.Tensor,
        sensitive_features: ArrayLike | torch.Tensor | None,
        batch_size: int,
        *,
        fairness: str | None = EO,
        clean_ratio: Any = "auto",
        epochs: int | None = None,
        step_size: float | Literal["auto"] = "auto",
        tolerance: float = 0.02,
        warmup_epochs: int | None = None,
        momentum: float = 0.5,
        seed: int = 0,
        signal: SignalName = "loss",
        constrained: bool = True,
        weighted: bool = True,
        batching: Batching = "even",
        pos_label: Any | None = None,
        classes: Sequence[Any] | None = None,
        folder: str | Path | None = None,
        device: torch.device | str | None = None,
        label_weights: ArrayLike | torch.Tensor | None = None,
    ) -> None:
        if sensitive_features is None and fairness is not None:
            raise InvalidInputError(
                f"sensitive_features must be given for fairness={fairness!r}; got None: pass fairness=None to clean "
                "the labels alone"
            )
        if sensitive_features is None:
            sensitive_features = np.full(np.shape(as_array("labels", labels))[:1], None)
        cells = self._find_cells(labels, sensitive_features, classes)
        self.label_weights: torch.Tensor | None = None
        if label_weights is not None:
            cells, self.label_weights = self._agree(lambda: follow_weights(cells, label_weights))
        self.epochs = None if epochs is None else check_at_least("epochs", epochs, 1)
        self.momentum = check_share("momentum", momentum)
        if self.momentum == 1:
            raise InvalidInputError("momentum must be below 1, or no loss would ever count; got 1")
        warmup, first_step = warmup_epochs, FIRST_STEP
        if warmup is None:
            warmup = WARMUP if epochs is None else max(1, round(epochs / 3)) if epochs > 1 else 0
        if self.epochs is not None:  # a step that could move a whole class in the training that is left
            first_step = min(0.1, 1 / max(1, self.epochs - warmup))
        self.settings = {
            "batch_size": batch_size,
            "fairness": fairness,
            "clean_ratio": clean_ratio,
            "step_size": step_size,
            "tolerance": tolerance,
            "first_step": first_step,
            "warmup_epochs": warmup,
            "signal": signal,
            "constrained": constrained,
            "weighted": weighted,
            "pos_label": pos_label,
            "batching": batching,
        }
        self.plan = self._new_plan(cells, seed=seed, device=device, **self.settings)
        if not self.plan.selected:  # of all samples, of all workers
            raise InvalidInputError("labels must have at least one sample; got none")
        check_room(self.plan, clean_ratio)
        self._folder = self._losses_folder(folder)
        self._running: RunningLosses | None = None
        self._averages: torch.Tensor | None = None  # over epochs: of losses, and of signals
        self.position = Position(self.plan)
        self._told: set[str] = set()  # warnings that were given

    @classmethod
    def paper(cls, *data: Any, clean_ratio: float, **options: Any) -> Self:
        """Return a sampler with the paper's settings: 100 epochs of warm-up, steps of .001, judged by losses.

        They suit a training of 400 epochs or more, with few cells and large batches: every batch has the same number
        of samples of a cell, and none where its share is below one half. ``data`` are labels, sensitive features and
        batch size; other ``options`` are those of the sampler.

        >>> sampler = FairRobustBatchSampler.paper([0, 1] * 4, list("aabb") * 2, 4, clean_ratio=0.9)
        >>> sampler.settings["step_size"], sampler.settings["warmup_epochs"]
        (0.001, 100)
        """
        settings: dict[str, Any] = {"step_size": 0.001, "warmup_epochs": 100, "momentum": 0.0}
        return cls(*data, clean_ratio=clean_ratio, **(settings | {"batching": "paper"} | options))

    def _find_cells(self, labels: Any, sensitive_features: Any, classes: Sequence[Any] | None) -> Cells:
        return Cells.of(labels, sensitive_features, classes=classes, missing="own")

    def _new_plan(self, cells: Cells, **options: Any) -> Plan:
        return Plan(cells, **options)

    def _losses_folder(self, folder: str | Path | None) -> Path | None:
        """Return where observed losses are kept, each worker's in a folder of its own."""
        return None if folder is None else Path(folder)

    def _agree(self, compute: Callable[[], Any]) -> Any:
        """Compute something, or fail; several workers fail together."""
        return compute()

    @property
    def _all_settings(self) -> dict[str, Any]:
        """What the state of another sampler must agree in."""
        return self.settings | {"momentum": self.momentum}

    @property
    def epoch(self) -> int:
        """The epoch that is trained, or comes next where the one before has ended."""
        return self.plan.epoch

    @property
    def needs_update(self) -> bool:
        """Whether the coming epoch selects, so that :meth:`update` must be called."""
        return self.position.coming >= self.plan.rules.warmup_epochs and not self.position.is_resumed

    @property
    def clean_ratios(self) -> NDArray[np.float64] | None:
        """The share of each cell that may be selected, classes × groups; None where one number holds for all."""
        return None if self.plan.clean_ratios is None else self.plan.clean_ratios.copy()

    @property
    def ratios(self) -> NDArray[np.float64]:
        """The present ratios, classes × groups."""
        return self.plan.ratios.copy()

    @property
    def indices(self) -> Any:
        """The present selection, ascending: an array, or a tensor where the samples are on a device."""
        found = self.plan.indices
        return found.clone() if isinstance(found, torch.Tensor) else found.copy()

    def update(
        self,
        outputs: torch.Tensor | nn.Module | None = None,
        data: torch.Tensor | Dataset[Any] | DataLoader[Any] | None = None,
        *,
        loss: LossFunction = cross_entropy,
        validation: tuple[Any, Any, Any] | None = None,
        forward: Forward | None = None,
        chunk_size: int | None = None,
        **loading: Any,
    ) -> None:
        """Begin an epoch: select what it trains on, from the model's outputs for *all* samples in order.

        During the warm-up only the averages over epochs are kept.

        Parameters
        ----------
        outputs : tensor of shape (n,) or (n, 1), or (n, classes); or the model
            Logits in evaluation mode: one per sample for two classes, or one per class. Or the model itself, which is
            then run over ``data`` in evaluation mode and without gradients. When None, the losses given to
            :meth:`observe` count, so that no pass over the data is needed.
        data : tensor, map-style dataset or DataLoader
            All samples in order, for a model: the features, items that start with them, or a loader, whose dataset and
            collation are used. Samples are judged as this dataset gives them: pass one without augmentation
            where you can.
        loss : callable
            ``loss(outputs, class_indices)`` → one loss per sample.
        validation : (outputs, labels, sensitive features), optional
            Held-out samples by which fairness is judged, with the logits of the model for them, or with data to run
            the model over. A network's errors on what it trains on vanish, and gaps with them; errors on these do not.
            All workers pass the same.
        forward : callable, optional
            ``forward(model, batch)`` → outputs, for batches that do not start with the features.
        chunk_size : int, optional
            Samples that the model sees at a time; four batches, and at least 256, when None.
        **loading
            For the ``DataLoader`` of a dataset: ``num_workers``, ``collate_fn``, …
        """
        if self.position.is_resumed:
            return  # the epoch that a loaded state was taken in goes on: its samples are selected
        self.position.begin()
        if isinstance(outputs, nn.Module):
            outputs, validation = self._run(outputs, data, validation, forward, chunk_size, loading)
        elif data is not None:
            raise InvalidInputError(
                f"data must come with the model, update(model, data); got {type(outputs).__name__} for the model"
            )
        judged = None if validation is None else self._agree(lambda: self._judge(validation, loss))
        if outputs is not None:
            measured = self._agree(lambda: self._measured(outputs, loss))
        elif not self.plan.in_warmup:
            measured = self._agree(self.running.known)
        if not self.plan.in_warmup:
            self.plan.update(*measured, judged=judged)

    def _run(
        self,
        model: nn.Module,
        data: Any,
        validation: Any,
        forward: Forward | None,
        chunk_size: int | None,
        loading: dict[str, Any],
    ) -> tuple[torch.Tensor, Any]:
        """Return the outputs of a model for all samples, and the held-out samples with theirs."""
        if data is None:
            raise InvalidInputError("data must be given with the model, update(model, data); got None")
        size = max(256, 4 * self.plan.rules.batch_size) if chunk_size is None else chunk_size
        options: dict[str, Any] = {"chunk_size": check_at_least("chunk_size", size, 1), "forward": forward}
        outputs = self._agree(lambda: compute_outputs(model, data, **options, **loading))
        if isinstance(validation, tuple) and len(validation) == 3:
            held_out, *rest = validation
            validation = (compute_outputs(model, held_out, **options, **loading), *rest)
        return outputs, validation

    def _measured(self, outputs: Any, loss: LossFunction) -> tuple[Any, Any]:
        """Return losses and signals, averaged over epochs, from outputs for all samples."""
        outputs = self._checked(outputs, len(self.plan.cells))
        losses, signals = self._compute(outputs, self._targets(slice(None), outputs.device), loss)
        if not self.momentum or bool(losses.isnan().any()):
            return losses, signals
        rows = torch.cat([losses[None], signals]) if self._remembers else losses[None]
        if self._averages is not None:
            weights = torch.full_like(rows[:, :1], 1 / (self.epoch + 1))
            weights[0] = 1 - self.momentum
            rows = self._averages.to(rows).lerp(rows, weights)
        self._averages = rows
        return rows[0], rows[1:] if self._remembers else signals

    @property
    def _remembers(self) -> bool:
        """Whether groups are compared by the mean over all epochs, and not by the present alone.

        A network learns what it trains on by heart, and gaps vanish; the mean remembers them. Algorithm 1, with one
        clean ratio for all, judges by the present.
        """
        return self.momentum > 0 and self.plan.clean_ratios is not None

    def _checked(self, outputs: Any, samples: int) -> torch.Tensor:
        """Return outputs as a tensor of logits; warn once of what look like probabilities."""
        found = check_outputs(outputs, samples, self.plan.cells.shape[0])
        if "probabilities" not in self._told and look_like_probabilities(found):
            self._tell(
                "probabilities",
                "outputs look like probabilities, and logits are expected: leave the softmax or sigmoid at the end of "
                "the model out, or pass torch.log(probabilities)",
            )
        return found

    def _tell(self, kind: str, message: str) -> None:
        """Warn, once of each kind."""
        if kind not in self._told:
            self._told.add(kind)
            warnings.warn(message, FairsieveWarning, stacklevel=4)

    def _judge(
        self, validation: tuple[Any, Any, Any], loss: LossFunction
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return signals of held-out samples and their squares added up by cell, and how many each cell has."""
        if not isinstance(validation, tuple) or len(validation) != 3:
            raise InvalidInputError(
                f"validation must be (outputs, labels, sensitive features); got {shown(validation)}"
            )
        own, (outputs, labels, groups) = self.plan.cells, validation
        held_out = Cells.of(labels, groups, classes=own.classes, group_values=own.groups, missing="own")
        if not len(held_out):
            raise InvalidInputError("validation must have at least one sample; got none: leave it out")
        outputs = self._checked(outputs, len(held_out))
        targets = torch.from_numpy(held_out.label_codes).to(outputs.device)
        backend = NumpyBackend(held_out)
        measured = backend.measure(*self._compute(outputs, targets, loss))
        sums, squares = backend.sum_signals(measured, backend.hold(None))
        return sums, squares, held_out.counts.reshape(-1)

    def update_losses(
        self,
        losses: ArrayLike | torch.Tensor,
        *,
        signals: ArrayLike | torch.Tensor | None = None,
    ) -> None:
        """Do what :meth:`update` does for losses of your own, one per sample; they are not averaged.

        ``signals`` are what groups are compared by, when that is not the losses themselves: one row
        per target label of ``sampler.plan.comparisons.targets``. Error rates need 0–1 errors, demographic parity
        the losses (or errors) against the positive label, whatever the sample's own.
        """
        self.plan.update(losses, None if signals is None else torch.atleast_2d(torch.as_tensor(signals)))

    @property
    def running(self) -> RunningLosses:
        """The latest loss of every sample, of those given to :meth:`observe`."""
        if self._running is None:
            rows = len(self.plan.comparisons.targets)
            self._running = RunningLosses(
                len(self.plan.cells), rows, self._folder, self.momentum, self._remembers
            )
        return self._running

    def observe(
        self,
        indices: ArrayLike | torch.Tensor,
        outputs: torch.Tensor,
        *,
        loss: LossFunction = cross_entropy,
    ) -> None:
        """Remember how the model does on some samples, from its outputs for them: those of a training step."""
        with torch.no_grad():
            where = as_indices(indices, len(self.plan.cells))
            outputs = self._checked(outputs, len(where))
            losses, signals = self._compute(outputs, self._targets(where, outputs.device), loss)
        self.observe_losses(where, losses, signals=signals)

    def observe_losses(
        self,
        indices: ArrayLike | torch.Tensor,
        losses: torch.Tensor,
        *,
        signals: torch.Tensor | None = None,
    ) -> None:
        """Do what :meth:`observe` does for losses that are computed already.

        ``signals`` are those of :meth:`update_losses`.
        """
        rows = losses.detach()[None]
        if signals is not None:
            rows = torch.cat([rows, torch.atleast_2d(signals.detach())])
        elif self.plan.signal == "loss" and self.plan.comparisons.targets == (OWN_LABEL,):
            rows = rows.repeat(2, 1)  # groups are compared by losses too, averaged in another way
        self.running.record(indices, rows, self.position.coming)

    def stale(self, share: float = 0.2) -> NDArray[np.int64]:
        """Return the samples to look at again: ``share`` of those that the last epoch did not train on.

        They take turns, so that each is looked at every 1/share epochs. Samples that have no loss at
        all come in addition.
        """
        return self.running.stale(share, self.position.coming, self.first)

    def refresh(
        self,
        model: nn.Module,
        dataset: torch.Tensor | Dataset[Any],
        share: float = 0.2,
        *,
        loss: LossFunction = cross_entropy,
        forward: Forward | None = None,
        chunk_size: int = 8192,
        device: torch.device | str | None = None,
        **loading: Any,
    ) -> None:
        """Observe the :meth:`stale` samples, in chunks and in evaluation mode. Nothing in the warm-up.

        Parameters
        ----------
        dataset : tensor, or any map-style dataset
            All samples in order. A dataset's items are the features, or start with them.
        share : float in [0, 1]
            How many of the samples that the last epoch did not train on.
        forward : callable, optional
            ``forward(model, batch)`` → outputs, for batches of another form.
        **loading
            For the ``DataLoader`` of a dataset: ``num_workers``, ``collate_fn``, …
        """
        if not self.needs_update:
            return
        check_dataset(dataset, len(self.plan.cells))
        stale = self.stale(share)
        chunks = [stale[first : first + chunk_size] for first in range(0, len(stale), chunk_size)]
        if isinstance(dataset, torch.Tensor):
            batches: Any = (dataset[torch.from_numpy(chunk).to(dataset.device)] for chunk in chunks)
        else:  # lists take five times the room, so each is made when it is asked for
            lists = (chunk.tolist() for chunk in chunks)
            batches = quiet_loader(dataset, batch_sampler=lists, **loading)
        found = run_in_chunks(model, batches, device, forward)
        for chunk, (_, outputs) in zip(chunks, found, strict=True):
            self.observe(chunk, outputs, loss=loss)

    def _targets(self, where: Any, device: torch.device) -> torch.Tensor:
        """Return the class indices of some samples, or the chances of each class, on a device."""
        if self.label_weights is not None:
            return self.label_weights[where].to(device)
        codes = self.plan.cells.codes_on(device)[where]
        return torch.div(codes, self.plan.cells.shape[1], rounding_mode="floor").long()

    def _compute(
        self, outputs: torch.Tensor, targets: torch.Tensor, loss: LossFunction
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return losses, and what groups are compared by, one row per target."""
        losses = expected_losses(outputs, targets, loss)
        wanted = self.plan.comparisons.targets
        return losses, compute_signals(outputs, targets, losses, wanted, self.plan.signal, loss)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; without it every whole pass, and every :meth:`update`, moves on by one."""
        self.position.set_epoch(epoch)

    def __len__(self) -> int:
        return self.plan.batches_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches():
            yield batch.tolist()

    def batches(self) -> Iterator[torch.Tensor]:
        """Give a pass as index tensors, for loops without a ``DataLoader``; on a device where the samples are."""
        batches = self.plan.batches()
        for kind, message in pass_warnings(self.plan, len(batches), self.epochs):
            self._tell(kind, message)
        yield from map(torch.as_tensor, self.position.hand_out(batches))

    def summary(self) -> Summary:
        """Return samples, selection, weights, clean ratios and gaps of every cell; print it, or show it in a notebook.

        >>> sampler = FairRobustBatchSampler([0, 1] * 4, list("aabb") * 2, 4, clean_ratio=0.9, warmup_epochs=0)
        >>> sampler.update(torch.zeros(8))
        >>> print(sampler.summary())  # doctest: +SKIP
        """
        return Summary(self.plan)

    def state_dict(self, *, trained: int | None = None) -> dict[str, Any]:
        """Return everything the next plan depends on, in numbers and tensors: ``torch.load`` trusts those.

        Taken inside an epoch, it continues there. A ``DataLoader`` with workers reads ahead: tell it how many
        batches of the epoch were ``trained``.
        """
        state = self.plan.state_dict() | self.position.state_dict(trained)
        state |= {"checksum": self._checksum(), "settings": plain_settings(self._all_settings)}
        if self._averages is not None:
            state["averages"] = self._averages.cpu().numpy()
        if self._running is not None:
            state["running"] = self._running.state_dict()
        return as_tensors(state)  # type: ignore[no-any-return]

    def _checksum(self) -> int:
        """Return a number that changes with the cell of any sample."""
        return cells_checksum(self.plan.cells, self.first)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where ``state`` was taken."""
        check_origin(state, self._all_settings, self._checksum())
        self.plan.load_state_dict(state)
        self.position.load_state_dict(state)
        self._averages = torch.as_tensor(state["averages"]).clone() if "averages" in state else None
        self._running = None
        if "running" in state:
            self.running.load_state_dict(state["running"])
