"""The linear model's own solver: full batches and second-order steps, no batch size and no learning rate.

It starts with a few damped steps on everything. Every *update* then goes: losses of all samples → the
ratios move → Algorithm 1 selects → one Newton step on the selected samples under the weights of Eq. 3. The
ratios' step falls from ``step_size`` to 0.3 of it, and the parameters after the last updates are averaged.
Where there are very many samples, all updates but the last ones use a part of them; those count as part of the
start and are not recorded. docs/solver.md says how the defaults were chosen.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from fairsieve.progress import progress_bar
from fairsieve.samples import Samples, weighted_rows
from fairsieve.training.fit import check_data
from fairsieve.training.methods import SelectionMethod, selection_method
from fairsieve.training.newton_steps import PlainOptimum, find_plain_optimum, new_objective
from fairsieve.training.newton_trainer import (
    AVERAGED,
    STEP_SIZE,
    STEP_SIZE_WITHOUT_CLEANING,
    UPDATES,
    NewtonTrainer,
    to_host,
)
from fairsieve.training.result import Fitted
from fairsieve.training.settings import Settings, TrainingSpec
from fairsieve.training.threads import one_blas_thread

__all__ = [
    "AVERAGED",
    "STEP_SIZE",
    "UPDATES",
    "NewtonTrainer",
    "PlainOptimum",
    "find_plain_optimum",
    "fit_newton",
    "new_objective",
]


@one_blas_thread()
def fit_newton(
    model: None,
    data: Samples,
    method: str | SelectionMethod = "fairsieve",
    *,
    seed: int = 0,
    sample_weight: ArrayLike | None = None,
    evaluation: Samples | None = None,
    start: NDArray[np.float64] | None = None,
    progress: bool = False,
    **settings: Any,
) -> Fitted:
    """Train the linear model as :func:`~fairsieve.training.fit.fit` does, by Newton steps.

    Parameters
    ----------
    model : None
        There is only the linear one.
    start : array of shape (outputs, d + 1), optional
        Parameters to start from, with the intercepts last; a short warm-up when None.
    **settings
        ``epochs`` (updates), ``step_size`` and ``average_last`` have defaults of their own.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> fitted = fit_newton(None, make_synthetic(500, seed=0), clean_ratio=0.9)
    >>> fitted.history.ratios.shape
    (40, 2, 2)
    """
    began = time.perf_counter()
    check_data(data, evaluation)
    rows, weights = weighted_rows(sample_weight, len(data))
    chosen = selection_method(method)
    step_size = STEP_SIZE if chosen.cleans else STEP_SIZE_WITHOUT_CLEANING
    defaults = {"epochs": UPDATES, "step_size": step_size, "average_last": AVERAGED}
    is_whole = len(rows) == len(data)
    spec = TrainingSpec(
        data=data if is_whole else data.take(rows),
        method=chosen,
        settings=Settings.of(defaults | settings),
        seed=seed,
        evaluation=evaluation,
        weights=weights,
    )
    rows = np.zeros(0, np.int64) if is_whole else rows  # eight bytes a sample that nobody needs
    trainer = NewtonTrainer(spec, start)
    updates = spec.settings.epochs
    with progress_bar(spec.method.name, updates, shown=progress) as report:
        interrupted = False
        try:
            while trainer.done < updates:
                trainer.run_epoch()
                report(trainer.done)
        except KeyboardInterrupt:
            interrupted = True
    if not interrupted and not trainer.converged and spec.method.fair:
        warnings.warn(
            f"the model has not converged after {updates} updates: the last step still promised to lower the mean "
            f"loss by {float(trainer.decrement[0]):.2g}. Raise epochs, lower step_size, or scale the features",
            ConvergenceWarning,
            stacklevel=2,
        )
    fitted = Fitted(
        predictor=trainer.finish(interrupted=interrupted),
        history=trainer.history(),
        indices=to_host(trainer.plan.indices),
        ratios=trainer.plan.ratios,
        classes=spec.data.cells.classes,
        method=spec.method.name,
        seed=spec.seed,
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
    )
    return fitted if is_whole else fitted.over(rows, len(data))
