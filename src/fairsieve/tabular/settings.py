"""The settings of a table, in one place.

The fields of :class:`TableSettings` are the options of the command line, the parameters of the functions of
``fairsieve.tabular``, what ``metrics.json`` records of a run, and what is read back from there.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from fairsieve.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from fairsieve.tabular.reading.columns import Reading

__all__ = [
    "OLD_NAMES",
    "Setting",
    "TableSettings",
    "data_name",
    "read_settings",
    "refuse_old_names",
    "settings_of",
    "table_options",
    "takes_settings",
]

MODELS = ("logistic", "lightgbm", "hist-gradient-boosting", "auto")
EVERYWHERE = ("train", "audit", "review")
DEFAULT_TEST = 0.2
# Names of version 0.1, and what to write now.
OLD_NAMES = {
    "epochs": "max_iter",
    "checkpoint_dir": "nothing: training takes seconds",
    "checkpoint_every": "nothing: training takes seconds",
}
Function = TypeVar("Function", bound=Callable[..., Any])


class Setting(NamedTuple):
    """How people give a setting.

    Attributes
    ----------
    help : str
        What it means, in one line.
    panel : str
        The part of the help that it is shown in; empty for what most need.
    metavar : str
        What stands for its value.
    choices : tuple of str
        Values to complete, where it has a few.
    kind : type
        What a value on the command line is converted to.
    many : bool
        Whether it may be given several times.
    commands : tuple of str
        Who takes it.
    table : bool
        Whether it says how a table is read, so that the next command needs it too.
    """

    help: str
    panel: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    kind: type = str
    many: bool = False
    commands: tuple[str, ...] = EVERYWHERE
    table: bool = False


def _setting(default: Any, help: str, panel: str = "", **more: Any) -> Any:
    """Make a field with what people need to know of it."""
    known = {"metadata": {"setting": Setting(help, panel, **more)}}
    return field(**known) if default is MISSING else field(default=default, **known)  # type: ignore[call-overload]


@dataclass(frozen=True)
class TableSettings:
    """A table, its columns' roles, and what to make of it; each field is a setting."""

    data: Any
    label: str = _setting(MISSING, "The column to predict.", metavar="COLUMN", table=True)
    sensitive: Sequence[str] = _setting(
        MISSING,
        "A column whose groups are compared; give it again to cross several.",
        metavar="COLUMN",
        many=True,
        table=True,
    )
    positive: str | None = _setting(
        None,
        "The label whose rates are reported; by default the last of two.",
        metavar="LABEL",
        commands=("train", "audit"),
    )
    fairness: str = _setting(
        "equalized_odds",
        "equalized-odds, demographic-parity or equal-opportunity.",
        metavar="NAME",
        choices=("equalized-odds", "demographic-parity", "equal-opportunity"),
        commands=("train", "audit"),
    )
    tolerance: float | None = _setting(
        None,
        "The largest difference between groups that may remain, such as 0.02; by default 0.02, and the plain model "
        "is kept where the fair one is clearly not better.",
        metavar="GAP",
        kind=float,
        commands=("train",),
    )
    model: str = _setting(
        "logistic",
        "logistic, lightgbm, hist-gradient-boosting, or auto: the one of them that predicts best.",
        metavar="NAME",
        choices=MODELS,
        commands=("train", "audit"),
    )
    max_accuracy_loss: float | None = _setting(
        None,
        "The most accuracy that fairness may cost, such as 0.01: the fairest model within it is kept.",
        "model",
        metavar="SHARE",
        kind=float,
        commands=("train",),
    )
    clean_ratio: float | Literal["auto"] = _setting(
        "auto", "The share of labels believed right, or auto.", "model", metavar="SHARE", commands=("train",)
    )
    threshold: Any = _setting(  # noqa: RUF009 - a field
        "0.5",
        "The probability from which on the positive label is predicted: a number, balanced, cost:FP,FN or rate:SHARE.",
        "model",
        metavar="RULE",
        choices=("balanced", "cost:", "rate:"),
        commands=("train",),
    )
    trees: int = _setting(
        100, "How many trees boosting makes.", "model", kind=int, commands=("train", "audit")
    )
    max_iter: int | None = _setting(
        None,
        "Most updates of training, by default 200; most rounds with trees.",
        "model",
        kind=int,
        commands=("train",),
    )
    keep_sensitive: bool = _setting(
        False, "Learn from the sensitive columns too.", "model", kind=bool, commands=("train",)
    )
    test: float = _setting(
        None,
        "The share of the rows to measure on; by default 0.2.",
        "model",
        metavar="SHARE",
        kind=float,
        commands=("train",),
    )
    test_file: Any = _setting(  # noqa: RUF009 - a field
        None, "A table to measure on instead.", "model", metavar="FILE", kind=Path, commands=("train",)
    )
    seed: int = _setting(0, "Where chance begins.", "model", kind=int)
    bins: Sequence[str] = _setting(
        (),
        "Make groups of a sensitive column of numbers: age=25,45,65, or age=4 for four.",
        "reading",
        metavar="COLUMN=EDGES",
        many=True,
        table=True,
    )
    small_groups: Literal["stop", "merge", "ignore"] = _setting(
        "stop",
        "Groups of fewer than 30 people: stop, merge (into one) or ignore (do not compare).",
        "reading",
        metavar="NAME",
        choices=("stop", "merge", "ignore"),
        table=True,
    )
    drop: Sequence[str] = _setting(
        (), "A column to leave out.", "reading", metavar="COLUMN", many=True, table=True
    )
    categories: Sequence[str] = _setting(
        (),
        "A column of categories that looks like numbers.",
        "reading",
        metavar="COLUMN",
        many=True,
        table=True,
    )
    dates: Sequence[str] = _setting(
        (),
        "A column of dates to learn from, as days; dates are left out otherwise.",
        "reading",
        metavar="COLUMN",
        many=True,
        table=True,
    )
    separator: str = _setting(
        "auto",
        "The character between fields: , ; | tab, or auto.",
        "reading",
        metavar="CHARACTER",
        choices=(",", ";", "|", "tab", "auto"),
        table=True,
    )
    decimal: str = _setting(
        "auto",
        "The decimal mark: . , or auto.",
        "reading",
        metavar="CHARACTER",
        choices=(".", ",", "auto"),
        table=True,
    )
    missing: Sequence[str] = _setting(
        (),
        "A value that means missing, beside NA, ? and such.",
        "reading",
        metavar="VALUE",
        many=True,
        table=True,
    )
    verified: Sequence[Any] = _setting(
        (),
        "Answers to fairsieve review; give it again for several files.",
        "review",
        metavar="FILE",
        kind=Path,
        many=True,
    )
    show_columns: bool = _setting(
        False,
        "Show the columns of single people in the report, which may then hold personal data.",
        "output",
        kind=bool,
        commands=("train",),
    )

    def __post_init__(self) -> None:
        from fairsieve.selection.fairness import fairness_name
        from fairsieve.tabular.reading.read import is_frame
        from fairsieve.thresholds import ThresholdRule

        def settle(**values: Any) -> None:
            for name, value in values.items():
                object.__setattr__(self, name, value)

        verified = self.verified
        if isinstance(verified, str | Path) or is_frame(verified):
            verified = (verified,)
        settle(
            data=_as_path(self.data),
            test_file=_as_path(self.test_file),
            verified=tuple(_as_path(one) for one in verified or ()),
            clean_ratio=_as_number(self.clean_ratio),
            fairness=fairness_name(self.fairness),
            threshold=ThresholdRule.parse(self.threshold, "--threshold"),
        )
        for name, setting in settings_of():
            if setting.many and name != "verified":
                value = getattr(self, name)
                settle(**{name: (value,) if isinstance(value, str) else tuple(value or ())})
        self._check()
        settle(test=DEFAULT_TEST if self.test is None and self.test_file is None else self.test)

    def _check(self) -> None:
        """Refuse values that cannot be, each with the way out."""
        from fairsieve.validation import (
            check_at_least,
            check_choice,
            check_clean_ratio,
            check_seed,
            check_share,
            percent_hint,
        )

        check_choice("--model", self.model, MODELS)
        if self.model == "lightgbm" and find_spec("lightgbm") is None:
            raise MissingExtraError("lightgbm", extra="lightgbm", purpose="--model lightgbm")
        check_at_least("--trees", self.trees, 1)
        for option, value in (
            ("--tolerance", self.tolerance),
            ("--max-accuracy-loss", self.max_accuracy_loss),
        ):
            if value is not None:
                check_share(option, value)
        check_clean_ratio("--clean-ratio", self.clean_ratio, auto=True)
        if self.test is not None and self.test_file is not None:
            raise InvalidInputError("--test and --test-file must not be given together: a share, or a file")
        if self.test is not None and not 0 < self.test < 1:
            raise InvalidInputError(
                f"--test must be a share between 0 and 1, such as 0.2; got {self.test}{percent_hint(self.test)}"
            )
        if self.verified and self.clean_ratio != "auto":
            raise InvalidInputError(
                "--verified says how many labels are right; got --clean-ratio "
                f"{self.clean_ratio} too: leave one of the two out"
            )
        check_at_least("--max-iter", 1 if self.max_iter is None else self.max_iter, 1)
        check_seed("--seed", self.seed)
        assert self.reading  # which checks itself
        if self.label in self.sensitive:
            raise InvalidInputError(
                f"--label and --sensitive must be different columns; both are {self.label!r}: name another for one"
            )
        repeated = sorted({column for column in self.sensitive if list(self.sensitive).count(column) > 1})
        if repeated:
            raise InvalidInputError(
                f"--sensitive must name each column once; got {repeated[0]!r} more than once: leave one out"
            )

    @property
    def reading(self) -> Reading:
        """How the text of a CSV file is read."""
        from fairsieve.tabular.reading.columns import Reading

        return Reading(self.separator, self.decimal, self.missing)

    def record(self) -> dict[str, Any]:
        """Return all settings as JSON can hold them; files and data frames by their names."""
        recorded: dict[str, Any] = {"data": data_name(self.data)}
        for name, _ in settings_of():
            value = getattr(self, name)
            if name in ("test_file", "verified"):
                several = [data_name(one) for one in value] if isinstance(value, tuple) else None
                value = several if several is not None else None if value is None else data_name(value)
            recorded[name] = (
                str(value) if name == "threshold" else list(value) if isinstance(value, tuple) else value
            )
        return recorded


