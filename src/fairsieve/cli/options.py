"""Options of the commands: those of a table, made from its settings, and completion of their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from fairsieve.tabular.settings import settings_of

Command = TypeVar("Command", bound=Callable[..., None])


def among(*choices: str) -> Callable[[str], list[str]]:
    """Return a function that completes one of a few values.

    >>> among("stop", "merge")("m")
    ['merge']
    """
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def names_in(
    registry: str, *more: str, fits: Callable[[Any], object] | None = None
) -> Callable[[str], list[str]]:
    """Return a function that completes the names in a registry, ``module:NAME``, which is imported when it is asked."""

    def complete(incomplete: str) -> list[str]:
        module, _, name = registry.partition(":")
        entries = getattr(import_module(module), name)
        return among(*more, *(name for name in entries if fits is None or fits(entries[name])))(incomplete)

    return complete


DATASETS = "fairsieve.data.catalogue:DATASETS"


def option(default: Any, text: str, *spellings: str, **more: Any) -> Any:
    """Make an option of a command; ``...`` as its default says that it must be given."""
    return typer.Option(default, *spellings, help=text, **{"show_default": default not in (None, ...)} | more)


def argument(text: str, **more: Any) -> Any:
    """Make an argument of a command."""
    return typer.Argument(help=text, **more)


def _option(name: str) -> Any:
    """Make the option of a setting, whose default is None: it was not given."""
    setting = settings_of()[name]
    value: Any = list[setting.kind] if setting.many else setting.kind  # type: ignore[name-defined]
    info = typer.Option(
        f"--{name.replace('_', '-')}",
        help=setting.help,
        metavar=setting.metavar,
        autocompletion=among(*setting.choices) if setting.choices else None,
        rich_help_panel=setting.panel.capitalize() or None,
    )
    return Annotated[value | None, info]


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take from a TOML file what the command line does not say."""
    if path is not None:
        from fairsieve.tabular.settings import read_config

        context.default_map = read_config(path, _parameters(context))
    return path


def _parameters(context: typer.Context) -> list[str]:
    """Name the options and arguments of the running command that a file may give."""
    return [str(one.name) for one in context.command.params if one.name not in ("config", "help")]


def write_settings(context: typer.Context, folder: Path) -> None:
    """Write what the running command was given into its folder as ``settings.toml``; ``--config`` reads it."""
    from fairsieve.files import write_output
    from fairsieve.tabular.settings import write_options

    given = {}
    for name in _parameters(context):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT" and name not in ("out", "force", "verbose"):
            given[name] = context.params[name]
    write_output(folder / "settings.toml", write_options(str(context.info_name), given).encode())


CONFIG = option(
    None,
    "A TOML file with options, such as the settings.toml of a run; what is given here goes first.",
    metavar="FILE",
    callback=_read_config,
    is_eager=True,
    rich_help_panel="Output",
)


def _log(wanted: bool) -> bool:
    """Log to standard error what begins, with the time."""
    if wanted:
        import logging

        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        logging.getLogger("fairsieve").setLevel(logging.INFO)
    return wanted


VERBOSE = option(
    False,
    "Log what begins, in place of a progress bar.",
    "--verbose",
    callback=_log,
    rich_help_panel="Output",
)


def table_settings(command: str, *, optional: bool = False) -> Callable[[Command], Command]:
    """Give a command with ``**settings`` the options of a table; ``settings`` holds those that were given.

    ``optional`` says that even the label and the sensitive columns need not be given.
    """

    def decorate(function: Command) -> Command:
        keyword, names = inspect.Parameter.KEYWORD_ONLY, list(settings_of(command))
        *parameters, _ = inspect.signature(function, eval_str=True).parameters.values()  # less **settings
        parameters = [parameter.replace(kind=keyword) for parameter in parameters]
        of_table = []
        for name in names:
            default = inspect.Parameter.empty if name in ("label", "sensitive") and not optional else None
            of_table.append(inspect.Parameter(name, keyword, default=default, annotation=_option(name)))

        def call(*, config: Path | None, verbose: bool, **given: Any) -> None:
            unset = [name for name in names if given[name] in (None, [])]
            function(**{name: value for name, value in given.items() if name not in unset})

        # To compare is not only about tables: its own options come first.
        parameters += [
            inspect.Parameter("config", keyword, default=CONFIG, annotation=Path | None),
            inspect.Parameter("verbose", keyword, default=VERBOSE, annotation=bool),
        ]
        ordered = (parameters, of_table) if command == "compare" else (of_table, parameters)
        signature = inspect.Signature([*chain(*ordered)])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {name: its.annotation for name, its in signature.parameters.items()}
        call.__name__, call.__doc__ = function.__name__, function.__doc__
        return call  # type: ignore[return-value]

    return decorate


class PanelCommand(TyperCommand):
    """A command whose help shows what most people need first, and the rest in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by group."""
        groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            panel = getattr(param, "rich_help_panel", None) or "Options"
            title = "Arguments" if param.param_type_name == "argument" else panel
            if (record := param.get_help_record(ctx)) is not None:
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


DATA = argument(
    "A CSV file with column names in its first row, or a Parquet or Excel file; or a folder or glob of them."
)
SEED = option(0, "Where chance begins.")
FORCE = option(False, "Replace what is there.", "--force", rich_help_panel="Output")
FAIL_ON = option(
    None,
    "End with exit status 3 where the decision is keep-plain, your-call, cannot-tell or do-not-use, or one that comes "
    "later in this list.",
    metavar="OUTCOME",
    autocompletion=among("keep-plain", "your-call", "cannot-tell", "do-not-use"),
    rich_help_panel="Output",
)
