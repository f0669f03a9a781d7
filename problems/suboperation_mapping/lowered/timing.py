"""Compiled timing of a mapping, and the DRAM that it takes.

Searches need millions of timings; the evaluator is written to be read. The two share no code and are held equal by
property tests. A mapping is a pair ``(location, sequence)``: ``location[o]`` is the accelerator of operation ``o`` and
``sequence`` a permutation of the operations that respects all precedences; each accelerator executes its operations
in the order of the sequence, each as early as possible. Every plan without a cyclic wait can be written this way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.kernels import Integers, Integers2, Integers3, kernel

BITS = 62  #: so many accelerators fit one integer as a set


class Timing(NamedTuple):
    """What durations and precedences of ``n`` operations on ``N`` accelerators depend on; ``E`` precedences.

    Attributes
    ----------
    compute : (n, N)
        Lat_Comp in ticks.
    pred_ptr, pred : (n + 1,), (E,)
        Predecessors of ``o`` are ``pred[pred_ptr[o]:pred_ptr[o + 1]]``.
    pred_ticks : (E, N, N)
        Ticks to move the tensor of a precedence from the predecessor's accelerator to the operation's.
    holder_ptr, holder : (n + 1,), (…,)
        For a WU the FP sub-operations of its layer (who receive dW); empty for others.
    gradient_ticks : (n, N, N)
        For a WU the ticks to move dW from its accelerator to a holder's; 0 for others.
    """

    compute: Integers2
    pred_ptr: Integers
    pred: Integers
    pred_ticks: Integers3
    holder_ptr: Integers
    holder: Integers
    gradient_ticks: Integers3


class Storage(NamedTuple):
    """What the DRAM must hold; ``I`` stored tensors.

    Attributes
    ----------
    item_owner, item_release, item_units : (I,)
        Stored tensors: on the owner's accelerator from the owner's start to the end of the releasing WU.
    layer : (n,)
        Layer index of each operation.
    weight_units : (layers,)
        Memory units of weights and gradients, on every accelerator where the layer has an operation.
    capacity : (N,)
    """

    item_owner: Integers
    item_release: Integers
    item_units: Integers
    layer: Integers
    weight_units: Integers
    capacity: Integers


@kernel("void(Timing,i8[::1],i8[::1],i8[::1],i8[::1])", Timing)
def run_timetable(timing: Timing, location: Integers, sequence: Integers, start: Integers, end: Integers) -> None:
    """Fill ``start`` and ``end`` (n,) of every operation; the sequence must respect all precedences."""
    count = timing.compute.shape[1]
    free = np.zeros(count, np.int64)
    seen = np.zeros(count, np.int64)
    for position in range(len(sequence)):
        o = sequence[position]
        a = location[o]
        ready = free[a]
        duration = timing.compute[o, a]
        for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
            p = timing.pred[e]
            if end[p] > ready:
                ready = end[p]
            duration += timing.pred_ticks[e, location[p], a]
        if timing.holder_ptr[o + 1] > timing.holder_ptr[o]:
            seen[:] = 0
            for h in range(timing.holder_ptr[o], timing.holder_ptr[o + 1]):
                target = location[timing.holder[h]]
                if seen[target] == 0:
                    seen[target] = 1
                    duration += timing.gradient_ticks[o, a, target]
        start[o] = ready
        end[o] = ready + duration
        free[a] = end[o]


@kernel("i8(Timing,i8,i8,i8[::1])", Timing, makes_arrays=False)
def operation_ticks(timing: Timing, o: int, a: int, location: Integers) -> int:
    """Lat_Comp + Lat_Comm of ``o`` on ``a``; its predecessors and the holders of its dW are mapped."""
    total: int = timing.compute[o, a]
    pred, pred_ticks = timing.pred, timing.pred_ticks
    for e in range(timing.pred_ptr[o], timing.pred_ptr[o + 1]):
        total += pred_ticks[e, location[pred[e]], a]
    first, last = timing.holder_ptr[o], timing.holder_ptr[o + 1]
    if last > first:  # dW once to every accelerator with an FP of the layer
        count, holder, gradient_ticks = timing.compute.shape[1], timing.holder, timing.gradient_ticks
        if count <= BITS:
            holders = 0
            for h in range(first, last):
                if location[holder[h]] >= 0:
                    holders |= 1 << location[holder[h]]
            for target in range(count):
                if holders >> target & 1:
                    total += gradient_ticks[o, a, target]
        else:
            for target in range(count):
                for h in range(first, last):
                    if location[holder[h]] == target:
                        total += gradient_ticks[o, a, target]
                        break
    return total


@kernel("b1(Storage)", Storage)
def roomy(storage: Storage) -> bool:
    """Whether every accelerator could hold everything, so that no schedule needs a check."""
    return bool(storage.weight_units.sum() + storage.item_units.sum() <= storage.capacity.min())


@kernel("i8(Storage,i8[::1],i8[::1],i8[::1])", Storage)
def run_memory_excess(storage: Storage, location: Integers, start: Integers, end: Integers) -> int:
    """Units above capacity at the peaks, summed over accelerators."""
    owner, release, units = storage.item_owner, storage.item_release, storage.item_units
    count = len(storage.capacity)
    present = np.zeros((count, len(storage.weight_units)), np.int64)
    base = np.zeros(count, np.int64)
    for o in range(len(storage.layer)):
        if present[location[o], storage.layer[o]] == 0:
            present[location[o], storage.layer[o]] = 1
            base[location[o]] += storage.weight_units[storage.layer[o]]
    upper = base.copy()
    for i in range(len(owner)):
        upper[location[owner[i]]] += units[i]
    excess = 0
    for a in range(count):
        if upper[a] <= storage.capacity[a]:
            continue
        peak = base[a]
        for i in range(len(owner)):
            if location[owner[i]] != a:
                continue
            moment = start[owner[i]]
            stored = base[a]
            for j in range(len(owner)):
                if location[owner[j]] == a and start[owner[j]] <= moment and moment < end[release[j]]:
                    stored += units[j]
            peak = max(peak, stored)
        excess += max(0, peak - storage.capacity[a])
    return excess
