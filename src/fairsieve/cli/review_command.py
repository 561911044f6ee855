"""``fairsieve review``: choose labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsieve.cli.options import Data, Force, table_settings
from fairsieve.cli.terminal import say, stages, stoppable

__all__ = ["review_command"]


@table_settings("review", optional=True)
def review_command(
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page to write; review.csv is written beside it.")
    ] = Path("review.html"),
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
    force: Force = False,
    **settings: Any,
) -> None:
    """Choose labels for a person to check.

    Write a page that works offline, on which each is judged right, wrong or unsure, and a CSV file for spreadsheets.
    fairsieve train takes the answers by --verified.

    Example: fairsieve review people.csv --label income --sensitive sex --id name -o review.html
    """
    from fairsieve import tabular
    from fairsieve.files import keep_inputs
    from fairsieve.tabular.label_review import REVIEW_STAGES
    from fairsieve.tabular.report.review_files import check_place, training_step

    check_place(out, force=force)
    for path in (out, out.with_suffix(".csv")):
        keep_inputs(
            "--out",
            path,
            data,
            *settings.get("verified", ()),
            *(run.iterdir() if run and run.is_dir() else ()),
        )
    with stoppable("Nothing was written."), stages(len(REVIEW_STAGES)) as tell:
        result = tabular.review(data, rows=rows, id_column=identifier, run=run, report=tell, **settings)
        table = result.save(out, force=force)
    found = result.review
    count = "1 row" if len(found.rows) == 1 else f"{len(found.rows):,} rows"
    say(
        *found.notes,
        f"{count} to check: open {out}, answer and save, or fill in the column verified_label of {table}.",
        f"Then: {training_step(found.asked, table)}",
    )
