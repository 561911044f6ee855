"""The device's part of a selection, in Triton.

A thread reads four consecutive losses and the four cells beside them at once. For that the losses
and cells must begin at an address divisible by 32; a last, partial four is read whole, which stays
within the memory that was handed out, and what lies beyond the last sample is not looked at.
"""

# Triton reads the source of these functions, so they carry its annotations only.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["collect", "count_sample", "guess_range", "guess_window", "sample", "survey", "take"]


@triton.jit
def key_of(bits, LOWEST: tl.constexpr):
    """The bit pattern of a float as an integer that orders like the float (−0 equals 0)."""
    wide = bits.to(tl.int64) if LOWEST < -(2**31) else bits.to(tl.int32)
    return tl.where(wide >= 0, wide, LOWEST - wide)


@triton.jit
def load_fours(values, index, n):
    """Values at ascending indices, four to a load."""
    return tl.load(tl.max_contiguous(values + index, 4), mask=index // 4 < (n + 3) // 4, other=0)


@triton.jit
def unsigned(values):
    """Integers with the same bits and no sign, so that negative ones are large."""
    if values.dtype == tl.int64:
        result = values.to(tl.uint64, bitcast=True)
    elif values.dtype == tl.uint8:
        result = values
    else:
        result = values.to(tl.int32).to(tl.uint32, bitcast=True)
    return result


@triton.jit
def cell_of(label, group, CLASSES: tl.constexpr, GROUPS: tl.constexpr):
    """Cells of labels and groups that are codes already, and which of them are not."""
    is_strange = (unsigned(label) >= CLASSES) | (unsigned(group) >= GROUPS)
    return tl.where(is_strange, 0, label.to(tl.int32) * GROUPS + group.to(tl.int32)), is_strange


@triton.jit(do_not_specialize=["n"])
def sample(
    bits, codes, labels, groups, keys, cells, ends, n,
    CLASSES: tl.constexpr, GROUPS: tl.constexpr, IS_CODED: tl.constexpr,
    LOWEST: tl.constexpr, INFINITY: tl.constexpr, MIDDLE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Keys and cells of samples at random places.

    ``ends`` tells how far the keys reach to either side, in quarters beyond −MIDDLE, so that
    nothing is negative and zeros are a fair beginning.
    """
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    index = (tl.randint(0, place).to(tl.uint32, bitcast=True).to(tl.int64) * n) >> 32
    key = key_of(tl.load(bits + index), LOWEST)
    tl.store(keys + place, key)
    if IS_CODED:
        cell = tl.load(codes + index)
    else:
        cell, _ = cell_of(tl.load(labels + index), tl.load(groups + index), CLASSES, GROUPS)
    tl.store(cells + place, cell.to(cells.dtype.element_ty))
    quarter = tl.minimum(tl.maximum(key, -INFINITY), INFINITY).to(tl.int64) >> 2
    tl.atomic_max(ends, tl.max(MIDDLE - quarter))
    tl.atomic_max(ends + 1, tl.max(MIDDLE + quarter))


@triton.jit
def count_sample(keys, cells, ends, counts, MIDDLE: tl.constexpr, DIGITS: tl.constexpr, TILE: tl.constexpr):
    """Count the sampled keys in even digits between the least and the greatest of them."""
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    least = (MIDDLE - tl.load(ends)).to(tl.float64) * 4.0
    greatest = (tl.load(ends + 1) - MIDDLE).to(tl.float64) * 4.0 + 4.0
    digit = ((tl.load(keys + place).to(tl.float64) - least) * (DIGITS / (greatest - least))).to(tl.int32)
    digit = tl.minimum(tl.maximum(digit, 0), DIGITS - 1)
    tl.atomic_add(counts + tl.load(cells + place).to(tl.int32) * DIGITS + digit, 1, sem="relaxed")


@triton.jit
def used_budget(
    low, counts, ratios, CLASSES: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DIGITS: tl.constexpr,
):  # fmt: skip
    """After each digit, how many are taken and the most that any budget of Eq. 7 has used of itself."""
    label, group = tl.arange(0, ROWS)[:, None, None], tl.arange(0, COLUMNS)[None, :, None]
    digit, known = tl.arange(0, DIGITS)[None, None, :], (label < CLASSES) & (group < GROUPS)
    cell = label * GROUPS + group
    taken = tl.cumsum(tl.load(counts + cell * DIGITS + digit, mask=known, other=0), axis=2)
    taken += tl.load(low + cell, mask=known, other=0)
    ratio = tl.load(ratios + cell, mask=known, other=1.0)
    of_class = tl.sum(taken, axis=1, keep_dims=True)
    total = tl.sum(of_class, axis=0, keep_dims=True)
    excess = tl.maximum(taken.to(tl.float64) - ratio * of_class.to(tl.float64), 0.0)
    most = total.to(tl.float64) + tl.max(tl.max(excess, axis=0, keep_dims=True), axis=1, keep_dims=True)
    return total.reshape([DIGITS]), most.reshape([DIGITS])


# Counts are read one by one: by fours, the tables would need more shared memory than there is.
@triton.jit(do_not_specialize=["budget", "slack"], do_not_specialize_on_alignment=["zeros", "counts"])
def guess_window(
    zeros, counts, ends, ratios, window, budget, slack,
    CLASSES: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DIGITS: tl.constexpr, MIDDLE: tl.constexpr, INFINITY: tl.constexpr,
):  # fmt: skip
    """Keys between which the first budget breaks, as the sample has it: start, end, bits of a digit."""
    _, used = used_budget(zeros, counts, ratios, CLASSES, GROUPS, ROWS, COLUMNS, DIGITS)
    least = (MIDDLE - tl.load(ends)).to(tl.float64) * 4.0
    width = ((tl.load(ends + 1) - MIDDLE).to(tl.float64) * 4.0 + 4.0 - least) / DIGITS
    first = tl.sum((used <= budget - slack).to(tl.int32)) - 1
    last = tl.sum((used <= budget + slack).to(tl.int32)) + 2
    start, end = tl.zeros([], tl.int64) - INFINITY, tl.zeros([], tl.int64) + INFINITY
    if first > 0:
        start = tl.maximum(start, (least + first * width).to(tl.int64))
    if last < DIGITS:
        end = tl.minimum(end, (least + last * width).to(tl.int64))
    start = tl.minimum(start, end)
    halvings = tl.arange(0, 64).to(tl.uint64)
    shift = tl.sum((((end - start).to(tl.uint64, bitcast=True) >> halvings) >= DIGITS).to(tl.int64))
    tl.store(window, start)
    tl.store(window + 1, end + 1)
    tl.store(window + 2, shift)


@triton.jit
def count_words(acc, counts, CELLS: tl.constexpr, WORD: tl.constexpr):
    """Add up four counts of a byte each, over a program, to the counts of four cells."""
    for odd in tl.static_range(2):
        pair = tl.sum((acc >> (8 * odd)) & 0x00FF00FF)
        if 4 * WORD + odd < CELLS:
            tl.atomic_add(counts + 4 * WORD + odd, pair & 0xFFFF, sem="relaxed")
        if 4 * WORD + odd + 2 < CELLS:
            tl.atomic_add(counts + 4 * WORD + odd + 2, pair >> 16, sem="relaxed")


@triton.jit(do_not_specialize=["n"])
def survey(
    bits, codes, labels, groups, window, low, fine, strange, n,
    CLASSES: tl.constexpr, GROUPS: tl.constexpr, IS_CODED: tl.constexpr,
    DIGITS: tl.constexpr, LOWEST: tl.constexpr, INFINITY: tl.constexpr,
    TILE: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """Count each cell below the window, and by digits inside it; write the codes where there are none.

    ``strange`` counts programs that met NaN, and those that met labels that are no codes.

    Every thread counts in bytes, four cells to a word, so there are at most 16 cells, TILES must be
    below 256 and TILE · TILES below 65,536.
    """
    CELLS: tl.constexpr = CLASSES * GROUPS
    start, end, shift = tl.load(window), tl.load(window + 1), tl.load(window + 2)
    zero = tl.zeros([TILE], dtype=tl.uint32)
    low0, low1, low2, low3 = zero, zero, zero, zero
    no_codes = zero
    farthest = tl.zeros([TILE], dtype=tl.int64 if LOWEST < -(2**31) else tl.int32)
    start, end = start.to(farthest.dtype), end.to(farthest.dtype)
    base = tl.program_id(0) * (TILE * TILES)
    for tile in range(TILES):
        index = base + tile * TILE + tl.arange(0, TILE)
        inside = index < n
        key = key_of(load_fours(bits, index, n), LOWEST)
        if IS_CODED:
            cell = load_fours(codes, index, n).to(tl.int32)
        else:
            cell, is_strange = cell_of(
                load_fours(labels, index, n), load_fours(groups, index, n), CLASSES, GROUPS
            )
            no_codes |= (inside & is_strange).to(tl.uint32)
            fours = index // 4 < (n + 3) // 4  # the codes have room for a whole four
            tl.store(tl.max_contiguous(codes + index, 4), cell.to(codes.dtype.element_ty), mask=fours)
        farthest = tl.where(inside, tl.maximum(farthest, tl.abs(key)), farthest)
        below = tl.where(inside & (key < start), 1, 0).to(tl.uint32) << ((cell & 3) * 8).to(tl.uint32)
        word = cell >> 2
        if CELLS <= 4:
            low0 += below
        else:
            low0 += tl.where(word == 0, below, 0)
            low1 += tl.where(word == 1, below, 0)
        if CELLS > 8:
            low2 += tl.where(word == 2, below, 0)
        if CELLS > 12:
            low3 += tl.where(word == 3, below, 0)
        distance = key - start
        if LOWEST < -(2**31):
            digit = (distance.to(tl.uint64, bitcast=True) >> shift.to(tl.uint64)).to(tl.int32)
        else:
            digit = (distance.to(tl.uint32, bitcast=True) >> shift.to(tl.uint32)).to(tl.int32)
        wanted = inside & (key >= start) & (key < end)
        tl.atomic_add(fine + cell * DIGITS + digit, 1, mask=wanted, sem="relaxed")
    count_words(low0, low, CELLS, 0)
    if CELLS > 4:
        count_words(low1, low, CELLS, 1)
    if CELLS > 8:
        count_words(low2, low, CELLS, 2)
    if CELLS > 12:
        count_words(low3, low, CELLS, 3)
    if tl.max(farthest) > INFINITY:
        tl.atomic_add(strange, 1, sem="relaxed")
    if tl.max(no_codes) > 0:
        tl.atomic_add(strange + 1, 1, sem="relaxed")


@triton.jit(do_not_specialize=["budget", "room"], do_not_specialize_on_alignment=["low", "fine"])
def guess_range(
    low, fine, ratios, walked, below, budget, room,
    CLASSES: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIGITS: tl.constexpr,
):  # fmt: skip
    """Digits of the window to walk sample by sample: where a budget breaks, and up to ``room`` samples.

    ``below`` is set to the samples of each cell below those digits.
    """
    total, used = used_budget(low, fine, ratios, CLASSES, GROUPS, ROWS, COLUMNS, DIGITS)
    broken = tl.sum((used <= budget).to(tl.int32))
    first = tl.minimum(broken, DIGITS - 1)
    before = tl.sum(tl.where(tl.arange(0, DIGITS) == first - 1, total, 0))
    before = tl.where(first == 0, tl.min(total), before)
    last = tl.maximum(first + 1, tl.sum((total <= before + room).to(tl.int32)))
    tl.store(walked, first)
    tl.store(walked + 1, last)
    cell, digit = tl.arange(0, ROWS * COLUMNS)[:, None], tl.arange(0, DIGITS)[None, :]
    known = cell < CLASSES * GROUPS
    fewer = tl.load(fine + cell * DIGITS + digit, mask=known & (digit < first), other=0)
    fewer = tl.sum(fewer, axis=1, keep_dims=True) + tl.load(low + cell, mask=known, other=0)
    tl.store(below + cell, fewer, mask=known)


@triton.jit(do_not_specialize=["n", "room", "closing"])
def collect(
    bits, codes, window, walked, kept, listed, filled, n, room, closing, LOWEST: tl.constexpr, TILE: tl.constexpr
):  # fmt: skip
    """List the samples of the walked digits; count, tile by tile, those below of the ``closing`` cells.

    A sample is listed as its key (two words), its index and its cell.
    """
    shift, end = tl.load(window + 2), tl.load(window + 1)
    first = tl.minimum(tl.load(window) + (tl.load(walked).to(tl.int64) << shift), end)
    last = tl.minimum(tl.load(window) + (tl.load(walked + 1).to(tl.int64) << shift), end)
    index = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = index < n
    key = key_of(load_fours(bits, index, n), LOWEST)
    cell = load_fours(codes, index, n).to(tl.int32)
    first, last = first.to(key.dtype), last.to(key.dtype)
    sure = inside & (key < first) & (((closing >> cell) & 1) != 0)
    wanted = inside & (key >= first) & (key < last)
    both = tl.sum(sure.to(tl.int32) + (wanted.to(tl.int32) << 16))
    tl.store(kept + tl.program_id(0), both & 0xFFFF)
    found = both >> 16
    if found > 0:
        slot = tl.atomic_add(filled, found) + tl.cumsum(wanted.to(tl.int32)) - 1
        wanted = wanted & (slot < room)
        wide = key.to(tl.int64)
        tl.store(listed + 4 * slot, wide.to(tl.int32), mask=wanted)
        tl.store(listed + 4 * slot + 1, (wide >> 32).to(tl.int32), mask=wanted)
        tl.store(listed + 4 * slot + 2, index, mask=wanted)
        tl.store(listed + 4 * slot + 3, cell, mask=wanted)


@triton.jit(do_not_specialize=["n"])
def take(
    bits, codes, limits, extra, ends, kept, chosen, n,
    CELLS: tl.constexpr, LOWEST: tl.constexpr, EXTRA: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the indices of the samples below their cell's limit, each tile where its own begin.

    ``kept`` are a tile's samples, ``ends`` sums of those to the end of it, but for the ``extra`` ones.
    """
    index = tl.program_id(0) * TILE + tl.arange(0, TILE)
    key = key_of(load_fours(bits, index, n), LOWEST)
    cell = load_fours(codes, index, n).to(tl.int32)
    begin = tl.load(ends + tl.program_id(0)) - tl.load(kept + tl.program_id(0))
    begin += tl.sum((tl.load(extra + tl.arange(0, EXTRA)) < tl.program_id(0) * TILE).to(tl.int32))
    inside = index < n
    cell = tl.where(inside, cell, 0)
    limit = tl.load(limits + cell).to(key.dtype)
    earlier = index < tl.load(limits + CELLS + cell)
    taken = inside & ((key < limit) | ((key == limit) & earlier))
    tl.store(chosen + begin + tl.cumsum(taken.to(tl.int32)) - 1, index.to(tl.int64), mask=taken)
