"""A run's whole state, taken out and put back, so that it goes on to the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fairsieve.errors import CheckpointError
from fairsieve.training.checkpoint.packing import pack, unpack
from fairsieve.training.checkpoint.store import Checkpoint
from fairsieve.training.recording import Recording
from fairsieve.training.trainer import AutogradRun, CompiledRun, Run, State

__all__ = ["live_tensors", "state_of", "take_over"]

ADAM = {"step", "exp_avg", "exp_avg_sq"}
MOST_STEPS = 2**53


def live_tensors(run: Run) -> State:
    """The tensors that training changes, themselves: writing into them takes a run elsewhere."""
    live = {f"recording.{name}": torch.from_numpy(getattr(run.recording, name)) for name in Recording._fields}
    if isinstance(run, CompiledRun):
        arrays = {"parameters": run.parameters} | {f"adam.{k}": v for k, v in run.adam._asdict().items()}
        return live | {name: torch.from_numpy(array) for name, array in arrays.items()}
    assert isinstance(run, AutogradRun)
    buffers = dict(run.model.named_buffers())  # those too that a module does not keep
    return live | {f"model.{name}": value for name, value in (buffers | run.model.state_dict()).items()}


def _random_states(run: Run) -> State:
    """What dropout and its like draw from; the compiled loop draws nothing."""
    if not isinstance(run, AutogradRun):
        return {}
    states = {"random.cpu": torch.random.get_rng_state()}
    if run.device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(run.device)
    return states


def state_of(run: Run) -> tuple[dict[str, Any], State]:
    """Plain values and tensors, from which :func:`take_over` goes on."""
    chosen = np.zeros(len(run.plan.cells), bool)
    chosen[run.plan.indices] = True  # they are ascending
    tensors = live_tensors(run) | _random_states(run)
    tensors |= {"chosen": torch.from_numpy(chosen), "ratios": torch.from_numpy(run.plan.ratios)}
    for kind, state in (("best", run.best), ("average", run.average)):
        tensors |= {f"{kind}.{name}": value for name, value in (state or {}).items()}
    values: dict[str, Any] = {"best_merit": None if run.best is None else float(run.best_merit)}
    if isinstance(run, AutogradRun):
        values["optimizer"] = pack(run.optimizer.state_dict(), "optimizer", tensors)
    return values, tensors


def take_over(run: Run, checkpoint: Checkpoint) -> None:
    """Take a run at its start to a checkpoint of it; all is checked before anything is changed."""
    found, done = checkpoint.tensors, checkpoint.number
    if not 1 <= done <= run.settings.epochs:
        raise CheckpointError(f"checkpoint {done:06d} must be of an epoch up to {run.settings.epochs}")
    live, drawn, state = live_tensors(run), _random_states(run), run.state()
    held = {kind for kind in ("best", "average") if any(name.startswith(f"{kind}.") for name in found)}
    wanted = live | drawn | {"ratios": torch.from_numpy(run.plan.ratios)}
    wanted |= {"chosen": torch.zeros(len(run.plan.cells), dtype=torch.bool)}
    wanted |= {f"{kind}.{name}": value for kind in held for name, value in state.items()}
    _check_tensors(checkpoint, wanted)
    _check_values(run, checkpoint, held)
    for name in drawn:
        _set_random_state(name, found[name], run, checkpoint, only_check=name == "random.cpu")
    if isinstance(run, AutogradRun):
        _load_optimizer(run, checkpoint)
    with torch.no_grad():
        for name, value in live.items():
            value.copy_(found[name])
    for name in drawn:
        _set_random_state(name, found[name], run, checkpoint)

    def kept(kind: str) -> State | None:
        return {k: found[f"{kind}.{k}"].to(v.device) for k, v in state.items()} if kind in held else None

    run.best, run.average = kept("best"), kept("average")
    merit = checkpoint.values["best_merit"]
    run.best_merit, run.done = -np.inf if merit is None else float(merit), done
    run.plan.load_state_dict(
        {
            "epoch": done,
            "seed": run.plan.rules.seed,
            "ratios": found["ratios"].numpy(),
            "indices": np.flatnonzero(found["chosen"].numpy()),
            "is_selective": done > run.plan.rules.warmup_epochs,
            "samples": len(run.plan.cells),
        }
    )


def _check_tensors(checkpoint: Checkpoint, wanted: Mapping[str, torch.Tensor]) -> None:
    """All that are wanted, of their types and shapes, and no others but an optimiser's."""
    found, number = checkpoint.tensors, checkpoint.number
    names = {name for name in found if not name.startswith("optimizer.")}
    for name in sorted(names ^ wanted.keys()):
        rule = "must have" if name in wanted else "must not have"
        raise CheckpointError(f"checkpoint {number:06d} {rule} a tensor {name!r}")
    for name, like in wanted.items():
        if found[name].dtype != like.dtype or found[name].shape != like.shape:
            raise CheckpointError(
                f"checkpoint {number:06d} must have {name!r} as {like.dtype} of shape {tuple(like.shape)}; it has "
                f"{found[name].dtype} of shape {tuple(found[name].shape)}"
            )


