"""A batch sampler for ``DataLoader(batch_sampler=…)``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from fairsieve.errors import FairsieveWarning, InvalidInputError
from fairsieve.notions import EO, OWN_LABEL
from fairsieve.sampling.doubt import Doubt, costs_accuracy
from fairsieve.sampling.forecast import Forecast
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
from fairsieve.sampling.states import (
    Position,
    RunningLosses,
    as_indices,
    as_tensors,
    check_dataset,
    check_origin,
    plain_settings,
)
from fairsieve.sampling.summary import Summary, pass_warnings
from fairsieve.selection.backends import check_shape, choose_backend
from fairsieve.selection.cells import Cells, Floats, Integers, as_array, cells_checksum, divide, slices
from fairsieve.selection.epoch import Judged, Plan, SamplingMethod, check_room, is_auto
from fairsieve.selection.ratios import class_shares
from fairsieve.validation import check_at_least, shown

WARMUP = 5  # epochs, where nobody says how many there will be
SHORT = 6  # epochs below which "auto" drops nothing: nobody can tell yet what is wrong


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
    fairness : str or None, default="equalized-odds"
        The name of a notion of fairness, see :mod:`fairsieve.notions`.
        None only cleans.
    clean_ratio : "auto", float in (0, 1], table of them, mapping, or estimate, default="auto"
        Share of the labels believed to be right. ``"auto"`` leaves out the labels that the network doubts, as
        :mod:`fairsieve.sampling.doubt` says; :attr:`clean_ratios` says how much of each cell is left. A number keeps
        that share of all, the least doubted, and 1.0 all. A table (classes × groups, or a mapping from (class, group)
        to a share) says it for each cell. An estimate of :func:`~fairsieve.estimate_clean_ratio` is such a table where
        it is credible, and 1.0 where it is not.
    epochs : int, optional
        How long the training will be. Sets the warm-up, and the pace at which groups are balanced.
    warmup_epochs : int, optional
        When None: a third of ``epochs``, and 5 without them.
    tolerance : float, default=0.02
        Gaps of rates on held-out samples (see :meth:`update`) up to this, and up to what chance explains, are left
        alone.
    pos_label : label, optional
    classes : sequence of labels, optional
        All classes, in the order of the model's outputs, where some may not occur among the labels.
    seed : int, default=0
        The order of an epoch is a function of (seed, epoch).
    folder : path, optional
        Keep what is observed (see :meth:`observe`) in files there, memory-mapped; in memory when None.
    device : torch device, optional
        Where codes, selection and batches are kept. When None: the device of labels, sensitive features
        or outputs that are on one, else the host. On a device no vector of length n leaves it, and
        :meth:`batches` gives tensors there.
    method : SamplingMethod, optional
        How labels are doubted and groups are weighted; see :class:`~fairsieve.SamplingMethod`.
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
        warmup_epochs: int | None = None,
        tolerance: float = 0.02,
        pos_label: Any = None,
        classes: Sequence[Any] | None = None,
        seed: int = 0,
        folder: str | Path | None = None,
        device: torch.device | str | None = None,
        label_weights: ArrayLike | torch.Tensor | None = None,
        method: SamplingMethod | None = None,
    ) -> None:
        cells = self._find_cells(labels, groups_of(labels, sensitive_features, fairness), classes)
        self.label_weights: torch.Tensor | None = None
        if label_weights is not None:
            cells, self.label_weights = self._agree(lambda: follow_weights(cells, label_weights))
        self.epochs = None if epochs is None else check_at_least("epochs", epochs, 1)
        warmup = warmup_epochs
        if warmup is None:
            warmup = WARMUP if epochs is None else max(1, round(epochs / 3)) if epochs > 1 else 0
        self.method = SamplingMethod() if method is None else method
        if not isinstance(self.method, SamplingMethod):
            raise InvalidInputError(
                f"method must be a SamplingMethod; got {shown(method)}: SamplingMethod(balance=0)"
            )
        ratio = ratio_of(clean_ratio)
        self.settings = {
            "batch_size": batch_size,
            "fairness": fairness,
            "clean_ratio": 1.0 if is_auto(ratio) and epochs is not None and epochs < SHORT else ratio,
            "warmup_epochs": warmup,
            "tolerance": tolerance,
            "pos_label": pos_label,
            **asdict(self.method),
        }
        # A training that goes on may be made longer: the number of epochs itself is no setting to agree in.
        of_plan = {name: value for name, value in self.settings.items() if name != "momentum"}
        self.plan = self._new_plan(cells, seed=seed, device=device, epochs=self.epochs, **of_plan)
        if not self.plan.selected:  # of all samples, of all workers
            raise InvalidInputError("labels must have at least one sample; got none")
        check_room(self.plan, self.settings["clean_ratio"])
        self.doubt = Doubt(self.plan) if self.method.step_size is None else None
        balance = self.plan.balance
        is_foretold = balance is not None and balance.is_foretold
        self.forecast = Forecast(self.plan, self.method.momentum, self.first) if is_foretold else None
        self._folder = folder
        self._running: RunningLosses | None = None
        self._averages: torch.Tensor | None = None  # of beliefs and rivals, over epochs
        self.position = Position(self.plan)
        self._told: set[str] = set()  # warnings that were given

    @classmethod
    def paper(cls, *data: Any, clean_ratio: float, **options: Any) -> Self:
        """Return a sampler with the paper's settings: 100 epochs of warm-up, steps of .001, judged by losses.

        They suit a training of 400 epochs or more, with few cells and large batches: every batch has the same number
        of samples of a cell, and none where its share is below one half. ``data`` are labels, sensitive features and
        batch size; other ``options`` are those of the sampler and of
        :class:`~fairsieve.SamplingMethod`.

        >>> sampler = FairRobustBatchSampler.paper([0, 1] * 4, list("aabb") * 2, 4, clean_ratio=0.9)
        >>> sampler.settings["step_size"], sampler.settings["warmup_epochs"]
        (0.001, 100)
        """
        changes = {
            field.name: options.pop(field.name) for field in fields(SamplingMethod) if field.name in options
        }
        method = SamplingMethod.paper(**changes)
        return cls(*data, clean_ratio=clean_ratio, method=method, **({"warmup_epochs": 100} | options))

    def _find_cells(self, labels: Any, sensitive_features: Any, classes: Sequence[Any] | None) -> Cells:
        return Cells.of(labels, sensitive_features, classes=classes, missing="own")

    def _new_plan(self, cells: Cells, **options: Any) -> Plan:
        return Plan(cells, **options)

    def _agree(self, compute: Callable[[], Any]) -> Any:
        """Compute something, or fail; several workers fail together."""
        return compute()

    @property
    def epoch(self) -> int:
        """The epoch that is trained, or comes next where the one before has ended."""
        return self.plan.epoch

    @property
    def needs_update(self) -> bool:
        """Whether the coming epoch selects, so that :meth:`update` must be called."""
        return self.position.coming >= self.plan.warmup_epochs and not self.position.is_resumed

    @property
    def clean_ratios(self) -> Floats | None:
        """The share of each cell that may be selected, classes × groups; None where one number holds for all."""
        return None if self.plan.clean_ratios is None else self.plan.clean_ratios.copy()

    @property
    def ratios(self) -> Floats:
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
        loss : callable, default=cross_entropy
            ``loss(outputs, class_indices)`` → one loss per sample.
        validation : (outputs, labels, sensitive features), optional
            Held-out samples, with the logits of the model for them, or with data to run the model over. Labels as given
            will do. The groups of a class are then weighted by the gaps of their rates there, and less where the
            weights cost accuracy; errors on what a network trains on vanish. All workers pass the same.
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
        found = None
        if outputs is not None:
            found = self._agree(lambda: self._checked(outputs, len(self.plan.cells)))
            measured = self._measured(found, loss)
        elif not self.plan.in_warmup:
            measured = self._agree(self.running.known)
            if self.doubt is not None:
                rows = torch.from_numpy(np.vstack([measured[0], measured[1]]))
                if self.doubt.is_new:
                    self.doubt.learn_typical(rows[0])
                    rows[1] /= self.doubt.easiest(rows[1])
                    self.running.signals[0] = rows[1].numpy()
                measured = self._scores(rows), None
        if not self.plan.in_warmup:
            self._foretell(found)
            self.plan.update(*measured, judged=judged)

    def _foretell(self, outputs: torch.Tensor | None) -> None:
        """Let the network choose the weights of the groups, from outputs for all samples or what was seen of some."""
        forecast, balance = self.forecast, self.plan.balance
        if forecast is None or balance is None or balance.is_judged:
            return
        if outputs is not None:
            self._look(outputs[torch.from_numpy(forecast.samples).to(outputs.device)])
        power = forecast.choose(self._added_up(forecast.table))
        if power is not None:
            balance.powers[balance.compared] = power

    def _look(self, outputs: torch.Tensor) -> None:
        """Let the forecast see outputs for its samples."""
        assert self.forecast is not None
        assert self.doubt is not None
        self.forecast.look(outputs, self.doubt.shares)

    def _added_up(self, table: Integers) -> Integers:
        """Return the sum of the tables of all workers."""
        return table

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
        size = max(256, 4 * self.plan.batch_size) if chunk_size is None else chunk_size
        options: dict[str, Any] = {"chunk_size": check_at_least("chunk_size", size, 1), "forward": forward}
        outputs = self._agree(lambda: compute_outputs(model, data, **options, **loading))
        if isinstance(validation, tuple) and len(validation) == 3:
            held_out, *rest = validation
            validation = (compute_outputs(model, held_out, **options, **loading), *rest)
        return outputs, validation

    def _measured(self, outputs: torch.Tensor, loss: LossFunction) -> tuple[Any, Any]:
        """Return doubts averaged over epochs, or losses and signals, from outputs for all samples."""

        def compute() -> torch.Tensor:
            return self._rows(outputs, slice(None), loss)

        if self.doubt is None:
            rows = self._agree(compute)
            return rows[0], rows[1:]
        rows = self._relative(compute)
        if self._averages is not None:
            rows = self._averages.to(rows).lerp(rows, 1 - self.method.momentum)
        scores = self._scores(rows)
        self._averages = rows
        return scores, None

    def _rows(self, outputs: torch.Tensor, where: Any, loss: LossFunction) -> torch.Tensor:
        """Return beliefs and rivals of some samples, or their losses and what groups are compared by."""
        if self.doubt is not None and loss is cross_entropy and self.label_weights is None:
            return self.doubt.rows(outputs, where)
        labels = self._targets(where, outputs.device)
        losses = expected_losses(outputs, labels, loss)
        check_shape(losses, len(outputs))
        if self.doubt is not None:  # these losses are no cross-entropies of labels
            return self.doubt.rows_of_losses(losses, where)
        targets, signal = self.plan.comparisons.targets, self.plan.signal
        return torch.cat([losses[None], compute_signals(outputs, labels, losses, targets, signal, loss)])

    def _relative(self, compute: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return beliefs and rivals; the first rivals are relative to the first beliefs, later ones to those before."""
        assert self.doubt is not None
        rows = self._agree(compute)
        if not self.doubt.is_new:
            return rows  # type: ignore[no-any-return]
        self.doubt.learn_typical(rows[0])
        return compute()

    def _scores(self, rows: torch.Tensor) -> torch.Tensor:
        """Return doubts, from the beliefs and rivals of all samples."""
        assert self.doubt is not None
        self.doubt.learn_typical(rows[0])
        return self.doubt.scores(rows)

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

    def _judge(self, validation: tuple[Any, Any, Any], loss: LossFunction) -> Judged:
        """Return what groups are compared by, on held-out samples."""
        if not isinstance(validation, tuple) or len(validation) != 3:
            raise InvalidInputError(
                f"validation must be (outputs, labels, sensitive features); got {shown(validation)}"
            )
        own, (outputs, labels, groups) = self.plan.cells, validation
        given = Cells.of(labels, groups, classes=own.classes, group_values=own.groups, missing="own")
        rows, columns = given.label_codes, given.group_codes
        is_ours = columns < own.shape[1]  # not where a group is missing, and none is among what is trained
        outputs = self._checked(outputs, len(given))[torch.from_numpy(is_ours)]
        held_out = Cells((rows * own.shape[1] + columns)[is_ours], own.classes, own.groups)
        if not len(held_out):
            raise InvalidInputError(
                "validation must have at least one sample with a group; got none: leave it out"
            )
        targets = torch.from_numpy(held_out.label_codes).to(outputs.device)
        signal = "error" if self.doubt is not None else self.plan.signal  # the tolerance is one of rates
        losses = expected_losses(outputs, targets, loss)
        signals = compute_signals(outputs, targets, losses, self.plan.comparisons.targets, signal, loss)
        backend = choose_backend("numpy", held_out)
        sums, squares = backend.sum_signals(backend.measure(losses, signals), backend.hold(None))
        natural = class_shares(self.plan.cell_counts)
        weights = divide(self.plan.ratios, natural, 1.0)
        groups = torch.from_numpy(held_out.group_codes).to(outputs.device)
        is_worse = self.doubt is not None and costs_accuracy(outputs, targets, weights, groups)
        return Judged(sums, squares, held_out.counts.reshape(-1), is_worse)

    def update_losses(
        self,
        losses: ArrayLike | torch.Tensor,
        *,
        signals: ArrayLike | torch.Tensor | None = None,
    ) -> None:
        """Do what :meth:`update` does for losses of your own, one per sample; they are not averaged.

        ``signals`` are what the paper's step compares groups by, when that is not the losses themselves: one row
        per target label of ``sampler.plan.comparisons.targets``. Error rates need 0–1 errors, demographic parity
        the losses (or errors) against the positive label, whatever the sample's own.
        """
        if self.position.is_resumed:
            return
        self.position.begin()
        if self.doubt is None:
            self.plan.update(losses, None if signals is None else torch.atleast_2d(torch.as_tensor(signals)))
        elif not self.plan.in_warmup:
            self.plan.backend.measure(losses, None)  # refuses what is not one number per sample
            found = (
                losses
                if isinstance(losses, torch.Tensor)
                else torch.from_numpy(as_array("losses", losses).copy())
            )
            doubt = self.doubt
            self.plan.update(self._scores(self._relative(lambda: doubt.rows_of_losses(found))))

    @property
    def running(self) -> RunningLosses:
        """The latest loss of every sample, of those given to :meth:`observe`."""
        if self._running is None:
            rows = len(self.plan.comparisons.targets) if self.doubt is None else 1
            kept = 0.0 if self.doubt is None else self.method.momentum
            self._running = RunningLosses(len(self.plan.cells), rows, self._folder, kept)
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
            self.running.record(where, self._rows(outputs, where, loss), self.position.coming)

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
        if self.doubt is not None:
            where = as_indices(indices, len(self.plan.cells))
            rows = self.doubt.rows_of_losses(rows[0], where) if rows.shape == (1, len(where)) else rows
        elif signals is not None:
            rows = torch.cat([rows, torch.atleast_2d(signals.detach())])
        elif self.plan.signal == "loss" and self.plan.comparisons.targets == (OWN_LABEL,):
            rows = rows.repeat(2, 1)  # groups are compared by losses too
        self.running.record(indices, rows, self.position.coming)

    def stale(self, share: float = 0.2) -> Integers:
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
        share : float in [0, 1], default=0.2
            How many of the samples that the last epoch did not train on.
        forward : callable, optional
            ``forward(model, batch)`` → outputs, for batches of another form.
        **loading
            For the ``DataLoader`` of a dataset: ``num_workers``, ``collate_fn``, …
        """
        if not self.needs_update:
            return
        check_dataset(dataset, len(self.plan.cells))
        stale, forecast = self.stale(share), self.forecast
        looked_at = [] if forecast is None or forecast.averages is not None else [forecast.samples]
        every = [stale, *looked_at]
        parts = [[each[part] for part in slices(len(each), chunk_size)] for each in every]
        chunks = [chunk for part in parts for chunk in part]
        if isinstance(dataset, torch.Tensor):
            batches: Any = (dataset[torch.from_numpy(chunk).to(dataset.device)] for chunk in chunks)
        else:  # lists take five times the room, so each is made when it is asked for
            lists = (chunk.tolist() for chunk in chunks)
            batches = quiet_loader(dataset, batch_sampler=lists, **loading)
        found = (outputs for _, outputs in run_in_chunks(model, batches, device, forward))
        for chunk in parts[0]:
            self.observe(chunk, next(found), loss=loss)
        if rest := list(found):
            self._look(torch.cat(rest))

    def _targets(self, where: Any, device: torch.device) -> torch.Tensor:
        """Return the class indices of some samples, or the chances of each class, on a device."""
        if self.label_weights is not None:
            return self.label_weights[where].to(device)
        codes = self.plan.cells.codes_on(device)[where]
        return torch.div(codes, self.plan.cells.shape[1], rounding_mode="floor").long()

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
        self._warn_of_copies()
        batches = self.plan.batches()
        for kind, message in pass_warnings(self.plan, len(batches), self.epochs):
            self._tell(kind, message)
        yield from map(torch.as_tensor, self.position.hand_out(batches))

    def _warn_of_copies(self) -> None:
        """Warn where each of several processes would train the same batches."""
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            self._tell(
                "copies",
                f"each of the {dist.get_world_size()} processes trains the same batches: give each its shard of the "
                "samples, own = shard_of(len(labels)), and use ShardedBatchSampler(labels[own], groups[own], …)",
            )

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
        state |= {"checksum": self._checksum(), "settings": plain_settings(self.settings)}
        if self._averages is not None:
            state["averages"] = self._averages.cpu().numpy()
        if self.doubt is not None:
            state["doubt"] = {"typical": self.doubt.typical.copy()}
        if self.forecast is not None and self.forecast.averages is not None:
            state["foretold"] = self.forecast.averages.copy()
        if self._running is not None:
            state["running"] = self._running.state_dict()
        return as_tensors(state)  # type: ignore[no-any-return]

    def _checksum(self) -> int:
        """Return a number that changes with the cell of any sample."""
        return cells_checksum(self.plan.cells, self.first)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where ``state`` was taken."""
        check_origin(state, self.settings, self._checksum())
        self.plan.load_state_dict(state)
        self.position.load_state_dict(state)
        self._averages = torch.as_tensor(state["averages"]).clone() if "averages" in state else None
        if self.doubt is not None:
            typical = np.asarray(state["doubt"]["typical"], np.float64).copy()
            self.doubt.typical = typical.reshape(self.doubt.typical.shape)
        if self.forecast is not None:
            self.forecast.averages = np.asarray(state["foretold"]).copy() if "foretold" in state else None
        self._running = None
        if "running" in state:
            self.running.load_state_dict(state["running"])


def groups_of(labels: Any, sensitive_features: Any, fairness: str | None) -> Any:
    """Return the groups as they are, or none for every sample where no notion of fairness looks at them."""
    if sensitive_features is not None:
        return sensitive_features
    if fairness is not None:
        raise InvalidInputError(
            f"sensitive_features must be given for fairness={fairness!r}; got None: pass fairness=None to clean the "
            "labels alone"
        )
    return np.full(np.shape(as_array("labels", labels))[:1], None)


def ratio_of(clean_ratio: Any) -> Any:
    """Return a clean ratio as it is, or what an estimate says: its table where it acts, 1.0 where it does not."""
    if not hasattr(clean_ratio, "acts"):
        return clean_ratio
    if not clean_ratio.acts:
        return 1.0
    return np.clip(1 - np.nan_to_num(clean_ratio.noise), 0.01, 1.0)
