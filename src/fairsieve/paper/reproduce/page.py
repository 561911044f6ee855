"""The document of the whole reproduction, from its records."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairsieve.paper.claims.claim_tables import claims_table, comparisons_table
from fairsieve.paper.claims.claims import judgements, verdicts
from fairsieve.paper.claims.evidence import SIMILAR
from fairsieve.paper.claims.pairwise import ALIKE
from fairsieve.paper.reproduce.constraints import prefixes_table
from fairsieve.paper.reproduce.figures import FIGURES, constraints_figure, trade_off_figures
from fairsieve.paper.reproduce.results import Protocols
from fairsieve.paper.reproduce.tables import choices_table, draws_experiments, draws_table, paper_blocks
from fairsieve.paper.reproduce.targets import Item, collect_experiments
from fairsieve.paper.reproduce.titles import number
from fairsieve.report.document import Block, Document, Facts, Figure, Section, Table, Text
from fairsieve.report.figure_files import write_figure_files
from fairsieve.report.page import write_page
from fairsieve.report.page.render import environment, plotly_packed
from fairsieve.report.style import pyplot
from fairsieve.report.table_files import write_table_files

__all__ = ["check_extras", "write_reproduction"]

PROTOCOLS = (
    "Two protocols stand side by side. The authors' draw: five trainings on the arrays that the authors "
    "published, ± over trainings, as in the paper. Fresh draws: a new draw of the synthetic data for every seed "
    "(a new split of COMPAS and Adult), ± over draws. The first says whether the paper's numbers come out; the "
    "second, whether its claims hold for other data of the same kind."
)
MISSING = (
    "The authors' draw is missing here. Their arrays are in the folder synthetic_data of their repository, "
    "github.com/yuji-roh/fair-robust-selection; give their folder by --arrays DIR."
)
RULE = (
    "Methods are compared on the same draws or splits, by paired t-tests at 5 %, corrected for their number "
    "within a claim (Holm). A claim of several comparisons is tested on the whole, by their mean gain draw by "
    "draw, for accuracy and for disparity. It holds where every measure is better on the whole and no single "
    "comparison is worse; where the paper says “usually”, single comparisons do not matter. It does not hold "
    "where a comparison is worse, or where a measure is on the whole worse, or better by less than "
    f"{number(ALIKE)} even at the upper end of its 95 % interval. “Similar” and “comparable” mean at most "
    f"{number(SIMILAR)} worse, which is tested in the same way. One seed decides nothing."
)
ATTACK = (
    "Labels are flipped as the authors did: those with the largest margin under a logistic regression that does "
    "not see the group, fitted on train and validation. Adult is shown with either group attacked, since the "
    "paper does not say which one was; its claims are judged with women attacked, which is nearer to the paper's "
    "numbers of LR and ITLM."
)
TUNING = (
    "Ours has the authors' settings on the synthetic data: learning rate .0005, α = .001, 400 epochs (450 and 500"
    " for group-targeted flips with EO and DP). LR and ITLM train until their loss falls by less than a "
    "thousandth in the second half of the epochs, for at most 1,600 epochs (Adult: 800). Elsewhere α and the "
    "weight of the penalty are chosen once for each method and column, fairness first: of the candidates whose "
    "cross-validated accuracy is at most .05 below the best, the fairest, on draws and splits that are not "
    "reported on. Splits of one data set share samples, so on COMPAS that choice has seen test samples of other "
    "splits, with their noisy labels. Adult and FR-Train have the defaults: α = .001, penalty 1, λf = .3 for "
    "FR-Train as published and .4 for ours, λr = .4."
)
BY_DRAW = (
    "How much the draw decides: on how many fresh draws ours beats each method of Sec. 5.1 and B.3. The paper "
    "trains five times on one draw."
)
CONSTRAINTS = (
    "The paper's Eq. 7 adds 1 to every weight and keeps τn on the right side. That is Eq. 2 only if the selection"
    " has exactly τn samples; with fewer, it is a smaller budget. So the selection is almost the lowest losses, "
    "and the ablation without constraints does about the same once it is told a smaller clean ratio."
)


def _reproduction_document(protocols: Protocols, items: Sequence[Item]) -> Document:
    """Make the document of some tables and figures, with the verdicts that the records allow."""
    sections, results = [], protocols.fresh
    found = verdicts(results, protocols.authors)
    missing = [] if protocols.authors is not None else [Text(MISSING)]
    if found:
        counts = Counter(verdict.holds for verdict in found)
        summary = (
            f"Of {len(found)} claims, {counts[True]} hold on fresh draws or splits, {counts[False]} do not, and "
            f"{counts[None]} are inconclusive. {RULE}"
        )
        sections.append(
            Section("claims", "The paper's claims", [Text(PROTOCOLS), *missing, Text(summary), *found])
        )
    sections += [Section(item.name, item.title, _item_blocks(item, protocols)) for item in items]
    if all(results.has(experiment) for experiment in draws_experiments()):
        sections.append(Section("by-draw", "How often, draw by draw", [Text(BY_DRAW), draws_table(results)]))
    if found:
        compared = comparisons_table(judgements(results, protocols.authors))
        if compared.rows:
            sections.append(Section("comparisons", "Every comparison", [compared]))
    sections.append(Section("made", "How this was made", _made(protocols, items)))
    return Document(
        "The paper, reproduced",
        "Tables and figures of “Sample Selection for Fair and Robust Training” (Roh, Lee, Whang, Suh; NeurIPS 2021), "
        "recomputed by fairsieve: the paper's numbers, ours on the authors' draw and on fresh draws, and a verdict on "
        "every claim.",
        sections,
    )


def check_extras() -> None:
    """Raise an error for a package that is not installed, before the work and not after it."""
    pyplot()
    environment()
    plotly_packed()


def _item_blocks(item: Item, protocols: Protocols) -> list[Block]:
    """Return what an item shows."""
    if item.name.startswith("table"):
        return list(paper_blocks(protocols, int(item.name.removeprefix("table"))))
    if item.name == "constraints":
        return [Text(CONSTRAINTS), constraints_figure(protocols), prefixes_table(protocols)]
    if item.name in FIGURES:
        return [FIGURES[item.name](protocols)]
    return list(trade_off_figures(protocols))


def _made(protocols: Protocols, items: Sequence[Item]) -> list[Block]:
    """Describe settings, choices, versions, machine and time."""
    results, experiments = protocols.fresh, collect_experiments(items)
    records = results.collect(experiments)
    if protocols.authors is not None:
        records += protocols.authors.collect(each for each in experiments if each.data == "synthetic")
    seconds = sum(record.get("cpu_seconds", 0) + record.get("tuning_seconds", 0) for record in records)
    together = sum("together" in record for record in records)
    versions = records[-1]["versions"] if records else {}
    quick = "1, with fewer epochs than below and no tuning (--quick): nothing can be significant"
    values = {
        "seeds": quick
        if results.scope.quick
        else "30 draws, 20 splits of COMPAS, 10 of Adult; fewer for FR-Train"
        if results.scope.seeds is None
        else str(results.scope.seeds),
        "attack": ATTACK,
        "model": "logistic regression, Adam; batches of 100 (synthetic), 200 (COMPAS), 2,000 (Adult)",
        "clean ratio": "1 less the noise rate, as in the paper",
        "runs": f"{len(records):,} records, {seconds / 60:.0f} minutes of training and tuning on one core each"
        + (f"; {together} games of FR-Train on a GPU, all at once" if together else ""),
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


def write_reproduction(protocols: Protocols, items: Sequence[Item], folder: Path) -> Path:
    """Write the page, and every table and figure into files of its own; return the path of the page."""
    document = _reproduction_document(protocols, items)
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                write_table_files(block, folder)
            elif isinstance(block, Figure):
                write_figure_files(block, folder)
    write_table_files(claims_table(judgements(protocols.fresh, protocols.authors)), folder)
    page = folder / "reproduction.html"
    write_page(document, page)
    return page
