"""Adult, COMPAS, German credit and NHANES: from the raw text to samples."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairsieve.data.sources import AnyPath, locate
from fairsieve.errors import InvalidInputError
from fairsieve.samples import Samples
from fairsieve.selection.cells import Values
from fairsieve.validation import check_choice

SEXES = ("Female", "Male")

# Adult: 48,842 rows, 45,222 complete, 43,131 kept.
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
ADULT_NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_TEXTS = ("workclass", "education", "marital-status", "occupation", "relationship", "native-country")
ADULT_VALUES = {"race": ("Black", "White"), "sex": SEXES, "income": ("<=50K", ">50K")}

# COMPAS: 7,214 rows, 6,172 usable, 5,278 kept.
# All that is kept of a line: names, birth dates and case numbers are not among them.
COMPAS_COLUMNS = (
    "sex", "race", "age_cat", "priors_count", "c_charge_degree", "days_b_screening_arrest", "is_recid", "score_text",
    "two_year_recid",
)  # fmt: skip
COMPAS_RACES = ("African-American", "Caucasian")
COMPAS_AGES = ("Less than 25", "25 - 45", "Greater than 45")
COMPAS_PRIORS = ("0", "1-3", ">3")

# German credit: every column in the order of the file; for the categorical ones, each code and its text (OpenML's
# words). The purpose A47, vacation, never occurs.
_GERMAN = """
checking_status: A11 <0; A12 0<=X<200; A13 >=200; A14 no checking
duration
credit_history: A30 no credits/all paid; A31 all paid; A32 existing paid; A33 delayed previously;
    A34 critical/other existing credit
purpose: A40 new car; A41 used car; A42 furniture/equipment; A43 radio/tv; A44 domestic appliance; A45 repairs;
    A46 education; A48 retraining; A49 business; A410 other
