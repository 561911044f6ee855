"""The paper's tables, recomputed, and tables of the claims, the choices and the selections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from fairsieve.notions import NOTIONS
from fairsieve.report.page import Cell, Column, Table
from fairsieve.report.text import number
from fairsieve_reproduction import experiments as sets
from fairsieve_reproduction.claims import Judgement, verdict_word
from fairsieve_reproduction.experiments import OURS, Protocols, Results, column_experiment
from fairsieve_reproduction.methods.registry import METHODS
from fairsieve_reproduction.published import Number, PaperColumn, PaperTable, paper_tables
from fairsieve_reproduction.statistics import Gain

TITLES = {"synthetic": "Synthetic", "compas": "COMPAS", "adult": "Adult"}
FLIPS = {
    "none": "no flips",
    "label": "label flips",
    "group-targeted": "group-targeted flips",
    "group-targeted:Female": "flips among women",
    "group-targeted:Male": "flips among men",
}
VARIANTS = {
    "z=1": ", z = 1 attacked",
    "noisy": ", noisy validation set",
    "cleaned": ", noisy validation set cleaned by ITLM",
}
FR_TRAIN = (
    " FR-Train (ours) has settings of ours, and FR-Train (published settings) those that its authors published; their "
    "fairness weights are chosen on the validation set."
)


def column_title(column: PaperColumn, *, with_data: bool = False) -> str:
    """Return a column's title, for example "label flips, EO"."""
    title = f"{FLIPS[column.noise]}, {NOTIONS[column.fairness].short}"
    return f"{TITLES[column.data]}, {title}" if with_data else title


def line_title(name: str) -> str:
    """Return a method's title, with what is special about its runs."""
    method, _, variant = name.partition(" ")
    return METHODS[method].short + VARIANTS.get(variant, "")


def paper_blocks(protocols: Protocols, item: str) -> list[Table]:
    """Make Table 1 to 7 as a table or two: Adult has one for flips among women."""
    if item == "table4":
        return [_seconds_table(protocols.fresh, paper_tables()[item])]
    return [_paper_table(protocols, table) for name, table in paper_tables().items() if name.startswith(item)]


def _paper_table(protocols: Protocols, table: PaperTable) -> Table:
    """Make a table: the paper's numbers, those on the authors' draw, and those on fresh draws or splits."""
    several = len({column.data for column in table.columns}) > 1
    whose = list(dict.fromkeys(one for column in table.columns for one, _ in protocols.each(column.data)))
    rows = []
    for line in (*table.lines, *sets.EXTRA_LINES.get(table.name, ())):
        title = Cell("w/o both (ITLM)" if (table.name, line) == ("table5", "itlm") else line_title(line))
        printed = [number for pair in table.lines.get(line, ()) for number in pair]
        if printed:
            cells = [Cell(_plus_minus(*one[:2]), value=one.value, mark=one.mark) for one in printed]
            rows.append([title, Cell("paper"), *cells])
        for protocol in whose:
            row: list[Cell] = []
            for place, column in enumerate(table.columns):
                results, theirs = dict(protocols.each(column.data)), printed[2 * place : 2 * place + 2]
                empty = [Cell("")] * 2  # a data set that the protocol has not
                row += _cells(results[protocol], line, column, theirs) if protocol in results else empty
            if any(cell.text not in ("", "–") for cell in row):
                rows.append([title, Cell(protocol), *row])
    note = FR_TRAIN if "fr-train" in table.lines else ""
    caption = f"Table {table.name[5]}. {table.title}. {_runs_in_words(protocols, table)}{note}"
    heads = [Column("method"), Column("whose"), *_heads(table.columns, several)]
    return Table(table.name, caption, heads, rows)


def _heads(columns: Iterable[PaperColumn], with_data: bool) -> list[Column]:
    """Make the heads of accuracy and disparity in some columns of the paper."""
    return [
        Column(head, True, group=column_title(column, with_data=with_data))
        for column in columns
        for head in ("acc. ↑", "disp. ↓")
    ]


