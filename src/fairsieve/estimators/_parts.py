"""A table in parts, as a fit takes it: what is asked of all rows, and a sample of them in memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning
from fairsieve.inputs import Checked
from fairsieve.label_noise.estimate import Rule
from fairsieve.label_noise.verified import suspects_of
from fairsieve.samples import Samples
from fairsieve.training.linear_model import LinearModel
from fairsieve.training.parts import Chances, Part, PartRows, Selection, View
from fairsieve.training.points import Point
from fairsieve.training.rows import EVERYTHING
from fairsieve.training.solver import MANY


class PartTable:
    """A table in parts, as a fit takes it: what is asked of all rows, and a sample of them in memory.

    Attributes
    ----------
    parts : PartRows
        All rows, where they are.
    checked : Checked
        The sample, which the estimate and what held-out rows choose look at.
    """

    def __init__(self, parts: PartRows, checked: Checked) -> None:
        self.parts, self.checked = parts, checked

    def tell(self, estimator: Any) -> None:
        """Say how large the sample is."""
        if estimator.clean_ratio == "auto" and self.checked.given < self.parts.samples:
            warnings.warn(
                f"the share of right labels is estimated on a sample of {self.checked.given:,} of "
                f"{self.parts.samples:,} rows; pass clean_ratio to give it",
                FairsieveWarning,
                stacklevel=4,
            )

    def roles(self, rule: Rule | None, share: float, ridge: float) -> tuple[Any, Any, Any]:
        """Return all rows as they are trained on, as they are believed, and as they are labelled.

        Parameters
        ----------
        rule : callable or None
            Tells how likely each class is the true one; the labels are believed when None.
        share : float
            Of the labels, at most so many are left out, the least believable first.
        ridge : float
        """
        believed = self.parts if rule is None else self.parts.believe(rule)
        self.parts = believed if rule is None else believed.seen(believed=False)
        train = believed if not share else believed.seen(kept=self.parts.keep_believable(share, ridge))
        found = train, believed, self.parts
        if self.parts.samples > MANY:
            return found
        # What fits into one process many times over is solved there.
        every = np.arange(self.parts.samples)
        taken = {id(rows): rows.take(every) for rows in {id(each): each for each in found}.values()}
        return taken[id(train)], taken[id(believed)], taken[id(self.parts)]

    def most_doubted(self, estimator: Any) -> int:
        """Return how many rows may be listed as suspects: none, where it is not known which labels are wrong."""
        if estimator.estimate_ is not None and not estimator.estimate_.credible:
            return 0
        acts = estimator.estimate_ is not None and estimator.estimate_.acts
        return self.parts.samples if acts else round((1 - estimator.clean_ratio_) * self.parts.samples)

    def list_suspects(self, estimator: Any, point: Point) -> None:
        """Remember by what rows are doubted."""
        self.view, self.most = View(selection=selection_of(point)), self.most_doubted(estimator)
        self.model = LinearModel(estimator.coef_, estimator.intercept_)


def selection_of(point: Point) -> Selection | None:
    """Return which rows a point selected by their losses; None for all."""
    parameters, *_, limit, _ = point.models[0]
    return None if limit is EVERYTHING else (parameters, limit)


def list_doubted(
    part: Part,
    chances: Chances,
    start: int,
    view: View,
    model: LinearModel,
    names: tuple[Any, Any] | None = None,
) -> pd.DataFrame:
    """List the rows of a part whose labels to check, on its worker; ``names`` are those of classes and groups."""
    labels, groups = part.given or (part.labels, part.groups)
    names = names or (list(range(part.shape[0])), list(range(part.shape[1])))
    data = Samples(
        np.zeros((len(part), 1), np.float32),
        labels,
        groups,
        classes=names[0],
        group_values=names[1],
        missing="own",
    )
    wrong, believed = None, believed_rows(part, chances, 0, view)
    if chances is not None:
        wrong = 1.0 - own_chances(part, chances)
    rows = np.arange(start, start + len(part))
    return suspects_of(model.decision(part.features), data, believed, rows, wrong=wrong)


def believed_rows(part: Part, chances: Chances, start: int, view: View) -> NDArray[np.int64]:
    """Return the numbers of the rows that are believed; the first one has the number ``start``."""
    is_believed = part.rows(None, view).weights if chances is None else own_chances(part, chances) >= 0.5
    return start + np.flatnonzero(is_believed)


def own_chances(part: Part, chances: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how likely the label of each row is the true one."""
    return chances[np.arange(len(part)), part.labels.astype(np.int64)].astype(np.float64)
