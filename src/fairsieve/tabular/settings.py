"""The settings of a table, in one place.

The fields of :class:`TableSettings` are the options of the command line, the parameters of the functions of
``fairsieve.tabular``, what ``metrics.json`` records of a run, and what is read back from there.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from fairsieve import validation
from fairsieve.errors import InvalidInputError, spell
from fairsieve.notions import EO, NOTIONS, find_notion

if TYPE_CHECKING:
    from fairsieve.tabular.reading.columns import Reading

MODELS = ("logistic", "lightgbm", "hist-gradient-boosting", "auto")
FAIRNESS = tuple(name.replace("_", "-") for name in NOTIONS)
Function = TypeVar("Function", bound=Callable[..., Any])


EVERYWHERE = "train audit review compare"
TO_READ = EVERYWHERE + " predict"
IN_PARTS = "train audit review predict"


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
    commands : str
        Who takes it; where empty, training for a setting of the model, and otherwise all that read labels.
    kind : type
        What a value on the command line is converted to.
    many : bool
        Whether it may be given several times.
    """

    help: str
    metavar: str | None = None
    panel: str = ""
    choices: tuple[str, ...] = ()
    commands: str = ""
    kind: type = str
    many: bool = False


# What settings must be, beside their types: called with the option's name and the value, it returns what is kept.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "label": validation.as_text,
    "positive": partial(validation.as_text, rule="one label"),
    "tolerance": validation.check_share,
    "model": partial(validation.check_choice, choices=MODELS),
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
        None,
        "The label whose rates are reported; by default the last of two.",
        "LABEL",
        commands="train audit compare",
    )
    fairness: str = _setting(
        EO,
        f"What is to be equal between groups: {', '.join(FAIRNESS[:-1])} or {FAIRNESS[-1]}.",
        "NAME",
        choices=FAIRNESS,
        commands="train audit compare",
    )
    tolerance: float | None = _setting(
        None,
        "The largest difference between groups that may remain, such as 0.02; by default 0.02, and the plain model "
        "is kept where the fair one is clearly not better.",
        "GAP",
        commands="train",
    )
    model: str = _setting(
        "logistic",
        "logistic, lightgbm, hist-gradient-boosting, or auto: trees where a linear model is clearly worse.",
        "NAME",
        choices=MODELS,
        commands="train",
    )
    max_accuracy_loss: float | None = _setting(
        None,
        "The most accuracy that fairness may cost, such as 0.01: the fairest model within it is kept.",
        "SHARE",
        "model",
    )
    clean_ratio: float | Literal["auto"] = _setting(
        "auto", "The share of labels believed right, or auto.", "SHARE", "model", commands="train compare"
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
    seed: int = _setting(0, "Where chance begins.", panel="model", commands="train audit review")
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
        ("stop", "merge", "ignore"),
    )
    drop: Sequence[str] = _setting((), "A column to leave out.", "COLUMN", "reading")
    categories: Sequence[str] = _setting(
        (), "A column of categories that looks like numbers.", "COLUMN", "reading"
    )
    dates: Sequence[str] = _setting(
        (), "A column of dates to learn from, as days; dates are left out otherwise.", "COLUMN", "reading"
    )
    separator: str = _setting(
        "auto", "The character between fields: , ; | tab, or auto.", "CHARACTER", "reading", commands=TO_READ
    )
    decimal: str = _setting("auto", "Decimal mark: . , or auto.", "CHARACTER", "reading", commands=TO_READ)
    missing: Sequence[str] = _setting(
        (), "A value that means missing, beside NA, ? and such.", "VALUE", "reading", commands=TO_READ
    )
    backend: str = _setting(
        "local",
        "Where a folder of files is worked on: local, or a dask scheduler, dask://HOST:PORT.",
        "PLACE",
        "reading",
        commands=IN_PARTS,
    )
    memory: str | None = _setting(
        None,
        "How much memory may be used, such as 4GB; by default half of the machine's. A larger table is read in parts.",
        "SIZE",
        "reading",
        commands=IN_PARTS,
    )
    verified: Sequence[Any] = _setting(
        (), "Answers to fairsieve review; give it again for several files.", "FILE", "review"
    )
    show_columns: bool = _setting(
        False,
        "Show the columns of single people in the report, which may then hold personal data.",
        panel="output",
        commands="train",
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
        return {name: _recorded(getattr(self, name)) for name in ("data", *dict(settings_of()))}


def check_place(backend: Any, memory: Any) -> int:
    """Check where a table in parts is worked on; return how many bytes of memory may be used."""
    from fairsieve.tabular.partitions.source import parse_memory

    if backend != "local" and not re.fullmatch(r"dask://[^/:\s]+:\d+", str(backend)):
        raise InvalidInputError(
            f"{spell('--backend')} must be local or the address of a dask scheduler, such as dask://localhost:8786; "
            f"got {backend!r}: write it so"
        )
    return parse_memory(memory)


def _recorded(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, tuple):
        return [_recorded(one) for one in value]
    return value if value is None or isinstance(value, str | Real) else data_name(value)


@functools.cache
def settings_of(command: str = "") -> tuple[tuple[str, Setting], ...]:
    """List the settings of a command, or all; ``data`` is none."""
    taken, hints = [], get_type_hints(TableSettings)
    for one in fields(TableSettings)[1:]:
        setting, hint = one.metadata["setting"], hints[one.name]
        choices = get_args(hint) if isinstance(hint, UnionType) else (hint,)  # such as float | None
        kind = choices[0] if choices[0] in (int, float, bool) and choices[1:] in ((), (NoneType,)) else str
        kind = Path if setting.metavar == "FILE" else kind
        takers = setting.commands or ("train" if setting.panel == "model" else EVERYWHERE)
        if command in takers:
            taken.append((one.name, setting._replace(kind=kind, many=get_origin(hint) is Sequence)))
    return tuple(taken)


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
        parameters = [
            one for one in own_signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        for name, _ in settings_of(command):
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
        words = [
            f"{_describe(signature.parameters[name])}\n        {setting.help}"
            for name, setting in settings_of(command)
        ]
        call.__doc__ = (function.__doc__ or "").replace("**settings", "\n    ".join(words))
        return call  # type: ignore[return-value]

    return decorate


def _describe(parameter: inspect.Parameter) -> str:
    """Write a parameter as numpydoc does: its name, its type and its default."""
    default = "" if parameter.default is inspect.Parameter.empty else f", default={parameter.default!r}"
    return f"{parameter.name} : {parameter.annotation}{default}".replace("'", '"')


def read_config(path: Path, known: Mapping[str, str]) -> dict[str, Any]:
    """Read options of a command from a TOML file, under the names of its parameters; dashes and underscores are alike.

    ``known`` has the parameter of each option.
    """
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
                f"none{validation.closest_hint(name, known)}: leave it out, or correct it"
            )
    return {known[name]: value for name, value in options.items()}


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
    record, options = asked.record(), {}
    for one in fields(TableSettings):
        given, value = getattr(asked, one.name), record[one.name]
        if isinstance(given, Path):
            value = str(given)
        elif one.name == "data":
            continue  # a data frame
        elif isinstance(given, tuple):
            # data frames have no name to read them from again
            value = [
                str(each) if isinstance(each, Path) else each
                for each in given
                if isinstance(each, str | Path)
            ]
        if value not in (None, [], one.default):
            options[one.name] = value
    options |= {name: value for name, value in more.items() if value is not None}
    return write_options(command, options)


def read_settings(run: Path) -> dict[str, Any]:
    """Return the settings in a run's ``metrics.json``, by which another command reads the same table alike.

    Which files were given is not taken: they are recorded by their names alone.
    """
    known = [name for name, one in settings_of() if one.kind is not Path]
    try:
        recorded = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["settings"]
        names = ["label", "sensitive", *(name for name in recorded if name in known)]
        return {name: recorded[name] for name in names}
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
    defaults = {one.name: _recorded(one.default) for one in fields(TableSettings)}
    ordinary = (asked.separator, asked.decimal) in ((",", "."), ("auto", "auto"))  # found without asking
    for name, setting in settings_of("train"):
        value = getattr(asked, name)
        of_table = training or setting.panel == "reading" or name in ("label", "sensitive")
        if not of_table or _recorded(value) == defaults[name]:
            continue
        if ordinary and name in ("separator", "decimal"):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
            continue
        for one in value if isinstance(value, tuple) else (value,):
            text = "tab" if one == "\t" else str(one)
            words += [option, text.replace("_", "-") if name == "fairness" else text]
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


def data_name(data: Any) -> str:
    """Name a table in words: the file's name, or that it is a data frame."""
    from fairsieve.optional import is_dask
    from fairsieve.tabular.reading.columns import FRAME_NAME
    from fairsieve.tabular.reading.read import is_frame

    if is_dask(data):
        return "the dask data frame"
    return FRAME_NAME if is_frame(data) else str(getattr(data, "name", data))