def _runs_in_words(protocols: Protocols, table: PaperTable) -> str:
    """Describe how many runs a table's numbers are means of."""
    parts = []
    for data in dict.fromkeys(column.data for column in table.columns):
        columns = [column for column in table.columns if column.data == data]
        for name, results in protocols.each(data):
            counts = {
                max((len(results.runs(column_experiment(line, column))) for column in columns), default=0)
                for line in (*table.lines, *sets.EXTRA_LINES.get(table.name, ()))
            } - {0}
            what = {"authors'": "trainings on the authors' draw", "fresh": "fresh draws"}.get(name, name)
            of_data = "" if data == "synthetic" else f" of {TITLES[data]}"
            fewer = (
                f" ({' or '.join(map(str, sorted(counts)[:-1]))} for some methods)" if len(counts) > 1 else ""
            )
            parts.append(f"{max(counts, default=0)} {what}{of_data}{fewer}")
    return f"Means ± deviations over {', '.join(parts)}."


def _plus_minus(mean: float, deviation: float | None) -> str:
    """Format mean ± standard deviation as the paper prints them; one run has no deviation."""
    return number(mean) if deviation is None else f"{number(mean)}±{number(deviation)}"


def _cells(
    results: Results, line: str, column: PaperColumn, printed: Sequence[Number] = (), most: int | None = None
) -> Iterator[Cell]:
    """Make the cells of a method's accuracy and disparity, shaded by how far they are from the paper's."""
    for measure, theirs in zip_longest(("accuracy", column.fairness), printed):
        values = results.values(column_experiment(line, column), measure)[:most]
        there = values[~np.isnan(values)]
        if not len(there):
            yield Cell("–")
            continue
        mean, spread, apart, note = float(there.mean()), float(there.std()), None, f"{len(there)} runs"
        text = _plus_minus(mean, spread if len(there) > 1 else None)
        if theirs is not None:
            both, distance = float(np.hypot(spread, theirs.deviation or 0)), abs(mean - theirs.value)
            apart = round(distance / both, 2) if both > 0 else None
            note += f"; {number(distance)} from the paper's"
        yield Cell(text, value=round(mean, 6), apart=apart, note=note)


def _seconds_table(results: Results, table: PaperTable) -> Table:
    """Make Table 4: the median over runs, since the first run of a process also loads compiled code."""
    rows = []
    for line, printed in table.lines.items():
        row = [Cell(line_title(line))]
        for column, (seconds,) in zip(table.columns, printed, strict=True):
            values = results.values(column_experiment(line, column), "cpu_seconds")
            here = np.nan if np.isnan(values).all() else float(np.nanmedian(values))
            text = "–" if np.isnan(here) else f"{here:.2f}"
            row.append(Cell(text, value=here, reference=f"{seconds.value:.1f}"))
        rows.append(row)
    heads = [Column(f"{TITLES[column.data]}: seconds ↓", True) for column in table.columns]
    heads.insert(0, Column("method"))
    caption = "Seconds of one training: medians of one core, compiled; not comparable with the paper's"
    return Table("table4", f"Table 4. {caption}", heads, rows, reference_title="the paper's")


def rivals_table(results: Results) -> Table:
    """Make a table of methods that the paper does not compare with, beside the method and LR."""
    columns = (*sets.TABLE1, *sets.TABLE2)
    rows = []
    for name in (OURS, "lr", *sets.RIVALS):
        title = METHODS[name].title if name != OURS else METHODS[name].short
        cells = (cell for column in columns for cell in _cells(results, name, column, most=10))
        rows.append([Cell(title), *cells])
    caption = (
        "Methods that the paper does not compare with: the first ten draws or splits of all. Surrogate and group peer "
        "loss with estimated noise rates; learning to reweight has the clean validation set; fairsieve is the "
        "library's default"
    )
    return Table("rivals", caption, [Column("method"), *_heads(columns, True)], rows)


def _text_table(name: str, caption: str, titles: str, rows: Iterable[Iterable[str]]) -> Table:
    """Make a table of texts that can be searched; the titles of its columns stand between bars."""
    cells = [[Cell(text) for text in row] for row in rows]
    return Table(name, caption, [Column(title) for title in titles.split("|")], cells, filterable=True)


def claims_table(judgements: Sequence[Judgement]) -> Table:
    """Make a table of the claims with their verdicts."""
    rows = [
        (
            each.claim.id,
            each.claim.where,
            each.claim.text,
            *(
                "–" if answer is None else verdict_word(answer.holds)
                for answer in (each.fresh, each.published, each.printed, each.authors, each.before)
            ),
            verdict_word(each.corrected),
            f"{each.fresh.summary}.",
        )
        for each in judgements
    ]
    titles = (
        "claim|where|what it says|verdict|against FR-Train's published settings|by the paper's own printed numbers|the "
        "authors' draw|under the rules before|corrected over all claims|numbers"
    )
    caption = (
        "The paper's claims, and whether they hold on fresh draws or splits. Claims that name FR-Train are judged "
        "against ours (verdict) and against its published settings. The rules before are shown where they say otherwise"
    )
    return _text_table("claims", caption, titles, rows)


