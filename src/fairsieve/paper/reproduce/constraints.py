"""What the fairness constraints do: how far selections are from the lowest losses."""

from __future__ import annotations

import numpy as np

from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.published import paper_tables
from fairsieve.paper.reproduce.results import Protocols, Results
from fairsieve.paper.reproduce.titles import column_title
from fairsieve.report.document import Cell, Column, Table

__all__ = ["prefixes_table"]


def prefixes_table(protocols: Protocols) -> Table:
    """Make a table of how many samples a selection lacks of the lowest losses, in every epoch after the warm-up."""
    heads = [Column("column"), Column("whose")]
    heads += [
        Column(title, True)
        for title in (
            "epochs",
            "of them pure prefixes",
            "samples apart: mean",
            "at most",
            "selected of 2,000: mean",
        )
    ]
    rows = []
    for column in paper_tables()[1].columns:
        experiment = Experiment("fairsieve", column.data, column.noise, column.fairness, traced=True)
        for whose, results in protocols.each("synthetic"):
            apart, kept = _read_differences(results, experiment)
            if len(apart):
                rows.append(
                    [
                        Cell(column_title(column)),
                        Cell(whose),
                        Cell(f"{len(apart):,}", value=len(apart)),
                        Cell(f"{int((apart == 0).sum()):,}", value=int((apart == 0).sum())),
                        Cell(f"{apart.mean():.1f}", value=float(apart.mean())),
                        Cell(str(apart.max()), value=int(apart.max())),
                        Cell(f"{2000 * kept:,.0f}", value=2000 * kept),
                    ]
                )
    caption = (
        "By how many samples the selection differs from as many of the lowest losses: every epoch after the warm-up, "
        "five draws or trainings each. A pure prefix differs by none"
    )
    return Table("prefixes", caption, heads, rows)


def _read_differences(results: Results, experiment: Experiment) -> tuple[np.ndarray, float]:
    """Return the differences of all epochs and runs, and the mean share of the samples in the last selections."""
    records = results.runs(experiment)
    found = [record["history"].get("prefix_differences", []) for record in records]
    kept = (
        float(np.mean([record["metrics"].get("kept", np.nan) for record in records])) if records else np.nan
    )
    return np.array([count for row in found for count in row], dtype=np.int64), kept
