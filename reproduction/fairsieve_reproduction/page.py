"""Tables, figures, verdicts and the page of the whole reproduction, from its records."""

from __future__ import annotations

import io
import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.files import write_output
from fairsieve.report.page import (
    SYMBOLS,
    Block,
    Document,
    Facts,
    Figure,
    Look,
    Section,
    Series,
    Table,
    Text,
    Verdict,
    colour,
    pyplot,
    table_markdown,
    write_page,
)
from fairsieve_reproduction import tables
from fairsieve_reproduction.checks import Answer
from fairsieve_reproduction.claims import Judgement, judgements, verdict_word
from fairsieve_reproduction.experiments import Item, Protocols, collect_experiments
from fairsieve_reproduction.figures import FIGURES

PROTOCOLS = (
    "Two protocols stand side by side. The authors' draw: five trainings on the arrays that the authors "
    "published, ± over trainings, as in the paper. Fresh draws: a new draw of the synthetic data for every seed "
    "(a new split of COMPAS and Adult), ± over draws. The first says whether the paper's numbers come out; the "
    "second, whether its claims hold for other data of the same kind. The rules of judgement are in "
    "docs/reproduction/rules.md."
)
MISSING = (
    "The authors' draw is missing here. Their arrays are in the folder synthetic_data of their repository, "
    "github.com/yuji-roh/fair-robust-selection; give their folder by --arrays DIR."
)
CONSTRAINTS = (
    "The paper's Eq. 7 adds 1 to every weight and keeps τn on the right side. That is Eq. 2 only if the selection"
    " has exactly τn samples; with fewer, it is a smaller budget. So the selection is almost the lowest losses. The "
    "authors' code selects a pure prefix of the losses."
)
PANELS_IN_A_ROW, PANEL_SIZE = 3, (3.6, 2.9)
MANY_POINTS = 50  # from here on points are small


def count_verdicts(judged: Sequence[Judgement]) -> str:
    """Say how many claims hold.

    Examples
    --------
    >>> count_verdicts([])
    'Of 0 claims 0 hold, 0 do not hold, 0 are inconclusive and 0 are not comparable'
    """

    def told(answers: Sequence[Answer]) -> str:
        counts = Counter(verdict_word(answer.holds) for answer in answers)
        names = ("hold", "do not hold", "are inconclusive")
        words = ("holds", "does not hold", "inconclusive")
        return ", ".join(f"{counts[word]} {name}" for word, name in zip(words, names, strict=True))

    others = sum(isinstance(each.fresh.holds, str) for each in judged)
    both = [each for each in judged if each.published is not None]
    summary = (
        f"Of {len(judged)} claims {told([each.fresh for each in judged])} and {others} are not comparable"
    )
    if both:
        published = told([each.published for each in both if each.published is not None])
        summary += (
            f"; of the {len(both)} that are judged against both FR-Trains, {published} against its published settings, "
            f"and {told([each.fresh for each in both])} against ours"
        )
    return summary


def write_reproduction(
    protocols: Protocols, items: Sequence[Item], folder: Path, sitting: str = ""
) -> tuple[Path, str]:
    """Write the page, and every table and figure into files of its own; return the page, and how many claims hold.

    ``sitting`` says what making the records took, where they were made just now.
    """
    judged = judgements(protocols)
    document = _document(protocols, items, judged, sitting)
    for block in (block for section in document.sections for block in section.blocks):
        if isinstance(block, Table):
            _write_table(block, folder)
        elif isinstance(block, Figure):
            _write_figure(block, folder)
    if judged:
        _write_table(tables.claims_table(judged), folder)
        write_output(folder / "comparisons.csv", tables.comparisons(judged).to_csv(index=False).encode())
    page = folder / "reproduction.html"
    write_page(document, page)
    return page, count_verdicts(judged)


def _document(
    protocols: Protocols, items: Sequence[Item], judged: Sequence[Judgement], sitting: str
) -> Document:
    """Make the document of some tables and figures, with the verdicts that the records allow."""
    sections = []
    if judged:
        missing = [] if protocols.authors is not None else [Text(MISSING)]
        lead = [Text(PROTOCOLS), *missing, Text(count_verdicts(judged) + ".")]
        verdicts = [_verdict(each) for each in judged if not isinstance(each.fresh.holds, str)]
        others = [
            Text(f"Not comparable: {each.claim.text} ({each.claim.where}): {each.fresh.summary}.")
            for each in judged
            if isinstance(each.fresh.holds, str)
        ]
        sections.append(Section("claims", "The paper's claims", [*lead, *verdicts, *others]))
    sections += [Section(item.name, item.title, _item_blocks(item, protocols)) for item in items]
    sections.append(Section("made", "How this was made", _made(protocols, items, sitting)))
    return Document(
        "The paper, reproduced",
        "Tables and figures of “Sample Selection for Fair and Robust Training” (Roh, Lee, Whang, Suh; NeurIPS 2021), "
        "recomputed by fairsieve: the paper's numbers, ours on the authors' draw and on fresh draws, and a verdict on "
        "every claim.",
        [section for section in sections if section.blocks],
    )