@functools.cache
def settings_of(command: str | None = None) -> tuple[tuple[str, Setting], ...]:
    """List the settings of a command, or all; ``data`` is none."""
    every = [
        (one.name, one.metadata["setting"]) for one in fields(TableSettings) if "setting" in one.metadata
    ]
    return tuple((name, one) for name, one in every if command is None or command in one.commands)


def _as_path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _as_number(text: Any) -> Any:
    """Convert a number where it is one; leave the rest as it is, to be refused.

    >>> _as_number("0.9"), _as_number("auto")
    (0.9, 'auto')
    """
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def takes_settings(command: str, *, optional: Sequence[str] = ()) -> Callable[[Function], Function]:
    """Give a function with ``**settings`` the settings of a command as named parameters.

    Its signature and its documentation name them all; a name that is none is refused with the closest one.
    ``optional`` ones have None as their default.
    """

    def decorate(function: Function) -> Function:
        known: Mapping[str, Field[Any]] = {one.name: one for one in fields(TableSettings)}
        own = inspect.signature(function)
        first = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        added = []
        words = []
        for name, setting in settings_of(command):
            default = None if name in optional else known[name].default
            empty = inspect.Parameter.empty
            added.append(
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=empty if default is MISSING else default,
                    annotation=known[name].type,
                )
            )
            words.append(f"{name}\n        {setting.help}")

        @functools.wraps(function)
        def call(*arguments: Any, **given: Any) -> Any:
            refuse_old_names(given)
            for name in given:
                if name not in signature.parameters:
                    _refuse_name(name, list(signature.parameters))
            return function(*arguments, **given)

        # Required ones come first, as the language has it for those that may be given by position.
        signature = own.replace(parameters=[*first, *added])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__doc__ = (function.__doc__ or "").replace("**settings", "\n    ".join(words))
        return call  # type: ignore[return-value]

    return decorate


