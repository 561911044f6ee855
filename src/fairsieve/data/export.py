"""A data set as the raw CSV table that somebody would have, with some wrong labels if wanted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairsieve.data.adult import read_raw
from fairsieve.data.nhanes import read_nhanes
from fairsieve.files import write_output
from fairsieve.validation import check_at_least, check_choice, check_seed, check_share


def export_csv(
    name: str, path: Path | str, *, rows: int | None = None, wrong: float = 0.0, seed: int = 0
) -> NDArray[np.int64]:
    """Write a raw table with names in its first row, gaps included.

    Parameters
    ----------
    name : {"nhanes", "adult"}
        NHANES: 4,962 people, the label ``obese`` as they say it, and ``truth``, what was measured: a column to judge
        by, never to learn from. Adult: all 48,842 rows, the label ``income``.
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
    check_choice("name", name, ("nhanes", "adult"))
    check_share("wrong", wrong)
    label, table = ("obese", read_nhanes()) if name == "nhanes" else ("income", read_raw()[1])
    first, second = sorted(set(table[label]))
    if rows is not None:
        table = table.head(check_at_least("rows", rows, 1))
    rng = np.random.default_rng(check_seed("seed", seed))
    chosen = np.sort(rng.choice(len(table), round(wrong * len(table)), replace=False))
    labels = table[label].to_numpy(dtype=object, copy=True)
    labels[chosen] = np.where(labels[chosen] == first, second, first)
    write_output(Path(path), table.assign(**{label: labels}).to_csv(index=False).encode())
    return chosen + 2
