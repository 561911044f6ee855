"""NHANES 2017-2018: what 4,962 adults said of themselves, beside what was measured. Part of the package."""

from __future__ import annotations

import gzip
import hashlib
import io
from importlib import resources
from typing import Literal

import numpy as np
import pandas as pd

from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.validation import check_choice

FILE = "nhanes-2017-2018.csv.gz"  # cut by tools/cut_nhanes.py, which says what is left out, and why
SHA256 = "7ce06800c89b3e91159728ee1c793ba3ce806c58ba31bbf286dc4d15905c49e5"  # of the text in it
# The columns that are no features: of either condition, what people said and what was measured.
CONDITIONS = {
    "obesity": ("said_obese", "measured_obese"),
    "diabetes": ("told_diabetes", "measured_diabetes"),
}
LABELS = {"obesity": "obese", "diabetes": "diabetes"}  # as in the table of one condition
AGES = ("20 to 39", "40 to 59", "60 and older")

Condition = Literal["obesity", "diabetes"]


def read_nhanes(condition: Condition = "obesity") -> pd.DataFrame:
    """Read NHANES as people would have it: a table with gaps, a label that people gave, and the truth.

    Parameters
    ----------
    condition : {"obesity", "diabetes"}, default="obesity"
        The label. ``obese``: a body mass index of 30 or more, by the height and weight that people *said*; the truth by
        those that were measured. ``diabetes``: whether a doctor *told* them; the truth by glycohemoglobin of 6.5 %
        or more, or medication against it. People whose answer or truth is not known are left out (205 for diabetes).

    Returns
    -------
    DataFrame
        A row for each person: 32 columns to learn from (numbers, and texts), the label ("yes" or "no"), and ``truth``,
        which is never to be learnt from. No column measures the body's mass, and none of one condition stands in the
        table of the other.

    Examples
    --------
    >>> people = read_nhanes()
    >>> people.shape, round(float((people["obese"] != people["truth"]).mean()), 3)
    ((4962, 34), 0.079)
    """
    check_choice("condition", condition, CONDITIONS)
    content = gzip.decompress((resources.files("fairsieve.data") / FILE).read_bytes())
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise InvalidInputError(
            f"{FILE} must have the SHA-256 {SHA256}; it is damaged: install fairsieve again"
        )
    table = pd.read_csv(io.BytesIO(content), encoding="utf-8")
    said, measured = CONDITIONS[condition]
    names = {said: LABELS[condition], measured: "truth"}
    not_features = [name for pair in CONDITIONS.values() for name in pair]
    features = [name for name in table if name not in not_features]
    people = table[[*features, said, measured]].rename(columns=names)
    return people.dropna(subset=list(names.values())).reset_index(drop=True)


def load_nhanes(
    condition: Condition = "obesity", *, sensitive: Literal["race", "sex", "age"] = "race"
) -> Samples:
    """Load NHANES 2017-2018: labels that people gave, with ``truth`` beside them.

    Of Asian Americans who are obese by their measured height and weight, three in ten say heights and weights by which
    they are not; of Black Americans one in nine. Texts become indicators. A gap in a number is filled with the
    median and has an indicator of its own; a gap in a text has none of the indicators of its column.

    Work of the American government (National Center for Health Statistics), in the public domain. Do not try to find
    out who somebody is.

    Parameters
    ----------
    condition : {"obesity", "diabetes"}, default="obesity"
        What the label says, see :func:`read_nhanes`; 1 for those who said so.
    sensitive : {"race", "sex", "age"}, default="race"
        What the groups are. All three stay among the features; ages make three groups.

    Returns
    -------
    Samples
        ``labels`` is what people said, ``truth`` what was measured.

    Examples
    --------
    >>> people = load_nhanes()
    >>> people.features.shape, len(people.cells.groups)
    ((4962, 65), 6)
    >>> asian_and_obese = (people.groups == "Asian") & (people.truth == 1)
    >>> round(float((people.labels[asian_and_obese] == 0).mean()), 2)
    0.29
    """
    check_choice("sensitive", sensitive, ("race", "sex", "age"))
    people = read_nhanes(condition)
    label = LABELS[condition]
    table = people.drop(columns=[label, "truth"])
    numbers = table.select_dtypes("number")
    gaps = numbers.isna().loc[:, numbers.isna().any()].add_suffix(" is missing")
    indicators = pd.get_dummies(table.drop(columns=numbers), prefix_sep="=")
    indicators = indicators.drop(columns=[name for name in indicators if name.endswith(("=no", "=Female"))])
    features = pd.concat([numbers.fillna(numbers.median()), gaps, indicators], axis=1)
    groups = pd.cut(table["age"], [0, 39, 59, 200], labels=AGES) if sensitive == "age" else table[sensitive]
    return Samples(
        features.to_numpy(dtype=np.float32),
        (people[label] == "yes").to_numpy(dtype=np.int64),
        groups.to_numpy(dtype=str),
        feature_names=tuple(features),
        classes=[0, 1],
        truth=(people["truth"] == "yes").to_numpy(dtype=np.int64),
    )
