"""Slow, literal versions of the algorithms: the oracles for the fast ones."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def literal_selection(losses, labels, groups, ratios, clean_ratio):
    """Algorithm 1 as printed: walk from the lowest loss up, take what breaks no constraint of Eq. 7.

    Labels and groups are codes. Returns the sorted indices and the counts.
    """
    n = len(losses)
    classes, columns = np.shape(ratios)
    budget = math.floor(clean_ratio * n + 1e-9)
    taken = [[0] * columns for _ in range(classes)]
    chosen = []
    for index in sorted(range(n), key=lambda i: (losses[i], i)):
        taken[labels[index]][groups[index]] += 1
        total = sum(map(sum, taken))
        broken = total > budget
        for y in range(classes):
            for z in range(columns):
                broken = broken or total + taken[y][z] - ratios[y][z] * sum(taken[y]) > budget + 1e-9
        if broken:
            taken[labels[index]][groups[index]] -= 1
        else:
            chosen.append(index)
    return sorted(chosen), np.array(taken)


def literal_shares(ratios, counts, size):
    """ratio · size · |S_y| / |S|, where cells of nobody leave their ratio to the others of their class."""
    table = counts.reshape(ratios.shape)
    present = np.where(table > 0, ratios, 0.0)
    alone = (present.sum(axis=1, keepdims=True) == 0) & (table > 0)
    present = np.where(alone, table, present)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1e-300)
    return (shares * size * table.sum(axis=1, keepdims=True) / table.sum()).ravel()


def literal_shuffle(size, seed, epoch, cell, lap, position):
    """Return the element at one position of a shuffle, in Python's integers."""
    wrap = (1 << 64) - 1

    def mix(value):
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & wrap
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB & wrap
        return value ^ (value >> 31)

    golden = state = 0x9E3779B97F4A7C15
    for part in (seed, epoch, cell, lap):
        state = mix(state ^ part) + golden & wrap
    constants = []
    for _ in range(12):
        state = state + golden & wrap
        constants.append(mix(state))
    bits = (size - 1).bit_length()
    mask, half, value = (1 << bits) - 1, max(bits // 2, 1), position
    while True:
        for factor, summand in zip(constants[::2], constants[1::2], strict=True):
            value = (value * (factor | 1) + summand) & mask
            value ^= value >> half
        if value < size:
            return value


def literal_training(features, labels, groups, *, clean_ratio, epochs, warmup, batch_size, rate, step, seed):
    """Algorithm 2 as printed, for equalized odds and binary labels, with torch and plain loops.

    Independent of the library: its own selection loop, ratios and batches. Used to measure speed.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    x = torch.as_tensor(features)
    y = torch.as_tensor(labels, dtype=torch.float32)
    model = torch.nn.Linear(x.shape[1], 1)
    torch.nn.init.normal_(model.weight, 0, 0.2)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    cells = {(a, b): np.flatnonzero((labels == a) & (groups == b)) for a in (0, 1) for b in (0, 1)}
    ratios = np.array([[len(cells[a, b]) / np.sum(labels == a) for b in (0, 1)] for a in (0, 1)])
    chosen = np.arange(len(labels))
    for epoch in range(epochs):
        if epoch < warmup:
            order = rng.permutation(len(labels))
            batches = [order[i : i + batch_size] for i in range(0, len(order) - batch_size + 1, batch_size)]
        else:
            with torch.no_grad():
                outputs = 2 * model(x).squeeze(1)
                losses = F.binary_cross_entropy_with_logits(outputs, y, reduction="none").numpy()
            inside = np.isin(np.arange(len(labels)), chosen)
            kept = {cell: rows[inside[rows]] for cell, rows in cells.items()}
            means = np.array([[losses[kept[a, b]].mean() for b in (0, 1)] for a in (0, 1)])
            gaps = means[:, 1] - means[:, 0]
            worst = int(np.abs(gaps).argmax())
            ratios[worst, 1] = np.clip(ratios[worst, 1] + step * np.sign(gaps[worst]), 0, 1)
            ratios[worst, 0] = 1 - ratios[worst, 1]
            chosen = np.array(literal_selection(losses, labels, groups, ratios, clean_ratio)[0])
            batches = literal_batches(rng, chosen, labels, groups, ratios, batch_size)
        for batch in batches:
            optimizer.zero_grad()
            logits = 2 * model(x[batch]).squeeze(1)
            F.binary_cross_entropy_with_logits(logits, y[batch]).backward()
            optimizer.step()
    return model


def literal_batches(rng, chosen, labels, groups, ratios, batch_size):
    """Batches whose cells follow the ratios, each cell shuffled and gone through again and again."""
    cells = labels[chosen] * 2 + groups[chosen]
    pools = [rng.permutation(chosen[cells == cell]) for cell in range(4)]
    shares = literal_shares(ratios, np.bincount(cells, minlength=4), batch_size).round().astype(int)
    number = max(1, len(chosen) // batch_size)
    return np.hstack([np.resize(pool, (number, share)) for pool, share in zip(pools, shares, strict=True)])


def literal_caps(losses, labels, groups, table):
    """Of every cell the lowest ⌊ratio · n⌋ losses, at least one; ties by index."""
    chosen = []
    for y in range(len(table)):
        for z in range(len(table[y])):
            own = [i for i in range(len(losses)) if (labels[i], groups[i]) == (y, z)]
            own.sort(key=lambda i: (losses[i], i))
            chosen += own[: max(1, math.floor(table[y][z] * len(own) + 1e-9))]
    return sorted(chosen)
