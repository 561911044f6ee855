"""A table as Markdown, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from fairsieve.files import write_output
from fairsieve.report.document import Cell, Table
from fairsieve.report.text import NUMBER, csv_text, table_markdown

__all__ = ["write_table_files"]

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line break it would begin an argument
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "−": r"\ensuremath{-}",
    "→": r"\ensuremath{\rightarrow}",
    "↑": r"\ensuremath{\uparrow}",
    "↓": r"\ensuremath{\downarrow}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "≈": r"\ensuremath{\approx}",
    "τ": r"\ensuremath{\tau}",
    "λ": r"\ensuremath{\lambda}",
    "α": r"\ensuremath{\alpha}",
    "μ": r"\ensuremath{\mu}",
    "σ": r"\ensuremath{\sigma}",
}


def write_table_files(table: Table, folder: Path | str) -> list[Path]:
    """Write a table as ``<name>.md``, ``<name>.csv`` and ``<name>.tex``; return where.

    Examples
    --------
    >>> import tempfile
    >>> from fairsieve.report.document import Column
    >>> table = Table("one", "One", [Column("method"), Column("accuracy", True)], [[Cell("LR"), Cell("0.7")]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_table_files(table, folder)]
    ['one.md', 'one.csv', 'one.tex']
    """
    forms = {"md": table_markdown, "csv": _table_csv, "tex": _table_latex}
    paths = [Path(folder) / f"{table.name}.{ending}" for ending in forms]
    for path, form in zip(paths, forms.values(), strict=True):
        write_output(path, form(table).encode())
    return paths


def _table_csv(table: Table) -> str:
    r"""Write a CSV file that is safe to open in a spreadsheet.

    A column that says more than numbers ("0.7 ± 0.1") is followed by its bare values, one with references by
    those, and by the standard deviations between.

    Examples
    --------
    >>> from fairsieve.report.document import Column
    >>> print(_table_csv(Table("one", "One", [Column("name")], [[Cell("=1+1")]])), end="")
    name
    '=1+1
    """
    columns: list[list[str]] = []
    for i, column in enumerate(table.columns):
        cells = [row[i] for row in table.rows]
        title = column.full_title
        columns.append([title, *(cell.text for cell in cells)])
        if any(isinstance(cell.value, int | float) and not NUMBER.fullmatch(cell.text) for cell in cells):
            columns.append([f"{title}: value", *(_plain(cell.value) for cell in cells)])
        if any(cell.reference for cell in cells):
            columns.append([f"{title}: {table.reference_title}", *(cell.reference for cell in cells)])
        if any(cell.apart is not None for cell in cells):
            columns.append([f"{title}: deviations apart", *(_plain(cell.apart) for cell in cells)])
    return csv_text(zip(*columns, strict=True))


def _plain(value: float | str | None) -> str:
    """Write a value without words, to more digits than any reader needs."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.10g}"


def _table_latex(table: Table) -> str:
    r"""Write a LaTeX table (booktabs): best bold, second underlined, references in brackets.

    Examples
    --------
    >>> from fairsieve.report.document import Column
    >>> print(_table_latex(Table("one", "One", [Column("a_b", True)], [[Cell("0.7", mark="best")]])))
    \begin{table}
    \centering
    \caption{One. \textbf{Bold}: best.}
    \label{tab:one}
    \begin{tabular}{r}
    \toprule
    a\_b \\
    \midrule
    \textbf{0.7} \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    marks = {"best": r"\textbf{{{}}}".format, "second": r"\underline{{{}}}".format}
    notes = _legend(table, r"\textbf{Bold}", r"\underline{underlined}", _latex)
    caption = _latex(table.caption) + (f". {notes}" if notes else "")
    rows = [
        " & ".join(_marked(cell, _latex, marks, r"{{\scriptsize({})}}") for cell in row) for row in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{''.join('r' if column.numeric else 'l' for column in table.columns)}}}",
            r"\toprule",
            *_latex_groups(table),
            " & ".join(_latex(column.title) for column in table.columns) + r" \\",
            r"\midrule",
            *(row + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_groups(table: Table) -> list[str]:
    """Write the line of common heads, and rules under them."""
    heads, rules, first = [], [], 1
    for group, span in table.groups():
        heads.append(rf"\multicolumn{{{span}}}{{c}}{{{_latex(group)}}}")
        rules += [rf"\cmidrule(lr){{{first}-{first + span - 1}}}"] if group else []
        first += span
    return [" & ".join(heads) + r" \\", " ".join(rules)] if heads else []


def _marked(
    cell: Cell, escape: Callable[[str], str], marks: Mapping[str, Callable[[str], str]], reference: str
) -> str:
    """Mark a cell's text by its rank, and put its reference behind it."""
    text = escape(cell.text)
    if cell.mark and text:
        text = marks[cell.mark](text)
    return text if not cell.reference else f"{text} {reference.format(escape(cell.reference))}"


def _legend(table: Table, best: str, second: str, escape: Callable[[str], str]) -> str:
    """Explain marks and brackets, where there are any."""
    cells = [cell for row in table.rows for cell in row]
    marks = {cell.mark for cell in cells}
    parts = []
    if any(cell.reference for cell in cells):
        parts.append(f"In brackets: {escape(table.reference_title)}.")
    if marks - {""}:
        ranks = [
            f"{best}: best" if "best" in marks else "",
            f"{second}: second best" if "second" in marks else "",
        ]
        parts.append(", ".join(filter(None, ranks)) + ".")
    return " ".join(parts)


def _latex(text: str) -> str:
    """Escape text for LaTeX, on one line."""
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
