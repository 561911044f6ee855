"""Bad input to the core and the samplers."""

import numpy as np
import torch
from tests.bad_input.entry import GROUPS, LABELS, LOSSES, Bad, X, samples
from torch.utils.data import TensorDataset

from fairsieve import FairRobustBatchSampler, Samples, ShardedBatchSampler, select, shard_of
from fairsieve.adapters.sieve import Sieve
from fairsieve.errors import NotReadyError
from fairsieve.selection.cells import Cells
from fairsieve.selection.epoch import Plan

HALVES = [[0.5, 0.5], [0.5, 0.5]]
NOTIONS = "equalized_odds, demographic_parity, equal_opportunity"
WHOLE = "must be a whole number of at least"


def chosen(losses=LOSSES, labels=LABELS, groups=GROUPS, ratios=HALVES, clean_ratio=0.9, **options):
    return select(losses, labels, groups, ratios, clean_ratio, **options)


def plan(**options):
    return Plan(samples().cells, options.pop("batch_size", 10), **({"warmup_epochs": 0} | options))


def sampler(labels=LABELS, groups=GROUPS, batch_size=10, **options):
    options = {"clean_ratio": 0.9, "warmup_epochs": 0} | options
    return FairRobustBatchSampler(labels, groups, batch_size, **options)


def with_state(**changes):
    return plan().load_state_dict(plan().state_dict() | changes)


def holes(rows):
    """Labels that are texts, with None in some rows."""
    labels = LABELS.astype(str).astype(object)
    labels[rows] = None
    return labels


