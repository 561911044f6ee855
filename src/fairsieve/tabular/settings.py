"""The settings of a table, in one place.

The fields of :class:`TableSettings` are the options of the command line, the parameters of the functions of
``fairsieve.tabular``, what ``metrics.json`` records of a run, and what is read back from there. Who takes which of
them, by name and type, is said by a class each, for editors and type checkers too.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Required, TypedDict, TypeVar

from fairsieve import validation
from fairsieve.errors import InvalidInputError, spell
from fairsieve.notions import EO, NOTIONS, find_notion
from fairsieve.validation import closest_hint

if TYPE_CHECKING:
    from fairsieve.tabular.reading.columns import Reading

MODELS = ("logistic", "lightgbm", "hist-gradient-boosting", "auto")
SMALL_GROUPS = ("stop", "merge", "ignore")
FAIRNESS = tuple(name.replace("_", "-") for name in NOTIONS)
Function = TypeVar("Function", bound=Callable[..., Any])


class FileArguments(TypedDict, total=False):
    """How the text of a file is read."""

    separator: str
    decimal: str
    missing: Sequence[str]


class PredictArguments(FileArguments, total=False):
    """How a file is read, and where a table of more rows than memory is worked on."""

    backend: str
    memory: str | None


class ColumnArguments(FileArguments, total=False):
    """What a table holds, but for the label and the groups."""

    bins: Sequence[str]
    small_groups: Literal["stop", "merge", "ignore"]
    drop: Sequence[str]
    categories: Sequence[str]
    dates: Sequence[str]
    verified: Sequence[Any]


class CompareArguments(ColumnArguments, total=False):
    """What a table that methods are compared on holds, and what fairness asks for."""

    label: str
    sensitive: Sequence[str]
    positive: str | None
    fairness: str
    clean_ratio: float | Literal["auto"]


class ReviewArguments(PredictArguments, ColumnArguments, total=False):
    """What a table holds; a run may say what the label and the groups are."""

    label: str
    sensitive: Sequence[str]
    seed: int


class AuditArguments(PredictArguments, ColumnArguments, total=False):
    """What a table holds, and what fairness asks for."""

    label: Required[str]
    sensitive: Required[Sequence[str]]
    positive: str | None
    fairness: str
    seed: int


class TrainArguments(AuditArguments, total=False):
    """What a table holds, what fairness asks for, and how to train."""

    tolerance: float | None
    model: str
    max_accuracy_loss: float | None
    clean_ratio: float | Literal["auto"]
    threshold: Any
    trees: int
    max_iter: int | None
    keep_sensitive: bool
    test: float | None
    test_file: Any
    show_columns: bool


# Who takes which settings. Editors and type checkers see the types; a test compares them with those of the fields.
ARGUMENTS = {
    "train": TrainArguments,
    "audit": AuditArguments,
    "review": ReviewArguments,
    "compare": CompareArguments,
    "predict": PredictArguments,
}


class Setting(NamedTuple):
    """How people give a setting.

    Attributes
    ----------
    help : str
        What it means, in one line.
    metavar : str
        What stands for its value.
    panel : str
        The part of the help that it is shown in; empty for what most need.
    choices : tuple of str
        Values to complete, where it has a few.
    kind : type
        What a value on the command line is converted to.
    many : bool
        Whether it may be given several times.
    """

    help: str
    metavar: str | None = None
    panel: str = ""
    choices: tuple[str, ...] = ()
    kind: type = str
    many: bool = False


# What settings must be, beside their types: called with the option's name and the value, it returns what is kept.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "label": validation.as_text,
    "positive": partial(validation.as_text, rule="one label"),
    "tolerance": validation.check_share,
    "model": partial(validation.check_choice, choices=MODELS),
    "small_groups": partial(validation.check_choice, choices=SMALL_GROUPS),
    "max_accuracy_loss": validation.check_share,
    "clean_ratio": partial(validation.check_clean_ratio, auto=True),
    "trees": partial(validation.check_at_least, lowest=1),
    "max_iter": partial(validation.check_at_least, lowest=1),
    "keep_sensitive": validation.check_truth,
    "show_columns": validation.check_truth,
    "seed": validation.check_seed,
    "bins": partial(validation.as_texts, rule="a text such as age=25,45"),
    "missing": partial(validation.as_texts, rule="a text or a number"),
    **dict.fromkeys(
        ("sensitive", "drop", "categories", "dates"),
        partial(validation.as_texts, rule="the name of a column"),
    ),
}


def _setting(default: Any, *about: Any, **more: Any) -> Any:
    """Make a field with what people need to know of it."""
    return field(default=default, metadata={"setting": Setting(*about, **more)})


@dataclass(unsafe_hash=True)  # a comparison keeps its tables by their settings, which nobody changes later
class TableSettings:
    """A table, its columns' roles, and what to make of it; each field is a setting."""

    data: Any
    label: str = _setting(MISSING, "The column to predict.", "COLUMN")
    sensitive: Sequence[str] = _setting(
        MISSING, "A column whose groups are compared; give it again to cross several.", "COLUMN"
    )
    positive: str | None = _setting(
        None, "The label whose rates are reported; by default the last of two.", "LABEL"
    )
    fairness: str = _setting(
        EO,
        f"What is to be equal between groups: {', '.join(FAIRNESS[:-1])} or {FAIRNESS[-1]}.",
        "NAME",
        choices=FAIRNESS,
    )
    tolerance: float | None = _setting(
        None,
        "The largest difference between groups that may remain, such as 0.02; by default 0.02, and the plain model "
        "is kept where the fair one is clearly not better.",
        "GAP",
    )
    model: str = _setting(
        "logistic",
        "logistic, lightgbm, hist-gradient-boosting, or auto: trees where a linear model is clearly worse.",
        "NAME",
        choices=MODELS,
    )
    max_accuracy_loss: float | None = _setting(
        None,
        "The most accuracy that fairness may cost, such as 0.01: the fairest model within it is kept.",
        "SHARE",
        "model",
    )
    clean_ratio: float | Literal["auto"] = _setting(
        "auto", "The share of labels believed right, or auto.", "SHARE", "model"
    )
    threshold: Any = _setting(  # noqa: RUF009 - a field
        "0.5",
        "The probability from which on the positive label is predicted: a number, balanced, cost:FP,FN or rate:SHARE.",
        "RULE",
        "model",
    )
    trees: int = _setting(100, "How many trees boosting makes.", panel="model")
    max_iter: int | None = _setting(
        None, "Most updates of training, by default 200; most rounds with trees.", panel="model"
    )
    keep_sensitive: bool = _setting(False, "Learn from the sensitive columns too.", panel="model")
    test: float | None = _setting(
        None,
        "A share of the rows to set aside and measure on. By default every row is measured on, by models that did "
        "not see it (five folds).",
        "SHARE",
        "model",
    )
    test_file: Any = _setting(  # noqa: RUF009 - a field
        None, "A table to measure on instead, whose labels are taken as right.", "FILE", "model"
    )
    seed: int = _setting(0, "Where chance begins.", panel="model")
    bins: Sequence[str] = _setting(
        (),
        "Make groups of a sensitive column of numbers: age=25,45,65, or age=4 for four.",
        "COLUMN=EDGES",
        "reading",
    )
    small_groups: Literal["stop", "merge", "ignore"] = _setting(
        "stop",
        "Groups of fewer than 30 people: stop, merge (into one) or ignore (do not compare).",
        "NAME",
        "reading",
        SMALL_GROUPS,
    )
    drop: Sequence[str] = _setting((), "A column to leave out.", "COLUMN", "reading")
    categories: Sequence[str] = _setting(
        (), "A column of categories that looks like numbers.", "COLUMN", "reading"
    )
    dates: Sequence[str] = _setting(
        (), "A column of dates to learn from, as days; dates are left out otherwise.", "COLUMN", "reading"
    )
    separator: str = _setting(
        "auto", "The character between fields: , ; | tab, or auto.", "CHARACTER", "reading"
    )
    decimal: str = _setting("auto", "Decimal mark: . , or auto.", "CHARACTER", "reading")
    missing: Sequence[str] = _setting(
        (), "A value that means missing, beside NA, ? and such.", "VALUE", "reading"
    )
    backend: str = _setting(
        "local",
        "Where a folder of files is worked on: local, or a dask scheduler, dask://HOST:PORT.",
        "PLACE",
        "reading",
    )
    memory: str | None = _setting(
        None,
        "How much memory may be used, such as 4GB; by default half of the machine's. A larger table is read in parts.",
        "SIZE",
        "reading",
    )
    verified: Sequence[Any] = _setting(
        (), "Answers to fairsieve review; give it again for several files.", "FILE", "review"
    )
    show_columns: bool = _setting(
        False,
        "Show the columns of single people in the report, which may then hold personal data.",
        panel="output",
    )

    def __post_init__(self) -> None:
        # Both need NumPy, without which the command line starts.
        from fairsieve.tabular.reading.read import open_pipe
        from fairsieve.thresholds import ThresholdRule

        self.data, self.test_file = open_pipe(self.data), open_pipe(self.test_file)
        self.verified = tuple(map(open_pipe, validation.several(self.verified)))
        self.clean_ratio = _as_number(self.clean_ratio)
        self.fairness = find_notion(self.fairness).name
        self.threshold = ThresholdRule.parse(self.threshold, "--threshold")
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in CHECKS and (value is not None or one.default is not None):
                setattr(self, one.name, CHECKS[one.name](f"--{one.name.replace('_', '-')}", value))
        check_place(self.backend, self.memory)
        assert self.reading  # which checks itself
        self._check_together()

    def _check_together(self) -> None:
        """Refuse values that cannot be together, each with the way out."""
        if self.test is not None and self.test_file is not None:
            raise InvalidInputError(
                f"{spell('--test')} and {spell('--test-file')} must not be given together: a share, or a file"
            )
        if self.test is not None and not (isinstance(self.test, Real) and 0 < self.test < 1):
            raise InvalidInputError(
                f"{spell('--test')} must be a share between 0 and 1, such as 0.2; got {validation.shown(self.test)}"
                f"{validation.percent_hint(self.test)}"
            )
        if self.verified and self.clean_ratio != "auto":
            raise InvalidInputError(
                f"{spell('--verified')} says how many labels are right; got "
                f"{spell('--clean-ratio')} {self.clean_ratio} too: leave one of the two out"
            )
        for option in ("sensitive", "drop"):
            if self.label in getattr(self, option):
                raise InvalidInputError(
                    f"{spell('--label')} and {spell(f'--{option}')} must be different columns; both are "
                    f"{self.label!r}: name another for one"
                )
        repeated = [column for column in self.sensitive if list(self.sensitive).count(column) > 1]
        if repeated:
            raise InvalidInputError(
                f"{spell('--sensitive')} must name each column once; got {repeated[0]!r} more than once: leave one out"
            )

    @property
    def reading(self) -> Reading:
        """How the text of a CSV file is read."""
        from fairsieve.tabular.reading.columns import Reading

        return Reading(self.separator, self.decimal, self.missing)

    def record(self) -> dict[str, Any]:
        """Return all settings as JSON can hold them; files and data frames by their names."""
        return {name: recorded(getattr(self, name)) for name in ("data", *settings_of())}


