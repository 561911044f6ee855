"""Options that several commands share, and completion of their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Bins",
    "Categories",
    "Data",
    "Dates",
    "Decimal",
    "Drop",
    "FailOn",
    "Fairness",
    "Force",
    "Label",
    "Missing",
    "Model",
    "Positive",
    "Seed",
    "Sensitive",
    "Separator",
    "SmallGroups",
    "Threshold",
    "Tolerance",
    "Trees",
    "Verified",
    "among",
]


def among(*choices: str) -> Callable[[str], list[str]]:
    """Return a function that completes one of a few values.

    >>> among("stop", "merge")("m")
    ['merge']
    """
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


Data = Annotated[
    Path, typer.Argument(help="A CSV file with column names in its first row, or a Parquet file.")
]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
Sensitive = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN", help="A column whose groups are compared; give it again to cross several."
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The label whose rates are reported; by default the last of two.",
        show_default=False,
    ),
]
Fairness = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="equalized-odds, demographic-parity or equal-opportunity.",
        autocompletion=among("equalized-odds", "demographic-parity", "equal-opportunity"),
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=EDGES",
        help="Make groups of a sensitive column of numbers: age=25,45,65, or age=4 for four.",
        show_default=False,
    ),
]
SmallGroups = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Groups of fewer than 30 people: stop, merge (into one) or ignore (do not compare).",
        autocompletion=among("stop", "merge", "ignore"),
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out.", show_default=False)
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A column of categories that looks like numbers.", show_default=False
    ),
]
Dates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of dates to learn from, as days; dates are left out otherwise.",
        show_default=False,
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        metavar="CHARACTER",
        help="The character between fields: , ; | tab, or auto.",
        autocompletion=among(",", ";", "|", "tab", "auto"),
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        metavar="CHARACTER", help="The decimal mark: . , or auto.", autocompletion=among(".", ",", "auto")
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE", help="A value that means missing, beside NA, ? and such.", show_default=False
    ),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="logistic, lightgbm, hist-gradient-boosting, or auto: the one of them that predicts best.",
        autocompletion=among("logistic", "lightgbm", "hist-gradient-boosting", "auto"),
    ),
]
Trees = Annotated[int, typer.Option(help="How many trees boosting makes.")]
Threshold = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="The probability from which on the positive label is predicted: a number, balanced, cost:FP,FN or "
        "rate:SHARE.",
        autocompletion=among("balanced", "cost:", "rate:"),
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="The most accuracy that fairness may cost, such as 0.01; it chooses a model between plain and fair.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="The seed of everything random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="OUTCOME",
        help="End with exit status 3 where the decision is inconclusive (or worse), or do-not-use.",
        show_default=False,
        autocompletion=among("inconclusive", "do-not-use"),
    ),
]
Verified = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Answers to fairsieve review; give it again for several files.",
        show_default=False,
    ),
]
