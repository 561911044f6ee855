"""A data set as the raw CSV table that somebody would have, with some wrong labels if wanted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.adult import INCOMES, read_raw
from fairsieve.files import write_output
from fairsieve.validation import check_at_least, check_choice, check_seed, check_share


def export_csv(
    name: str, path: Path | str, *, rows: int | None = None, wrong: float = 0.0, seed: int = 0
) -> NDArray[np.int64]:
    """Write a raw table with names in its first row: Adult, all 48,842 rows, gaps ("?") included.

    Parameters
    ----------
    name : str
        "adult".
    path : Path or str
    rows : int, optional
        Only the first so many.
    wrong : float
        Share of the labels to make wrong, at random.
    seed : int
        Decides which.

    Returns
    -------
    integer array
        The rows with wrong labels, as a spreadsheet numbers them: the names are in row 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(export_csv("adult", Path(folder) / "adult.csv", rows=100, wrong=0.1))
    10
    """
    check_choice("name", name, ("adult",))
    check_share("wrong", wrong)
    _, table = read_raw()
    if rows is not None:
        table = table.head(check_at_least("rows", rows, 1))
    rng = np.random.default_rng(check_seed("seed", seed))
    chosen = np.sort(rng.choice(len(table), round(wrong * len(table)), replace=False))
    income = table["income"].to_numpy(dtype=object, copy=True)
    income[chosen] = np.where(income[chosen] == INCOMES[0], INCOMES[1], INCOMES[0])
    write_output(Path(path), table.assign(income=income).to_csv(index=False).encode())
    return chosen + 2
