"""What somebody asks of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypedDict

from fairsieve.errors import InvalidInputError, MissingExtraError
from fairsieve.selection.fairness import fairness_name
from fairsieve.tabular.reading.read import FRAME_NAME, is_frame
from fairsieve.tabular.reading.roles import SmallGroups
from fairsieve.tabular.reading.table import Reading, closest
from fairsieve.thresholds import ThresholdRule
from fairsieve.validation import (
    check_at_least,
    check_choice,
    check_clean_ratio,
    check_seed,
    check_share,
    percent_hint,
)

__all__ = ["MODELS", "Asked", "TableSettings", "ask", "data_name", "table_options"]

MODELS = ("logistic", "lightgbm", "hist-gradient-boosting", "auto")


@dataclass(frozen=True)
class Asked:
    """A table, its columns' roles, and what to make of it.

    Attributes
    ----------
    data : Path or data frame
        A CSV or Parquet file, or a data frame of pandas or polars.
    label : str
        The column to predict.
    sensitive : sequence of str
        The columns whose groups are compared; several are crossed.
    positive : str, optional
        The label whose rates are reported; the last of two when None.
    fairness : str
        See :mod:`fairsieve.selection.fairness`.
    clean_ratio : float or "auto"
        Share of the labels believed to be right.
    test : float
        Share of the rows that are set aside to measure on.
    test_file : Path or data frame, optional
        A table to measure on instead.
    bins : sequence of str
        Groups of sensitive columns of numbers, such as "age=25,45".
    small_groups : {"stop", "merge", "ignore"}
    keep_sensitive : bool
        Learn from the sensitive columns too.
    drop, categories : sequences of str
        Columns to leave out, and columns that are categories although they look like numbers.
    dates : sequence of str
        Columns of dates to learn from, as days.
    reading : Reading
    verified : sequence of Path or data frame
        Answers from people who checked labels, see :mod:`~fairsieve.tabular.answers`.
    epochs : int, optional
        As :class:`~fairsieve.FairRobustClassifier` takes them, or the rounds of a
        :class:`~fairsieve.SieveClassifier` for trees; their default when None.
    model : {"logistic", "lightgbm", "hist-gradient-boosting", "auto"}
        The kind of model; "auto" compares those that are installed.
    trees : int
        How many trees boosting makes.
    threshold : ThresholdRule, float or str
        From which probability on the positive label is predicted, see
        :class:`~fairsieve.thresholds.ThresholdRule`.
    tolerance : float, optional
        The most accuracy that fairness may cost: it chooses between the plain model, the fair one and those between.
    seed : int
    """

    data: Any
    label: str
    sensitive: Sequence[str]
    positive: str | None = None
    fairness: str = "equalized_odds"
    clean_ratio: float | Literal["auto"] = "auto"
    test: float = 0.2
    test_file: Any = None
    bins: Sequence[str] = ()
    small_groups: SmallGroups = "stop"
    keep_sensitive: bool = False
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()
    dates: Sequence[str] = ()
    reading: Reading = field(default_factory=Reading)
    verified: Sequence[Any] = ()
    epochs: int | None = None
    seed: int = 0
    model: str = "logistic"
    trees: int = 100
    threshold: Any = ThresholdRule()  # noqa: RUF009 - it cannot change
    tolerance: float | None = None

    def __post_init__(self) -> None:
        _check_model(self.model)
        check_at_least("--trees", self.trees, 1)
        object.__setattr__(self, "threshold", ThresholdRule.parse(self.threshold, "--threshold"))
        if self.tolerance is not None:
            check_share("--tolerance", self.tolerance)
        object.__setattr__(self, "fairness", fairness_name(self.fairness))
        check_clean_ratio("--clean-ratio", self.clean_ratio, auto=True)
        if not 0 < self.test < 1:
            raise InvalidInputError(
                f"--test must be a share between 0 and 1, such as 0.2; got {self.test}{percent_hint(self.test)}"
            )
        if self.verified and self.clean_ratio != "auto":
            raise InvalidInputError(
                "--verified says how many labels are right; got --clean-ratio "
                f"{self.clean_ratio} too: leave one of the two out"
            )
        check_at_least("--epochs", 4 if self.epochs is None else self.epochs, 4)
        check_seed("--seed", self.seed)
        for column in self.sensitive:
            if column == self.label:
                raise InvalidInputError(
                    f"--label and --sensitive must be different columns; both are {column!r}: name "
                    "another for one"
                )
        repeated = sorted({column for column in self.sensitive if list(self.sensitive).count(column) > 1})
        if repeated:
            raise InvalidInputError(
                f"--sensitive must name each column once; got {repeated[0]!r} more than once: leave one out"
            )


class TableSettings(TypedDict, total=False):
    """What can be asked beside the label and the sensitive columns; see :class:`Asked` for what each means."""

    positive: str | None
    fairness: str
    clean_ratio: float | str
    test: float
    test_file: Any
    bins: Sequence[str]
    small_groups: str
    keep_sensitive: bool
    drop: Sequence[str]
    categories: Sequence[str]
    dates: Sequence[str]
    separator: str
    decimal: str
    missing: Sequence[str]
    verified: Any
    epochs: int | None
    seed: int
    model: str
    trees: int
    threshold: float | str
    tolerance: float | None


def ask(data: Any, label: str, sensitive: str | Sequence[str], settings: TableSettings) -> Asked:
    """Make a request of what a function was called with; refuse a setting that does not exist.

    >>> ask("people.csv", "income", "sex", {"separator": ";"}).reading.separator
    ';'
    """
    known = TableSettings.__annotations__
    for name in settings:
        if name not in known:
            close = closest(name, known)
            hint = f". Did you mean {close!r}?" if close else f"; the settings are {', '.join(known)}"
            raise InvalidInputError(f"{name!r} is no setting of a table{hint}")
    given: dict[str, Any] = dict(settings)
    reading = Reading(
        **{name: given.pop(name) for name in ("separator", "decimal", "missing") if name in given}
    )
    for name in ("bins", "drop", "categories", "dates"):
        given[name] = _listed(given.get(name, ()))
    for name, value in (("data", data), ("test_file", given.get("test_file"))):
        given[name] = Path(value) if isinstance(value, str) else value
    verified = given.get("verified", ())
    verified = (verified,) if isinstance(verified, str | Path) or is_frame(verified) else verified or ()
    given["verified"] = tuple(Path(one) if isinstance(one, str) else one for one in verified)
    if "clean_ratio" in given:
        given["clean_ratio"] = _parse_clean_ratio(given["clean_ratio"])
    return Asked(label=label, sensitive=_listed(sensitive), reading=reading, **given)


def table_options(asked: Asked) -> list[str]:
    """Write what a table is and how it is read as options of a command, which another command can be given too.

    >>> " ".join(table_options(ask("people.csv", "income", ["sex", "age"], {"bins": "age=30,50"})))
    '--label income --sensitive sex --sensitive age --bins age=30,50'
    """
    words = ["--label", asked.label]
    several = {
        "--sensitive": asked.sensitive,
        "--bins": asked.bins,
        "--drop": asked.drop,
        "--categories": asked.categories,
        "--dates": asked.dates,
        "--missing": asked.reading.missing,
    }
    for option, values in several.items():
        words += [word for value in values for word in (option, value)]
    if asked.small_groups != Asked.small_groups:
        words += ["--small-groups", asked.small_groups]
    marks = {"--separator": asked.reading.separator, "--decimal": asked.reading.decimal}
    if marks != {"--separator": ",", "--decimal": "."}:  # those of an ordinary file are found without asking
        for option, value in marks.items():
            if value != "auto":
                words += [option, "tab" if value == "\t" else value]
    return words


def _listed(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name, several or none as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def data_name(data: Any) -> str:
    """Name a table in words: the file's name, or that it is a data frame."""
    return FRAME_NAME if is_frame(data) else str(data.name)


def _check_model(name: str) -> None:
    """Check that a kind of model exists, and is installed."""
    check_choice("--model", name, MODELS)
    if name == "lightgbm" and find_spec("lightgbm") is None:
        raise MissingExtraError("lightgbm", extra="lightgbm", purpose="--model lightgbm")


def _parse_clean_ratio(text: str | float) -> Any:
    """Convert a number where it is one; leave the rest as it is, for :class:`Asked` to refuse.

    >>> _parse_clean_ratio("0.9"), _parse_clean_ratio("auto")
    (0.9, 'auto')
    """
    try:
        return float(text)
    except (TypeError, ValueError):
        return text
