"""Check a model in LightGBM's text format before LightGBM reads it.

LightGBM trusts what it reads: a wrong place of a child or a feature would make it read beyond its memory. So the text
is read here first, every number is checked, and LightGBM is given a text that is written anew from what was checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_text"]

HEADER = (
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "feature_names",
    "feature_infos",
)
# By leaf, or by split, of which there is one fewer; and of what kind.
PER_LEAF = {"leaf_value": float, "leaf_weight": float, "leaf_count": int}
PER_SPLIT = {
    "split_feature": int,
    "split_gain": float,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "internal_value": float,
    "internal_weight": float,
    "internal_count": int,
}
SINGLE = ("num_leaves", "num_cat", "is_linear", "shrinkage")
PER_CATEGORY_SPLIT = ("cat_boundaries", "cat_threshold")
CATEGORICAL = 1  # a bit of the type of a decision
MOST_LEAVES = 2**20
INFO = re.compile(r"none|\[[-+\d.e:inf]+\]|-?\d+(:-?\d+)*")

Fields = dict[str, str]


def check_text(text: str, *, features: int, classes: int) -> str:
    """Check a model of so many features and classes; return the text that LightGBM may read.

    Raises
    ------
    ValueError, KeyError
        Where anything is not as LightGBM writes it.
    """
    header, trees = _read_blocks(text)
    per_iteration = 1 if classes == 2 else classes
    wanted = {
        "num_class": str(per_iteration),
        "num_tree_per_iteration": str(per_iteration),
        "label_index": "0",
        "max_feature_idx": str(features - 1),
        "objective": "binary sigmoid:1" if classes == 2 else f"multiclass num_class:{classes}",
        "feature_names": " ".join(f"Column_{place}" for place in range(features)),
    }
    for name, value in wanted.items():
        if header[name] != value:
            raise ValueError(f"{name} is {header[name][:40]!r} and not {value[:40]!r}")
    if not re.fullmatch(r"v\d{1,3}", header["version"]):
        raise ValueError("its version is not one of LightGBM's")
    infos = header["feature_infos"].split(" ")
    if len(infos) != features or not all(INFO.fullmatch(info) for info in infos):
        raise ValueError("what it says of its features is not as LightGBM writes it")
    if not trees or len(trees) % per_iteration:
        raise ValueError(f"it has {len(trees)} trees for {per_iteration} at a time")
    lines = ["tree", *(f"{name}={header[name]}" for name in HEADER), ""]
    for number, tree in enumerate(trees):
        _check_tree(tree, features)
        lines += [f"Tree={number}", *(f"{name}={value}" for name, value in tree.items()), "", ""]
    return "\n".join([*lines, "end of trees", ""])


def _read_blocks(text: str) -> tuple[Fields, list[Fields]]:
    """Return the fields of the header and of each tree; what follows the trees is not looked at."""
    body, end, _ = text.partition("\nend of trees")
    if not text.startswith("tree\n") or not end:
        raise ValueError("it does not begin or end as LightGBM's models do")
    first, *blocks = body.split("\nTree=")
    header = dict(_read_fields(first.split("\n")[1:], {*HEADER, "tree_sizes"}))
    trees = []
    for number, block in enumerate(blocks):
        place, *lines = block.split("\n")
        if place != str(number):
            raise ValueError(f"tree {number} is called {place[:20]!r}")
        trees.append(dict(_read_fields(lines, {*SINGLE, *PER_LEAF, *PER_SPLIT, *PER_CATEGORY_SPLIT})))
    return header, trees


def _read_fields(lines: list[str], allowed: set[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values; refuse names that are unknown or there twice."""
    seen = set()
    for line in filter(None, lines):
        name, equals, value = line.partition("=")
        if not equals or name not in allowed or name in seen:
            raise ValueError(f"{line[:40]!r} does not belong there")
        seen.add(name)
        yield name, value


def _check_tree(tree: Fields, features: int) -> None:
    """Check that every number of a tree is there and points to what is there."""
    leaves, sets = int(tree["num_leaves"]), int(tree["num_cat"])
    if not 1 <= leaves <= MOST_LEAVES or not 0 <= sets < leaves or tree["is_linear"] != "0":
        raise ValueError("a tree is of another kind")
    _numbers(tree, "shrinkage", float, 1)
    for names, length in ((PER_LEAF, leaves), (PER_SPLIT, leaves - 1)):
        for name, kind in names.items():
            if tree[name] or name == "leaf_value" or leaves > 1:  # a tree of one leaf has a value alone
                _numbers(tree, name, kind, length)
    if leaves == 1:
        return
    split = _numbers(tree, "split_feature", int, leaves - 1)
    if ((split < 0) | (split >= features)).any():
        raise ValueError("a tree asks for a feature that is not there")
    children = np.concatenate(
        [_numbers(tree, name, int, leaves - 1) for name in ("left_child", "right_child")]
    )
    if not np.array_equal(np.sort(children), np.delete(np.arange(-leaves, leaves - 1), leaves)):
        raise ValueError("a tree is not a tree: each split but the first, and each leaf, must be below one")
    _check_categories(tree, sets, leaves - 1)


def _check_categories(tree: Fields, sets: int, splits: int) -> None:
    """Check the sets of categories, and that every decision by category has one."""
    types = _numbers(tree, "decision_type", int, splits)
    thresholds = _numbers(tree, "threshold", float, splits)
    if ((types < 0) | (types > 15)).any():
        raise ValueError("a tree decides in an unknown way")
    chosen = thresholds[(types.astype(np.int64) & CATEGORICAL) > 0]
    if len(chosen) and not np.isin(chosen, np.arange(sets)).all():
        raise ValueError("a tree asks for a set of categories that is not there")
    if sets:
        bounds = _numbers(tree, "cat_boundaries", int, sets + 1)
        if bounds[0] != 0 or (np.diff(bounds) < 1).any():
            raise ValueError("sets of categories overlap")
        words = _numbers(tree, "cat_threshold", int, int(bounds[-1]))
        if ((words < 0) | (words >= 2**32)).any():
            raise ValueError("sets of categories are not bits")


def _numbers(tree: Fields, name: str, kind: type, length: int) -> NDArray[np.float64]:
    """Read a list of finite numbers of a given length."""
    parts = tree[name].split(" ") if tree[name] else []
    if len(parts) != length:
        raise ValueError(f"{name} does not have {length} numbers")
    found = np.array([kind(part) for part in parts])
    if not np.isfinite(found).all():
        raise ValueError(f"{name} has a number that is none")
    return found
