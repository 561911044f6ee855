"""``fairsieve review``: choose labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsieve.cli.options import (
    Bins,
    Categories,
    Data,
    Dates,
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
    dates: Dates = None,
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
    from fairsieve import tabular
    from fairsieve.tabular.label_review import REVIEW_STAGES
    from fairsieve.tabular.report.review_files import check_place, training_step

    check_place(out, force=force)
    said: dict[str, Any] = {
        "bins": bins,
        "small_groups": None if run is not None and small_groups == "stop" else small_groups,
        "drop": drop,
        "categories": categories,
        "dates": dates,
        "missing": missing,
        "verified": verified,
        "seed": seed if seed or run is None else None,
    }
    with stoppable("Nothing was written."), stages(len(REVIEW_STAGES)) as tell:
        result = tabular.review(
            data,
            label=label,
            sensitive=sensitive,
            rows=rows,
            id_column=identifier,
            run=run,
            report=tell,
            separator=separator,
            decimal=decimal,
            **{name: value for name, value in said.items() if value},
        )
        table = result.save(out, force=force)
    found = result.review
    count = "1 row" if len(found.rows) == 1 else f"{len(found.rows):,} rows"
    say(
        *found.notes,
        f"{count} to check: open {out}, answer and save, or fill in the column verified_label of {table}.",
        f"Then: {training_step(found.asked, table)}",
    )
