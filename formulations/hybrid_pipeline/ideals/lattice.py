"""Compiled: all sets of blocks that a pipeline's end may consist of, and sums over them.

Such a set holds with a block all that read it; its complement is an ideal. A set is kept as bits, 64 blocks a word.
Sets are numbered by rising size, the empty one first, all blocks last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integers, Integers2, kernel


class Lattice(NamedTuple):
    """The sets and how they grow.

    Attributes
    ----------
    bits : (N, W)
    first : (N + 1,)
        Entries ``[first[i], first[i + 1])`` of ``child`` and ``element``: the sets with one block more than set i, and
        that block.
    parent, added : (N,)
        A set with one block less, and that block; -1 for the empty set.
    """

    bits: Integers2
    first: Integers
    child: Integers
    element: Integers
    parent: Integers
    added: Integers


class Tensors(NamedTuple):
    """Who makes or reads a tensor.

    Attributes
    ----------
    first, member : (T + 1,), (.,)
        Blocks of tensor t: ``member[first[t] : first[t + 1]]``, two at least.
    size : (T,)
        Bytes per sample.
    start, tensor : (n + 1,), (.,)
        Tensors of block b: ``tensor[start[b] : start[b + 1]]``.
    """

    first: Integers
    member: Integers
    size: Integers
    start: Integers
    tensor: Integers


@kernel("b1(i8[:,::1],i8,i8)")
def has(bits: Integers2, i: int, block: int) -> bool:
    """Whether set i holds the block."""
    found: bool = (bits[i, block >> 6] >> (block & 63)) & 1 == 1
    return found


@kernel("UniTuple(i8[::1],7)(i8[:,::1],i8[::1],i8)")
def _enumerate(
    need: Integers2, mark: Integers, most: int
) -> tuple[Integers, Integers, Integers, Integers, Integers, Integers, Integers]:
    blocks, words = need.shape
    bits = np.zeros((most + 1, words), np.int64)
    keys = np.zeros(most + 1, np.int64)
    parent, added = np.full(most + 1, -1, np.int64), np.full(most + 1, -1, np.int64)
    first = np.zeros(most + 2, np.int64)
    size = 1
    while size < 2 * most + 4:
        size *= 2
    table = np.full(size, -1, np.int64)
    table[0] = 0
    child, element = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
    count, used, i = 1, 0, 0
    while i < count and count <= most:
        first[i] = used
        for v in range(blocks):
            if has(bits, i, v):
                continue
            free = True
            for w in range(words):
                if need[v, w] & ~bits[i, w]:
                    free = False
                    break
            if not free:
                continue
            key = keys[i] ^ mark[v]
            place = key & (size - 1)
            word, one = v >> 6, np.int64(1) << (v & 63)
            while table[place] >= 0:
                other = table[place]
                same = keys[other] == key
                for w in range(words):
                    if not same:
                        break
                    same = bits[other, w] == (bits[i, w] | one if w == word else bits[i, w])
                if same:
                    break
                place = (place + 1) & (size - 1)
            if table[place] < 0:
                if count > most:
                    break
                table[place] = count
                for w in range(words):
                    bits[count, w] = bits[i, w]
                bits[count, word] |= one
                keys[count], parent[count], added[count] = key, i, v
                count += 1
            if used == len(child):
                child = np.concatenate((child, np.zeros(used, np.int64)))
                element = np.concatenate((element, np.zeros(used, np.int64)))
            child[used], element[used] = table[place], v
            used += 1
        i += 1
    first[i:] = used
    shown = np.array([count, used])
    return bits.ravel(), first, child, element, parent, added, shown


def lattice(after: list[frozenset[int]] | tuple[frozenset[int], ...], most: int) -> Lattice | None:
    """All sets; ``None`` if there are more than ``most``.

    Parameters
    ----------
    after : list of frozenset of int
        By block, those that read it.
    """
    blocks = len(after)
    words = max(1, -(-blocks // 64))
    need = np.zeros((blocks, words), np.uint64)
    for b, readers in enumerate(after):
        for r in readers:
            need[b, r >> 6] |= np.uint64(1 << (r & 63))
    mark = np.random.default_rng(1).integers(0, 2**63, blocks, np.int64)
    flat, first, child, element, parent, added, shown = _enumerate(need.view(np.int64), mark, most)
    count, used = shown.tolist()
    if count > most:
        return None
    bits = np.ascontiguousarray(flat.reshape(-1, words)[:count])
    return Lattice(
        bits,
        first[: count + 1].copy(),
        child[:used].copy(),
        element[:used].copy(),
        parent[:count].copy(),
        added[:count],
    )


@kernel("i8[:,::1](i8[::1],i8[::1],i8[:,::1])")
def sums(parent: Integers, added: Integers, values: Integers2) -> Integers2:
    """(N, k): sums of the rows ``values`` (n, k) of the blocks of each set."""
    found = np.zeros((len(parent), values.shape[1]), np.int64)
    for i in range(1, len(parent)):
        for k in range(values.shape[1]):
            found[i, k] = found[parent[i], k] + values[added[i], k]
    return found


@kernel("i8(Tensors,i8[:,::1],i8,i8,i8)", Tensors)
def step(tensors: Tensors, bits: Integers2, whole: int, part: int, block: int) -> int:
    """How many bytes more lie on both sides of a set's border when it grows by a block; the set is whole less part."""
    change = 0
    for k in range(tensors.start[block], tensors.start[block + 1]):
        t = tensors.tensor[k]
        inside = 0
        for m in range(tensors.first[t], tensors.first[t + 1]):
            other = tensors.member[m]
            if has(bits, whole, other) and not has(bits, part, other):
                inside += 1
        if inside == 0:
            change += tensors.size[t]
        if inside + 1 == tensors.first[t + 1] - tensors.first[t]:
            change -= tensors.size[t]
    return change


@kernel("i8[::1](Tensors,i8[:,::1],i8[::1],i8[::1])", Tensors)
def crossing(tensors: Tensors, bits: Integers2, parent: Integers, added: Integers) -> Integers:
    """(N,): bytes per sample of the tensors that blocks inside and outside of each set know."""
    found = np.zeros(len(parent), np.int64)
    for i in range(1, len(parent)):
        found[i] = found[parent[i]] + step(tensors, bits, parent[i], 0, added[i])
    return found


def tabled(tensors: tuple[tuple[tuple[int, ...], int], ...], blocks: int) -> Tensors:
    """The tensors of :class:`~mapgap.problems.hybrid_pipeline.lowered.graph.Blocks` as arrays."""
    by: list[list[int]] = [[] for _ in range(blocks)]
    for t, (members, _) in enumerate(tensors):
        for b in members:
            by[b].append(t)
    return Tensors(
        _ends([len(members) for members, _ in tensors]),
        np.array([b for members, _ in tensors for b in members], np.int64),
        np.array([size for _, size in tensors], np.int64),
        _ends([len(each) for each in by]),
        np.array([t for each in by for t in each], np.int64),
    )


def _ends(counts: list[int]) -> Integers:
    return np.concatenate(([0], np.cumsum(np.array(counts, np.int64)))).astype(np.int64)