def comparisons(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """List every comparison behind the claims: both means, the gain and its interval."""
    rows = [
        (each.claim.id, *_comparison(gain), each.fresh.words[i] if i < len(each.fresh.words) else "")
        for each in judgements
        for i, gain in enumerate(each.fresh.gains)
    ]
    titles = "claim|data|flips|rate|measure|first|second|mean of first|mean of second|gain|low|high|runs|says"
    return pd.DataFrame(rows, columns=titles.split("|"))


def _comparison(gain: Gain) -> list[str]:
    pair = gain.pairing
    texts = [pair.one.data, FLIPS[pair.one.noise], f"{pair.one.rate:g}", pair.measure]
    for each in (pair.one, pair.other):
        fixed = [f", {name} {value:g}" for name, value in each.fixed]
        texts.append("".join([line_title(f"{each.method} {each.validation}"), *fixed]))
    numbers = (gain.one, gain.other, gain.mean, gain.mean - gain.half, gain.mean + gain.half)
    return [*texts, *(f"{value:.4f}" for value in numbers), str(gain.n)]


def prefixes_table(protocols: Protocols) -> Table:
    """Make a table of how many of the lowest losses a selection lacks, in every epoch after the warm-up."""
    counted = "epochs|of them pure prefixes|samples apart: mean|at most|selected of 2,000: mean"
    heads = [Column(title) for title in ("column", "whose", "selection")]
    heads += [Column(title, True) for title in counted.split("|")]
    rows = []
    for column in sets.TABLE1:
        for whose, results in protocols.each("synthetic"):
            for method, title in ((OURS, "as the text"), (sets.AUTHORS, "as the authors' code")):
                records = results.runs(column_experiment(f"{method} traced", column))
                apart = np.array([n for one in records for n in one["history"]["prefix_differences"]])
                if len(apart):
                    kept = 2000 * float(np.mean([one["metrics"]["kept"] for one in records]))
                    shown = (len(apart), int((apart == 0).sum()), apart.mean(), apart.max(), kept)
                    cells = [Cell(f"{value:,.1f}".removesuffix(".0"), value=float(value)) for value in shown]
                    rows.append([Cell(column_title(column)), Cell(whose), Cell(title), *cells])
    caption = "By how many samples a selection differs from as many of the lowest losses, five draws or trainings each"
    return Table("prefixes", caption, heads, rows)


def choices_table(records: Iterable[dict[str, Any]]) -> Table:
    """Make a table of the hyperparameters that were chosen, and whether each sits at an end of its candidates."""
    chosen: dict[tuple[str, str, str], list[tuple[str, bool]]] = {}
    for record in records:
        asked, grid = record["settings"].get("tuning"), record["settings"].get("grid")
        if asked is None:
            continue
        draw = ", the authors' draw" if record["settings"]["arrays"] else ""
        noise = asked["noise"].replace("-without-group", "")
        knows = METHODS[asked["method"]].family not in (
            "plain",
            "robust",
        )  # the others have one choice for all
        notion = f", {NOTIONS[asked['fairness']].short}" if knows else ""
        title = line_title(f"{asked['method']} {asked['validation']}")
        place = chosen.setdefault((TITLES[asked["data"]] + draw, FLIPS.get(noise, noise) + notion, title), [])
        # Of two candidates each is an end.
        place += [
            (f"{name} {value:g}", len(grid[name]) > 2 and value in (min(grid[name]), max(grid[name])))
            for name, value in record["hyperparameters"].items()
        ]
    rows = [
        (
            *place,
            ", ".join(text for text, _ in choices),
            ", ".join(text.split()[0] for text, end in choices if end) or "–",
        )
        for place, choices in chosen.items()
    ]
    caption = (
        "Hyperparameters, chosen once for each method and column; a learning rate that is not named is .0005"
    )
    titles = "data|column|method|chosen|at an end"
    return _text_table("choices", caption, titles, sorted(rows))
