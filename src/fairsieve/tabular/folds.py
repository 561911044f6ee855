"""Deal rows to parts that are alike, and keep equal rows together: a copy of a row says nothing of new people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.data.splits import shuffled_places
from fairsieve.selection.cells import Cells
from fairsieve.tabular.policy import POLICY

if TYPE_CHECKING:
    from fairsieve.tabular.preparation import TablePart

Codes = NDArray[np.int64]


def find_copies(part: TablePart) -> Codes | None:
    """Tell different rows apart by what is learnt from and the group, as numbers; return None if none is a copy.

    Where a few features leave few different rows, equal ones are people who are alike, and none is a copy.
    """
    hashed = pd.util.hash_pandas_object(part.values, index=False).to_numpy()
    kinds = pd.DataFrame({"row": hashed, "group": part.groups.codes})
    codes = kinds.groupby(["row", "group"], sort=False).ngroup().to_numpy(np.int64)
    different = int(codes.max(initial=-1)) + 1
    return codes if POLICY.copies * len(codes) <= different < len(codes) else None


def deal_folds(cells: Cells, folds: int, copies: Codes | None, seed: int) -> Codes:
    """Give every row a fold, 0 … folds − 1, so that each cell is spread evenly, and copies share one.

    A class whose rows are all copies of one is in no fold (−1): it is learnt from only.

    >>> cells = Cells.of([0, 0, 0, 0, 1, 1, 1, 1], ["a"] * 8)
    >>> fold = deal_folds(cells, 2, np.array([0, 0, 1, 2, 3, 4, 5, 5]), seed=0)
    >>> int(fold[0] == fold[1]), int(fold[6] == fold[7])
    (1, 1)
    """
    fold = shuffled_places(cells, seed, copies) % folds
    for code in range(cells.shape[0]):
        of_class = cells.label_codes == code
        if len(np.unique(fold[of_class])) == 1:
            fold[of_class] = -1
    return fold


def set_aside(cells: Cells, share: float, copies: Codes | None, seed: int) -> NDArray[np.bool_]:
    """Choose rows to set aside, the same share of each cell; copies go to one side, and every class is learnt from.

    >>> set_aside(Cells.of([0] * 10, ["a"] * 10), 0.2, None, seed=0).sum()
    np.int64(2)
    """
    places = shuffled_places(cells, seed, copies)
    aside = np.floor((places + 1) * share + 0.5) > np.floor(places * share + 0.5)
    for code in range(cells.shape[0]):
        mine = cells.label_codes == code
        if aside[mine].all():
            aside[mine] = False
    return np.asarray(aside)