credit_amount
savings_status: A61 <100; A62 100<=X<500; A63 500<=X<1000; A64 >=1000; A65 no known savings
employment: A71 unemployed; A72 <1; A73 1<=X<4; A74 4<=X<7; A75 >=7
installment_commitment
personal_status: A91 male div/sep; A92 female div/dep/mar; A93 male single; A94 male mar/wid; A95 female single
other_parties: A101 none; A102 co applicant; A103 guarantor
residence_since
property_magnitude: A121 real estate; A122 life insurance; A123 car; A124 no known property
age
other_payment_plans: A141 bank; A142 stores; A143 none
housing: A151 rent; A152 own; A153 for free
existing_credits
job: A171 unemp/unskilled non res; A172 unskilled resident; A173 skilled; A174 high qualif/self emp/mgmt
num_dependents
own_telephone: A191 none; A192 yes
foreign_worker: A201 yes; A202 no
class: 1 good; 2 bad
"""
GERMAN_COLUMNS: dict[str, dict[str, str] | None] = {
    name: dict(code.split(" ", 1) for code in codes.split("; ")) if codes else None
    for name, _, codes in (
        line.partition(": ") for line in _GERMAN.strip().replace("\n    ", " ").splitlines()
    )
}

# NHANES: part of the package.
NHANES_FILE = "nhanes-2017-2018.csv.gz"  # cut by tools/cut_nhanes.py, which says what is left out, and why
NHANES_SHA256 = "7ce06800c89b3e91159728ee1c793ba3ce806c58ba31bbf286dc4d15905c49e5"  # of the text in it
# The columns that are no features: of either condition, what people said and what was measured.
NHANES_CONDITIONS = {
    "obesity": ("said_obese", "measured_obese"),
    "diabetes": ("told_diabetes", "measured_diabetes"),
}
NHANES_LABELS = {"obesity": "obese", "diabetes": "diabetes"}  # as in the table of one condition
NHANES_AGES = ("20 to 39", "40 to 59", "60 and older")

Condition = Literal["obesity", "diabetes"]


def load_adult(
    path: AnyPath | None = None,
    *,
    sensitive: Literal["sex", "race"] = "sex",
    source: Literal["pypi", "openml"] = "pypi",
    check: bool = True,
) -> Samples:
    """Load Adult: 43,131 people, 97 features, label 1 for an income above 50,000 dollars.

    Rows with a missing value are dropped, and races other than Black and White. ``adult.test`` comes first,
    then ``adult.data``. Five numeric columns are raw (:func:`fairsieve.data.splits.split` scales them), the
    others are 0/1; ``fnlwgt`` is left out.

    Parameters
    ----------
    path : str or path, optional
        A folder that holds the files; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex", "race"}, default="sex"
        What the groups are. Both stay among the features.
    source : {"pypi", "openml"}, default="pypi"
        Which fetched form to read.
    check : bool, default=True
        Refuse files whose SHA-256 is not the known one; the OpenML form has none.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.features.shape, adult.cells.groups, adult.cells.counts.tolist()
    ((43131, 97), ['Female', 'Male'], [[12386, 20004], [1581, 9160]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    check_choice("source", source, ("pypi", "openml"))
    if source == "openml":
        place = locate("adult-openml.csv", path)
        table = read_table(place, usecols=[*ADULT_COLUMNS[:-1], "class"]).rename(columns={"class": "income"})
    else:
        place, table = read_adult(path, check=check)
    table = table[table["race"].isin(ADULT_VALUES["race"]) & (table != "?").all(axis=1)]
    kinds = dict.fromkeys(ADULT_NUMBERS) | {name: sorted(set(table[name])) for name in ADULT_TEXTS}
    features, names = encode(table, kinds, place)
    race, sex, label = (
        one_hot(name, table[name], values, place)[:, 1] for name, values in ADULT_VALUES.items()
    )
    names += ["race=White", "sex=Male"]
    features = np.column_stack([features, race, sex])
    return _samples(features, label, table[sensitive], names, ADULT_VALUES[sensitive])


def read_adult(path: AnyPath | None = None, *, check: bool = True) -> tuple[Path, pd.DataFrame]:
    """Find and read all rows, gaps ("?") included; return the folder too."""
    if path is not None and Path(path).is_file():
        raise InvalidInputError(
            f"path must be a folder that holds adult.data and adult.test; got the file {path}"
        )
    files = [locate(name, path, check=check) for name in ("adult.test", "adult.data")]
    # The first line of adult.test begins with a |, and its labels end with a full stop.
    tables = [read_table(file, names=ADULT_COLUMNS, skipinitialspace=True, comment="|") for file in files]
    table = pd.concat(tables, ignore_index=True)
    return files[0].parent, table.assign(income=table["income"].str.removesuffix("."))


def load_compas(
    path: AnyPath | None = None, *, sensitive: Literal["sex", "race"] = "sex", check: bool = True
) -> Samples:
    """Load COMPAS: 5,278 people, ten 0/1 features, label 1 for recidivism within two years.

    Kept: screened within 30 days of the arrest, ``is_recid`` known, no ordinary traffic offence, a score
    given, and race African-American or Caucasian. Names and birth dates are never kept from the file.

    Parameters
    ----------
    path : str or path, optional
        The CSV file or a folder that holds it; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex", "race"}, default="sex"
        What the groups are. Both stay among the features.
    check : bool, default=True
        Refuse a file whose SHA-256 is not the known one.

    Examples
    --------
    >>> compas = load_compas()
    >>> compas.features.shape, compas.cells.groups, compas.cells.counts.tolist()
    ((5278, 10), ['Female', 'Male'], [[658, 2137], [373, 2110]])
    """
    check_choice("sensitive", sensitive, ("sex", "race"))
    file = locate("compas-scores-two-years.csv", path, check=check)
    table = read_table(file, usecols=COMPAS_COLUMNS)
    days = numbers("days_b_screening_arrest", table["days_b_screening_arrest"].replace("", "nan"), file)
    # ProPublica's own filter (a missing number of days is not in time), and two races.
    usable = (table["is_recid"] != "-1") & (table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")
    table = table[(days >= -30) & (days <= 30) & usable & table["race"].isin(COMPAS_RACES)]
    priors = np.digitize(numbers("priors_count", table["priors_count"], file), [1, 4])
    table = table.assign(priors=np.array(COMPAS_PRIORS)[priors], charge_degree=table["c_charge_degree"])
    kinds = {"age_cat": COMPAS_AGES, "priors": COMPAS_PRIORS, "charge_degree": ("F", "M")}
    features, names = encode(table, kinds, file)
    first = np.column_stack([table["sex"] == "Female", table["race"] == "Caucasian"])
    label = one_hot("two_year_recid", table["two_year_recid"], ("0", "1"), file)[:, 1]
    features, names = np.column_stack([first, features]), ["sex=Female", "race=Caucasian", *names]
    return _samples(features, label, table[sensitive], names, COMPAS_RACES if sensitive == "race" else SEXES)


def load_german(
    path: AnyPath | None = None,
    *,
    sensitive: Literal["sex"] = "sex",
    source: Literal["pypi", "openml"] = "pypi",
    check: bool = True,
) -> Samples:
    """Load German credit: 1,000 applicants, 58 features, label 1 for a good risk.

    Sex is read from ``personal_status``, which crosses it with the marital status; as a feature that column
    is replaced by ``sex=Male`` alone, because it tells women's marital status in one value only. That sex can
    be read from it at all has been doubted (Grömping, 2019, South German Credit Data): take the groups as
    the literature uses them. The seven numeric columns are raw
    (:func:`fairsieve.data.splits.split` scales them).

    Parameters
    ----------
    path : str or path, optional
        The file or a folder that holds it; see :func:`fairsieve.data.sources.locate`.
    sensitive : {"sex"}, default="sex"
        What the groups are.
    source : {"pypi", "openml"}, default="pypi"
        Which fetched form to read.
    check : bool, default=True
        Refuse a file whose SHA-256 is not the known one; the OpenML form has none.

    Examples
    --------
    >>> german = load_german()
    >>> german.features.shape, german.cells.groups, german.cells.counts.tolist()
    ((1000, 58), ['Female', 'Male'], [[109, 191], [201, 499]])
    """
    check_choice("sensitive", sensitive, ("sex",))
    check_choice("source", source, ("pypi", "openml"))
    file = locate("german-openml.csv" if source == "openml" else "german.data", path, check=check)
    if source == "openml":
        known = [(name, texts or {}) for name, texts in GERMAN_COLUMNS.items()]
        codes = {name: {text: code for code, text in texts.items()} for name, texts in known}
        table = read_table(file, usecols=list(GERMAN_COLUMNS)).replace(codes)
    else:
        table = read_table(file, names=list(GERMAN_COLUMNS), sep=r"\s+")
    # A code has its column even when absent.
    columns = dict(GERMAN_COLUMNS)
    statuses, _ = columns.pop("personal_status") or (), columns.pop("class")
    features, names = encode(table, columns, file)
    status = one_hot("personal_status", table["personal_status"], statuses, file)
    is_male = status[:, [0, 2, 3]].sum(axis=1)  # A91, A93, A94
    label = one_hot("class", table["class"], ["2", "1"], file)[:, 1]
    groups = np.where(is_male == 1, "Male", "Female")
    return _samples(np.column_stack([features, is_male]), label, groups, [*names, "sex=Male"], SEXES)


def _samples(
    features: Values,
    label: Values,
    groups: ArrayLike,
    names: Iterable[str],
    values: Iterable[str],
) -> Samples:
    """Make samples of labels 0 and 1 and groups of the named values."""
    arrays = features.astype(np.float32), label.astype(np.int64), np.asarray(groups, dtype=str)
    return Samples(*arrays, tuple(names), classes=[0, 1], group_values=list(values))


def read_table(path: Path, **options: Any) -> pd.DataFrame:
    """Read a file as text, by the options of :func:`pandas.read_csv`."""
    try:
        table = pd.read_csv(path, dtype=object, keep_default_na=False, na_values=[""], **options)
    except ValueError as error:  # of its bytes, its header or its rows
        raise InvalidInputError(
            f"{path} must be the published table, as text in UTF-8; {error}: point to the file itself, unpacked"
        ) from None
    short = table.iloc[:, -1].isna()
    if short.any():
        raise InvalidInputError(
            f"every row of {path} must have all fields; row {short.argmax() + 1} has fewer"
        )
    return table.fillna("")


def numbers(column: str, texts: Iterable[str], path: Path) -> NDArray[np.float32]:
    """Convert a numeric column of ``path``."""
    try:
        return np.array(list(texts), dtype=np.float32)
    except ValueError as error:
        raise InvalidInputError(f"{column} in {path} must be numbers; {error}") from None


def one_hot(column: str, texts: Iterable[str], values: Iterable[str], path: Path) -> NDArray[np.float32]:
    """Make indicator columns of ``values``, in their order.

    >>> one_hot("degree", ["M", "F", "M"], ["F", "M"], Path("some.csv")).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    known, given = list(values), list(texts)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInputError(f"{column} in {path} must be among {known}; got also {unknown}")
    return np.asarray(np.eye(len(known), dtype=np.float32)[pd.Index(known).get_indexer(given)])


def encode(
    table: pd.DataFrame, columns: Mapping[str, Iterable[str] | None], path: Path
) -> tuple[NDArray[np.float32], list[str]]:
    """Encode columns, with names: numbers where None stands for the values, else indicators.

    A mapping of values gives the texts that stand in the names.
    """
    blocks, names = [], []
    for column, values in columns.items():
        if values is None:
            blocks.append(numbers(column, table[column], path)[:, None])
            names.append(column)
        else:
            texts = values.values() if isinstance(values, Mapping) else values
            blocks.append(one_hot(column, table[column], values, path))
            names += [f"{column}={text}" for text in texts]
    return np.hstack(blocks), names


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
    check_choice("condition", condition, NHANES_CONDITIONS)
    content = gzip.decompress((resources.files("fairsieve.data") / NHANES_FILE).read_bytes())
    if hashlib.sha256(content).hexdigest() != NHANES_SHA256:
        raise InvalidInputError(
            f"{NHANES_FILE} must have the SHA-256 {NHANES_SHA256}; it is damaged: install fairsieve again"
        )
    table = pd.read_csv(io.BytesIO(content), encoding="utf-8")
    said, measured = NHANES_CONDITIONS[condition]
    names = {said: NHANES_LABELS[condition], measured: "truth"}
    not_features = [name for pair in NHANES_CONDITIONS.values() for name in pair]
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
    label = NHANES_LABELS[condition]
    table = people.drop(columns=[label, "truth"])
    numbers = table.select_dtypes("number")
    gaps = numbers.isna().loc[:, numbers.isna().any()].add_suffix(" is missing")
    indicators = pd.get_dummies(table.drop(columns=numbers), prefix_sep="=")
    indicators = indicators.drop(columns=[name for name in indicators if name.endswith(("=no", "=Female"))])
    features = pd.concat([numbers.fillna(numbers.median()), gaps, indicators], axis=1)
    ages = pd.cut(table["age"], [0, 39, 59, 200], labels=NHANES_AGES)
    groups = ages if sensitive == "age" else table[sensitive]
    said, truth = ((people[name] == "yes").to_numpy(dtype=np.int64) for name in (label, "truth"))
    arrays = features.to_numpy(dtype=np.float32), said, groups.to_numpy(dtype=str)
    return Samples(*arrays, tuple(features), classes=[0, 1], truth=truth)
