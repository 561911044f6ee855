"""Settings written down: in a TOML file, in the record of a run, as a command; and read back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairsieve.errors import InvalidInputError, spell
from fairsieve.tabular.settings import TableSettings, recorded, settings_of
from fairsieve.validation import closest_hint


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
                f"none{closest_hint(name, known)}: leave it out, or correct it"
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
        options[name] = (
            named if isinstance(named, list | Path) else None if name == "data" else recorded(named)
        )
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