ENTRIES = [
    Bad("select: a loss is NaN", lambda: chosen([np.nan, *LOSSES[1:]]),
        "losses", "must not be NaN", "got 1, the first at 0", "lower its learning rate"),
    Bad("select: fewer losses than labels", lambda: chosen(LOSSES[:3]),
        "losses", "must have one value per sample, the shape (40,)", "got (3,)", "Use reduction='none'"),
    Bad("select: losses are texts", lambda: chosen(["low"] * 40),
        "losses", "must be real numbers", "got <U3", "numbers"),
    Bad("select: a row of ratios does not sum to 1", lambda: chosen(ratios=[[0.5, 0.6], [0.5, 0.5]]),
        "ratios", "must sum to 1", "row 0 sums to 1.1", "divide it by its sum"),
    Bad("select: ratios of another shape", lambda: chosen(ratios=[[1.0], [1.0]]),
        "ratios", "one row per class and one column per group, (2, 2)", "got the shape (2, 1)",
        "Pass classes= and group_values="),
    Bad("select: ragged ratios", lambda: chosen(ratios=[[0.5], [0.5, 0.5]]),
        "ratios", "must have rows of one length", "[[0.5], [0.5, 0.5]]", "fill up the short ones"),
    Bad("select: a clean ratio in per cent", lambda: chosen(clean_ratio=90),
        "clean_ratio", "must be a number in (0, 1]", "got 90", "for 90 % pass 0.9"),
    Bad("select: a clean ratio of True", lambda: chosen(clean_ratio=True),
        "clean_ratio", "must be a number in (0, 1]", "got True", "1.0 keeps every sample"),
    Bad("select: a clean ratio to be estimated", lambda: chosen(clean_ratio="auto"),
        "clean_ratio", "must be a number in (0, 1]", "got 'auto'", "estimate_clean_ratio finds one"),
    Bad("Cells.of: more labels than groups", lambda: Cells.of([0, 1], [0]),
        "labels and groups", "must have one value per sample", "got 2 labels and 1 groups", "from the same rows"),
    Bad("Cells.of: labels of two types", lambda: Cells.of(np.array([0, "a"], object), [0, 1]),
        "labels", "must be of one type", "int, str", "astype(str)"),
    Bad("Cells.of: one value", lambda: Cells.of(3, [0]),
        "labels", "must have one value per sample", "single value 3", "pass a list or an array"),
    Bad("Cells.of: a label that is not among the classes", lambda: Cells.of([0, 7], [0, 1], classes=[0, 1]),
        "labels", "must be among", "got also [7]", "[0, 1]"),
    Bad("Cells.of: a class twice", lambda: Cells.of([0, 1], [0, 1], classes=[0, 1, 1]),
        "labels", "must be different", "got [0, 1, 1]", "leave one out"),
    Bad("Samples: features that are texts", lambda: Samples([["a"], ["b"]], [0, 1], [0, 1]),
        "features", "must be numbers", "got <U1", "encode categories first"),
    Bad("Samples: a gap in the features", lambda: Samples([[np.nan], [1.0]], [0, 1], [0, 1]),
        "features", "must be finite", "row 0", "impute missing values first"),
    Bad("Samples: fewer names than features", lambda: Samples([[1.0, 2.0]] * 2, [0, 1], [0, 1], ("a",)),
        "feature_names", "one name per feature, 2", "got 1", "one name per feature"),
    Bad("Plan: not cells", lambda: Plan(LABELS, 10),
        "cells", "must be Cells", "got ndarray", "Cells.of(labels, groups)"),
    Bad("Plan: batches of nothing", lambda: plan(batch_size=0),
        "batch_size", f"{WHOLE} 1", "got 0", "at least 1"),
    Bad("Plan: a step beyond 1", lambda: plan(step_size=2),
        "step_size", "must be a number in [0, 1]", "got 2", "for 2 % pass 0.02"),
    Bad("Plan: an unknown notion", lambda: plan(fairness="eo"),
        "fairness", "must be one of", "got 'eo'", NOTIONS),
    Bad("Plan: a seed that no generator takes", lambda: plan(seed=2**70),
        "seed", "must be a whole number", str(2**70), "at least 0 and below 2**63"),
    Bad("Plan: a positive label that is none", lambda: plan(fairness="equal_opportunity", pos_label="yes"),
        "pos_label", "must be one of", "got 'yes'", "[0, 1]"),
    Bad("Plan: batches before losses", lambda: plan().batches(),
        "epoch 0", "needs the model's losses", "selects samples", "call update() before", NotReadyError),
    Bad("Plan: a state that is none", lambda: plan().load_state_dict(None),
        "state", "must be a plan's state_dict()", "got None", "state_dict()"),
    Bad("Plan: a state of other samples", lambda: with_state(samples=7),
        "state", "over the same samples, 40", "got 7", "the same samples"),
    Bad("Plan: a state that points outside", lambda: with_state(indices=[99]),
        "state", "must hold indices of the plan's samples", "outside", "indices of the plan's samples"),
    Bad("Plan: a state with ratios of NaN", lambda: with_state(ratios=np.full((2, 2), np.nan)),
        "state", "must hold ratios in [0, 1]", "nan", "take an older state"),
    Bad("FairRobustBatchSampler: no samples", lambda: sampler([], []),
        "labels", "must have at least one sample", "got none", "at least one sample"),
    Bad("FairRobustBatchSampler: missing labels", lambda: sampler(holes([3, 7])),
        "labels", "must not have missing values", "got 2, in rows 3, 7", "drop those samples"),
    Bad("FairRobustBatchSampler: outputs of some samples", lambda: sampler().update(torch.zeros(5)),
        "outputs", "must be the logits of all 40 samples", "got the shape (5,)", "one per class (2)"),
    Bad("FairRobustBatchSampler: outputs that are none", lambda: sampler().update("x"),
        "outputs", "must be a tensor of logits", "got 'x'", "pass model(features)"),
    Bad("FairRobustBatchSampler: a mask for indices",
        lambda: sampler().observe_losses(LABELS == 1, torch.zeros(40)),
        "indices", "must be whole numbers", "got bool", "pass positions, not a mask"),
    Bad("FairRobustBatchSampler: indices outside", lambda: sampler().observe([99], torch.zeros(1, 2)),
        "indices", "must be positions of the 40 samples", "got 99 to 99", "positions"),
    Bad("FairRobustBatchSampler: a part of the data",
        lambda: sampler().refresh(torch.nn.Linear(3, 2), torch.zeros(3, 3)),
        "dataset", "must hold all 40 samples", "got 3", "pass the whole training set"),
    Bad("FairRobustBatchSampler: model and data swapped",
        lambda: sampler().refresh(torch.from_numpy(X), torch.nn.Linear(3, 2)),
        "model", "must be an nn.Module", "got Tensor", "pass the model first"),
    Bad("FairRobustBatchSampler: a name for the model", lambda: sampler().refresh("m", torch.from_numpy(X)),
        "model", "must be an nn.Module", "got str", "pass the model first"),
    Bad("FairRobustBatchSampler: nobody to judge by",
        lambda: sampler().update(torch.zeros(40), validation=(torch.zeros(0), [], [])),
        "validation", "must have at least one sample", "got none", "leave it out"),
    Bad("FairRobustBatchSampler: a dataset for labels",
        lambda: sampler(TensorDataset(torch.from_numpy(X), torch.from_numpy(LABELS))),
        "labels", "must be an array of one value per sample", "got TensorDataset", "dataset.tensors[1]"),
    Bad("FairRobustBatchSampler: no losses yet", lambda: sampler().update(),
        "samples", "have no loss yet", "40 of 40", "call sampler.refresh(model, dataset)", NotReadyError),
    Bad("FairRobustBatchSampler: an epoch before the first", lambda: sampler().set_epoch(-1),
        "epoch", f"{WHOLE} 0", "got -1", "at least 0"),
    Bad("ShardedBatchSampler: no time to wait",
        lambda: ShardedBatchSampler(LABELS, GROUPS, 4, clean_ratio=1.0, timeout=0),
        "timeout", "must be a finite number above 0", "got 0", "above 0"),
    Bad("ShardedBatchSampler: no part of a state",
        lambda: ShardedBatchSampler(LABELS, GROUPS, 4, clean_ratio=1.0).load_state_dict([]),
        "state", "must hold at least one part", "got none", "at least one part"),
    Bad("shard_of: fewer than no samples", lambda: shard_of(-1), "samples", f"{WHOLE} 0", "got -1", "at least 0"),
    Bad("adapters: a dataset of another length",
        lambda: Sieve(TensorDataset(torch.from_numpy(X[:3])), LABELS, GROUPS, 4, clean_ratio=0.9),
        "dataset", "must hold all 40 samples", "got 3", "pass the whole training set"),
]  # fmt: skip
