"""What a sampler has found and does, as a table, and what to warn of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairsieve.notebook import table_html
from fairsieve.selection.epoch import Plan
from fairsieve.selection.ratios import class_shares

HEADINGS = ("class", "group", "samples", "kept", "weight", "clean ratio", "gap")
REPEATED = 10  # times in an epoch that one sample is trained on


class Summary:
    """Samples, selection, weight, clean ratio and gap of every cell, and what comes next.

    *weight* is how often a sample of the cell is trained on, beside the average sample. *gap* is the difference that
    the last update found between the groups of the class, and stands beside the group that should rise. A column of
    which nothing is known is left out.
    """

    def __init__(self, plan: Plan) -> None:
        rows = _rows(plan)
        shown = [place for place in range(len(HEADINGS)) if any(row[place] for row in rows)]
        self.headings = [HEADINGS[place] for place in shown]
        self.rows = [tuple(row[place] for place in shown) for row in rows]
        self.next = _next_step(plan)

    def __str__(self) -> str:
        import pandas as pd  # which takes long to import

        table = pd.DataFrame(self.rows, columns=self.headings)
        return f"{table.to_string(index=False)}\n{self.next}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table_html("The sampler", self.headings, self.rows, [self.next])


def _rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return a row of texts for every cell with samples."""
    samples, kept = plan.cell_counts, plan.counts.reshape(plan.cells.shape)
    trained = plan.quotas.reshape(samples.shape)
    weights = trained / max(1, trained.sum()) * samples.sum() / np.maximum(samples, 1)
    gaps = {(gap.label, gap.rising): gap.size for gap in plan.gaps if gap is not None}
    rows: list[tuple[str, ...]] = []
    for y, z in zip(*np.nonzero(samples), strict=True):
        ratio = "" if plan.clean_ratios is None else f"{plan.clean_ratios[y, z]:.2f}"
        gap = f"{gaps[y, z]:.3f}" if (y, z) in gaps else ""
        counts = f"{samples[y, z]:,}", f"{kept[y, z]:,}", f"{weights[y, z]:.2f}"
        rows.append((str(plan.cells.classes[y]), str(plan.cells.groups[z]), *counts, ratio, gap))
    return rows


def _next_step(plan: Plan) -> str:
    """Say what the next update will do, as far as it is known."""
    if plan.in_warmup:
        left = plan.warmup_epochs - plan.epoch
        return f"The next {left} epochs train on everything (warm-up)."
    if not plan.is_selective:
        return "No update yet: call update() with the model's outputs before the next epoch."
    balance = plan.balance
    if balance is None:
        return f"The class with the widest gap moves by {plan.step_size:g} at the next update."
    if not balance.compared.any():
        return "No fairness is asked for: groups keep their weights."
    codes = np.flatnonzero(balance.compared)
    texts = {plan.cells.classes[code]: f"{balance.powers[code]:.2f}" for code in codes}
    weighted = "groups are weighted by (share of what is kept)^"
    if len(set(texts.values())) == 1:
        weighted += texts[plan.cells.classes[codes[0]]]
    else:
        weighted += f"power ({', '.join(f'{name!r}: {text}' for name, text in texts.items())})"
    if balance.costs_accuracy:
        return (
            "Weighted groups are predicted worse on the held-out samples than natural weights would: the powers "
            f"return towards 1. Now {weighted}."
        )
    if balance.is_judged:
        wide = any(gap is not None and balance.is_wide(gap) for gap in plan.gaps)
        state = (
            "Gaps on the held-out samples are open" if wide else "No held-out gap is wider than the tolerance"
        )
        return f"{state}: {weighted}."
    return f"G{weighted[1:]}."


def _cell_name(plan: Plan, cell: int) -> str:
    """Name a cell in a message."""
    label, group = divmod(cell, plan.cells.shape[1])
    return f"class {plan.cells.classes[label]!r} in group {plan.cells.groups[group]!r}"


def pass_warnings(plan: Plan, batches: int, epochs: int | None) -> Iterator[tuple[str, str]]:
    """Yield kinds and words of warnings: of small cells that are repeated often, of a training without effect.

    Parameters
    ----------
    batches : int
        In the pass that begins.
    epochs : int, optional
        How long the training will be.
    """
    if plan.is_weighted:
        quotas = plan.quotas
        absent = np.flatnonzero((quotas == 0) & (plan.counts > 0) & (plan.ratios.reshape(-1) > 0))
        if len(absent):
            yield (
                "absent",
                f"{len(absent)} of {np.count_nonzero(plan.counts)} cells have no place in any batch, such as the "
                f"{plan.counts[absent[0]]} selected samples of {_cell_name(plan, int(absent[0]))}: their quotas are "
                "rounded to nothing, as in the paper. Use larger batches, or batching='even'",
            )
        repeats = batches * quotas / np.maximum(plan.counts, 1)
        cell = int(repeats.argmax())
        if repeats[cell] >= REPEATED:
            yield (
                "repeats",
                f"the {plan.counts[cell]} selected samples of {_cell_name(plan, cell)} are each trained on "
                f"{repeats[cell]:.0f} times in this epoch: a network may learn them by heart. Merge small groups, or "
                "raise clean_ratio or balance",
            )
    if epochs is None or plan.epoch + 1 != epochs:
        return
    nothing = f"in {epochs} epochs no sample was left out and no ratio moved; "
    if plan.in_warmup:
        ended = f"the warm-up of {plan.warmup_epochs} epochs did not end: lower warmup_epochs"
        yield "nothing", nothing + ended
    elif plan.selected == plan.cell_counts.sum() and np.allclose(plan.ratios, class_shares(plan.cell_counts)):
        yield "nothing", nothing + "no label looked wrong, and no weight was asked for or needed"