def check_place(backend: Any, memory: Any) -> int:
    """Check where a table in parts is worked on; return how many bytes of memory may be used."""
    from fairsieve.tabular.partitions.source import parse_memory

    if backend != "local" and not re.fullmatch(r"dask://[^/:\s]+:\d+", str(backend)):
        raise InvalidInputError(
            f"{spell('--backend')} must be local or the address of a dask scheduler, such as dask://localhost:8786; "
            f"got {backend!r}: write it so"
        )
    return parse_memory(memory)


def recorded(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, tuple):
        return [recorded(one) for one in value]
    return value if value is None or isinstance(value, str | Real) else data_name(value)


@functools.cache
def settings_of(command: str = "train") -> dict[str, Setting]:
    """List the settings of a command; training takes all. ``data`` is none."""
    taken, hints = {}, typing.get_type_hints(TableSettings)
    for one in fields(TableSettings)[1:]:
        setting, hint = one.metadata["setting"], hints[one.name]
        choices = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)  # such as float | None
        kind = choices[0] if choices[0] in (int, float, bool) and choices[1:] in ((), (NoneType,)) else str
        kind = Path if setting.metavar == "FILE" else kind
        if one.name in ARGUMENTS[command].__annotations__:
            taken[one.name] = setting._replace(kind=kind, many=typing.get_origin(hint) is Sequence)
    return taken


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
        own_signature, known = inspect.signature(function), inspect.signature(TableSettings).parameters
        parameters = [one for one in own_signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        for name in settings_of(command):
            parameter = known[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters.append(parameter.replace(default=None) if name in optional else parameter)
        signature = own_signature.replace(parameters=parameters)

        @functools.wraps(function)
        def call(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name not in signature.parameters:
                    hint = validation.closest_hint(name, signature.parameters) or "."
                    listed = ", ".join(signature.parameters)
                    raise InvalidInputError(
                        f"{name!r} is no setting of a table{hint} The settings are {listed}"
                    )
            return function(*arguments, **given)

        call.__signature__ = signature  # type: ignore[attr-defined]
        words = []
        for name, setting in settings_of(command).items():  # as numpydoc writes parameters
            its = signature.parameters[name]
            default = "" if its.default is its.empty else f", default={its.default!r}"
            words.append(f"{name} : {its.annotation}{default}".replace("'", '"') + f"\n    {setting.help}")
        # From Python 3.13 on docstrings come without the indentation that they have in the source.
        call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("**settings", "\n".join(words))
        return call  # type: ignore[return-value]

    return decorate


def data_name(data: Any) -> str:
    """Name a table in words: the file's name, or that it is a data frame."""
    from fairsieve.tabular.reading.columns import FRAME_NAME
    from fairsieve.tabular.reading.read import is_frame
    from fairsieve.validation import is_dask

    if is_dask(data):
        return "the dask data frame"
    return FRAME_NAME if is_frame(data) else str(getattr(data, "name", data))


# ---- Settings written down: in a TOML file, in the record of a run, as a command; and read back


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Read options of a command from a TOML file, by the names of its parameters; dashes and underscores are alike."""
    import tomllib

    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{spell('--config')} must be a TOML file that can be read; {path}: {error}: name another"
        ) from None
    options = {name.replace("-", "_"): value for name, value in given.items()}
    for name in options:
        if name not in known:
            raise InvalidInputError(
                f"{spell('--config')} must name options of this command; {name!r} of {path} is "
                f"none{closest_hint(name, known) or ': leave it out, or correct it'}"
            )
    return options


def write_options(command: str, options: Mapping[str, Any]) -> str:
    """Write options of a command as TOML; ``--config`` reads it.

    Examples
    --------
    >>> print(write_options("compare", {"seeds": 2, "table": Path("people.csv")}), end="")
    # Made by fairsieve; fairsieve compare --config settings.toml --out AGAIN makes this run again.
    seeds = 2
    table = "people.csv"
    """
    from fairsieve.report.text import writable

    lines = [
        f"# Made by fairsieve; fairsieve {command} --config settings.toml --out AGAIN makes this run again."
    ]
    for name, value in options.items():
        text = json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
        lines.append(f"{name} = {text}")
    return writable("\n".join([*lines, ""]))


def write_config(asked: TableSettings, command: str = "train", **more: Any) -> str:
    """Write what was asked as TOML, as far as it is not the default, and ``more`` where it is something.

    Examples
    --------
    >>> write_config(TableSettings("people.csv", label="income", sensitive="sex")).splitlines()[1:4]
    ['data = "people.csv"', 'label = "income"', 'sensitive = ["sex"]']
    """
    options = {"data": asked.data} | _changed(asked) | more
    for name, value in options.items():
        # A data frame has no name to read it from again.
        named = [one for one in value if isinstance(one, str | Path)] if isinstance(value, tuple) else value
        known = isinstance(named, list | Path)
        options[name] = named if known else None if name == "data" else recorded(named)
    return write_options(command, {name: value for name, value in options.items() if value not in (None, [])})


def _changed(asked: TableSettings) -> dict[str, Any]:
    """Return the settings that are not the default, in their order."""
    values = {name: getattr(asked, name) for name in settings_of()}
    defaults = {name: getattr(TableSettings, name, None) for name in values}
    return {name: value for name, value in values.items() if recorded(value) != recorded(defaults[name])}


def read_settings(run: Path) -> dict[str, Any]:
    """Return the settings in a run's ``metrics.json``, by which another command reads the same table alike.

    Which files were given is not taken: they are recorded by their names alone.
    """
    try:
        record = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["settings"]
        known = [name for name, one in settings_of().items() if name in record and one.kind is not Path]
        return {name: record[name] for name in ["label", "sensitive", *known]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{spell('--run')} must be a folder that fairsieve train of this version made; {run} has no metrics.json "
            f"that can be read ({type(error).__name__}): name the folder that was given to train as {spell('--out')}, "
            "or train again"
        ) from error


def table_options(asked: TableSettings, *, training: bool = False) -> list[str]:
    """Write what a table is and how it is read as options of a command, which another command can be given too.

    With ``training``, how it is trained on too.

    >>> " ".join(table_options(TableSettings("people.csv", "income", ["sex", "age"], bins="age=30,50")))
    '--label income --sensitive sex --sensitive age --bins age=30,50'
    """
    words = []
    found = (asked.separator, asked.decimal) == (",", ".")  # without asking
    for name, value in _changed(asked).items():
        of_table = training or settings_of()[name].panel == "reading" or name in ("label", "sensitive")
        if not of_table or (found and name in ("separator", "decimal")):
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, tuple) else (value,):
            text = "tab" if one == "\t" else str(one)
            text = text.replace("_", "-") if name == "fairness" else text
            words += [option] if one is True else [option, text]
    return words


def training_command(asked: TableSettings, changed: dict[str, Any]) -> list[str] | None:
    """Write the command that trains on a table with some settings changed; None where it is a data frame."""
    from fairsieve.tabular.reading.read import is_frame

    if is_frame(asked.data):
        return None
    words = table_options(replace(asked, **changed), training=True)
    return ["fairsieve", "train", str(asked.data), *words, "--force", "-o", "RUN"]


def stage_count(settings: dict[str, Any]) -> int:
    """Count the stages of a training with some settings, at most: reading, fits, measuring, writing."""
    from fairsieve.tabular.policy import POLICY

    folds = 0 if settings.get("test") or settings.get("test_file") else POLICY.folds
    return 5 + folds
