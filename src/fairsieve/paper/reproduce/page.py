"""The document of the whole reproduction, from its records."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairsieve.paper.claims.claims import verdicts
from fairsieve.paper.claims.evidence import SIMILAR
from fairsieve.paper.claims.pairwise import OUTCOMES
from fairsieve.paper.reproduce.figures import FIGURES, trade_off_figures
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.tables import choices_table, draws_experiments, draws_table, paper_table
from fairsieve.paper.reproduce.targets import DEFAULTS_OF, Item, collect_experiments
from fairsieve.paper.reproduce.titles import number
from fairsieve.report.document import Block, Cell, Column, Document, Facts, Figure, Section, Table, Text
from fairsieve.report.figure_files import write_figure_files
from fairsieve.report.page import write_page
from fairsieve.report.page.render import environment, plotly_packed
from fairsieve.report.style import pyplot
from fairsieve.report.table_files import write_table_files

__all__ = ["check_extras", "write_reproduction"]

RULE = (
    "Methods are compared on the same draws or splits. A comparison speaks for or against a claim where the mean of "
    "its paired differences is beyond twice their standard error; otherwise it is inconclusive. A claim holds where "
    "most comparisons speak for it and none against it; where the paper says “usually”, where most speak for it. "
    f"“Similar” and “comparable” mean at most {number(SIMILAR)} worse. “Beaten on 7 of 10” counts draws or splits. "
    "One seed is inconclusive."
)
TUNING = (
    "Hyperparameters are chosen once for each method and column, by cross-validation on the noisy labels of draws "
    "(synthetic) and splits (COMPAS) that are not reported on, and used for all seeds and noise rates; Figures 1 and 2 "
    "use the defaults. Splits of one data set share samples, so on COMPAS the choice has seen test samples of other "
    "splits, with their noisy labels. On Adult, and for methods that the paper does not compare, the defaults are "
    "used. FR-Train is tuned with 3,000 epochs and trained with 10,000."
)
DEFAULTS = (
    "Cross-validation on attacked labels can choose what fits the attack. These are the same tables with the default "
    "of every hyperparameter: learning rate .0005, step size .0005, penalty .3 (.1 in the cleaning step), FR-Train's "
    "weights .4 and .4."
)
BY_DRAW = (
    "The paper trains five times on one draw of the synthetic data. Here every seed is a draw of its own, and this is "
    "on how many draws ours beats each method of Sec. 5.1 and 5.4."
)


def _reproduction_document(results: Results, items: Sequence[Item]) -> Document:
    """Make the document of some tables and figures, with the verdicts that the records allow."""
    sections = []
    found = verdicts(results)
    if found:
        counts = Counter(verdict.holds for verdict in found)
        summary = (
            f"Of {len(found)} claims, {counts[True]} hold here, {counts[False]} do not, and {counts[None]} are "
            f"inconclusive. {RULE}"
        )
        sections.append(Section("claims", "The paper's claims", [Text(summary), *found]))
    if all(results.has(experiment) for experiment in draws_experiments()):
        sections.append(Section("by-draw", "How often, draw by draw", [Text(BY_DRAW), draws_table(results)]))
    sections += [Section(item.name, item.title, _item_blocks(item, results)) for item in items]
    sections.append(Section("made", "How this was made", _made(results, items)))
    return Document(
        "The paper, reproduced",
        "Tables and figures of “Sample Selection for Fair and Robust Training” (Roh, Lee, Whang, Suh; NeurIPS 2021), "
        "recomputed by fairsieve: our numbers, the paper's beside them, and a verdict on every claim.",
        sections,
    )


def check_extras() -> None:
    """Raise an error for a package that is not installed, before the work and not after it."""
    pyplot()
    environment()
    plotly_packed()


def _item_blocks(item: Item, results: Results) -> list[Block]:
    """Return what an item shows."""
    if item.name.startswith("table"):
        return [paper_table(results, int(item.name.removeprefix("table")))]
    if item.name == "defaults":
        return [Text(DEFAULTS), *(paper_table(results, number, defaults=True) for number in DEFAULTS_OF)]
    if item.name in FIGURES:
        return [FIGURES[item.name](results)]
    return list(trade_off_figures(results))


def _made(results: Results, items: Sequence[Item]) -> list[Block]:
    """Describe settings, choices, versions, machine and time."""
    scope, records = results.scope, results.collect(collect_experiments(items))
    seconds = sum(record.get("seconds", 0) + record.get("tuning_seconds", 0) for record in records)
    versions = records[-1]["versions"] if records else {}
    values = {
        "seeds": "1, with fewer epochs than below and no tuning (--quick)"
        if scope.quick
        else str(scope.seeds),
        "synthetic data": "a draw for each seed, at least ten"
        if scope.arrays is None
        else "the authors' arrays",
        "model": "logistic regression, Adam; batches of 100 (synthetic), 200 (COMPAS), 2,000 (Adult)",
        "epochs": "400; 450 and 500 for group-targeted flips with EO and DP; the first 100 plain where a method cleans",
        "clean ratio": "1 less the noise rate, as in the paper",
        "runs": f"{len(records):,} records, {seconds / 60:.0f} minutes of training and tuning on one core each",
        "machine": f"{os.cpu_count()} × {_processor()}, {platform.system()}",
    } | {f"version of {name}": version for name, version in versions.items()}
    blocks: list[Block] = [Text(TUNING), Facts("Settings, versions, machine", values)]
    choices = choices_table(records)
    return [*blocks, choices] if choices.rows else blocks


def _processor() -> str:
    """Return the processor's model, where the system names it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write_reproduction(results: Results, items: Sequence[Item], folder: Path) -> Path:
    """Write the page, and every table and figure into files of its own; return the path of the page."""
    document = _reproduction_document(results, items)
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                write_table_files(block, folder)
            elif isinstance(block, Figure):
                write_figure_files(block, folder)
    write_table_files(_verdicts_table(results), folder)
    page = folder / "reproduction.html"
    write_page(document, page)
    return page


def _verdicts_table(results: Results) -> Table:
    """Make a table of the verdicts for the files; the page shows each with its evidence."""
    rows = [
        [Cell(verdict.source), Cell(verdict.claim), Cell(OUTCOMES[verdict.holds]), Cell(verdict.evidence)]
        for verdict in verdicts(results)
    ]
    heads = [Column(title) for title in ("where", "claim", "here", "numbers")]
    return Table("claims", "The paper's claims, and whether they hold here", heads, rows)