def _refuse_name(name: str, known: Sequence[str]) -> None:
    from fairsieve.tabular.reading.columns import closest

    close = closest(name, known)
    hint = f". Did you mean {close!r}?" if close else f"; the settings are {', '.join(known)}"
    raise InvalidInputError(f"{name!r} is no setting of a table{hint}")


def refuse_old_names(given: Mapping[str, Any]) -> None:
    """Refuse a setting by its name of version 0.1, and name the new one."""
    for name in given:
        if name in OLD_NAMES:
            raise InvalidInputError(
                f"{name!r} is no setting any more; since version 0.2 use {OLD_NAMES[name]}"
            )


def read_settings(run: Path) -> dict[str, Any]:
    """Return the settings in a run's ``metrics.json``, by which another command reads the same table alike.

    Which files were given is not taken: they are recorded by their names alone.
    """
    try:
        recorded = json.loads((Path(run) / "metrics.json").read_text(encoding="utf-8"))["settings"]
        found = {
            name: recorded[name]
            for name, _ in settings_of()
            if name in recorded or name in ("label", "sensitive")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"--run must be a folder that fairsieve train made; {run} has no metrics.json that can be read "
            f"({type(error).__name__}): name the folder that was given to train as --out"
        ) from error
    if "max_accuracy_loss" not in found:
        raise InvalidInputError(
            f"--run must be a folder of this version; {run} was made by fairsieve 0.1, whose settings mean other "
            "things: train again"
        )
    return {name: value for name, value in found.items() if name not in ("test_file", "verified")}


def table_options(asked: TableSettings) -> list[str]:
    """Write what a table is and how it is read as options of a command, which another command can be given too.

    >>> " ".join(table_options(TableSettings("people.csv", "income", ["sex", "age"], bins="age=30,50")))
    '--label income --sensitive sex --sensitive age --bins age=30,50'
    """
    words = []
    defaults = {one.name: one.default for one in fields(TableSettings)}
    ordinary = (asked.separator, asked.decimal) in ((",", "."), ("auto", "auto"))  # found without asking
    for name, setting in settings_of():
        value = getattr(asked, name)
        if not setting.table or value == defaults[name] or (ordinary and name in ("separator", "decimal")):
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, tuple) else (value,):
            words += [option, "tab" if one == "\t" else one]
    return words


def data_name(data: Any) -> str:
    """Name a table in words: the file's name, or that it is a data frame."""
    from fairsieve.tabular.reading.read import FRAME_NAME, is_frame

    return FRAME_NAME if is_frame(data) else str(getattr(data, "name", data))
