"""Bad input to the data, checkpoints, comparisons and reports."""

import os
from pathlib import Path

import numpy as np
import torch
from tests.bad_input.api_core import NOTIONS, WHOLE
from tests.bad_input.api_learning import trained
from tests.bad_input.entry import Bad, X, samples

from fairsieve.benchmark.problems import make_problem
from fairsieve.benchmark.run import Comparison
from fairsieve.data import (
    flip_group_targeted,
    flip_margin,
    flip_uniform,
    load_authors_arrays,
    load_compas,
    make_synthetic,
    split,
)
from fairsieve.data.catalogue import export_csv
from fairsieve.data.sources import fetch
from fairsieve.errors import MissingDataError
from fairsieve_reproduction.experiments import find_items
from fairsieve_reproduction.methods.registry import find_methods

NOWHERE = Path("no-such-folder")


def checkpoints_in_a_file():
    Path("taken").write_text("x")
    return trained(torch.nn.Linear(3, 2), checkpoint_dir="taken")


def checkpoints_of_another_training():
    model = torch.nn.Linear(3, 2)
    trained(model, checkpoint_dir="kept", seed=0)
    return trained(model, checkpoint_dir="kept", seed=1)


def binary_for_compas():
    Path("compas.bin").write_bytes(bytes(range(256)))
    return load_compas("compas.bin", check=False)


def pickled_array():
    Path("arrays").mkdir()
    np.save("arrays/xz_train.npy", np.array([os.system], object), allow_pickle=True)
    return load_authors_arrays("arrays")


ENTRIES = [
    Bad("flip_margin: a rate in per cent", lambda: flip_margin(samples(), 10),
        "rate", "must be a number in [0, 1]", "got 10", "for 10 % pass 0.1"),
    Bad("flip_margin: features for samples", lambda: flip_margin(X, 0.1),
        "samples", "must be Samples", "got ndarray", "Samples(features, labels, groups)"),
    Bad("flip_margin: indices for a mask", lambda: flip_margin(samples(), 0.1, among=[1, 2]),
        "among", "must be a boolean mask of the 40 samples", "got int64 of shape (2,)", "boolean mask"),
    Bad("flip_group_targeted: an unknown group", lambda: flip_group_targeted(samples(), 0.1, group="c"),
        "group", "must be one of", "got 'c'", "['a', 'b']"),
    Bad("flip_group_targeted: more than half of every group", lambda: flip_group_targeted(samples(), 0.9),
        "rate", "must leave under half of a group's labels flipped", "0.9 of 40 samples", "lower it"),
    Bad("flip_uniform: a cell that is none", lambda: flip_uniform(samples(), {"a": 0.1}, seed=0),
        "rates", "must name cells", "got 'a'", "as (label, group)"),
    Bad("flip_uniform: a text for a rate", lambda: flip_uniform(samples(), "lots", seed=0),
        "rates", "must be one number or one per cell", "got 'lots'", "the shape (2, 2)"),
    Bad("flip_uniform: a negative seed", lambda: flip_uniform(samples(), 0.1, seed=-1),
        "seed", "must be a whole number", "got -1", "at least 0"),
    Bad("split: everything to test", lambda: split(samples(), test=20),
        "test", "at least 0 and below 1", "got 20", "for 20 % pass 0.2"),
    Bad("make_synthetic: nothing", lambda: make_synthetic(0, seed=0), "n", f"{WHOLE} 1", "got 0", "at least 1"),
    Bad("load_compas: a file that is not there", lambda: load_compas(NOWHERE),
        "path", "must be the file compas-scores-two-years.csv or a folder that holds it", "no-such-folder",
        "fairsieve data fetch compas", MissingDataError),
    Bad("load_compas: a binary file", binary_for_compas,
        "compas.bin", "must be the published table, as text in UTF-8", "columns expected but not found",
        "point to the file itself, unpacked"),
    Bad("load_authors_arrays: a folder without them", lambda: load_authors_arrays(NOWHERE),
        "xz_train.npy", "is not in", "no-such-folder", "point to the folder of the authors' arrays", MissingDataError),
    Bad("load_authors_arrays: a pickle", pickled_array,
        "xz_train.npy", "must be a NumPy .npy file of numbers", "allow_pickle=False", "of numbers"),
    Bad("fetch: an unknown data set", lambda: fetch("titanic"),
        "names", "must be one of", "got 'titanic'", "adult, compas, german"),
    Bad("export_csv: a folder for a file", lambda: export_csv("adult", ".", rows=10),
        "the output", "must be a file that can be written", ".", "in a folder that exists"),
    Bad("export_csv: a name with a NUL", lambda: export_csv("adult", "a\0b.csv", rows=10),
        "the output", "must be a file that can be written", "null", "in a folder that exists"),
    Bad("fit: checkpoints in a file", checkpoints_in_a_file,
        "checkpoint_dir", "must be a folder that can be written", "taken", "a folder"),
    Bad("fit: checkpoints of another training", checkpoints_of_another_training,
        "checkpoint_dir", "must hold checkpoints of this training or none", "seed was 0 and is 1",
        "Pass another folder"),
    Bad("compare: an unknown method", lambda: find_methods("lr,magic"),
        "methods", "must be default, all, paper, or among", "got 'magic'", "lr, itlm"),
    Bad("compare: an unknown notion", lambda: Comparison(fairness="x"),
        "fairness", "must be one of", "got 'x'", NOTIONS),
    Bad("compare: an unknown attack", lambda: make_problem("synthetic", "x", 0.1, 0),
        "noise", "must be one of", "got 'x'", "label, group-targeted"),
    Bad("reproduce: an unknown table", lambda: find_items("table9"),
        "what", "must be one of list, all", "got 'table9'", "table1"),
]  # fmt: skip
