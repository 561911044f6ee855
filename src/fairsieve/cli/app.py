"""The command line: parse, call, print.

The modules of the commands import nothing heavy: each imports what it needs when it is called, so that
``fairsieve --version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from fairsieve import __version__
from fairsieve.cli.data_command import app as data_app
from fairsieve.cli.experiment_commands import compare_command, demo_command, reproduce_command
from fairsieve.cli.options import GroupedCommand
from fairsieve.cli.table_command import audit_command, predict_command, review_command, train_command
from fairsieve.cli.terminal import say_error, stop_status, tolerate_terminals
from fairsieve.errors import FairsieveError, in_command

SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
app.command("train", cls=GroupedCommand)(train_command)
app.command("predict", cls=GroupedCommand)(predict_command)
app.command("audit", cls=GroupedCommand)(audit_command)
app.command("review", cls=GroupedCommand)(review_command)
app.command("compare", cls=GroupedCommand)(compare_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo_command)
app.add_typer(data_app, name="data")


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Train models that are fair to groups and robust to wrong labels, by sample selection.

    Example: fairsieve train people.csv --label income --sensitive sex -o run
    """
    context.with_resource(in_command())
    if version:
        typer.echo(f"fairsieve {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; print errors of ours, of disks and of memory in one line, without a traceback."""
    tolerate_terminals()
    # joblib starts another worker, and goes on
    warnings.filterwarnings("ignore", "A worker stopped while some jobs")
    try:
        sys.exit(app(prog_name="fairsieve", standalone_mode=False) or 0)
    except (FairsieveError, OSError) as error:
        say_error(error)
    except MemoryError as error:
        say_error(f"there is not enough memory ({error}): try fewer rows")
    except (KeyboardInterrupt, typer.Abort):  # typer makes the one of the other
        sys.exit(stop_status())
    except Exception as error:
        # The class of typer's errors is told by what it offers, since it moved in version 0.26.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if context is not None:
            typer.echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.", err=True)
        say_error(error.format_message())
        sys.exit(2)
    sys.exit(1)
