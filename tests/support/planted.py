"""Twelve tables with planted errors: people whose right labels are known, and the labels that were written down.

Each has other columns, another size, another number of groups and other errors. The right labels are held back from
whatever is tried on a table, and judge it afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Planted:
    """A table whose errors are known.

    Attributes
    ----------
    name : str
    frame : DataFrame
        With the columns "group" and "label", as they were written down.
    right : array of str
        The right labels of the same rows.
    others : DataFrame
        Other people of the same kind, with their right labels.
    """

    name: str
    frame: pd.DataFrame
    right: np.ndarray
    others: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a table is made.

    Attributes
    ----------
    rows : int
    shares : tuple of float
        Of the groups.
    weights : tuple of float
        How the columns tell the right label.
    shift : float
        By how much the columns of each further group lie higher.
    harder : float
        How much less the columns tell in each further group.
    own : float
        How much the group itself says of the label, which no column tells.
    noise : float
        Of the right labels themselves: how far an outcome is beyond what any column can tell.
    base : float
        Moves the share of the positive label.
    wrong : callable
        The chance of each label to be written down wrong, from right labels (1 is positive) and groups.
    """

    rows: int
    shares: tuple[float, ...]
    weights: tuple[float, ...]
    wrong: Callable[[np.ndarray, np.ndarray], np.ndarray]
    shift: float = 0.0
    harder: float = 0.0
    own: float = 0.0
    noise: float = 0.5
    base: float = 0.0


def _wrong(rate, *, of_group=None, label=None):
    """Return the chance of every label to be wrong: ``rate``, or 0 beside the group and the label that are named."""

    def chance(right, group):
        inside = np.ones(len(right)) if of_group is None else group == of_group
        return rate * inside * (1 if label is None else right == label)

    return chance


RECIPES = {
    "right labels, groups that differ": Recipe(rows=8000, shares=(0.6, 0.4), weights=(1.5, 1.0, 0.5), shift=0.8,
        own=-1.0, wrong=_wrong(0.0)),
    "right labels, groups alike": Recipe(rows=6000, shares=(0.5, 0.5), weights=(2.0, 1.0), wrong=_wrong(0.0)),
    "a tenth wrong": Recipe(rows=10000, shares=(0.7, 0.3), weights=(2.0, 1.5, 1.0), shift=-0.7, own=1.0,
        wrong=_wrong(0.1)),
    "a fifth wrong": Recipe(rows=12000, shares=(0.5, 0.5), weights=(2.5, 1.5), shift=0.6, own=-1.2, noise=0.3,
        wrong=_wrong(0.2)),
    "positive labels missed": Recipe(rows=10000, shares=(0.65, 0.35), weights=(2.0, 2.0), shift=0.5, noise=0.2,
        wrong=_wrong(0.2, label=1)),
    "one group written down carelessly": Recipe(rows=9000, shares=(0.7, 0.3), weights=(2.0, 1.0, 1.0), shift=-0.5,
        own=0.8, noise=0.3, wrong=_wrong(0.2, of_group=1)),
    "one group's positive labels missed": Recipe(rows=10000, shares=(0.6, 0.4), weights=(2.0, 1.5), noise=0.3,
        wrong=_wrong(0.3, of_group=1, label=1)),
    "four groups": Recipe(rows=12000, shares=(0.4, 0.3, 0.2, 0.1), weights=(1.5, 1.5), shift=0.3, own=-0.4,
        wrong=_wrong(0.05)),
    "a rare label": Recipe(rows=10000, shares=(0.6, 0.4), weights=(1.5, 1.0), base=-4.0, shift=0.3,
        wrong=_wrong(0.01)),
    "a group that columns say little of": Recipe(rows=8000, shares=(0.7, 0.3), weights=(2.5, 1.5), harder=0.6,
        noise=0.3, wrong=_wrong(0.05)),
    "few rows": Recipe(rows=1000, shares=(0.6, 0.4), weights=(1.5, 1.0, 0.5), shift=0.8, own=-1.0,
        wrong=_wrong(0.05)),
    "labels by chance": Recipe(rows=5000, shares=(0.5, 0.5), weights=(0.0, 0.0), noise=1.0, wrong=_wrong(0.05)),
}  # fmt: skip


def plant(name: str, seed: int = 0, others: int = 20_000) -> Planted:
    """Make one of the tables, and other people of its kind."""
    recipe = RECIPES[name]
    random = np.random.default_rng([seed, *name.encode()])
    mine, group, right = _draw(recipe, recipe.rows, random)
    wrong = random.random(recipe.rows) < recipe.wrong(right, group)
    more, their_group, theirs = _draw(recipe, others, random)
    frame = mine.assign(group=_names(group), label=_labels(right ^ wrong))
    rest = more.assign(group=_names(their_group), label=_labels(theirs))
    return Planted(name, frame, _labels(right), rest)


def _draw(recipe, rows, random):
    """Draw people: columns of numbers and one of categories, groups, and right labels."""
    group = random.choice(len(recipe.shares), rows, p=recipe.shares)
    weights = np.array(recipe.weights)
    columns = random.normal(size=(rows, len(weights))) + recipe.shift * group[:, None] / len(weights)
    told = columns @ weights * (1 - recipe.harder * group) + recipe.own * group + recipe.base
    right = told + recipe.noise * random.logistic(size=rows) > 0
    frame = pd.DataFrame(columns.round(3), columns=[f"column{place}" for place in range(len(weights))])
    return frame.assign(town=random.choice(["Aosta", "Bern", "Chur"], rows)), group, right


def _names(group):
    return np.array([f"group {chr(65 + code)}" for code in range(group.max() + 1)])[group]


def _labels(right):
    return np.where(right, "yes", "no").astype(object)
