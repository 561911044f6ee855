"""Choosing a backend: NumPy at once, compiled code as soon as it is ready, torch where tensors are on a device."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np

from fairsieve.errors import InvalidInputError
from fairsieve.optional import require
from fairsieve.selection.backends.base import Backend
from fairsieve.selection.backends.jit import warnings_left_alone
from fairsieve.selection.backends.numpy import NumpyBackend
from fairsieve.selection.cells import Cells
from fairsieve.validation import shown

__all__ = ["NAMES", "choose_backend", "wait_for_compiled"]

NAMES = ("auto", "numpy", "compiled", "torch", "triton")
FEW = 2**16  # samples below which compiling is not worth its time, see docs/speed.md

_ready = threading.Event()
_compiler: threading.Thread | None = None
_lock = threading.Lock()


def choose_backend(name: str | Backend, cells: Cells, device: Any | None = None) -> Backend:
    """Return the backend of that name; ``"auto"`` chooses by the device and the number of samples."""
    if isinstance(name, Backend):
        return name
    if name not in NAMES:
        raise InvalidInputError(f"backend must be one of {', '.join(NAMES)}; got {shown(name)}")
    if name in ("torch", "triton") or (name == "auto" and device is not None):
        require("torch", extra="torch", purpose="selecting where tensors are")
        from fairsieve.selection.backends.torch import TorchBackend
        from fairsieve.selection.backends.triton import TritonBackend, can_use_triton

        if name == "triton" or (name == "auto" and can_use_triton(device)):
            return TritonBackend(cells, device or "cpu", in_background=name == "auto")
        return TorchBackend(cells, device or "cpu")
    if name == "compiled" or (name == "auto" and _is_compiled_ready(len(cells))):
        from fairsieve.selection.backends.compiled import CompiledBackend

        return CompiledBackend(cells)
    return NumpyBackend(cells)


def _is_compiled_ready(samples: int) -> bool:
    """Return whether compiled code can be used now.

    The first question about many samples starts to compile, on a thread of its own; until it is done
    NumPy gives the same answers.
    """
    global _compiler
    if not _ready.is_set() and samples >= FEW:
        with _lock:
            if _compiler is None:
                _compiler = threading.Thread(target=_compile, name="fairsieve-compiler")
                _compiler.start()
    return _ready.is_set()


def wait_for_compiled() -> bool:
    """Compile now and wait for it; return whether compiled code can be used."""
    _is_compiled_ready(FEW)
    if _compiler is not None:
        _compiler.join()
    return _ready.is_set()


def _compile() -> None:
    """Compile what a plan of float32 or float64 losses calls; stop between two steps if the program ends."""
    with contextlib.suppress(Exception), warnings_left_alone():  # NumPy goes on answering
        from fairsieve.selection.backends import compiled

        cells = Cells(np.zeros(4, np.uint8), [0], [0])
        for dtype in (np.float32, np.float64):
            backend = compiled.CompiledBackend(cells)
            for step in compiled.warm_up_steps(backend, dtype):
                if not threading.main_thread().is_alive():
                    return
                step()
        _ready.set()