def _verdict(each: Judgement) -> Verdict:
    parts = [f"{verdict_word(each.fresh.holds).capitalize()}: {each.fresh.summary}."]
    if each.corrected != each.fresh.holds:
        parts.append("Inconclusive after a correction over all claims.")
    if each.published is not None:
        parts.append(
            f"Against FR-Train's published settings: {verdict_word(each.published.holds)}; {each.published.summary}."
        )
    if each.printed is not None:
        parts.append(f"By the paper's own printed numbers: {verdict_word(each.printed.holds)}.")
    if each.before is not None:
        parts.append(f"Under the rules before: {verdict_word(each.before.holds)}.")
    if each.authors is not None:
        parts.append(f"The authors' draw: {verdict_word(each.authors.holds)}; {each.authors.summary}.")
    assert not isinstance(each.fresh.holds, str)
    return Verdict(f"{each.claim.id}: {each.claim.text}", each.claim.where, each.fresh.holds, " ".join(parts))


def _item_blocks(item: Item, protocols: Protocols) -> list[Block]:
    """Return what an item shows; nothing of what has no runs yet."""
    records = protocols.fresh.collect(item.experiments)
    if item.experiments and not records:
        return []
    if item.name.startswith("table"):
        return list(tables.paper_blocks(protocols, item.name))
    if item.name == "constraints":
        return [Text(CONSTRAINTS), FIGURES[item.name](protocols), tables.prefixes_table(protocols)]
    if item.name == "rivals":
        return [tables.rivals_table(protocols.fresh)]
    return [FIGURES[item.name](protocols)] if item.name in FIGURES else []


def _made(protocols: Protocols, items: Sequence[Item], sitting: str) -> list[Block]:
    """Describe settings, choices, versions, machine and time."""
    results, experiments = protocols.fresh, collect_experiments(items)
    records = results.collect(experiments)
    if protocols.authors is not None:
        records += protocols.authors.collect(each for each in experiments if each.data == "synthetic")
    seconds = sum(record.get("cpu_seconds", 0) + record.get("tuning_seconds", 0) for record in records)
    versions = pd.DataFrame([record["versions"] for record in records if "versions" in record])
    one = "one, with fewer epochs and no tuning (--quick): nothing can be significant"
    many = "30 draws, 20 splits of COMPAS, 10 of Adult, fewer for some methods (each table says how many)"
    values = {
        "seeds": one if results.scope.quick else many,
        "model": "logistic regression, Adam; batches of 100 (synthetic), 200 (COMPAS), 2,000 (Adult)",
        "runs": f"{len(records):,} records, {seconds / 60:.0f} minutes of training and tuning on one core each",
        "this page was made on": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    } | {f"version of {name}": ", ".join(used.dropna().unique()) for name, used in versions.items()}
    if sitting:
        values["this sitting"] = sitting
    choices = tables.choices_table(records)
    return [Facts("Settings and versions", values), *([choices] if choices.rows else [])]


def _write_table(table: Table, folder: Path) -> None:
    """Write a table as ``<name>.md``, ``<name>.csv`` and ``<name>.tex``."""
    rows = [
        [one.text + (f" ({one.reference})" if one.reference else "") for one in row] for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=[column.full_title for column in table.columns])
    write_output(folder / f"{table.name}.csv", frame.to_csv(index=False).encode())
    latex = frame.to_latex(index=False, escape=True, caption=table.caption, label=f"tab:{table.name}")
    write_output(folder / f"{table.name}.tex", latex.encode())
    write_output(folder / f"{table.name}.md", table_markdown(table).encode())


def _write_figure(figure: Figure, folder: Path) -> None:
    """Draw a figure into ``<name>.svg``. The same figure has the same bytes."""
    plt = pyplot()
    columns = 2 if len(figure.panels) in (2, 4, 8) else min(len(figure.panels), PANELS_IN_A_ROW)
    rows, looks = -(-len(figure.panels) // columns), figure.looks()
    size = (PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows)
    drawn, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes.flat, figure.panels, strict=False):
        axis.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
        for place, series in enumerate(panel.series):
            handles.setdefault(series.name, _draw(axis, series, looks[series.name], place))
    drawn.legend(handles.values(), handles, loc="outside upper center", ncols=min(len(handles), 6))
    stream = io.BytesIO()
    drawn.savefig(stream, format="svg", metadata={"Date": None})
    plt.close(drawn)
    write_output(folder / f"{figure.name}.svg", stream.getvalue())


def _draw(axis: Any, series: Series, look: Look, place: int) -> Any:
    """Draw a series; return what stands for it in the legend."""
    y, shade, marker = np.asarray(series.y, dtype=float), colour(look), SYMBOLS[look.symbol].matplotlib
    if series.kind == "bars":
        axis.set_xticks([])
        return axis.bar(place, y, color=shade)
    x = np.asarray(series.x, dtype=float)
    if series.kind == "line":
        band = np.asarray(series.deviation if series.deviation is not None else np.zeros_like(y))
        axis.fill_between(x, y - band, y + band, color=shade, alpha=0.18, linewidth=0)
        return axis.plot(x, y, color=shade, marker=marker if len(x) < MANY_POINTS else "", markersize=4)[0]
    few = len(x) < MANY_POINTS
    return axis.errorbar(
        x,
        y,
        yerr=series.deviation,
        xerr=series.x_deviation,
        color=shade,
        marker=marker,
        markersize=6 if few else 3,
        linestyle="-" if series.kind == "curve" else "none",
        linewidth=1.0,
        alpha=None if few else 0.5,
        rasterized=not few,
    )
