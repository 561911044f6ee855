"""``fairsieve review``: choose labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairsieve.cli.options import (
    Bins,
    Categories,
    Data,
    Decimal,
    Drop,
    Force,
    Missing,
    Seed,
    Separator,
    SmallGroups,
    Verified,
)
from fairsieve.cli.terminal import say, stages, stoppable
from fairsieve.errors import InvalidInputError

__all__ = ["review_command"]


def review_command(
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page to write; review.csv is written beside it.")
    ] = Path("review.html"),
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column whose values to check; with --run, its own.",
            show_default=False,
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of groups; give it again to cross several. With --run, its own.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder that fairsieve train made: its settings are taken, its predictions shown.",
            show_default=False,
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="A column that identifies rows.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many rows to choose.")] = 50,
    verified: Verified = None,
    bins: Bins = None,
    small_groups: SmallGroups = "stop",
    drop: Drop = None,
    categories: Categories = None,
    separator: Separator = "auto",
    decimal: Decimal = "auto",
    missing: Missing = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Choose labels for a person to check.

    Write a page that works offline, on which each is judged right, wrong or unsure, and a CSV file for spreadsheets.
    fairsieve train takes the answers by --verified.

    Example: fairsieve review people.csv --label income --sensitive sex --id name -o review.html
    """
    from fairsieve.files import check_new
    from fairsieve.tabular.label_review import REVIEW_STAGES, review_labels
    from fairsieve.tabular.reading.table import Reading
    from fairsieve.tabular.recorded_request import recorded_request
    from fairsieve.tabular.report.review_files import write_review
    from fairsieve.tabular.request import Asked

    given = {
        "label": label,
        "sensitive": sensitive or None,
        "bins": bins or None,
        "small_groups": small_groups if small_groups != "stop" else None,
        "drop": drop or None,
        "categories": categories or None,
        "reading": Reading(separator, decimal, tuple(missing or ()))
        if (separator, decimal, missing) != ("auto", "auto", None)
        else None,
        "verified": verified or None,
        "seed": seed if seed or run is None else None,
    }
    said = {name: value for name, value in given.items() if value is not None}
    for name in ("label", "sensitive"):
        if run is None and name not in said:
            raise InvalidInputError(
                f"--{name} must name a column; got none: add it, or --run with a run's folder"
            )
    if out.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(
            f"--out must be a page, whose name ends in .html; got {out}: the answers' file gets the same name with .csv"
        )
    asked = Asked(data, **said) if run is None else recorded_request(run, data, said)  # type: ignore[arg-type]
    for path in (out, out.with_suffix(".csv")):
        check_new("--out", path, force=force)
    with stoppable("Nothing was written."), stages(len(REVIEW_STAGES)) as tell:
        found = review_labels(asked, rows, id_column=identifier, run=run, report=tell)
        table = write_review(found, out)
    count = "1 row" if len(found.rows) == 1 else f"{len(found.rows):,} rows"
    say(
        *found.notes,
        f"{count} to check: open {out}, answer and save, or fill in the column verified_label of {table}.",
        f"Then: fairsieve train {data} --label {asked.label} "
        + " ".join(f"--sensitive {column}" for column in asked.sensitive)
        + f" --verified {table.name} -o run",
    )