def _check_values(run: Run, checkpoint: Checkpoint, held: set[str]) -> None:
    """Values that compiled code relies on, which does not check them again."""
    found, number, merit = checkpoint.tensors, checkpoint.number, checkpoint.values.get("best_merit")
    ratios, chosen, warmup = found["ratios"], found["chosen"], run.plan.rules.warmup_epochs
    sums = ratios.sum(dim=1)
    steps = int(found["adam.steps"][0]) if "adam.steps" in found else 0
    rules = {
        "ratios must be in [0, 1] and sum to 1 in each class": bool(
            ((ratios >= 0) & (ratios <= 1)).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-6)
        ),
        "everyone must be chosen in the warm-up": number > warmup or bool(chosen.all()),
        "the steps of Adam must be counted from 0": 0 <= steps <= MOST_STEPS,
        "an average is of the last epochs": ("average" in held) == (number > run.first_averaged),
        "the best state must have a merit": isinstance(merit, float) if "best" in held else merit is None,
    }
    for rule, kept in rules.items():
        if not kept:
            raise CheckpointError(f"checkpoint {number:06d} breaks a rule: {rule}")


def _set_random_state(
    name: str, state: torch.Tensor, run: Run, checkpoint: Checkpoint, *, only_check: bool = False
) -> None:
    """Go on drawing where the run was."""
    try:
        if only_check:
            torch.Generator().set_state(state)
        elif name == "random.cpu":
            torch.random.set_rng_state(state)
        else:
            assert isinstance(run, AutogradRun)
            torch.cuda.set_rng_state(state, run.device)
    except RuntimeError as error:
        raise CheckpointError(
            f"checkpoint {checkpoint.number:06d} has no state of random numbers in {name!r}: {error}"
        ) from error


def _load_optimizer(run: AutogradRun, checkpoint: Checkpoint) -> None:
    """Give the optimiser its state back."""
    refusal = f"checkpoint {checkpoint.number:06d} has no state of this optimiser"
    state = unpack(checkpoint.values.get("optimizer"), checkpoint.tensors)
    if not (isinstance(state, dict) and isinstance(state.get("state"), dict)):
        raise CheckpointError(refusal)
    parameters = [parameter for group in run.optimizer.param_groups for parameter in group["params"]]
    everything = sum(parameter.numel() for parameter in parameters)
    for number, own in state["state"].items():
        if not (isinstance(number, int) and 0 <= number < len(parameters) and isinstance(own, dict)):
            raise CheckpointError(refusal)
        parameter = parameters[number]
        if run.settings.optimizer is None and not _is_adam(own, parameter):
            raise CheckpointError(f"{refusal}: Adam's of parameter {number} does not fit")
        tensors = [value for value in own.values() if isinstance(value, torch.Tensor)]
        if any(tensor.numel() > max(everything, 1) for tensor in tensors):
            raise CheckpointError(f"{refusal}: it has a tensor larger than the model")
    if run.settings.optimizer is None:  # what else Adam goes by follows from the settings
        state["param_groups"] = run.optimizer.state_dict()["param_groups"]
    try:
        run.optimizer.load_state_dict(state)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{refusal}: {error}") from error


def _is_adam(state: Mapping[Any, Any], parameter: torch.Tensor) -> bool:
    """Whether this is Adam's state of a parameter."""
    if state.keys() != ADAM or not all(isinstance(value, torch.Tensor) for value in state.values()):
        return False
    moments = state["exp_avg"], state["exp_avg_sq"]
    fits = all(m.shape == parameter.shape and m.dtype == parameter.dtype for m in moments)
    return fits and state["step"].numel() == 1 and 0 <= float(state["step"]) <= MOST_STEPS
