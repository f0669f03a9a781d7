"""Simulated annealing over (location, patience): a list scheduler decodes both into a sequence.

Among the operations whose predecessors have a place, the decoder takes the one of smallest ``possible start -
patience``: an operation of large patience is waited for, so a weight update does not delay the backward pass.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Integer, Integers, kernel
from mapgap.problems.suboperation_mapping.lowered.arrays import Array, Lowered
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed
from mapgap.problems.suboperation_mapping.lowered.timing import Storage, Timing, run_memory_excess

Float = Annotated[float, "f8"]
Floats = Annotated[NDArray[np.float64], "f8[::1]"]


class Links(NamedTuple):
    """What else the search must know of the graph; ``n`` operations, ``E`` precedences.

    Attributes
    ----------
    succ_ptr, succ : (n + 1,), (E,)
        Successors of ``o`` are ``succ[succ_ptr[o]:succ_ptr[o + 1]]``.
    group : (n,)
        Equal for operations of one layer and phase.
    """

    succ_ptr: Integers
    succ: Integers
    group: Integers


class Cooling(NamedTuple):
    """How the search walks: temperatures in ticks, the price of a memory unit too much, the share of relocations."""

    iterations: Integer
    seed: Integer
    hot: Float
    cold: Float
    penalty: Float
    relocate: Float


class Walk(NamedTuple):
    """Where the search is, and the best mapping so far; all of shape (n,)."""

    location: Integers
    patience: Floats
    best_location: Integers
    best_sequence: Integers


@kernel("i8(Timing,Links,i8[::1],f8[::1],i8[::1],i8[::1],i8[::1])", Timing, Links)
def decode(
    timing: Timing,
    links: Links,
    location: Integers,
    patience: Floats,
    sequence: Integers,
    start: Integers,
    end: Integers,
) -> int:
    """Fill sequence, start and end of the list schedule; returns the makespan."""
    compute, pred_ptr, pred, pred_ticks, holder_ptr, holder, gradient_ticks = timing
    n, count = compute.shape
    duration, release = np.zeros(n, np.int64), np.zeros(n, np.int64)
    missing, free = np.empty(n, np.int64), np.zeros(count, np.int64)
    ready, size = np.empty(n, np.int64), 0
    for o in range(n):
        a = location[o]  # Lat_Comp + Lat_Comm, written out: a call per operation costs a quarter of the search
        duration[o] = compute[o, a]
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            duration[o] += pred_ticks[e, location[pred[e]], a]
        for h in range(holder_ptr[o], holder_ptr[o + 1]):
            target = location[holder[h]]
            first = True
            for k in range(holder_ptr[o], h):
                if location[holder[k]] == target:
                    first = False
            if first:
                duration[o] += gradient_ticks[o, a, target]
        missing[o] = pred_ptr[o + 1] - pred_ptr[o]
        if missing[o] == 0:
            ready[size] = o
            size += 1
    makespan = 0
    for position in range(n):
        chosen, least = 0, 1e300
        for k in range(size):
            o = ready[k]
            key = max(release[o], free[location[o]]) - patience[o]
            if key < least:
                chosen, least = k, key
        o = ready[chosen]
        size -= 1
        ready[chosen] = ready[size]
        a = location[o]
        start[o] = max(release[o], free[a])
        end[o] = start[o] + duration[o]
        free[a] = end[o]
        makespan = max(makespan, end[o])
        sequence[position] = o
        for e in range(links.succ_ptr[o], links.succ_ptr[o + 1]):
            q = links.succ[e]
            release[q] = max(release[q], end[o])
            missing[q] -= 1
            if missing[q] == 0:
                ready[size] = q
                size += 1
    return makespan


@kernel("i8(Timing,Storage,Links,Walk,Cooling)", Timing, Storage, Links, Walk, Cooling)
def anneal(timing: Timing, storage: Storage, links: Links, walk: Walk, cooling: Cooling) -> int:
    """Anneal in place; returns the best makespan without DRAM excess, or -1."""
    np.random.seed(cooling.seed)
    n, count = timing.compute.shape
    location, patience, group = walk.location, walk.patience, links.group
    hot, cold, relocate = cooling.hot, cooling.cold, cooling.relocate
    start, end, sequence = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    saved = location.copy()
    cost, best, wide = 1e300, -1, 1000.0 * cold
    for step in range(cooling.iterations):
        temperature = hot * (cold / hot) ** (step / cooling.iterations)
        o = np.random.randint(n)
        old = patience[o]
        saved[:] = location
        kind = np.random.random()
        if step == 0:
            pass
        elif kind < relocate and count > 1:
            if kind < 0.6 * relocate:
                location[o] = (location[o] + 1 + np.random.randint(count - 1)) % count
            elif kind < 0.8 * relocate:  # exchange two operations of a layer and phase
                q = np.random.randint(n)
                for _ in range(n):
                    if group[q] == group[o] and location[q] != location[o]:
                        break
                    q = (q + 1) % n
                location[o], location[q] = location[q], location[o]
            else:
                target = np.random.randint(count)
                for q in range(n):
                    if group[q] == group[o]:
                        location[q] = target
        else:
            patience[o] = np.random.normal() * 0.1 * wide + old if kind < 0.8 else np.random.random() * wide
        makespan = decode(timing, links, location, patience, sequence, start, end)
        limit = cost - temperature * np.log(1.0 - np.random.random())
        accepted = False
        if makespan <= limit:
            excess = run_memory_excess(storage, location, start, end)
            if makespan + cooling.penalty * excess <= limit:
                accepted = True
                cost = makespan + cooling.penalty * excess
                if excess == 0 and (best < 0 or makespan < best):
                    best = makespan
                    walk.best_location[:] = location
                    walk.best_sequence[:] = sequence
        if not accepted:
            location[:] = saved
            patience[o] = old
    return best


def list_anneal(
    lowered: Lowered, location: Array, *, iterations: int, seed: int, hot: float = 0.01, relocate: float = 0.5
) -> Mapped | None:
    """The best schedule found, or ``None`` if nothing fits the DRAM.

    Parameters
    ----------
    hot : float
        First temperature as a share of the start's makespan.
    relocate : float
        Share of moves that change locations; 0 keeps them.
    """
    n, pred_ptr, pred = lowered.n, lowered.timing.pred_ptr, lowered.timing.pred
    order = np.argsort(pred, kind="stable")
    groups: dict[tuple[str, int], int] = {}
    links = Links(
        succ_ptr=np.searchsorted(pred[order], np.arange(n + 1)).astype(np.int64),
        succ=np.repeat(np.arange(n), np.diff(pred_ptr))[order].astype(np.int64),
        group=np.array([groups.setdefault((p, q), len(groups)) for p, q, _ in lowered.operations], np.int64),
    )
    scale = float(max(1, lowered.makespan(location, lowered.topological)))
    patience = np.array([0.0 if p == "WU" else 0.01 * scale for p, _, _ in lowered.operations])
    walk = Walk(location.copy(), patience, location.copy(), lowered.topological.copy())
    penalty = 10.0 * scale / max(1, int(lowered.storage.capacity.max(initial=1)))
    cooling = Cooling(iterations, seed, hot * scale, max(1e-5 * scale, 1e-3), penalty, relocate)
    if anneal(lowered.timing, lowered.storage, links, walk, cooling) < 0:
        return None
    return timed(lowered, walk.best_location, walk.best_sequence)


def starts(lowered: Lowered) -> list[Array]:
    """Locations to start from: everything on one accelerator, and share ``b`` on accelerator ``b``."""
    found = [np.full(lowered.n, a, np.int64) for a in range(lowered.accelerators)]
    found.append(np.array([max(share, 0) for _, _, share in lowered.operations], np.int64))
    return found
